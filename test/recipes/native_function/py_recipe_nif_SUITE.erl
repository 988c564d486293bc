%% In a copy of the tree, with the native function that `edit.sh' adds.
-module(py_recipe_nif_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([the_added_function_runs/1]).

all() -> [the_added_function_runs].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

the_added_function_runs(_Config) ->
    {ok, Pool} = py_registry:pool(main),
    ?assertEqual(3, py_nif:made_up(Pool, 3)).
