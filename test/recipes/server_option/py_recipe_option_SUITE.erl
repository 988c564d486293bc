%% The made-up option of a server, in a node.
-module(py_recipe_option_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([the_option_reaches_the_place_of_its_use/1, a_bad_value_is_refused_in_a_sentence/1]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

the_option_reaches_the_place_of_its_use(Config) ->
    Directory = proplists:get_value(priv_dir, Config),
    ok = file:write_file(filename:join(Directory, "py_recipe_option.py"), [
        "async def app(scope, receive, send):\n"
        "    await send({'type': 'http.response.start', 'status': 200})\n"
        "    await send({'type': 'http.response.body', 'body': b'ok'})\n"
    ]),
    Header = fun(Opts) -> header(Opts#{port => 0, lifespan => off, app_dir => Directory}) end,
    ?assertEqual(<<"3">>, Header(#{})),
    ?assertEqual(<<"1.5">>, Header(#{made_up => 1500})).

header(Opts) ->
    {ok, Server} = py_asgi:serve("py_recipe_option:app", Opts),
    {200, Headers, <<"ok">>} = py_http:get(py_asgi:port(Server), "/"),
    ok = py_asgi:stop(Server),
    proplists:get_value(<<"made-up">>, Headers).

a_bad_value_is_refused_in_a_sentence(_Config) ->
    Sentence = <<"made_up must be milliseconds from 1 to 4294967295, and is 0">>,
    ?assertEqual({error, {bad_argument, Sentence}}, py_asgi:serve("py_recipe_option:app", #{made_up => 0})).
