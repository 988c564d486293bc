%% `erlang.run' and plain asyncio inside of calls: on workers, in threads, in contexts, at once.
-module(py_run_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_call_runs_a_coroutine_of_its_own/1,
    plain_asyncio_gets_our_loop/1,
    the_setting_leaves_asyncio_its_own_loop/1,
    many_calls_run_their_loops_at_once/1,
    loops_run_in_threads_of_python/1,
    loops_run_in_contexts_at_once/1,
    a_call_that_sleeps_in_its_loop_is_cancelled/1,
    a_context_that_sleeps_in_its_loop_is_interrupted/1,
    a_served_connection_is_answered/1,
    a_child_process_tells_its_exit_code/1,
    a_loop_is_turned_by_hand/1,
    the_first_import_may_be_any_module_of_the_package/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

a_call_runs_a_coroutine_of_its_own(_Config) ->
    ?assertEqual({ok, <<"ErlangEventLoop">>}, py:call(py_runs, loop_of_run, [])),
    ok = py:exec(<<"import erlang, py_runs\nname = erlang.run(py_runs.loop_name())\n">>),
    ?assertEqual({ok, <<"ErlangEventLoop">>}, py:eval(<<"name">>)).

plain_asyncio_gets_our_loop(_Config) ->
    ?assertEqual({ok, <<"ErlangEventLoop">>}, py:call(py_runs, loop_of_asyncio_run, [])),
    ?assertEqual({ok, <<"ErlangEventLoop">>}, py:call(py_runs, loop_after_install, [])).

the_setting_leaves_asyncio_its_own_loop(_Config) ->
    ok = py_test:stop(),
    ok = application:set_env(erlang_python, asyncio_policy, false),
    try
        {ok, _} = application:ensure_all_started(erlang_python),
        ?assertEqual({ok, <<"_UnixSelectorEventLoop">>}, py:call(py_runs, loop_of_asyncio_run, [])),
        ?assertEqual({ok, <<"ErlangEventLoop">>}, py:call(py_runs, loop_of_run, []))
    after
        ok = py_test:stop(),
        ok = application:unset_env(erlang_python, asyncio_policy),
        {ok, _} = application:ensure_all_started(erlang_python)
    end.

many_calls_run_their_loops_at_once(_Config) ->
    %% Each loop runs until all of them do.
    #{num_workers := Count} = persistent_term:get(py_config),
    Place = erlang:unique_integer(),
    Refs = [py:spawn_call(py_runs, meet, [Place, Count]) || _ <- lists:seq(1, Count)],
    ?assertEqual(lists:duplicate(Count, {ok, Count}), [py:await(Ref, 20_000) || Ref <- Refs]).

loops_run_in_threads_of_python(_Config) ->
    ?assertEqual({ok, [1, 1, 1, 1]}, py:call(py_runs, in_threads, [4])).

loops_run_in_contexts_at_once(_Config) ->
    Contexts = [element(2, py_context:new(#{})) || _ <- [1, 2, 3]],
    Refs = [py:spawn_call(Ctx, py_runs, naps, [2, 0.05]) || Ctx <- Contexts],
    ?assertEqual([{ok, 2}, {ok, 2}, {ok, 2}], [py:await(Ref) || Ref <- Refs]),
    lists:foreach(fun py_context:stop/1, Contexts).

a_call_that_sleeps_in_its_loop_is_cancelled(_Config) ->
    {ok, Before} = py:call(py_runs, ended, []),
    ?assertReason(timeout, py:call(py_runs, sleep_for_ever, [], #{}, 100)),
    py_test:eventually(fun() -> {ok, Before + 1} =:= py:call(py_runs, ended, []) end).

a_context_that_sleeps_in_its_loop_is_interrupted(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    Ref = py:spawn_call(Ctx, py_runs, sleep_for_ever, []),
    ok = py_test:eventually(fun() -> {ok, true} =:= py:call(py_runs, sleeps, []) end),
    ok = py:interrupt(Ctx),
    ?assertReason(interrupted, py:await(Ref, 20_000)),
    py_context:stop(Ctx).

a_served_connection_is_answered(_Config) ->
    ?assertEqual({ok, <<"echo: hello">>}, py:call(py_runs, echo, [<<"hello">>])).

a_child_process_tells_its_exit_code(_Config) ->
    ?assertEqual({ok, {3, <<"out\n">>}}, py:call(py_runs, child, [<<"echo out; exit 3">>])),
    Ref = py:async_call(py_runs, child_code, [<<"exit 7">>]),
    ?assertEqual({ok, 7}, py:await(Ref)).

a_loop_is_turned_by_hand(_Config) ->
    ?assertEqual({ok, [1, 2]}, py:call(py_runs, by_hand, [])).

%% asyncio's first import sets our policy, whoever begins it.
the_first_import_may_be_any_module_of_the_package(_Config) ->
    Modules = ["erlang._loop", "erlang._run", "erlang._loop_tls", "erlang_loop"],
    [?assertEqual({0, <<"ErlangEventLoop">>}, loop_after_import(Name)) || Name <- Modules].

%% In a node of its own: the name of the loop that plain asyncio makes, and the node's exit status.
loop_after_import(Module) ->
    Python =
        "import " ++ Module ++ ", asyncio, erlang\n"
        "async def name(): return type(asyncio.get_running_loop()).__name__\n"
        "found = asyncio.run(name())\n",
    Code = io_lib:format(
        "{ok, _} = application:ensure_all_started(erlang_python), ok = py:exec(<<~p>>),"
        "{ok, Name} = py:eval(<<\"found\">>), io:format(\"~~ts\", [Name]), init:stop().",
        [Python]
    ),
    {Status, Output, _} = py_test:run_node(lists:flatten(Code), 60_000),
    {Status, Output}.
