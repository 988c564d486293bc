%% Graphs: how nodes and runs end.
-module(py_dag_run_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    a_node_is_tried_again/1,
    a_node_that_timed_out_is_interrupted/1,
    a_run_past_its_deadline_ends_and_leaves_no_message/1,
    a_partial_run_gives_what_there_is/1,
    a_run_is_cancelled_at_once/1,
    a_run_ends_with_its_caller/1,
    functions_of_erlang_end_with_their_run/1,
    a_default_stands_in_for_a_failed_node/1,
    an_optional_input_may_be_missing/1,
    a_coroutine_that_timed_out_is_cancelled/1,
    a_closed_pool_ends_its_nodes/1,
    an_exception_names_the_node_and_leaves_its_traceback/1,
    objects_are_released_after_the_run/1,
    an_object_that_a_function_of_erlang_gives_lives_until_it_is_used/1,
    many_runs_at_once_get_their_own_values/1
]).

all() -> py_dag_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) -> py_dag_test:hear_notes(Config).

a_node_is_tried_again(_Config) ->
    Name = py_dag_test:key(),
    Nodes = #{a => (py_dag_test:python(succeeds_at, [name, n]))#{retries => 3, backoff => 1}},
    ?assertEqual(#{a => 3}, py_dag_test:results(Nodes, #{name => Name, n => 3})),
    Once = #{a => py_dag_test:python(succeeds_at, [name, n])},
    Run = py_dag_test:run(Once, #{name => py_dag_test:key(), n => 3}),
    ?assertReason({dag, a, {'RuntimeError', <<"attempt 1">>}}, Run).

a_node_that_timed_out_is_interrupted(_Config) ->
    Nodes = #{a => (py_dag_test:python(sleeps_in_steps, [name]))#{timeout => 20}},
    ?assertReason({dag, a, timeout}, py_dag_test:run(Nodes, #{name => <<"slow">>})),
    ?assertEqual({note, [<<"slow">>, <<"Cancelled">>]}, py_test:message()).

a_run_past_its_deadline_ends_and_leaves_no_message(_Config) ->
    Nodes = #{a => py_dag_test:python(sleeps_in_steps, [name])},
    ?assertReason(timeout, py_dag:run(#{nodes => Nodes}, #{name => <<"long">>}, 20)),
    ?assertEqual({note, [<<"long">>, <<"Cancelled">>]}, py_test:message()),
    ok = py_test:nothing_waits().

a_partial_run_gives_what_there_is(_Config) ->
    Nodes = #{a => py_dag_test:python(fails, []), b => py_dag_test:python(add, [x]), c => py_dag_test:python(add, [a, b])},
    {ok, Report} = py_dag:run(#{nodes => Nodes}, #{x => 1}, #{partial => true, want => [b, c]}),
    ?assertMatch(#{results := #{b := 1}, error := {dag, a, {'ValueError', _}}}, Report),
    ?assertEqual(1, map_size(maps:get(results, Report))).

a_run_is_cancelled_at_once(_Config) ->
    Nodes = #{a => py_dag_test:python(sleeps_in_steps, [name]), b => #{run => fun([]) -> receive never -> ok end end}},
    {ok, Run} = py_dag:start(#{nodes => Nodes}, #{name => <<"cut">>}, infinity),
    ok = py_dag:cancel(Run),
    ?assertReason(cancelled, py_dag:await(Run)).

a_run_ends_with_its_caller(_Config) ->
    Self = self(),
    Nodes = #{
        a => py_dag_test:python(sleeps_in_steps, [name]),
        b => #{run => fun([]) -> Self ! {running, self()}, receive never -> ok end end}
    },
    {Caller, Monitor} = spawn_monitor(fun() ->
        py_dag:run(#{nodes => Nodes}, #{name => <<"orphan">>}, infinity)
    end),
    {running, Function} = py_test:message(),
    FunctionEnds = monitor(process, Function),
    exit(Caller, kill),
    receive {'DOWN', Monitor, process, Caller, killed} -> ok end,
    receive {'DOWN', FunctionEnds, process, Function, _} -> ok end,
    ok = py_test:eventually(fun() -> pool_is_idle() end).

functions_of_erlang_end_with_their_run(_Config) ->
    Self = self(),
    Endless = fun([]) -> Self ! {running, self()}, receive never -> ok end end,
    Nodes = #{a => #{run => Endless, timeout => 50}, b => #{run => Endless}},
    ?assertReason({dag, a, timeout}, py_dag_test:run(Nodes, #{})),
    [ended(Pid) || {running, Pid} <- [py_test:message(), py_test:message()]],
    ok = py_test:nothing_waits().

a_default_stands_in_for_a_failed_node(_Config) ->
    Nodes = #{
        a => (py_dag_test:python(fails, []))#{default => 5},
        b => (py_dag_test:python(fails, []))#{optional => true},
        c => py_dag_test:python(kinds, [a, b])
    },
    {ok, #{results := Results, timeline := Timeline}} = py_dag_test:run(Nodes, #{}),
    ?assertEqual(#{c => [<<"int">>, <<"NoneType">>]}, Results),
    ?assertMatch(
        [#{outcome := done, reason := {'ValueError', _}}], [E || #{node := a} = E <- Timeline]
    ).

an_optional_input_may_be_missing(_Config) ->
    Nodes = #{a => py_dag_test:python(fails, []), b => py_dag_test:python(kinds, [{optional, a}, x])},
    {ok, Report} = py_dag:run(#{nodes => Nodes}, #{x => 1}, #{partial => true}),
    ?assertMatch(#{results := #{b := [<<"NoneType">>, <<"int">>]}}, Report).

a_coroutine_that_timed_out_is_cancelled(_Config) ->
    %% The module is imported then, so that the coroutine begins in its time.
    Known = #{a => (py_dag_test:python(coroutine, [x]))#{kind => io}},
    ?assertEqual(#{a => 2}, py_dag_test:results(Known, #{x => 1})),
    Nodes = #{a => (py_dag_test:python(endless_coroutine, []))#{kind => io, timeout => 500}},
    ?assertReason({dag, a, timeout}, py_dag_test:run(Nodes, #{})),
    ?assertEqual({note, <<"CancelledError">>}, py_test:message()).

a_closed_pool_ends_its_nodes(_Config) ->
    {ok, Context} = py_context:new(#{mode => worker}),
    Nodes = #{a => py_dag_test:python(sleeps_in_steps, [name]), b => py_dag_test:python(add, [name])},
    {ok, Run} = py_dag:start(#{nodes => Nodes}, #{name => <<"ctx">>}, #{context => Context}),
    ok = py_test:eventually(fun() -> py_nif:pool_busy(element(2, py_registry:pool(Context))) end),
    ok = py_context:stop(Context),
    ?assertReason({dag, _, {context_died, _}}, py_dag:await(Run)).

an_exception_names_the_node_and_leaves_its_traceback(_Config) ->
    Nodes = #{a => py_dag_test:python(fails, []), b => py_dag_test:python(add, [a])},
    ?assertReason({dag, a, {'ValueError', <<"as told">>}}, py_dag_test:run(Nodes, #{})),
    ?assertMatch(#{traceback := [_ | _]}, py:last_error()),
    Run = py_dag:run(#{nodes => Nodes}, #{}, #{traceback => true}),
    ?assertReason({dag, a, {'ValueError', <<"as told">>, #{formatted := _}}}, Run).

objects_are_released_after_the_run(_Config) ->
    ok = py:exec(<<
        "import weakref, py_graphs\n"
        "seen = []\n"
        "class Watched: pass\n"
        "def watched():\n"
        "    made = Watched(); seen.append(weakref.ref(made)); return made\n"
        "py_graphs.watched = watched\n"
        "py_graphs.drop = lambda made: 1\n"
    >>),
    Nodes = #{a => py_dag_test:python(watched, []), b => py_dag_test:python(drop, [a])},
    ?assertEqual(#{b => 1}, py_dag_test:results(Nodes, #{})),
    %% Without a GIL a thread that sleeps may own what others have released: the collector goes round.
    ok = py:exec(<<"import gc">>),
    Gone = fun() -> py:eval(<<"gc.collect() >= 0 and seen[0]() is None">>) =:= {ok, true} end,
    ok = py_test:eventually(Gone).

many_runs_at_once_get_their_own_values(_Config) ->
    Nodes = #{
        a => py_dag_test:python(add, [x, one]),
        b => #{run => fun([A]) -> A * 2 end, inputs => [a]},
        c => py_dag_test:python(add, [a, b])
    },
    {ok, Graph} = py_dag:new(#{nodes => Nodes}, [x, one]),
    Runs = [element(2, py_dag:start(Graph, #{x => X, one => 1}, infinity)) || X <- lists:seq(1, 300)],
    [
        ?assertMatch({ok, #{results := #{c := C}}} when C =:= 3 * (X + 1), py_dag:await(Run))
     || {X, Run} <- lists:zip(lists:seq(1, 300), Runs)
    ].

ended(Pid) ->
    Monitor = monitor(process, Pid),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end.

pool_is_idle() ->
    {ok, Pool} = py_registry:pool(main),
    not py_nif:pool_busy(Pool).

an_object_that_a_function_of_erlang_gives_lives_until_it_is_used(_Config) ->
    Make = fun([]) ->
        {ok, Object} = py:call(builtins, dict, [], #{a => 1}, #{return => ref}),
        Object
    end,
    %% Objects that nobody has any more are released meanwhile.
    Wait = fun([]) ->
        [{ok, _} = py:call(time, sleep, [0.02]) || _ <- lists:seq(1, 20)],
        <<"a">>
    end,
    Nodes = #{
        made => #{run => Make},
        later => #{run => Wait},
        used => #{run => {py, operator, getitem}, inputs => [made, later]}
    },
    {ok, #{results := #{used := Used}}} = py_dag:run(#{nodes => Nodes}, #{}, #{want => [used]}),
    ?assertEqual(1, Used).
