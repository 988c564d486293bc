%% Timeouts and other numbers of users that reach a timer: the one who gives a wrong one gets an error, and
%% no process that others use ends of it.
-module(py_timeout_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_wrong_timeout_is_refused_everywhere/1,
    a_channel_outlives_a_wrong_timeout/1,
    python_hears_of_a_wrong_timeout_of_a_channel/1,
    a_channel_of_python_has_a_whole_number_of_places/1,
    an_event_worker_outlives_wrong_arguments/1,
    a_deadline_goes_with_its_answer/1,
    a_refused_job_is_answered_once/1,
    the_server_of_signals_outlives_wrong_messages/1,
    every_wrong_count_of_pieces_is_refused/1
]).

%% What neither `receive ... after' nor `erlang:send_after/3' takes.
-define(WRONG, [-1, 1.5, soon, 1 bsl 32, 1 bsl 70, <<"5">>]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

a_wrong_timeout_is_refused_everywhere(_Config) ->
    {ok, Channel} = py_channel:new(),
    Nodes = #{nodes => #{a => #{run => {py, os, getpid}}}},
    Functions = #{
        call => fun(T) -> py:call(math, sqrt, [4], #{}, T) end,
        call_option => fun(T) -> py:call(math, sqrt, [4], #{}, #{timeout => T}) end,
        eval => fun(T) -> py:eval(<<"1">>, #{}, T) end,
        spawn_call => fun(T) -> py:await(py:spawn_call(math, sqrt, [4], #{}, T)) end,
        async_call => fun(T) -> py:await(py:async_call(math, sqrt, [4], #{}, T)) end,
        gather => fun(T) -> py:async_gather([{math, sqrt, [4]}], T) end,
        async_stream => fun(T) -> py:async_stream(builtins, range, [1], #{}, T) end,
        stream => fun(T) -> py:stream(builtins, range, [1], #{}, T) end,
        stream_start => fun(T) -> py:stream_start(builtins, range, [1], #{}, T) end,
        await => fun(T) -> py:await(make_ref(), T) end,
        run => fun(T) -> py_event_loop:run(math, sqrt, [4], T) end,
        parallel => fun(T) -> py:parallel([{math, sqrt, [4]}], T) end,
        map => fun(T) -> py:map({math, sqrt}, [4], T) end,
        dag => fun(T) -> py_dag:run(Nodes, #{}, T) end,
        dag_option => fun(T) -> py_dag:run(Nodes, #{}, #{timeout => T}) end,
        asgi => fun(T) -> py_asgi:await_response(make_ref(), T) end,
        venv => fun(T) -> py:ensure_venv("/nonexistent/venv", [], #{timeout => T}) end,
        channel => fun(T) -> py_channel:recv(Channel, T) end
    },
    Answers = maps:from_list([{{Name, T}, F(T)} || {Name, F} <- maps:to_list(Functions), T <- ?WRONG]),
    Refused = fun
        (_, {error, {bad_argument, _}}) -> true;
        (_, _) -> false
    end,
    ?assertEqual(#{}, maps:filter(fun(Key, Answer) -> not Refused(Key, Answer) end, Answers)),
    ok = py_channel:close(Channel),
    ?assertMatch({match, _}, re:run(py_error:format({bad_argument, timeout}), "milliseconds")).

a_channel_outlives_a_wrong_timeout(_Config) ->
    {ok, Channel} = py_channel:new(),
    [?assertReason({bad_argument, timeout}, py_channel:recv(Channel, T)) || T <- ?WRONG],
    ok = py_channel:send(Channel, 1),
    ?assertEqual({ok, 1}, py_channel:recv(Channel, 16#FFFFFFFF)),
    ok = py_channel:close(Channel).

python_hears_of_a_wrong_timeout_of_a_channel(_Config) ->
    {ok, Channel} = py_channel:new(),
    Receive = fun(Timeout) ->
        Code = <<"__import__('erlang').Channel(pid).receive(float(timeout))">>,
        py:eval(Code, #{pid => Channel, timeout => Timeout})
    end,
    [?assertReason({'ValueError', _}, Receive(T)) || T <- [-1, <<"nan">>, 1.0e10, <<"-inf">>]],
    ?assertReason({'TimeoutError', _}, Receive(0)),
    ok = py_channel:send(Channel, 1),
    ?assertEqual({ok, 1}, Receive(<<"inf">>)),
    ok = py_channel:close(Channel).

a_channel_of_python_has_a_whole_number_of_places(_Config) ->
    ?assertReason({'ValueError', _}, py:eval(<<"__import__('erlang').Channel(max=1.5)">>)),
    ?assertReason({bad_argument, <<"the option max must be", _/binary>>}, py_channel:new(#{max => 1.5})).

an_event_worker_outlives_wrong_arguments(_Config) ->
    {ok, Worker} = py_event_worker:start_link(<<"shared">>),
    [?assertReason({bad_argument, _}, py_event_worker:call_later(Worker, T)) || T <- [-1, 1.5, soon, 1 bsl 70]],
    [
        py_test:reason(py_event_worker:Function(Worker, Fd))
     || Function <- [add_reader, add_writer], Fd <- [foo, -1, 1.5, 1 bsl 70]
    ],
    ok = py_event_worker:remove(Worker, foo),
    {ok, Id} = py_event_worker:call_later(Worker, 0),
    ok = py_test:message({py_event, Worker, Id, timer}),
    ok = py_event_worker:stop(Worker).

%% Calls that are answered long before their time is up.
a_deadline_goes_with_its_answer(_Config) ->
    Hour = 3_600_000,
    Calls = [
        fun() -> py:await(py:async_call(math, sqrt, [4], #{}, Hour)) end,
        fun() -> py:await(py:spawn_call(math, sqrt, [4], #{}, Hour)) end
    ],
    Each = fun(Call) ->
        [{ok, 2.0} = Call() || _ <- lists:seq(1, 100)],
        Before = held(),
        [{ok, 2.0} = Call() || _ <- lists:seq(1, 10_000)],
        held() - Before
    end,
    [?assert(Each(Call) < 500_000) || Call <- Calls].

%% Bytes of the emulator that are no process's: timers are among them.
held() ->
    true = garbage_collect(),
    erlang:memory(system).

a_refused_job_is_answered_once(_Config) ->
    ok = application:stop(erlang_python),
    Ref = py:spawn_call(math, sqrt, [4], #{}, 1),
    ?assertEqual({error, not_running}, py:await(Ref)),
    {ok, _} = application:ensure_all_started(erlang_python),
    {ok, none} = py:call(time, sleep, [0.05]),
    ok = py_test:nothing_waits().

the_server_of_signals_outlives_wrong_messages(_Config) ->
    Server = whereis(py_signal),
    Token = py_signal:open(),
    Wrong = [<<"nosuchsignal">>, 5, sigterm, <<"sigterm">>],
    [Server ! {<<"signal_remove">>, T, Signal} || T <- [Token, 0], Signal <- Wrong],
    Server ! {<<"signal_close">>, foo},
    [?assertReason({bad_argument, _}, py_signal:add(Token, Signal)) || Signal <- [sigkill, foo, 5]],
    ok = py_signal:close(Token),
    ?assertEqual(Server, whereis(py_signal)).

every_wrong_count_of_pieces_is_refused(_Config) ->
    [?assertReason({bad_argument, count}, py_asgi:ack(make_ref(), Count)) || Count <- [0, -1, 1.5, foo]].
