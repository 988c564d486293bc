%% Graphs: what runs in them, in which order, and how they end.
-module(py_dag_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    values_go_from_node_to_node/1,
    objects_pass_between_python_nodes_as_they_are/1,
    what_has_no_term_may_travel_but_not_arrive/1,
    only_leaves_are_results_unless_others_are_wanted/1,
    a_node_that_nobody_wants_does_not_run/1,
    functions_of_erlang_take_a_list_and_run_in_processes/1,
    what_a_function_of_erlang_raises_is_the_reason/1,
    a_function_of_erlang_that_is_killed_fails_its_node/1,
    commands_are_answered_by_the_embedded_store/1,
    commands_take_values_of_inputs/1,
    python_gets_bytes_from_redis/1,
    a_wrong_command_is_told_in_the_words_of_redis/1,
    a_server_that_is_not_there_is_an_error/1,
    an_exception_names_the_node_and_leaves_its_traceback/1,
    a_default_stands_in_for_a_failed_node/1,
    an_optional_input_may_be_missing/1,
    a_node_is_tried_again/1,
    a_node_that_timed_out_is_interrupted/1,
    a_run_past_its_deadline_ends_and_leaves_no_message/1,
    a_partial_run_gives_what_there_is/1,
    a_run_is_cancelled_at_once/1,
    a_run_ends_with_its_caller/1,
    functions_of_erlang_end_with_their_run/1,
    a_wrong_graph_is_refused_with_the_reason/1,
    a_graph_is_built_once_and_run_often/1,
    the_timeline_tells_when_and_where/1,
    pictures_are_drawn/1,
    many_runs_at_once_get_their_own_values/1,
    a_wide_and_deep_graph_runs/1,
    a_graph_runs_in_an_interpreter_of_its_own/1,
    a_run_inside_of_a_node_of_another/1,
    coroutine_functions_run_on_a_loop/1,
    a_coroutine_that_timed_out_is_cancelled/1,
    objects_are_released_after_the_run/1,
    a_closed_pool_ends_its_nodes/1,
    python_runs_graphs_in_the_node/1,
    python_runs_graphs_in_an_interpreter_of_its_own/1
]).

-define(NO_RUN(Graph, Inputs), py_dag:run(#{nodes => Graph}, Inputs)).

all() ->
    Known = [module_info, all, init_per_suite, end_per_suite, init_per_testcase],
    [Name || {Name, 1} <- ?MODULE:module_info(exports), not lists:member(Name, Known)].

init_per_suite(Config) ->
    py_test:start(Config).

end_per_suite(_Config) ->
    ok.

init_per_testcase(_Case, Config) ->
    Self = self(),
    ok = py:register_function(note, fun([Text]) -> Self ! {note, Text}, none end),
    Config.

results(Nodes, Inputs) -> results(Nodes, Inputs, #{}).

results(Nodes, Inputs, Opts) ->
    {ok, #{results := Results}} = py_dag:run(#{nodes => Nodes}, Inputs, Opts),
    Results.

python(Function, Inputs) -> #{run => {py, py_graphs, Function}, inputs => Inputs}.

values_go_from_node_to_node(_Config) ->
    Nodes = #{
        a => python(add, [x, y]),
        b => python(add, [a, x]),
        <<"c">> => python(add, [a, b])
    },
    ?assertEqual(#{<<"c">> => 7}, results(Nodes, #{x => 1, y => 2})).

objects_pass_between_python_nodes_as_they_are(_Config) ->
    Nodes = #{
        model => python(model, [weights]),
        again => python(unwrap, [model]),
        score => python(score, [model, features]),
        same => python(same, [model, again])
    },
    Inputs = #{weights => [1.0, 0.5], features => [2, 4]},
    ?assertEqual(#{score => 4.0, same => true}, results(Nodes, Inputs)).

what_has_no_term_may_travel_but_not_arrive(_Config) ->
    Nodes = #{model => python(model, [weights])},
    Run = ?NO_RUN(Nodes, #{weights => []}),
    ?assertReason({dag, model, {not_convertible, _}}, Run).

only_leaves_are_results_unless_others_are_wanted(_Config) ->
    Nodes = #{a => python(add, [x]), b => python(add, [a, x])},
    ?assertEqual(#{b => 2}, results(Nodes, #{x => 1})),
    ?assertEqual(#{a => 1, b => 2}, results(Nodes, #{x => 1}, #{want => [a, b]})).

a_node_that_nobody_wants_does_not_run(_Config) ->
    Nodes = #{a => python(add, [x]), never => python(fails, [a])},
    {ok, #{results := Results, timeline := Timeline}} =
        py_dag:run(#{nodes => Nodes}, #{x => 1}, #{want => [a]}),
    ?assertEqual(#{a => 1}, Results),
    ?assertMatch([#{outcome := skipped, started := none}], [E || #{node := never} = E <- Timeline]).

functions_of_erlang_take_a_list_and_run_in_processes(_Config) ->
    Self = self(),
    Nodes = #{
        pair => #{run => fun([A, B]) -> {A, B} end, inputs => [x, y]},
        pid => #{run => fun([]) -> self() end, kind => cpu},
        sum => #{run => {lists, sum}, inputs => [x, y], kind => io},
        shown => python(kinds, [pair, pid])
    },
    #{sum := Sum, shown := Shown} = results(Nodes, #{x => 1, y => 2}),
    ?assertEqual(3, Sum),
    ?assertEqual([<<"tuple">>, <<"Pid">>], Shown),
    #{pid := Pid} = results(Nodes, #{x => 1, y => 2}, #{want => [pid]}),
    ?assertNotEqual(Self, Pid),
    ok = py_test:eventually(fun() -> not is_process_alive(Pid) end).

what_a_function_of_erlang_raises_is_the_reason(_Config) ->
    Error = #{bad => #{run => fun([]) -> error(no_luck) end}},
    ?assertReason({dag, bad, {<<"erlang.error">>, <<"no_luck in ", _/binary>>}}, ?NO_RUN(Error, #{})),
    Exit = #{bad => #{run => fun([]) -> exit(gone) end}},
    ?assertReason({dag, bad, {<<"erlang.exit">>, <<"gone", _/binary>>}}, ?NO_RUN(Exit, #{})),
    {error, Reason} = ?NO_RUN(Error, #{}),
    ?assertMatch({match, _}, re:run(py_error:format(Reason), "no_luck")).

a_function_of_erlang_that_is_killed_fails_its_node(_Config) ->
    Nodes = #{bad => #{run => fun([]) -> exit(self(), kill), receive never -> ok end end}},
    ?assertReason({dag, bad, {<<"erlang.exit">>, <<"killed">>}}, ?NO_RUN(Nodes, #{})).

commands_are_answered_by_the_embedded_store(_Config) ->
    Key = key(),
    Set = #{set => #{kind => redis, run => [<<"SET">>, Key, 42]}},
    ?assertEqual(#{set => <<"OK">>}, results(Set, #{})),
    Get = #{
        one => #{kind => redis, run => ["GET", Key]},
        none => #{run => [get, <<Key/binary, ":none">>]},
        many => #{run => [[<<"INCR">>, Key], [<<"RPUSH">>, <<Key/binary, "l">>, a, b], [<<"LRANGE">>, <<Key/binary, "l">>, 0, -1]]}
    },
    #{one := One, none := none, many := Many} = results(Get, #{}, #{redis => embedded}),
    ?assert(One =:= <<"42">> orelse One =:= <<"43">>),
    ?assertEqual([43, 2, [<<"a">>, <<"b">>]], Many).

commands_take_values_of_inputs(_Config) ->
    Key = key(),
    [_, _] = [results(#{s => #{run => ["SET", <<Key/binary, N/binary>>, N]}}, #{}) || N <- [<<"1">>, <<"2">>]],
    Nodes = #{
        joined => #{run => ["GET", {join, [{input, base}, {input, n}]}]},
        keys => #{run => fun([Base, N]) -> [<<Base/binary, "1">>, [Base, integer_to_binary(N)]] end, inputs => [base, n]},
        flat => #{run => fun([[A, B]]) -> [A, iolist_to_binary(B)] end, inputs => [keys]},
        several => #{run => ["MGET", {input, flat}]},
        commands => python(commands, [base]),
        given => #{kind => redis, run => {input, commands}}
    },
    Results = results(Nodes, #{base => Key, n => 2}),
    ?assertEqual(
        #{joined => <<"2">>, several => [<<"1">>, <<"2">>], given => [none, none, []]}, Results
    ).

python_gets_bytes_from_redis(_Config) ->
    Key = key(),
    Nodes = #{
        set => #{run => ["SET", Key, "text"]},
        get => #{run => ["GET", Key], inputs => [set]},
        list => #{run => [["GET", Key]], inputs => [get]},
        kinds => python(kinds, [set, get, list])
    },
    ?assertEqual(#{kinds => [<<"bytes">>, <<"bytes">>, <<"list">>]}, results(Nodes, #{})).

a_wrong_command_is_told_in_the_words_of_redis(_Config) ->
    Key = key(),
    Wrong = #{a => #{run => ["SET", Key, 1]}, b => #{run => ["LRANGE", Key, 0, 1], inputs => [a]}},
    ?assertReason({dag, b, {<<"redis">>, <<"WRONGTYPE", _/binary>>}}, ?NO_RUN(Wrong, #{})),
    Several = #{b => #{run => [["GET", Key], ["LRANGE", Key, 0, 1]]}},
    ?assertMatch(#{b := [<<"1">>, {error, <<"WRONGTYPE", _/binary>>}]}, results(Several, #{})),
    NoWord = #{a => #{run => ["GET", {input, x}]}},
    ?assertReason({dag, a, {bad_argument, _}}, ?NO_RUN(NoWord, #{x => #{}})).

a_server_that_is_not_there_is_an_error(_Config) ->
    Nodes = #{get => #{run => ["GET", "x"]}},
    Nowhere = py_dag:run(#{nodes => Nodes}, #{}, #{redis => "unix:/nowhere/redis.sock"}),
    ?assertReason({dag, get, {<<"redis">>, <<"connection to Redis lost", _/binary>>}}, Nowhere),
    ?assertReason({bad_argument, _}, py_dag:run(#{nodes => Nodes}, #{}, #{redis => "what:ever"})).

an_exception_names_the_node_and_leaves_its_traceback(_Config) ->
    Nodes = #{a => python(fails, []), b => python(add, [a])},
    ?assertReason({dag, a, {'ValueError', <<"as told">>}}, ?NO_RUN(Nodes, #{})),
    ?assertMatch(#{traceback := [_ | _]}, py:last_error()),
    Run = py_dag:run(#{nodes => Nodes}, #{}, #{traceback => true}),
    ?assertReason({dag, a, {'ValueError', <<"as told">>, #{formatted := _}}}, Run).

a_default_stands_in_for_a_failed_node(_Config) ->
    Nodes = #{
        a => (python(fails, []))#{default => 5},
        b => (python(fails, []))#{optional => true},
        c => python(kinds, [a, b])
    },
    {ok, #{results := Results, timeline := Timeline}} = ?NO_RUN(Nodes, #{}),
    ?assertEqual(#{c => [<<"int">>, <<"NoneType">>]}, Results),
    ?assertMatch(
        [#{outcome := done, reason := {'ValueError', _}}], [E || #{node := a} = E <- Timeline]
    ).

an_optional_input_may_be_missing(_Config) ->
    Nodes = #{a => python(fails, []), b => python(kinds, [{optional, a}, x])},
    {ok, Report} = py_dag:run(#{nodes => Nodes}, #{x => 1}, #{partial => true}),
    ?assertMatch(#{results := #{b := [<<"NoneType">>, <<"int">>]}}, Report).

a_node_is_tried_again(_Config) ->
    Name = key(),
    Nodes = #{a => (python(succeeds_at, [name, n]))#{retries => 3, backoff => 1}},
    ?assertEqual(#{a => 3}, results(Nodes, #{name => Name, n => 3})),
    Once = #{a => python(succeeds_at, [name, n])},
    Run = ?NO_RUN(Once, #{name => key(), n => 3}),
    ?assertReason({dag, a, {'RuntimeError', <<"attempt 1">>}}, Run).

a_node_that_timed_out_is_interrupted(_Config) ->
    Nodes = #{a => (python(sleeps_in_steps, [name]))#{timeout => 20}},
    ?assertReason({dag, a, timeout}, ?NO_RUN(Nodes, #{name => <<"slow">>})),
    ?assertEqual({note, [<<"slow">>, <<"Cancelled">>]}, py_test:message()).

a_run_past_its_deadline_ends_and_leaves_no_message(_Config) ->
    Nodes = #{a => python(sleeps_in_steps, [name])},
    ?assertReason(timeout, py_dag:run(#{nodes => Nodes}, #{name => <<"long">>}, 20)),
    ?assertEqual({note, [<<"long">>, <<"Cancelled">>]}, py_test:message()),
    ok = py_test:nothing_waits().

a_partial_run_gives_what_there_is(_Config) ->
    Nodes = #{a => python(fails, []), b => python(add, [x]), c => python(add, [a, b])},
    {ok, Report} = py_dag:run(#{nodes => Nodes}, #{x => 1}, #{partial => true, want => [b, c]}),
    ?assertMatch(#{results := #{b := 1}, error := {dag, a, {'ValueError', _}}}, Report),
    ?assertEqual(1, map_size(maps:get(results, Report))).

a_run_is_cancelled_at_once(_Config) ->
    Nodes = #{a => python(sleeps_in_steps, [name]), b => #{run => fun([]) -> receive never -> ok end end}},
    {ok, Run} = py_dag:start(#{nodes => Nodes}, #{name => <<"cut">>}, infinity),
    ok = py_dag:cancel(Run),
    ?assertReason(cancelled, py_dag:await(Run)).

a_run_ends_with_its_caller(_Config) ->
    Self = self(),
    Nodes = #{
        a => python(sleeps_in_steps, [name]),
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
    ?assertReason({dag, a, timeout}, ?NO_RUN(Nodes, #{})),
    [ended(Pid) || {running, Pid} <- [py_test:message(), py_test:message()]],
    ok = py_test:nothing_waits().

ended(Pid) ->
    Monitor = monitor(process, Pid),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end.

a_wrong_graph_is_refused_with_the_reason(_Config) ->
    Says = fun(Nodes, Inputs, Text) ->
        {error, {bad_argument, What}} = ?NO_RUN(Nodes, Inputs),
        ?assertMatch({match, _}, re:run(What, Text))
    end,
    Says(#{a => python(add, [b]), b => python(add, [a])}, #{}, "cycle: (a -> b -> a|b -> a -> b)"),
    Says(#{a => python(add, [b])}, #{}, "node a needs b"),
    Says(#{a => python(add, []), <<"a">> => python(add, [])}, #{}, "used twice"),
    Says(#{a => python(add, [])}, #{a => 1}, "used twice"),
    Says(#{a => #{}}, #{}, "no map with a key run"),
    Says(#{a => #{run => 1}}, #{}, "runs none of"),
    Says(#{a => #{run => ["GET", {1}]}}, #{}, "no list of words"),
    Says(#{a => (python(add, []))#{kind => redis}}, #{}, "kind redis"),
    Says(#{a => (python(add, []))#{timeout => x}}, #{}, "timeout of node a"),
    Says(#{a => (python(add, []))#{what => x}}, #{}, "unknown key what"),
    ?assertReason({bad_argument, _}, py_dag:run(#{}, #{})),
    ?assertReason({bad_argument, inputs}, py_dag:run(#{nodes => #{}}, [])),
    ?assertReason({bad_argument, _}, py_dag:run(#{nodes => #{}}, #{}, #{want => [x]})),
    ?assertReason({bad_argument, _}, py_dag:run(#{nodes => #{}}, #{}, #{what => x})),
    ?assertMatch({ok, #{results := Empty}} when Empty =:= #{}, py_dag:run(#{nodes => #{}}, #{})).

a_graph_is_built_once_and_run_often(_Config) ->
    {ok, Graph} = py_dag:new(#{nodes => #{a => python(add, [x, y])}}, [y, x]),
    [
        ?assertMatch({ok, #{results := #{a := Sum}}} when Sum =:= N + 1, py_dag:run(Graph, #{x => N, y => 1}))
     || N <- lists:seq(1, 50)
    ],
    ?assertReason({bad_argument, <<"the run has no input y">>}, py_dag:run(Graph, #{x => 1})),
    Run = py_dag:run(Graph, #{x => 1, y => 2, z => 3}),
    ?assertReason({bad_argument, <<"the graph takes no input z">>}, Run).

the_timeline_tells_when_and_where(_Config) ->
    Nodes = #{
        a => python(add, [x]),
        b => #{run => fun([A]) -> A end, inputs => [a]},
        c => #{run => ["PING"], inputs => [b]}
    },
    {ok, #{timeline := Timeline, critical_path := Path}} = ?NO_RUN(Nodes, #{x => 1}),
    ?assertEqual([a, b, c], Path),
    ?assertEqual([python, erlang, io], [Lane || #{lane := Lane} <- Timeline]),
    Times = lists:append([[Q, S, E] || #{queued := Q, started := S, ended := E} <- Timeline]),
    ?assertEqual(Times, lists:sort(Times)).

pictures_are_drawn(_Config) ->
    Nodes = #{a => python(add, [x]), b => python(add, [a])},
    Opts = #{pictures => [dot, svg, chrome_trace]},
    {ok, #{pictures := Pictures}} = py_dag:run(#{nodes => Nodes}, #{x => 1}, Opts),
    #{dot := <<"digraph", Dot/binary>>, svg := <<"<svg", _/binary>>, chrome_trace := Trace} = Pictures,
    ?assertMatch({match, _}, re:run(Dot, "n0 -> n1")),
    {ok, Events} = py:call(json, loads, [Trace]),
    ?assertEqual(4, length(Events)),
    {ok, #{pictures := Only}} = py_dag:run(#{nodes => Nodes}, #{x => 1}, #{pictures => [svg]}),
    ?assertEqual([svg], maps:keys(Only)).

many_runs_at_once_get_their_own_values(_Config) ->
    Nodes = #{
        a => python(add, [x, one]),
        b => #{run => fun([A]) -> A * 2 end, inputs => [a]},
        c => python(add, [a, b])
    },
    {ok, Graph} = py_dag:new(#{nodes => Nodes}, [x, one]),
    Runs = [element(2, py_dag:start(Graph, #{x => X, one => 1}, infinity)) || X <- lists:seq(1, 300)],
    [
        ?assertMatch({ok, #{results := #{c := C}}} when C =:= 3 * (X + 1), py_dag:await(Run))
     || {X, Run} <- lists:zip(lists:seq(1, 300), Runs)
    ].

a_wide_and_deep_graph_runs(_Config) ->
    Wide = [{{wide, N}, python(add, [x])} || N <- lists:seq(1, 2000)],
    Deep = [{{deep, N}, python(add, [{deep, N - 1}, x])} || N <- lists:seq(2, 300)],
    Nodes = maps:from_list([{{deep, 1}, python(add, [x])} | Wide ++ Deep]),
    Sum = #{run => {lists, sum}, inputs => [{deep, 300} | [Name || {Name, _} <- Wide]]},
    ?assertEqual(#{sum => 2300}, results(Nodes#{sum => Sum}, #{x => 1})).

a_graph_runs_in_an_interpreter_of_its_own(Config) ->
    case py:execution_mode() of
        subinterp ->
            {ok, Context} = py_context:new(#{mode => subinterp}),
            Path = filename:absname(proplists:get_value(data_dir, Config)),
            Code = io_lib:format("import sys; sys.path.append(~tp)", [Path]),
            ok = py:exec(Context, unicode:characters_to_binary(Code)),
            Nodes = #{model => python(model, [weights]), score => python(score, [model, features])},
            Inputs = #{weights => [1.0], features => [<<"3">>]},
            ?assertEqual(#{score => 3.0}, results(Nodes, Inputs, #{context => Context})),
            ok = py_context:stop(Context);
        Other ->
            {skip, Other}
    end.

a_run_inside_of_a_node_of_another(_Config) ->
    Inner = #{a => python(add, [x, x])},
    Twice = fun([X]) -> maps:get(a, results(Inner, #{x => X})) end,
    ok = py:register_function(twice, Twice),
    Nodes = #{outer => #{run => Twice, inputs => [x]}, python => #{run => {py, erlang, twice}, inputs => [x]}},
    ?assertEqual(#{outer => 4, python => 4}, results(Nodes, #{x => 2})).

coroutine_functions_run_on_a_loop(_Config) ->
    Nodes = #{
        a => (python(coroutine, [x]))#{kind => io},
        plain => (python(add, [a, x]))#{kind => io},
        sum => python(add, [a, plain])
    },
    ?assertEqual(#{sum => 5}, results(Nodes, #{x => 1})),
    Fails = #{a => (python(failing_coroutine, []))#{kind => io}},
    ?assertReason({dag, a, {'ValueError', <<"awaited">>}}, ?NO_RUN(Fails, #{})),
    {error, {dag, a, {bad_argument, Told}}} = ?NO_RUN(#{a => python(coroutine, [x])}, #{x => 1}),
    ?assertMatch({match, _}, re:run(Told, "kind => io")).

a_coroutine_that_timed_out_is_cancelled(_Config) ->
    Nodes = #{a => (python(endless_coroutine, []))#{kind => io, timeout => 20}},
    ?assertReason({dag, a, timeout}, ?NO_RUN(Nodes, #{})),
    ?assertEqual({note, <<"CancelledError">>}, py_test:message()).

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
    Nodes = #{a => python(watched, []), b => python(drop, [a])},
    ?assertEqual(#{b => 1}, results(Nodes, #{})),
    Gone = fun() -> py:eval(<<"seen[0]() is None">>) =:= {ok, true} end,
    ok = py_test:eventually(Gone).

a_closed_pool_ends_its_nodes(_Config) ->
    {ok, Context} = py_context:new(#{mode => worker}),
    Nodes = #{a => python(sleeps_in_steps, [name]), b => python(add, [name])},
    {ok, Run} = py_dag:start(#{nodes => Nodes}, #{name => <<"ctx">>}, #{context => Context}),
    ok = py_test:eventually(fun() -> py_nif:pool_busy(element(2, py_registry:pool(Context))) end),
    ok = py_context:stop(Context),
    ?assertReason({dag, _, {context_died, _}}, py_dag:await(Run)).

%% The store is the same one for both, and functions of Erlang may be called from a node.
python_runs_graphs_in_the_node(_Config) ->
    Key = key(),
    ok = py:register_function(double, fun([X]) -> 2 * X end),
    ?assertEqual({ok, [84, <<"42">>]}, py:call(py_graphs, from_python, [Key, 42])),
    ?assertEqual(#{get => <<"42">>}, results(#{get => #{run => ["GET", Key]}}, #{})).

python_runs_graphs_in_an_interpreter_of_its_own(_Config) ->
    case py:execution_mode() of
        subinterp ->
            {ok, Context} = py_context:new(#{mode => subinterp}),
            Code = <<
                "from erlang import dag\n"
                "def run():\n"
                "    return dag.run([dag.cpu(name='a')(lambda: 1)]).results\n"
            >>,
            ok = py:exec(Context, Code),
            ?assertEqual({ok, #{<<"a">> => 1}}, py:call(Context, '__main__', run, [])),
            ok = py_context:stop(Context);
        Other ->
            {skip, Other}
    end.

key() -> integer_to_binary(erlang:unique_integer([positive])).

pool_is_idle() ->
    {ok, Pool} = py_registry:pool(main),
    not py_nif:pool_busy(Pool).
