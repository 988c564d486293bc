%% In a copy of the tree, with the key of a node that `edit.sh' adds.
-module(py_recipe_node_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([the_added_key_is_known/1]).

all() -> [the_added_key_is_known].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

the_added_key_is_known(_Config) ->
    Fails = py_dag_test:python(fails, []),
    Nodes = fun(MadeUp) ->
        #{a => Fails#{made_up => MadeUp}, b => py_dag_test:python(kinds, [a])}
    end,
    ?assertEqual(#{b => [<<"NoneType">>]}, py_dag_test:results(Nodes(true), #{})),
    ?assertReason({dag, a, {'ValueError', <<"as told">>}}, py_dag_test:run(Nodes(false), #{})).
