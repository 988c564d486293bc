%% Graphs: conditions, limits, nodes that ask for more nodes, and very many nodes.
-module(py_dag_shape_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    a_node_runs_only_if_its_condition_is_true/1,
    a_condition_may_be_a_node_of_any_kind/1,
    a_condition_that_can_t_be_asked_fails_its_node/1,
    who_needs_a_node_that_did_not_run_does_not_run_either/1,
    no_more_than_the_limit_run_at_once_in_whatever_graphs/1,
    a_function_may_ask_for_more_nodes/1,
    asked_nodes_may_ask_again_and_call_functions_of_their_own/1,
    nodes_may_ask_a_thousand_levels_deep_and_no_deeper/1,
    what_an_asked_node_fails_with_is_the_reason/1,
    a_condition_may_be_what_an_asked_node_gave/1,
    a_function_of_python_may_ask_for_more_nodes/1,
    a_coroutine_may_ask_and_asked_nodes_may_ask_again/1,
    nodes_that_python_asks_for_run_where_the_run_does_and_for_its_caller/1,
    hundreds_of_asked_coroutines_wait_at_once/1,
    what_a_node_that_python_asked_for_fails_with_is_the_reason/1,
    a_default_of_an_asked_node_is_taken_as_its_value_would_be/1,
    cancelling_a_run_stops_the_nodes_that_python_asked_for/1,
    a_hundred_thousand_nodes_of_python/1,
    a_hundred_thousand_functions_of_erlang/1,
    a_hundred_thousand_commands/1,
    a_wide_run_does_not_keep_others_waiting/1,
    the_longest_path_runs_first/1,
    hundreds_of_coroutines_wait_at_once/1
]).

-define(MANY, 100_000).

all() -> py_dag_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) -> py_dag_test:hear_notes(Config).

outcome(Node, Timeline) ->
    [Outcome] = [O || #{node := N, outcome := O} <- Timeline, N =:= Node],
    Outcome.

a_node_runs_only_if_its_condition_is_true(_Config) ->
    Nodes = #{
        python => (py_dag_test:python(kinds, [x]))#{condition => flag},
        erlang => #{run => fun([X]) -> X end, inputs => [x], condition => flag},
        redis => #{run => ["ECHO", {input, x}], condition => flag}
    },
    {ok, Graph} = py_dag:new(#{nodes => Nodes}, [x, flag]),
    Run = fun(Flag) ->
        {ok, #{results := Results}} = py_dag:run(Graph, #{x => 1, flag => Flag}),
        Results
    end,
    [
        ?assertEqual(#{python => [<<"int">>], erlang => 1, redis => <<"1">>}, Run(Flag))
     || Flag <- [true, 1, -1, 0.5, yes, <<"0">>, [0], {0}, #{a => 0}]
    ],
    [?assertEqual(#{}, Run(Flag)) || Flag <- [false, none, 0, 0.0, <<>>, [], {}, #{}]].

a_condition_may_be_a_node_of_any_kind(_Config) ->
    Key = py_dag_test:key(),
    Conditions = #{
        python => fun
            (true) -> #{run => {py, os, getpid}};
            (false) -> #{run => {py, builtins, list}}
        end,
        erlang => fun(Holds) -> #{run => fun([]) -> Holds end} end,
        redis => fun
            (true) -> #{run => ["SADD", Key, "once"]};
            (false) -> #{run => ["EXISTS", <<Key/binary, ":none">>]}
        end
    },
    maps:foreach(
        fun(_Kind, Condition) ->
            Run = fun(Holds) ->
                Nodes = #{c => Condition(Holds), n => (py_dag_test:python(add, []))#{condition => c}},
                {ok, #{timeline := Timeline}} = py_dag_test:run(Nodes, #{}),
                outcome(n, Timeline)
            end,
            ?assertEqual({done, skipped}, {Run(true), Run(false)})
        end,
        Conditions
    ),
    %% An object that no term can stand for is as good as any.
    Model = #{
        model => py_dag_test:python(model, [weights]),
        n => (py_dag_test:python(add, []))#{condition => model}
    },
    ?assertEqual(#{n => 0}, py_dag_test:results(Model, #{weights => []})).

a_condition_that_can_t_be_asked_fails_its_node(_Config) ->
    Nodes = #{
        c => py_dag_test:python(truth_is_unknown, []),
        n => (py_dag_test:python(add, []))#{condition => c}
    },
    ?assertReason({dag, c, {'ValueError', <<"neither true nor false">>}}, py_dag_test:run(Nodes, #{})),
    Unknown = #{n => (py_dag_test:python(add, []))#{condition => nothing}},
    {error, {bad_argument, Text}} = py_dag_test:run(Unknown, #{}),
    ?assertMatch({match, _}, re:run(Text, "node n needs nothing")).

who_needs_a_node_that_did_not_run_does_not_run_either(_Config) ->
    Nodes = #{
        never => (py_dag_test:python(fails, []))#{condition => flag, default => 7},
        needs => py_dag_test:python(add, [never]),
        may => py_dag_test:python(kinds, [{optional, never}, flag])
    },
    {ok, #{results := Results, timeline := Timeline}} = py_dag_test:run(Nodes, #{flag => false}),
    ?assertEqual(#{may => [<<"NoneType">>, <<"bool">>]}, Results),
    ?assertEqual(skipped, outcome(needs, Timeline)).

no_more_than_the_limit_run_at_once_in_whatever_graphs(_Config) ->
    Limit = py_dag:limit(3),
    %% Who runs now, and the most that ever did.
    Counts = atomics:new(2, []),
    Function = fun([]) ->
        Now = atomics:add_get(Counts, 1, 1),
        most(Counts, Now),
        timer:sleep(1),
        atomics:sub(Counts, 1, 1)
    end,
    Nodes = maps:from_list([{N, #{run => Function, limit => Limit}} || N <- lists:seq(1, 40)]),
    Runs = [element(2, py_dag:start(#{nodes => Nodes}, #{})) || _ <- [1, 2]],
    [{ok, _} = py_dag:await(Run) || Run <- Runs],
    ?assertEqual(3, atomics:get(Counts, 2)),
    ?assertReason({bad_argument, _}, py_dag_test:run(#{a => #{run => Function, limit => 3}}, #{})),
    ?assertReason({bad_argument, at_once}, py_dag:limit(0)).

most(Counts, Now) ->
    case atomics:get(Counts, 2) of
        Most when Most < Now ->
            _ = atomics:compare_exchange(Counts, 2, Most, Now),
            most(Counts, Now);
        _ ->
            ok
    end.

the_longest_path_runs_first(_Config) ->
    {ok, Context} = py_context:new(#{mode => worker}),
    %% Ready at one moment, on the thread that runs them: more than have a turn at once.
    After = fun(Name, Before, Keys) -> {Name, maps:merge(py_dag_test:python(add, [Before]), Keys)} end,
    Leaves = [After({a_leaf, N}, gate, #{}) || N <- lists:seq(1, 100)],
    Links = [After({link, N}, {link, N - 1}, #{}) || N <- lists:seq(2, 5)],
    Heavy = [After(heavy, gate, #{weight => 4.5}), After({link, 1}, gate, #{})],
    Nodes = maps:from_list([{gate, py_dag_test:python(add, [])} | Leaves ++ Links ++ Heavy]),
    {ok, #{timeline := Timeline}} = py_dag:run(#{nodes => Nodes}, #{}, #{context => Context}),
    Order = [Node || {_, Node} <- lists:sort([{Started, Node} || #{node := Node, started := Started} <- Timeline])],
    First = [gate, {link, 1}, heavy, {link, 2}, {link, 3}, {link, 4}],
    ?assertEqual(First ++ [Leaf || {Leaf, _} <- Leaves] ++ [{link, 5}], Order),
    ok = py_context:stop(Context).

a_function_may_ask_for_more_nodes(_Config) ->
    Ask = fun([Count]) ->
        Parts = [{{part, N}, py_dag_test:python(add, [x, N])} || N <- lists:seq(1, Count)],
        Names = [Name || {Name, _} <- Parts],
        Numbers = maps:from_list([{N, N} || N <- lists:seq(1, Count)]),
        Sum = py_dag_test:python(add, Names),
        py_dag:more(#{nodes => maps:from_list([{sum, Sum} | Parts])}, Numbers#{x => 1}, sum)
    end,
    Nodes = #{
        asks => #{run => Ask, inputs => [count]},
        after_it => py_dag_test:python(add, [asks]),
        text => #{run => fun([Sum]) -> {sum, Sum} end, inputs => [asks]},
        echo => #{run => ["ECHO", {input, asks}]}
    },
    {ok, #{results := Results, timeline := Timeline}} = py_dag_test:run(Nodes, #{count => 4}),
    ?assertEqual(#{after_it => 14, text => {sum, 14}, echo => <<"14">>}, Results),
    ?assertEqual(done, outcome(<<"asks/sum">>, Timeline)),
    ?assertEqual(4 + 5, length(Timeline)).

asked_nodes_may_ask_again_and_call_functions_of_their_own(_Config) ->
    Down = fun Down([N]) ->
        case N of
            0 ->
                0;
            _ ->
                Nodes = #{
                    less => #{run => fun([M]) -> M - 1 end, inputs => [n]},
                    down => #{run => Down, inputs => [less]},
                    awaited => (py_dag_test:python(coroutine, [down]))#{kind => io}
                },
                py_dag:more(#{nodes => Nodes}, #{n => N}, awaited)
        end
    end,
    ?assertEqual(#{down => 10}, py_dag_test:results(#{down => #{run => Down, inputs => [n]}}, #{n => 10})).

nodes_may_ask_a_thousand_levels_deep_and_no_deeper(_Config) ->
    Down = fun Down([N]) ->
        case N of
            0 -> bottom;
            _ -> py_dag:more(#{nodes => #{down => #{run => Down, inputs => [n]}}}, #{n => N - 1}, down)
        end
    end,
    Erlang = #{run => Down, inputs => [n]},
    Python = (py_dag_test:python(asks_down_for_bottom, [n]))#{kind => io},
    [
        begin
            {ok, #{results := #{down := _}}} = py_dag_test:run(#{down => Node}, #{n => 1000}),
            Reason = py_test:reason(py_dag_test:run(#{down => Node}, #{n => 100_000})),
            ?assertMatch({dag, down, {bad_argument, <<"nodes ask for more nodes over 1000 levels deep">>}}, Reason)
        end
     || Node <- [Erlang, Python]
    ].

what_an_asked_node_fails_with_is_the_reason(_Config) ->
    Asks = fun(More) -> py_dag_test:run(#{asks => #{run => fun([]) -> More end}}, #{}) end,
    Fails = #{nodes => #{a => py_dag_test:python(fails, [])}},
    ?assertReason({dag, asks, {'ValueError', <<"as told">>}}, Asks(py_dag:more(Fails, #{}, a))),
    ?assertReason({dag, asks, {bad_argument, _}}, Asks(py_dag:more(Fails, #{}, b))),
    Wrong = #{nodes => #{a => py_dag_test:python(add, [nothing])}},
    ?assertReason({dag, asks, {bad_argument, _}}, Asks(py_dag:more(Wrong, #{}, a))),
    Skipped = #{nodes => #{a => (py_dag_test:python(add, []))#{condition => x}}},
    ?assertReason({dag, asks, {bad_argument, _}}, Asks(py_dag:more(Skipped, #{x => false}, a))).

a_condition_may_be_what_an_asked_node_gave(_Config) ->
    Asks = fun(Value) ->
        More = py_dag:more(#{nodes => #{a => py_dag_test:python(unwrap, [x])}}, #{x => Value}, a),
        #{run => fun([]) -> More end}
    end,
    Given = fun(Value) -> py_dag_test:python(asks_for, [given, {value, Value}]) end,
    Outcome = fun(Nodes, Inputs) ->
        {ok, #{timeline := Timeline}} = py_dag_test:run(Nodes, Inputs),
        outcome(n, Timeline)
    end,
    Then = (py_dag_test:python(add, []))#{condition => asks},
    [
        begin
            ?assertEqual(Expected, Outcome(#{asks => Asks(Value), n => Then}, #{})),
            Inputs = #{given => <<"given">>, {value, Value} => Value},
            ?assertEqual(Expected, Outcome(#{asks => Given(Value), n => Then}, Inputs))
        end
     || {Value, Expected} <- [{1, done}, {0, skipped}, {[], skipped}, {false, skipped}, {[0], done}]
    ].

a_function_of_python_may_ask_for_more_nodes(_Config) ->
    Nodes = #{
        asks => py_dag_test:python(asks, [count]),
        after_it => py_dag_test:python(add, [asks]),
        text => #{run => fun([Sum]) -> {sum, Sum} end, inputs => [asks]},
        echo => #{run => ["ECHO", {input, asks}]},
        then => (py_dag_test:python(add, []))#{condition => asks}
    },
    {ok, #{results := Results, timeline := Timeline}} = py_dag_test:run(Nodes, #{count => 3}),
    ?assertEqual(#{after_it => 33, text => {sum, 33}, echo => <<"33">>, then => 0}, Results),
    ?assertEqual(done, outcome(<<"asks/total">>, Timeline)),
    ?assertEqual(5 + 6, length(Timeline)),
    %% Its own value is a result as well, and it may be tried again.
    Alone = (py_dag_test:python(asks, [count]))#{retries => 1, timeout => 20_000},
    ?assertEqual(#{asks => 10}, py_dag_test:results(#{asks => Alone}, #{count => 1})).

a_coroutine_may_ask_and_asked_nodes_may_ask_again(_Config) ->
    Nodes = #{
        down => (py_dag_test:python(asks_down, [n]))#{kind => io},
        weights => py_dag_test:python(weights, [down])
    },
    ?assertEqual(#{weights => 0}, py_dag_test:results(Nodes, #{n => 20})),
    Down = maps:with([down], Nodes),
    ?assertReason({dag, down, {not_convertible, _}}, py_dag_test:run(Down, #{n => 2})).

nodes_that_python_asks_for_run_where_the_run_does_and_for_its_caller(_Config) ->
    Asks = fun(Kind, Opts) ->
        Nodes = #{a => py_dag_test:python(asks_for, [kind])},
        #{a := Value} = py_dag_test:results(Nodes, #{kind => Kind}, Opts),
        Value
    end,
    ?assertEqual(self(), Asks(whose, #{})),
    Modes = [worker | [subinterp || py:execution_mode() =:= subinterp]],
    [
        begin
            {ok, Context} = py_context:new(#{mode => Mode}),
            {ok, Id} = py:call(threading, get_native_id, [], #{}, #{context => Context}),
            ?assertEqual(Id, Asks(thread_id, #{context => Context})),
            Down = #{
                down => (py_dag_test:python(asks_down, [n]))#{kind => io},
                weights => py_dag_test:python(weights, [down])
            },
            ?assertEqual(#{weights => 0}, py_dag_test:results(Down, #{n => 3}, #{context => Context})),
            ok = py_context:stop(Context)
        end
     || Mode <- Modes
    ].

hundreds_of_asked_coroutines_wait_at_once(_Config) ->
    Nodes = #{meeting => py_dag_test:python(asks_for_a_meeting, [count])},
    ?assertEqual(#{meeting => 300}, py_dag_test:results(Nodes, #{count => 300})).

what_a_node_that_python_asked_for_fails_with_is_the_reason(_Config) ->
    Asks = fun(Kind, Value) ->
        Nodes = #{asks => py_dag_test:python(asks_for, [kind, value])},
        py_dag_test:run(Nodes, #{kind => Kind, value => Value})
    end,
    ?assertReason({dag, asks, {'ValueError', <<"as told">>}}, Asks(fails, none)),
    ?assertReason({dag, asks, {'ValueError', <<"the graph has no node b">>}}, Asks(unknown, none)),
    ?assertReason({dag, asks, {bad_argument, <<"the run has no input x", _/binary>>}}, Asks(inputs, none)),
    Skipped = <<"the result of its nodes was skipped">>,
    ?assertReason({dag, asks, {bad_argument, Skipped}}, Asks(skipped, 0)),
    ?assertReason({dag, asks, {not_convertible, _}}, Asks(truth_is_unknown, none)).

a_default_of_an_asked_node_is_taken_as_its_value_would_be(_Config) ->
    Nodes = #{
        asks => py_dag_test:python(asks_for, [kind, value]),
        text => #{run => fun([Value]) -> {text, Value} end, inputs => [asks]},
        echo => #{run => ["ECHO", {input, asks}]},
        then => (py_dag_test:python(add, []))#{condition => asks}
    },
    Inputs = #{kind => default, value => <<>>},
    ?assertEqual(#{text => {text, <<>>}, echo => <<>>}, py_dag_test:results(Nodes, Inputs)),
    ?assertMatch(#{text := {text, 1}, then := 0}, py_dag_test:results(Nodes, Inputs#{value := 1})).

cancelling_a_run_stops_the_nodes_that_python_asked_for(_Config) ->
    Nodes = #{asks => py_dag_test:python(asks_for, [kind])},
    {ok, Run} = py_dag:start(#{nodes => Nodes}, #{kind => stuck}),
    ?assertEqual({note, <<"stuck">>}, py_test:message()),
    ok = py_dag:cancel(Run),
    ?assertReason(cancelled, py_dag:await(Run)),
    ?assertEqual({note, [<<"asked">>, <<"Cancelled">>]}, py_test:message()).

a_hundred_thousand_nodes_of_python(_Config) ->
    Nodes = maps:from_list([{N, #{run => {py, builtins, abs}, inputs => [x]}} || N <- lists:seq(1, ?MANY)]),
    Results = py_dag_test:results(Nodes, #{x => -1}, #{timeout => infinity}),
    ?assertEqual(?MANY, lists:sum(maps:values(Results))),
    Chain = maps:from_list([{N, #{run => {py, operator, add}, inputs => [N - 1, one]}} || N <- lists:seq(1, ?MANY)]),
    Last = py_dag_test:results(Chain, #{0 => 0, one => 1}, #{timeout => infinity}),
    ?assertEqual(#{?MANY => ?MANY}, Last).

a_hundred_thousand_functions_of_erlang(_Config) ->
    Nodes = maps:from_list([{N, #{run => {lists, sum}, inputs => [x]}} || N <- lists:seq(1, ?MANY)]),
    Results = py_dag_test:results(Nodes, #{x => 1}, #{timeout => infinity}),
    ?assertEqual(?MANY, lists:sum(maps:values(Results))).

a_hundred_thousand_commands(_Config) ->
    Nodes = maps:from_list([{N, #{run => ["ECHO", N]}} || N <- lists:seq(1, ?MANY)]),
    Results = py_dag_test:results(Nodes, #{}, #{timeout => infinity}),
    ?assert(lists:all(fun({N, Echo}) -> integer_to_binary(N) =:= Echo end, maps:to_list(Results))).

a_wide_run_does_not_keep_others_waiting(_Config) ->
    Wide = maps:from_list([{N, py_dag_test:python(sleeps_briefly, [x])} || N <- lists:seq(1, 20_000)]),
    {ok, Run} = py_dag:start(#{nodes => Wide}, #{x => 1}, infinity),
    Small = #{a => py_dag_test:python(add, [x]), b => py_dag_test:python(add, [a])},
    [?assertEqual(#{b => 1}, py_dag_test:results(Small, #{x => 1})) || _ <- lists:seq(1, 5)],
    %% The wide one has not ended yet.
    ok = py_test:nothing_waits(),
    ok = py_dag:cancel(Run),
    ?assertReason(cancelled, py_dag:await(Run)).

hundreds_of_coroutines_wait_at_once(_Config) ->
    Count = 500,
    Meet = fun(N) -> (py_dag_test:python(meet, [{number, N}, count]))#{kind => io} end,
    Nodes = maps:from_list([{N, Meet(N)} || N <- lists:seq(1, Count)]),
    Numbers = maps:from_list([{{number, N}, N} || N <- lists:seq(1, Count)]),
    Results = py_dag_test:results(Nodes, Numbers#{count => Count}),
    ?assertEqual(lists:seq(1, Count), [maps:get(N, Results) || N <- lists:seq(1, Count)]).
