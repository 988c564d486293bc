%% What callers hear while the application stops, when it is stopped, and before it was started.
-module(py_not_running_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([before_the_start/0]).
-export([
    running_and_queued_calls_hear_of_the_stop/1,
    whoever_waits_hears_of_the_stop/1,
    whoever_asks_one_that_ends_hears_of_the_stop/1,
    python_that_waits_for_erlang_hears_of_the_stop/1,
    every_function_of_users_is_asked/1,
    without_the_application_everything_says_not_running/1,
    before_the_first_start_everything_says_not_running/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Started = py_test:start(Config),
    ok = py_test:export_python(filename:join([py_test:root(), "test", "py_life_SUITE_data"])),
    Started.

end_per_suite(Config) ->
    _ = init_per_testcase(end_per_suite, Config),
    ok.

init_per_testcase(_Case, Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    Config.

running_and_queued_calls_hear_of_the_stop(_Config) ->
    #{num_workers := Workers} = persistent_term:get(py_config),
    {_Gate, Running} = py_test:occupy(main, Workers),
    Queued = [py:spawn_call(py_tools, note, [N]) || N <- lists:seq(1, 10)],
    {ok, Stream} = py:stream_start(builtins, range, [10]),
    {Millis, ok} = py_test:milliseconds(fun() -> application:stop(erlang_python) end),
    ?assert(Millis < 3000, Millis),
    [?assertReason({context_died, _}, py:await(Ref, 5000)) || Ref <- Running ++ Queued],
    receive
        {py_stream, Stream, Error} -> ?assertReason({context_died, _}, Error)
    end,
    {ok, _} = application:ensure_all_started(erlang_python),
    ?assertEqual({ok, []}, py:call(py_tools, notes, [])),
    ok = py_test:nothing_waits().

%% What each of the funs gives that wait while the application is stopped.
at_the_stop(Waiting, Begun) ->
    Test = self(),
    Tell = fun(Name, Wait) -> Test ! {Name, try Wait() catch Kind:Why -> {Kind, Why} end} end,
    Pids = [spawn(fun() -> Tell(Name, Wait) end) || {Name, Wait} <- maps:to_list(Waiting)],
    Waits = fun(Pid) -> process_info(Pid, status) =:= {status, waiting} end,
    ok = py_test:eventually(fun() -> lists:all(Waits, Pids) andalso Begun() end),
    ok = application:stop(erlang_python),
    Hear = fun(Name, _) -> receive {Name, Answer} -> Answer after 10_000 -> nothing end end,
    Told = maps:map(Hear, Waiting),
    {ok, _} = application:ensure_all_started(erlang_python),
    Told.

whoever_waits_hears_of_the_stop(_Config) ->
    {ok, Empty} = py_channel:new(),
    {ok, Full} = py_channel:new(#{max => 1}),
    ok = py_channel:put(Full, 1),
    {ok, Loop} = py_event_loop:start_link(),
    true = unlink(Loop),
    Nodes = #{sleep => #{kind => io, run => {py, asyncio, sleep}, inputs => [time]}},
    Waiting = #{
        recv => fun() -> py_channel:recv(Empty) end,
        recv_in_time => fun() -> py_channel:recv(Empty, 60_000) end,
        put => fun() -> py_channel:put(Full, 2) end,
        run => fun() -> py_event_loop:run(asyncio, sleep, [60]) end,
        gather => fun() -> py:async_gather([{asyncio, sleep, [60]}]) end,
        asgi => fun() -> py_asgi:run(py_life, hangs, #{}, <<>>) end,
        asgi_async => fun() ->
            {ok, Ref} = py_asgi:run_async(py_life, hangs, #{}, <<>>),
            py_asgi:await_response(Ref, infinity)
        end,
        dag => fun() -> py_dag:run(#{nodes => Nodes}, #{time => 60}) end
    },
    Begun = fun() ->
        #{receivers := Receivers} = py_channel:info(Empty),
        #{senders := Senders} = py_channel:info(Full),
        {Receivers, Senders} =:= {2, 1}
    end,
    Told = at_the_stop(Waiting, Begun),
    Closed = {error, closed},
    ?assertMatch(#{recv := Closed, recv_in_time := Closed, put := Closed}, Told),
    Others = maps:without([recv, recv_in_time, put], Told),
    ?assertEqual(#{}, maps:filter(fun(_, Answer) -> not is_reason(Answer) end, Others)).

is_reason({error, Reason}) -> py_error:is_reason(Reason);
is_reason(_) -> false.

whoever_asks_one_that_ends_hears_of_the_stop(_Config) ->
    Servers = [py_shared_dict, py_bind, py_subinterp_pool, py_context_sup, py_channel_sup, py_asgi_sup],
    Waiting = #{
        shared_dict => fun() -> py:shared_dict_new() end,
        bind => fun() -> py:bind() end,
        own_context => fun() -> py:context() end,
        parallel => fun() -> py:parallel([{math, sqrt, [4]}]) end,
        context => fun() -> py_context:new(#{}) end,
        register_pool => fun() -> py:register_pool(life_pool, #{}) end,
        unregister_pool => fun() -> py:unregister_pool(life_pool) end,
        channel => fun() -> py_channel:new() end,
        serve => fun() -> py_asgi:serve(<<"py_life:hangs">>, #{port => 0}) end
    },
    lists:foreach(fun sys:suspend/1, Servers),
    Begun = fun() -> lists:all(fun has_mail/1, Servers) end,
    Told = at_the_stop(Waiting, Begun),
    ?assertEqual(#{}, maps:filter(fun(_, Answer) -> Answer =/= {error, not_running} end, Told)).

has_mail(Server) ->
    {message_queue_len, Length} = process_info(whereis(Server), message_queue_len),
    Length > 0.

python_that_waits_for_erlang_hears_of_the_stop(_Config) ->
    Test = self(),
    ok = py:register_function(life_waits, fun([]) ->
        Test ! waits,
        receive never -> ok end
    end),
    {ok, none} = py:call(py_life, begin_to_wait, []),
    [ok = py_test:message(waits) || _ <- [1, 2]],
    ok = py_test:stop(),
    {ok, _} = application:ensure_all_started(erlang_python),
    Heard = {ok, [<<"RuntimeError">>, <<"RuntimeError">>]},
    ok = py_test:eventually(fun() -> py:call(py_life, what_was_heard, []) =:= Heard end),
    ?assertMatch(#{waiting_in_callbacks := 0}, py:stats()).

every_function_of_users_is_asked(_Config) ->
    ?assertEqual([], py_entry_points:without_arguments()).

without_the_application_everything_says_not_running(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    {ok, Object} = py:call(builtins, list, [], #{}, #{return => ref}),
    ok = py_test:stop(),
    %% Processes that can't start are linked.
    process_flag(trap_exit, true),
    Answers = wrong_answers(),
    OfObject = [py:call_method(Object, append, [1]), py:getattr(Object, x), py:to_term(Object)],
    ?assertReason({context_died, _}, py:call(Ctx, math, sqrt, [4])),
    ?assertEqual(not_running, py:interrupt(Ctx)),
    {ok, _} = application:ensure_all_started(erlang_python),
    %% Python and the library stay. Some functions tell of Python; a graph, a limit or a loop without Python
    %% needs the library only. The loop in question is none.
    Stay = [{py, version}, {py, stats}, {py, execution_mode}, {py_dag, limit}, {py_dag, new}] ++
        [{py_event_worker, start_link}, {py_event_router, start_link}, {py_event_loop, run_async}],
    ?assertEqual([], [Answer || {{M, F, _}, _} = Answer <- Answers, not lists:member({M, F}, Stay)]),
    ?assertEqual([{error, not_running} || _ <- OfObject], OfObject),
    ?assertEqual({ok, 2.0}, py:call(math, sqrt, [4])),
    ?assertEqual({ok, []}, py:to_term(Object)).

before_the_first_start_everything_says_not_running(_Config) ->
    Peer = py_test:peer([]),
    Wrong = peer:call(Peer, ?MODULE, before_the_start, [], 60_000),
    ok = py_test:stop_peer(Peer),
    ?assertEqual([], Wrong).

before_the_start() ->
    %% Processes that can't start are linked.
    process_flag(trap_exit, true),
    ok = logger:set_process_metadata(#{request => 1}),
    Wrong = wrong_answers(),
    {error, not_running} = py_context:new(#{mode => subinterp}),
    {error, not_running} = py:call(math, sqrt, [4], #{}, #{trace_id => 1}),
    {error, timeout} = py:await(make_ref(), 0),
    %% This process has asked in vain so far.
    {ok, _} = application:ensure_all_started(erlang_python),
    {ok, 2.0} = py:call(math, sqrt, [4]),
    Wrong.

%% Those that have nothing to ask for: there is nothing to cancel, to leave or to stop, and nobody waits; what
%% belongs to a process, and that process is gone.
wrong_answers() ->
    Closed = {error, closed},
    NotBound = {error, context_not_bound},
    NoRequest = {error, {bad_argument, no_such_request}},
    py_entry_points:wrong_answers(#{
        {py, cast} => ok,
        {py, cancel} => ok,
        {py, stream_cancel} => ok,
        {py, stream_ack} => {error, {bad_argument, ref}},
        {py, ctx_call} => NotBound,
        {py, ctx_eval} => NotBound,
        {py, ctx_exec} => NotBound,
        {py, interrupt} => not_running,
        {py, is_bound} => false,
        {py, is_ref} => false,
        {py, last_error} => undefined,
        {py, unbind} => ok,
        {py, unregister_function} => ok,
        {py_asgi, ack} => ok,
        {py_asgi, await_response} => NoRequest,
        {py_channel, close} => ok,
        {py_channel, info} => Closed,
        {py_channel, put} => Closed,
        {py_channel, recv} => Closed,
        {py_channel, send} => Closed,
        {py_context, interrupt} => not_running,
        {py_context, stop} => ok,
        {py_event_loop_pool, get_stats} => [],
        {py_event_loop_pool, get_stats, 1} => {error, not_running},
        {py_event_router, stop} => ok,
        {py_event_worker, stop} => ok,
        {py_pg, broadcast} => 0,
        {py_pg, members} => [],
        {py_reactor_context, stop} => ok
    }).
