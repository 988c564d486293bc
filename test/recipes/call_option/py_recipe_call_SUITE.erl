%% In a copy of the tree, with the option of `py:parallel' that `edit.sh' adds.
-module(py_recipe_call_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    the_option_reaches_its_use/1,
    a_bad_value_is_refused_in_a_sentence/1,
    it_means_nothing_to_other_functions/1,
    the_documentation_gets_its_row/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

the_option_reaches_its_use(_Config) ->
    Roots = fun(Opts) -> py:parallel([{math, sqrt, [N]} || N <- [1, 4, 9]], Opts) end,
    ?assertEqual({ok, [1.0, 2.0, 3.0]}, Roots(#{})),
    ?assertEqual({ok, [1.0, 2.0, 3.0]}, Roots(#{backwards => false})),
    ?assertEqual({ok, [3.0, 2.0, 1.0]}, Roots(#{backwards => true})).

a_bad_value_is_refused_in_a_sentence(_Config) ->
    Sentence = <<"the option backwards must be true or false, got 1">>,
    ?assertReason({bad_argument, Sentence}, py:parallel([], #{backwards => 1})).

it_means_nothing_to_other_functions(_Config) ->
    ?assertReason(
        {bad_argument, <<"the option backwards means nothing here", _/binary>>},
        py:call(math, sqrt, [4], #{}, #{backwards => true})
    ).

the_documentation_gets_its_row(Config) ->
    Page = py_test:written("docs/options.md", Config),
    ?assertMatch({match, _}, re:run(Page, "\\| `backwards` \\|[ |]* yes [ |]*\\n")),
    ?assertNotEqual(nomatch, string:find(Page, "| `backwards` | true or false | `true`: the values in the reverse order |\n")).
