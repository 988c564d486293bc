%% Contexts that are sub-interpreters: their event loops, their end, and what is known to go wrong.
-module(py_subinterp_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([at_once/1]).
-export([
    coroutines_of_a_context_run_together/1,
    a_context_has_a_loop_of_its_own/1,
    names_of_a_context_are_seen_by_its_tasks/1,
    code_runs_loops_by_itself/1,
    a_task_calls_erlang/1,
    code_without_a_loop_spawns_tasks/1,
    calls_are_gathered_in_a_context/1,
    a_task_that_is_not_awaited_in_time_is_cancelled/1,
    an_exception_of_a_task_crosses/1,
    several_contexts_serve_one_socket/1,
    tasks_of_a_stopped_context_are_answered/1,
    a_call_on_top_of_one_in_an_interpreter_is_stopped/1,
    what_ends_a_call_does_not_hit_one_on_top_of_it/1,
    a_running_call_is_interrupted/1,
    an_interpreter_ends_with_what_it_used/1,
    an_interpreter_ends_without_a_word/1,
    a_loop_that_blocks_does_not_keep_its_interpreter/1,
    an_interpreter_with_a_daemon_thread_ends_after_it/1,
    an_interpreter_with_a_thread_ends_after_it/1,
    trio_runs_as_a_guest/1,
    interpreters_import_at_the_same_time/1,
    types_and_errors_cross/1,
    an_interpreter_gets_no_more_memory_than_it_may/1,
    a_bound_that_can_not_be_kept_is_refused/1,
    other_allocators_are_not_counted/1,
    a_context_has_a_queue_of_its_own_length/1,
    what_stays_of_many_contexts_is_known/1,
    a_pool_of_interpreters_runs_calls_at_once_and_stays_full/1
]).

-define(MIB, 1_048_576).

all() -> py_test:cases(?MODULE) -- [at_once].

init_per_suite(Config) ->
    Started = py_test:start(Config),
    case py_context:new(#{mode => subinterp}) of
        {ok, Ctx} ->
            ok = py_context:stop(Ctx),
            Started;
        {error, not_supported} ->
            {skip, "this Python has no own-GIL sub-interpreters"}
    end.

end_per_suite(_Config) -> ok.

init_per_testcase(_Name, Config) ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    [{context, Ctx} | Config].

end_per_testcase(_Name, Config) ->
    ok = py_context:stop(ctx(Config)).

ctx(Config) -> proplists:get_value(context, Config).

async(Ctx, Function, Args) ->
    py:await(py:async_call(Ctx, py_subs, Function, Args)).

%% ---- loops

coroutines_of_a_context_run_together(Config) ->
    Ctx = ctx(Config),
    Refs = [py:async_call(Ctx, py_subs, meet, [11]) || _ <- lists:seq(1, 10)],
    %% While they wait the context's thread is free.
    ?assertEqual({ok, 4}, py:eval(Ctx, <<"2 + 2">>)),
    ?assertEqual({ok, 11}, async(Ctx, meet, [11])),
    ?assertEqual([{ok, 11} || _ <- Refs], [py:await(Ref) || Ref <- Refs]),
    #{pools := #{Ctx := #{event_loop := #{started := Started}}}} = py:stats(),
    ?assert(Started >= 11).

a_context_has_a_loop_of_its_own(Config) ->
    {ok, Worker} = py_context:new(#{}),
    {ok, [Node, _]} = py:await(py:async_call(py_subs, where_async, [])),
    {ok, [Sub, <<"ErlangEventLoop">>]} = async(ctx(Config), where_async, []),
    {ok, [Own, <<"ErlangEventLoop">>]} = async(Worker, where_async, []),
    ?assertEqual(3, length(lists:usort([Node, Sub, Own]))),
    ?assertEqual({ok, [Sub, <<"ErlangEventLoop">>]}, async(ctx(Config), where_async, [])),
    ok = py_context:stop(Worker).

names_of_a_context_are_seen_by_its_tasks(Config) ->
    Ctx = ctx(Config),
    ok = py:exec(Ctx, <<"y = 5\nasync def mine(x):\n    return x + y\n">>),
    ?assertEqual({ok, 6}, py:await(py:async_call(Ctx, '__main__', mine, [1]))),
    ?assertEqual({ok, [1, 2]}, py:async_stream(Ctx, builtins, iter, [[1, 2]])).

code_runs_loops_by_itself(Config) ->
    Loop = <<"ErlangEventLoop">>,
    ?assertEqual({ok, [Loop, Loop]}, py:call(ctx(Config), py_subs, run_loops, [])).

a_task_calls_erlang(Config) ->
    Self = self(),
    ok = py:register_function(sub_double, fun([X]) -> 2 * X end),
    ?assertEqual(
        {ok, [[2, 4, 6], 2, Self]},
        async(ctx(Config), ask_erlang, [<<"sub_double">>, 1])
    ).

code_without_a_loop_spawns_tasks(Config) ->
    {ok, [Thread, Loop]} = py:call(ctx(Config), py_subs, spawn, []),
    ?assertEqual({ok, [Thread, Loop]}, async(ctx(Config), where_async, [])).

calls_are_gathered_in_a_context(Config) ->
    Calls = [{py_subs, meet, [3]} || _ <- lists:seq(1, 3)],
    ?assertEqual({ok, [3, 3, 3]}, py:async_gather(Calls, #{context => ctx(Config)})).

a_task_that_is_not_awaited_in_time_is_cancelled(Config) ->
    Ref = py:async_call(ctx(Config), py_subs, wait_until_cancelled, [self()]),
    ok = py_test:message(<<"waits">>),
    ?assertEqual({error, timeout}, py:await(Ref, 0)),
    ok = py_test:message(<<"cancelled">>),
    ok = py_test:nothing_waits().

an_exception_of_a_task_crosses(Config) ->
    ?assertEqual({error, {<<"py_subs.Refused">>, <<"no">>}}, async(ctx(Config), fail, [])).

several_contexts_serve_one_socket(Config) ->
    Test = self(),
    ok = py:register_function(blocked, fun([Name]) ->
        Test ! {blocked, Name, self()},
        receive go_on -> true end
    end),
    {ok, Other} = py_context:new(#{mode => subinterp}),
    {ok, [Fd, Port]} = py:call(py_subs, listen, []),
    [
        ?assertEqual({ok, Name}, async(Ctx, serve, [Fd, Name]))
     || {Ctx, Name} <- [{ctx(Config), <<"a">>}, {Other, <<"b">>}]
    ],
    {ok, none} = py:call(os, close, [Fd]),
    %% Whoever answers first is kept busy: the other one serves on.
    [First, <<"block\n">>] = request(Port, <<"block\n">>),
    Executor = receive {blocked, First, Pid} -> Pid end,
    [Second] = [Name || Name <- [<<"a">>, <<"b">>], Name =/= First],
    [?assertEqual([Second, <<"x\n">>], request(Port, <<"x\n">>)) || _ <- lists:seq(1, 20)],
    Executor ! go_on,
    ok = py_context:stop(Other).

request(Port, Line) ->
    {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}]),
    ok = gen_tcp:send(Socket, Line),
    {ok, Answer} = gen_tcp:recv(Socket, 0),
    ok = gen_tcp:close(Socket),
    binary:split(Answer, <<" ">>).

tasks_of_a_stopped_context_are_answered(_Config) ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    Ref = py:async_call(Ctx, py_subs, wait_until_cancelled, [self()]),
    ok = py_test:message(<<"waits">>),
    ends(Ctx),
    ?assertReason({context_died, _}, py:await(Ref)).

%% It is one of the main pool, and runs on the thread of the interpreter that waits for its process.
a_call_on_top_of_one_in_an_interpreter_is_stopped(Config) ->
    ok = py:register_function(sub_on_top, fun(_) ->
        {error, timeout} = py:eval(<<"sum(1 for _ in iter(int, 1))">>, #{}, 50),
        {ok, Root} = py:call(math, sqrt, [4]),
        Root
    end),
    Opts = #{context => ctx(Config), timeout => 60_000},
    ?assertEqual({ok, 2.0}, py:call(erlang, call, [sub_on_top], #{}, Opts)).

%% Its function calls Python again and again while the context ends.
what_ends_a_call_does_not_hit_one_on_top_of_it(_Config) ->
    Self = self(),
    ok = py:register_function(sub_on_top, fun(_) ->
        Self ! begun,
        Self ! {seen, lists:usort([py:call(math, sqrt, [4]) || _ <- lists:seq(1, 300)])}
    end),
    Seen = lists:append([on_top_while_it_ends() || _ <- lists:seq(1, 30)]),
    ?assertEqual([], lists:usort(Seen) -- [{ok, 2.0}]).

on_top_while_it_ends() ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    {_, Monitor} = spawn_monitor(fun() -> exit(py:call(erlang, call, [sub_on_top], #{}, #{context => Ctx})) end),
    receive begun -> ok end,
    ok = py_context:stop(Ctx),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    receive {seen, Seen} -> [Each || Each <- Seen, not is_died(Each)] end.

is_died({error, {context_died, _}}) -> true;
is_died(_) -> false.

a_running_call_is_interrupted(Config) ->
    Ctx = ctx(Config),
    Code = <<"erlang.send(pid, 'spins')\nwhile True:\n    pass\n">>,
    ok = py:exec(Ctx, <<"import erlang\ndef spin(pid, code):\n    exec(code, {**globals(), 'pid': pid})">>),
    Ref = py:spawn_call(Ctx, '__main__', spin, [self(), Code]),
    ok = py_test:message(<<"spins">>),
    ?assertEqual(ok, py:interrupt(Ctx)),
    ?assertEqual({error, interrupted}, py:await(Ref)),
    ?assertEqual({ok, 1}, py:eval(Ctx, <<"1">>)).

%% ---- ends

%% Stops the context and waits for the end of its interpreter.
ends(Ctx) ->
    #{subinterpreters := #{ended := Before}} = py:stats(),
    ok = py_context:stop(Ctx),
    ok = py_test:eventually(fun() ->
        #{subinterpreters := #{ended := Ended}} = py:stats(),
        Ended > Before
    end).

left_behind() ->
    #{subinterpreters := #{left_behind := Left}} = py:stats(),
    Left.

an_interpreter_ends_with_what_it_used(_Config) ->
    Left = left_behind(),
    Uses = [
        {call, leave_executor, 45},
        {async, leave_default_executor, 3},
        {call, leave_graph, #{<<"b">> => 2}},
        {call, leave_thread_that_makes_another, true}
    ],
    [
        begin
            {ok, Ctx} = py_context:new(#{mode => subinterp}),
            Result =
                case How of
                    call -> py:call(Ctx, py_subs, Function, []);
                    async -> async(Ctx, Function, [])
                end,
            ?assertEqual({ok, Expected}, Result),
            ends(Ctx)
        end
     || {How, Function, Expected} <- Uses
    ],
    ?assertEqual(Left, left_behind()).

%% In a node of its own, whose output is read.
an_interpreter_ends_without_a_word(_Config) ->
    {Status, Output, _} = py_test:run_node(
        "{ok, _} = application:ensure_all_started(erlang_python), "
        "{ok, Ctx} = py_context:new(#{mode => subinterp}), "
        "ok = py:exec(Ctx, \"x = 1\"), "
        "ok = py_context:stop(Ctx), "
        "ok = py_test:eventually(fun() -> "
        "    maps:get(ended, maps:get(subinterpreters, py:stats())) =:= 1 end), "
        "halt().",
        60_000
    ),
    ?assertEqual({0, <<>>}, {Status, Output}).

a_loop_that_blocks_does_not_keep_its_interpreter(_Config) ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    Ref = py:async_call(Ctx, py_subs, block, [self()]),
    ok = py_test:message(<<"blocks">>),
    ends(Ctx),
    ?assertReason({context_died, _}, py:await(Ref)).

an_interpreter_with_a_daemon_thread_ends_after_it(_Config) ->
    ends_after_its_thread(sub_daemon_may_end, true).

an_interpreter_with_a_thread_ends_after_it(_Config) ->
    ends_after_its_thread(sub_thread_may_end, false).

ends_after_its_thread(Name, Daemon) ->
    Left = left_behind(),
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    ?assertEqual({ok, true}, py:call(Ctx, py_subs, leave_thread, [atom_to_binary(Name), Daemon])),
    #{subinterpreters := #{ended := Before}} = py:stats(),
    ok = py_context:stop(Ctx),
    ok = py_test:eventually(fun() -> left_behind() =:= Left + 1 end),
    true = register(Name, self()),
    ok = py_test:eventually(fun() -> left_behind() =:= Left end),
    #{subinterpreters := #{ended := Ended}} = py:stats(),
    ?assert(Ended > Before).

%% Its thread waits for work for ten seconds, and the interpreter for the thread.
trio_runs_as_a_guest(_Config) ->
    case os:getenv("PY_TEST_VENV", "") of
        "" ->
            {skip, "trio is not installed"};
        Venv ->
            ok = py:activate_venv(Venv),
            {ok, Ctx} = py_context:new(#{mode => subinterp}),
            ok = py:deactivate_venv(),
            case py:call(Ctx, py_subs, trio_guest, []) of
                {error, {'ImportError', <<"module _ctypes", _/binary>>}} ->
                    {skip, "trio needs a module that this Python refuses in sub-interpreters"};
                Result ->
                    ?assertEqual({ok, true}, Result),
                    ends(Ctx)
            end
    end.

%% ---- what is known to go wrong

%% In a node of its own: should it crash, this one does not.
interpreters_import_at_the_same_time(Config) ->
    Modules = [
        <<"datetime">>, <<"asyncio">>, <<"decimal">>, <<"json">>, <<"ssl">>, <<"sqlite3">>, <<"zoneinfo">>,
        <<"ctypes">>, <<"hashlib">>, <<"xml.etree.ElementTree">>, <<"multiprocessing">>, <<"logging">>,
        <<"email">>, <<"http.client">>, <<"uuid">>, <<"random">>, <<"array">>, <<"pickle">>, <<"zlib">>
    ],
    Peer = py_test:peer([]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ok = peer:call(Peer, py_test, export_python, [proplists:get_value(data_dir, Config)]),
    New = fun() -> peer:call(Peer, py_context, new, [#{mode => subinterp}]) end,
    Contexts = [Ctx || {ok, Ctx} <- [New() || _ <- lists:seq(1, 8)]],
    ?assertEqual(8, length(Contexts)),
    Calls = [[Ctx, py_subs, import_all, [Modules]] || Ctx <- Contexts],
    Answers = peer:call(Peer, ?MODULE, at_once, [Calls], 120_000),
    %% All the same answer; a module that refuses sub-interpreters does so in each of them.
    [{ok, Refused}] = lists:usort(Answers),
    ?assertEqual([], [M || M <- [<<"asyncio">>, <<"json">>, <<"logging">>], lists:member(M, Refused)]),
    ok = py_test:stop_peer(Peer).

%% The answers of calls that are all started before the first one is awaited.
at_once(Calls) ->
    Refs = [apply(py, spawn_call, Call) || Call <- Calls],
    [py:await(Ref, 60_000) || Ref <- Refs].

types_and_errors_cross(Config) ->
    Ctx = ctx(Config),
    {ok, There} = py:call(Ctx, py_subs, values, []),
    ?assertEqual(py:call(py_subs, values, []), {ok, There}),
    ?assertMatch([#{<<"x">> := 1}, <<"2024-02-29">>, <<"1.50">>, _, [1], ok, infinity], There),
    [
        ?assertEqual({ok, Name}, py:call(Ctx, py_subs, name_of, [Term]))
     || {Term, Name} <- [
            {self(), <<"Pid">>},
            {make_ref(), <<"Ref">>},
            {fun lists:sum/1, <<"Fun">>},
            {1 bsl 100, <<"int">>}
        ]
    ],
    ok = py:register_function(sub_fails, fun([]) -> error(oops) end),
    ?assertEqual({ok, [<<"error">>, <<"oops">>]}, py:call(Ctx, py_subs, 'catch', [<<"sub_fails">>])).

%% ---- limits

an_interpreter_gets_no_more_memory_than_it_may(_Config) ->
    case py_context:new(#{mode => subinterp, max_memory => 64 * ?MIB}) of
        {ok, Ctx} ->
            Used = fun() ->
                #{pools := #{Ctx := #{memory := #{used := Now, limit := 64 * ?MIB}}}} = py:stats(),
                Now / ?MIB
            end,
            Start = Used(),
            ?assert(Start > 1 andalso Start < 16, Start),
            [
                begin
                    ?assertReason({'MemoryError', _}, py:call(Ctx, py_subs, take_memory, [How, 200])),
                    %% What was taken is given back, and the interpreter works on.
                    ?assertEqual({ok, true}, py:call(Ctx, py_subs, take_memory, [How, 20])),
                    ?assert(Used() < 64, {How, Used()})
                end
             || How <- [<<"block">>, <<"blocks">>, <<"objects">>, <<"growing">>]
            ],
            %% Others have bounds of their own, or none.
            ?assertEqual({ok, true}, py:call(py_subs, take_memory, [<<"block">>, 200])),
            ends(Ctx);
        {error, not_supported} ->
            ?assertEqual(free_threaded, py:execution_mode())
    end.

a_bound_that_can_not_be_kept_is_refused(_Config) ->
    ?assertReason(not_supported, py_context:new(#{max_memory => 64 * ?MIB})),
    ?assertReason({bad_argument, <<"the option max_memory must be an integer of 16777216 or more, got 1">>}, py_context:new(#{mode => subinterp, max_memory => 1})),
    ?assertReason({bad_argument, <<"the option max_queue must be", _/binary>>}, py_context:new(#{max_queue => 0})).

other_allocators_are_not_counted(_Config) ->
    Peer = py_test:peer([], [{"PYTHONMALLOC", "debug"}]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    New = fun(Opts) -> peer:call(Peer, py_context, new, [Opts#{mode => subinterp}]) end,
    case New(#{max_memory => 64 * ?MIB}) of
        {error, {context_died, Text}} ->
            ?assertMatch({match, _}, re:run(Text, "own allocators")),
            ?assertMatch({ok, _}, New(#{}));
        Answer ->
            ?assertEqual({error, not_supported}, Answer)
    end,
    ok = py_test:stop_peer(Peer).

a_context_has_a_queue_of_its_own_length(_Config) ->
    {ok, Ctx} = py_context:new(#{mode => subinterp, max_queue => 2}),
    ok = py:exec(Ctx, <<"import py_subs">>),
    Running = py:spawn_call(Ctx, py_subs, wait_for, [<<"sub_queue_may_move">>, self()]),
    ok = py_test:message(<<"waits">>),
    Refs = [py:spawn_call(Ctx, builtins, abs, [-1]) || _ <- lists:seq(1, 3)],
    ?assertEqual({error, overload}, py:await(lists:last(Refs))),
    true = register(sub_queue_may_move, self()),
    ?assertEqual([{ok, true}, {ok, 1}, {ok, 1}], [py:await(Ref) || Ref <- [Running | lists:droplast(Refs)]]),
    ok = py_context:stop(Ctx).

%% All kinds, made, used and stopped in turn: nothing stays but the arenas that Python keeps, which are
%% counted. `./dev bench contexts' does it a thousand times.
what_stays_of_many_contexts_is_known(_Config) ->
    Kinds = [
        #{mode => Mode, max_queue => Queue}
     || Mode <- [worker, subinterp, owngil], Queue <- [10, 1000]
    ],
    Cycle = fun(Opts) ->
        {ok, Ctx} = py_context:new(Opts),
        ok = py:exec(Ctx, <<"x = [0] * 1000">>),
        {ok, 1000} = py:eval(Ctx, <<"len(x)">>),
        {ok, [_, _]} = async(Ctx, where_async, []),
        ok = py_context:stop(Ctx)
    end,
    _ = [Cycle(Opts) || Opts <- Kinds],
    Before = figures(),
    _ = [Cycle(Opts) || _ <- lists:seq(1, 5), Opts <- Kinds],
    %% They end a moment after they are stopped.
    ok = py_test:eventually(fun() -> lists:all(fun({A, B}) -> A =< B end, lists:zip(figures(), Before)) end),
    #{subinterpreters := #{ended := Ended, kept_bytes := Kept}} = py:stats(),
    ?assert(Ended >= 20),
    ?assert(py:execution_mode() =/= subinterp orelse Kept > 0).

figures() ->
    {ok, Threads} = py:call(py_subs, threads, []),
    #{subinterpreters := #{made := Made, ended := Ended, left_behind := Left}, pools := Pools} = py:stats(),
    [Threads, Made - Ended, Left, map_size(Pools)].

a_pool_of_interpreters_runs_calls_at_once_and_stays_full(_Config) ->
    ok = py:register_pool(sub_pool, #{mode => subinterp, size => 2}),
    ?assertReason({bad_argument, _}, py:register_pool(sub_pool, #{mode => subinterp})),
    %% Two that wait for the same name are in it at the same time, in different interpreters.
    Wait = fun() ->
        Ref = py:spawn_call(sub_pool, py_subs, wait_for, [<<"sub_pool_may_move">>, self()]),
        ok = py_test:message(<<"waits">>),
        Ref
    end,
    Refs = [Wait(), Wait()],
    true = register(sub_pool_may_move, self()),
    ?assertEqual([{ok, true}, {ok, true}], [py:await(Ref) || Ref <- Refs]),
    ?assertEqual({ok, 3}, py:await(py:async_call(sub_pool, py_subs, leave_default_executor, []))),
    %% One that dies is replaced.
    [First, _] = interpreters(),
    ok = py_test:down(First),
    ok = py_test:eventually(fun() ->
        length(interpreters()) =:= 2 andalso not lists:member(First, interpreters())
    end),
    ?assertEqual({ok, 4.0}, py:call(sub_pool, math, sqrt, [16])),
    ok = py:unregister_pool(sub_pool),
    ?assertReason({bad_argument, {no_such_pool, sub_pool}}, py:call(sub_pool, math, sqrt, [16])),
    ok = py_test:eventually(fun() -> interpreters() =:= [] end).

%% The processes of the interpreters of `sub_pool'.
interpreters() ->
    Pools = py_registry:pools(sub_pool),
    [Pid || {Pid, Pool} <- py_registry:pools(), is_pid(Pid), lists:member(Pool, Pools)].
