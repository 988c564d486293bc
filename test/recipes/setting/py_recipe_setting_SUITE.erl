%% In a copy of the tree, with the setting that `edit.sh' adds.
-module(py_recipe_setting_SUITE).

-include("py_test.hrl").

-export([all/0]).
-export([
    the_setting_reaches_its_use_in_a_node/1,
    a_bad_value_and_a_slip_stop_the_start/1,
    the_documentation_gets_its_row/1
]).

all() ->
    [the_setting_reaches_its_use_in_a_node, a_bad_value_and_a_slip_stop_the_start, the_documentation_gets_its_row].

%% Where code of the application looks.
the_setting_reaches_its_use_in_a_node(_Config) ->
    Use = fun(Settings) ->
        {ok, Peer} = started(Settings),
        #{made_up_ms := Used} = peer:call(Peer, persistent_term, get, [py_config]),
        ok = py_test:stop_peer(Peer),
        Used
    end,
    ?assertEqual(7, Use([])),
    ?assertEqual(9, Use([{made_up_ms, 9}])).

a_bad_value_and_a_slip_stop_the_start(_Config) ->
    ?assertMatch({match, _}, re:run(started([{made_up_ms, 1001}]), "made_up_ms must be at most 1000, got 1001")),
    ?assertMatch({match, _}, re:run(started([{madeup_ms, 9}]), "did you mean made_up_ms\\?")).

started(Settings) ->
    Peer = py_test:peer(Settings),
    case peer:call(Peer, application, ensure_all_started, [erlang_python], 30_000) of
        {ok, _} ->
            {ok, Peer};
        {error, Why} ->
            ok = py_test:stop_peer(Peer),
            io_lib:format("~0tp", [Why])
    end.

the_documentation_gets_its_row(Config) ->
    Row = "| `made_up_ms` | 7 | milliseconds that a recipe has made up |\n",
    ?assertNotEqual(nomatch, string:find(py_test:written("docs/getting-started.md", Config), Row)).
