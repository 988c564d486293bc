%% Variables of the environment: Erlang and Python have a copy each, and one way between them.
-module(py_env_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    what_erlang_sets_is_exported_to_python/1,
    only_the_named_variables_are_exported/1,
    a_name_that_is_none_is_refused/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

in_python(Name) -> py:eval(<<"__import__('os').environ.get(name)">>, #{name => Name}).

what_erlang_sets_is_exported_to_python(_Config) ->
    true = os:putenv("PY_ENV_ONE", "ein Stück"),
    ?assertEqual({ok, none}, in_python(<<"PY_ENV_ONE">>)),
    ok = py:exec(<<"import os; os.environ['PY_ENV_OWN'] = 'stays'">>),
    ok = py:export_env(),
    ?assertEqual({ok, <<"ein Stück"/utf8>>}, in_python(<<"PY_ENV_ONE">>)),
    ?assertEqual({ok, <<"stays">>}, in_python(<<"PY_ENV_OWN">>)),
    %% The other way there is none.
    ?assertEqual(false, os:getenv("PY_ENV_OWN")).

only_the_named_variables_are_exported(_Config) ->
    true = os:putenv("PY_ENV_TWO", "2"),
    true = os:putenv("PY_ENV_THREE", "3"),
    ok = py:export_env(["PY_ENV_TWO"]),
    ?assertEqual({ok, <<"2">>}, in_python(<<"PY_ENV_TWO">>)),
    ?assertEqual({ok, none}, in_python(<<"PY_ENV_THREE">>)),
    true = os:unsetenv("PY_ENV_TWO"),
    ok = py:export_env([<<"PY_ENV_TWO">>]),
    ?assertEqual({ok, none}, in_python(<<"PY_ENV_TWO">>)).

a_name_that_is_none_is_refused(_Config) ->
    [?assertReason({bad_argument, names}, py:export_env(Names)) || Names <- [name, [""], [1], "NAME"]].
