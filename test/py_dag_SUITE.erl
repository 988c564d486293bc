%% Graphs: what runs in them, where, and in which order.
-module(py_dag_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    values_go_from_node_to_node/1,
    objects_pass_between_python_nodes_as_they_are/1,
    objects_pass_through_coroutines_as_they_are/1,
    what_has_no_term_may_travel_but_not_arrive/1,
    only_leaves_are_results_unless_others_are_wanted/1,
    a_node_that_nobody_wants_does_not_run/1,
    functions_of_erlang_take_a_list_and_run_in_processes/1,
    what_a_function_of_erlang_raises_is_the_reason/1,
    a_function_of_erlang_that_is_killed_fails_its_node/1,
    a_function_of_erlang_that_ends_its_process_fails_its_node/1,
    a_wrong_graph_is_refused_with_the_reason/1,
    a_graph_is_built_once_and_run_often/1,
    the_timeline_tells_when_and_where/1,
    pictures_are_drawn/1,
    a_wide_and_deep_graph_runs/1,
    a_graph_runs_in_an_interpreter_of_its_own/1,
    a_run_inside_of_a_node_of_another/1,
    coroutine_functions_run_on_a_loop/1,
    python_runs_graphs_in_the_node/1,
    python_runs_graphs_in_an_interpreter_of_its_own/1
]).

all() -> py_dag_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) -> py_dag_test:hear_notes(Config).

values_go_from_node_to_node(_Config) ->
    Nodes = #{
        a => py_dag_test:python(add, [x, y]),
        b => py_dag_test:python(add, [a, x]),
        <<"c">> => py_dag_test:python(add, [a, b])
    },
    ?assertEqual(#{<<"c">> => 7}, py_dag_test:results(Nodes, #{x => 1, y => 2})).

objects_pass_between_python_nodes_as_they_are(_Config) ->
    Nodes = #{
        model => py_dag_test:python(model, [weights]),
        again => py_dag_test:python(unwrap, [model]),
        score => py_dag_test:python(score, [model, features]),
        same => py_dag_test:python(same, [model, again])
    },
    Inputs = #{weights => [1.0, 0.5], features => [2, 4]},
    ?assertEqual(#{score => 4.0, same => true}, py_dag_test:results(Nodes, Inputs)).

objects_pass_through_coroutines_as_they_are(_Config) ->
    Passed = fun(Input) -> (py_dag_test:python(passed, [Input]))#{kind => io} end,
    Nodes = #{
        model => py_dag_test:python(model, [weights]),
        again => Passed(model),
        twice => Passed(again),
        same => py_dag_test:python(same, [model, twice])
    },
    ?assertEqual(#{same => true}, py_dag_test:results(Nodes, #{weights => []})),
    {ok, Context} = py_context:new(#{mode => worker}),
    ?assertEqual(#{same => true}, py_dag_test:results(Nodes, #{weights => []}, #{context => Context})),
    ok = py_context:stop(Context).

what_has_no_term_may_travel_but_not_arrive(_Config) ->
    Nodes = #{model => py_dag_test:python(model, [weights])},
    Run = py_dag_test:run(Nodes, #{weights => []}),
    ?assertReason({dag, model, {not_convertible, _}}, Run).

only_leaves_are_results_unless_others_are_wanted(_Config) ->
    Nodes = #{a => py_dag_test:python(add, [x]), b => py_dag_test:python(add, [a, x])},
    ?assertEqual(#{b => 2}, py_dag_test:results(Nodes, #{x => 1})),
    ?assertEqual(#{a => 1, b => 2}, py_dag_test:results(Nodes, #{x => 1}, #{want => [a, b]})).

a_node_that_nobody_wants_does_not_run(_Config) ->
    Nodes = #{a => py_dag_test:python(add, [x]), never => py_dag_test:python(fails, [a])},
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
        shown => py_dag_test:python(kinds, [pair, pid])
    },
    #{sum := Sum, shown := Shown} = py_dag_test:results(Nodes, #{x => 1, y => 2}),
    ?assertEqual(3, Sum),
    ?assertEqual([<<"tuple">>, <<"Pid">>], Shown),
    #{pid := Pid} = py_dag_test:results(Nodes, #{x => 1, y => 2}, #{want => [pid]}),
    ?assertNotEqual(Self, Pid),
    ok = py_test:eventually(fun() -> not is_process_alive(Pid) end).

what_a_function_of_erlang_raises_is_the_reason(_Config) ->
    Error = #{bad => #{run => fun([]) -> error(no_luck) end}},
    ?assertReason({dag, bad, {<<"erlang.error">>, <<"no_luck in ", _/binary>>}}, py_dag_test:run(Error, #{})),
    Exit = #{bad => #{run => fun([]) -> exit(gone) end}},
    ?assertReason({dag, bad, {<<"erlang.exit">>, <<"gone", _/binary>>}}, py_dag_test:run(Exit, #{})),
    {error, Reason} = py_dag_test:run(Error, #{}),
    ?assertMatch({match, _}, re:run(py_error:format(Reason), "no_luck")).

a_function_of_erlang_that_is_killed_fails_its_node(_Config) ->
    Nodes = #{bad => #{run => fun([]) -> exit(self(), kill), receive never -> ok end end}},
    ?assertReason({dag, bad, {<<"erlang.exit">>, <<"killed">>}}, py_dag_test:run(Nodes, #{})).

a_function_of_erlang_that_ends_its_process_fails_its_node(_Config) ->
    Ends = fun(Function) -> py_dag:run(#{nodes => #{bad => #{run => Function}}}, #{}, 20_000) end,
    Normal = fun([]) -> exit(self(), normal), receive never -> ok end end,
    ?assertReason({dag, bad, {<<"erlang.exit">>, <<"normal">>}}, Ends(Normal)),
    Unlinked = fun([]) ->
        {links, Links} = process_info(self(), links),
        lists:foreach(fun unlink/1, Links),
        exit(self(), kill),
        receive never -> ok end
    end,
    ?assertReason({dag, bad, {<<"erlang.exit">>, <<"killed">>}}, Ends(Unlinked)).

a_wrong_graph_is_refused_with_the_reason(_Config) ->
    Says = fun(Nodes, Inputs, Text) ->
        {error, {bad_argument, What}} = py_dag_test:run(Nodes, Inputs),
        ?assertMatch({match, _}, re:run(What, Text))
    end,
    Says(#{a => py_dag_test:python(add, [b]), b => py_dag_test:python(add, [a])}, #{}, "cycle: (a -> b -> a|b -> a -> b)"),
    Says(#{a => py_dag_test:python(add, [b])}, #{}, "node a needs b"),
    Says(#{a => py_dag_test:python(add, []), <<"a">> => py_dag_test:python(add, [])}, #{}, "used twice"),
    Says(#{a => py_dag_test:python(add, [])}, #{a => 1}, "used twice"),
    Says(#{a => #{}}, #{}, "no map with a key run"),
    Says(#{a => #{run => 1}}, #{}, "runs none of"),
    Says(#{a => #{run => ["GET", {1}]}}, #{}, "no list of words"),
    Says(#{a => (py_dag_test:python(add, []))#{kind => redis}}, #{}, "kind redis"),
    Says(#{a => (py_dag_test:python(add, []))#{timeout => x}}, #{}, "timeout of node a"),
    Says(#{a => (py_dag_test:python(add, []))#{what => x}}, #{}, "unknown key what"),
    Says(#{a => (py_dag_test:python(add, []))#{timeout => <<1:3>>}}, #{}, "timeout of node a is no number of milli"),
    Says(#{a => (py_dag_test:python(add, []))#{retries => 0.5}}, #{}, "the retries of node a are no count"),
    Says(#{a => (py_dag_test:python(add, []))#{limit => make_ref()}}, #{}, "limit of node a is not from py_dag:limit/1"),
    Says(#{a => (py_dag_test:python(add, []))#{weight => 0}}, #{}, "the weight of node a is no number above 0"),
    Says(#{a => (py_dag_test:python(add, []))#{optional => yes}}, #{}, "optional of node a is neither true nor false"),
    %% The same key as a text would be read a second time, unchecked.
    [
        Says(#{a => (py_dag_test:python(add, []))#{Key => Value}}, #{}, ["the key ", Key, " of node a is no atom"])
     || {Key, Value} <- [{<<"run">>, {erlang, 1}}, {<<"inputs">>, []}, {<<"default">>, <<>>}, {<<"timeout">>, 1}]
    ],
    Says(#{a => (py_dag_test:python(add, []))#{inputs => [b | c]}}, #{}, "the inputs of node a are no list"),
    [
        Says(#{a => #{run => Command}}, #{}, "no list of words")
     || Command <- [["GET" | x], [["GET", "x"] | x], [["GET" | x]], ["GET", {join, ["a" | x]}], ["GET", {join, [{input, b} | x]}]]
    ],
    %% What belongs to each run and has no name.
    Says(#{a => py_dag_test:python(add, [''])}, #{}, "node a needs ''"),
    Says(#{a => (py_dag_test:python(add, []))#{condition => ''}}, #{}, "node a needs ''"),
    ?assertMatch(#{'' := 0}, py_dag_test:results(#{'' => py_dag_test:python(add, [])}, #{})),
    ?assertReason({bad_argument, _}, py_dag:run(#{}, #{})),
    ?assertReason({bad_argument, inputs}, py_dag:run(#{nodes => #{}}, [])),
    ?assertReason({bad_argument, _}, py_dag:run(#{nodes => #{}}, #{}, #{want => [x]})),
    ?assertReason({bad_argument, _}, py_dag:run(#{nodes => #{}}, #{}, #{what => x})),
    ?assertMatch({ok, #{results := Empty}} when Empty =:= #{}, py_dag:run(#{nodes => #{}}, #{})).

a_graph_is_built_once_and_run_often(_Config) ->
    {ok, Graph} = py_dag:new(#{nodes => #{a => py_dag_test:python(add, [x, y])}}, [y, x]),
    [
        ?assertMatch({ok, #{results := #{a := Sum}}} when Sum =:= N + 1, py_dag:run(Graph, #{x => N, y => 1}))
     || N <- lists:seq(1, 50)
    ],
    ?assertReason({bad_argument, <<"the run has no input y">>}, py_dag:run(Graph, #{x => 1})),
    Run = py_dag:run(Graph, #{x => 1, y => 2, z => 3}),
    ?assertReason({bad_argument, <<"the graph takes no input z">>}, Run).

the_timeline_tells_when_and_where(_Config) ->
    Nodes = #{
        a => py_dag_test:python(add, [x]),
        b => #{run => fun([A]) -> A end, inputs => [a]},
        c => #{run => ["PING"], inputs => [b]}
    },
    {ok, #{timeline := Timeline, critical_path := Path}} = py_dag_test:run(Nodes, #{x => 1}),
    ?assertEqual([a, b, c], Path),
    ?assertEqual([python, erlang, io], [Lane || #{lane := Lane} <- Timeline]),
    Times = lists:append([[Q, S, E] || #{queued := Q, started := S, ended := E} <- Timeline]),
    ?assertEqual(Times, lists:sort(Times)).

pictures_are_drawn(_Config) ->
    Nodes = #{a => py_dag_test:python(add, [x]), b => py_dag_test:python(add, [a])},
    Opts = #{pictures => [dot, svg, chrome_trace]},
    {ok, #{pictures := Pictures}} = py_dag:run(#{nodes => Nodes}, #{x => 1}, Opts),
    #{dot := <<"digraph", Dot/binary>>, svg := <<"<svg", _/binary>>, chrome_trace := Trace} = Pictures,
    ?assertMatch({match, _}, re:run(Dot, "n0 -> n1")),
    {ok, Events} = py:call(json, loads, [Trace]),
    ?assertEqual(4, length(Events)),
    {ok, #{pictures := Only}} = py_dag:run(#{nodes => Nodes}, #{x => 1}, #{pictures => [svg]}),
    ?assertEqual([svg], maps:keys(Only)).

a_wide_and_deep_graph_runs(_Config) ->
    Wide = [{{wide, N}, py_dag_test:python(add, [x])} || N <- lists:seq(1, 2000)],
    Deep = [{{deep, N}, py_dag_test:python(add, [{deep, N - 1}, x])} || N <- lists:seq(2, 300)],
    Nodes = maps:from_list([{{deep, 1}, py_dag_test:python(add, [x])} | Wide ++ Deep]),
    Sum = #{run => {lists, sum}, inputs => [{deep, 300} | [Name || {Name, _} <- Wide]]},
    ?assertEqual(#{sum => 2300}, py_dag_test:results(Nodes#{sum => Sum}, #{x => 1})).

a_graph_runs_in_an_interpreter_of_its_own(Config) ->
    case py:execution_mode() of
        subinterp ->
            {ok, Context} = py_context:new(#{mode => subinterp}),
            DataDir = filename:absname(proplists:get_value(data_dir, Config)),
            Path = filename:join(filename:dirname(DataDir), "py_test_data"),
            Code = io_lib:format("import sys; sys.path.append(~tp)", [Path]),
            ok = py:exec(Context, unicode:characters_to_binary(Code)),
            Nodes = #{model => py_dag_test:python(model, [weights]), score => py_dag_test:python(score, [model, features])},
            Inputs = #{weights => [1.0], features => [<<"3">>]},
            ?assertEqual(#{score => 3.0}, py_dag_test:results(Nodes, Inputs, #{context => Context})),
            ok = py_context:stop(Context);
        Other ->
            {skip, Other}
    end.

a_run_inside_of_a_node_of_another(_Config) ->
    Inner = #{a => py_dag_test:python(add, [x, x])},
    Twice = fun([X]) -> maps:get(a, py_dag_test:results(Inner, #{x => X})) end,
    ok = py:register_function(twice, Twice),
    Nodes = #{outer => #{run => Twice, inputs => [x]}, python => #{run => {py, erlang, twice}, inputs => [x]}},
    ?assertEqual(#{outer => 4, python => 4}, py_dag_test:results(Nodes, #{x => 2})).

coroutine_functions_run_on_a_loop(_Config) ->
    Nodes = #{
        a => (py_dag_test:python(coroutine, [x]))#{kind => io},
        plain => (py_dag_test:python(add, [a, x]))#{kind => io},
        sum => py_dag_test:python(add, [a, plain])
    },
    ?assertEqual(#{sum => 5}, py_dag_test:results(Nodes, #{x => 1})),
    Fails = #{a => (py_dag_test:python(failing_coroutine, []))#{kind => io}},
    ?assertReason({dag, a, {'ValueError', <<"awaited">>}}, py_dag_test:run(Fails, #{})),
    {error, {dag, a, {bad_argument, Told}}} = py_dag_test:run(#{a => py_dag_test:python(coroutine, [x])}, #{x => 1}),
    ?assertMatch({match, _}, re:run(Told, "kind => io")).

%% The store is the same one for both, and functions of Erlang may be called from a node.
python_runs_graphs_in_the_node(_Config) ->
    Key = py_dag_test:key(),
    ok = py:register_function(double, fun([X]) -> 2 * X end),
    ?assertEqual({ok, [84, <<"42">>]}, py:call(py_graphs, from_python, [Key, 42])),
    ?assertEqual(#{get => <<"42">>}, py_dag_test:results(#{get => #{run => ["GET", Key]}}, #{})).

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
