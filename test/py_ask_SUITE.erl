%% Coroutines that wait for Erlang: when they are cancelled the processes that work for them end, and there
%% are not more of these than the setting `max_callbacks' allows.
-module(py_ask_SUITE).

-include("py_test.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    the_function_of_a_cancelled_call_ends/1,
    many_cancelled_calls_leave_no_process/1,
    a_cancelled_call_ends_no_other/1,
    past_max_callbacks_a_call_is_refused/1,
    executors_that_are_slow_to_leave_do_not_end_their_manager/1,
    in_a_small_node/1,
    in_a_full_node/1
]).

all() -> py_test:cases(?MODULE) -- [in_a_small_node, in_a_full_node].

suite() -> [{timetrap, {seconds, 120}}].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% Says who it is, and never returns.
register_waiting(Name) ->
    Test = self(),
    ok = py:register_function(Name, fun([]) ->
        Test ! {waits, self()},
        stay()
    end).

stay() ->
    receive
        {are_you_there, From} ->
            _ = From ! yes,
            stay()
    end.

waiting() ->
    receive
        {waits, Pid} -> Pid
    end.

the_function_of_a_cancelled_call_ends(_Config) ->
    ok = register_waiting(ask_waits),
    Ref = py:async_call(py_ask_calls, wait, [ask_waits]),
    Pid = waiting(),
    Monitor = monitor(process, Pid),
    %% A monitor is on its way for a while: what others do meanwhile may overtake it, and then it says `noproc'.
    Pid ! {are_you_there, self()},
    receive yes -> ok end,
    ok = py:cancel(Ref),
    receive
        {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(cancelled, Why)
    end.

many_cancelled_calls_leave_no_process(_Config) ->
    ok = register_waiting(ask_waits),
    Refs = [py:async_call(py_ask_calls, wait, [ask_waits]) || _ <- lists:seq(1, 500)],
    Monitors = [monitor(process, waiting()) || _ <- Refs],
    [ok = py:cancel(Ref) || Ref <- Refs],
    [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors],
    ?assertMatch(#{waiters := #{coroutines := 0}}, py:stats()).

a_cancelled_call_ends_no_other(_Config) ->
    ok = py:register_function(ask_answers, fun([Number]) -> Number end),
    Run = fun() -> py_event_loop:run(py_ask_calls, cancelled_now_and_then, [ask_answers, 2000]) end,
    ?assertEqual({ok, 1000}, Run()).

past_max_callbacks_a_call_is_refused(Config) ->
    Peer = py_test:peer([{max_callbacks, 20}]),
    Data = proplists:get_value(data_dir, Config),
    Answers = peer:call(Peer, ?MODULE, in_a_small_node, [Data], 60_000),
    ok = py_test:stop_peer(Peer),
    {{ok, [Text]}, Executors, After} = Answers,
    ?assertMatch({match, _}, re:run(Text, "max_callbacks")),
    ?assert(Executors =< 20, Executors),
    ?assertEqual({ok, <<"hello">>}, After).

in_a_small_node(Data) ->
    _ = py_test:start([{data_dir, Data}]),
    Test = self(),
    ok = py:register_function(ask_waits, fun([]) ->
        Test ! {waits, self()},
        receive never -> ok end
    end),
    ok = py:register_function(ask_hello, fun([]) -> <<"hello">> end),
    Refused = py_event_loop:run(py_ask_calls, many, [ask_waits, 100, 80]),
    %% Those that were refused never ran.
    Executors = length([Pid || {waits, Pid} <- element(2, process_info(self(), messages))]),
    Hello = fun() -> py:eval(<<"__import__('erlang').call('ask_hello')">>) end,
    ok = py_test:eventually(fun() -> Hello() =:= {ok, <<"hello">>} end),
    {Refused, Executors, Hello()}.

executors_that_are_slow_to_leave_do_not_end_their_manager(Config) ->
    Peer = py_test:peer([{max_callbacks, 2}]),
    Data = proplists:get_value(data_dir, Config),
    {Manager, Answer, After} = peer:call(Peer, ?MODULE, in_a_full_node, [Data], 60_000),
    ok = py_test:stop_peer(Peer),
    ?assertEqual({ok, true}, Answer),
    ?assertEqual(Manager, After).

%% Executors that were told to leave, and have not yet: there are more than `max_callbacks' meanwhile.
in_a_full_node(Data) ->
    _ = py_test:start([{data_dir, Data}]),
    Test = self(),
    ok = py:register_function(ask_runs, fun([Leaves]) ->
        _ = process_flag(trap_exit, Leaves),
        Test ! {runs, self()},
        true
    end),
    Call = fun(Leaves) -> py_test:in_process(fun() -> py:call(erlang, call, [ask_runs, Leaves]) end) end,
    Runs = fun(Leaves) ->
        {ok, true} = Call(Leaves),
        receive {runs, Pid} -> Pid end
    end,
    Manager = whereis(py_callback),
    Slow = [
        begin
            Pid = Runs(false),
            true = erlang:suspend_process(Pid),
            Pid
        end
     || _ <- [1, 2, 3]
    ],
    %% This one ends at once: room for fresh ones is asked for again.
    Ends = Runs(true),
    ok = py_test:eventually(fun() -> not is_process_alive(Ends) end),
    _ = sys:get_state(Manager),
    Answer = Call(false),
    %% No number of a callback, and nobody left to make room.
    [Manager ! {py_callback, Id, a, b, c, d, e} || Id <- [-1, 1 bsl 64], _ <- lists:seq(1, 10)],
    _ = try sys:get_state(Manager) catch exit:_ -> gone end,
    After = whereis(py_callback),
    [true = erlang:resume_process(Pid) || Pid <- Slow, is_process_alive(Pid)],
    {Manager, Answer, After}.
