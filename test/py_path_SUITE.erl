%% The setting `python_path': modules in its directories are found wherever Python runs for the node.
-module(py_path_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_module_is_found_in_every_place_where_python_runs/1,
    interpreters_made_before_find_it/1,
    python_programs_that_are_started_find_it/1,
    a_server_finds_its_application/1,
    it_comes_before_everything_but_the_own_package/1,
    it_stays_in_front_of_a_venv/1,
    the_modules_of_preload_are_found/1,
    another_start_has_another_path/1,
    it_survives_the_export_of_the_environment/1,
    a_directory_of_an_application_is_found_below_its_priv/1,
    what_is_not_there_stops_the_start/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "python_path"),
    ok = filelib:ensure_path(Dir),
    Text = "def where():\n    return __file__\n",
    [ok = file:write_file(filename:join(Dir, Name), Text) || Name <- ["py_path_probe.py", "antigravity.py"]],
    ok = file:write_file(filename:join(Dir, "py_path_served.py"), [
        "async def app(scope, receive, send):\n"
        "    await send({'type': 'http.response.start', 'status': 204})\n"
        "    await send({'type': 'http.response.body'})\n"
    ]),
    [{dir, Dir}, {file, bin(filename:join(Dir, "py_path_probe.py"))} | Config].

end_per_suite(_Config) -> ok.

init_per_testcase(what_is_not_there_stops_the_start, Config) ->
    _ = application:stop(erlang_python),
    Config;
init_per_testcase(_Case, Config) ->
    ok = restart([dir(Config)]),
    Config.

%% Other suites may run in this node: Python is told of the setting anew.
end_per_testcase(_Case, _Config) ->
    ok = application:unset_env(erlang_python, preload),
    ok = restart([]),
    [{ok, _} = py:call(sys, 'modules.pop', [Name, none]) || Name <- [<<"py_path_probe">>, <<"antigravity">>]],
    ok.

restart(Path) ->
    _ = application:stop(erlang_python),
    ok = application:set_env(erlang_python, python_path, Path),
    {ok, _} = application:ensure_all_started(erlang_python),
    application:unset_env(erlang_python, python_path).

a_module_is_found_in_every_place_where_python_runs(Config) ->
    Found = {ok, proplists:get_value(file, Config)},
    ?assertEqual(Found, py:call(py_path_probe, where, [])),
    ?assertEqual(Found, py:await(py:async_call(py_path_probe, where, []))),
    ?assertEqual(Found, py:with_context(fun(Ctx) -> py:call(Ctx, py_path_probe, where, []) end)),
    {ok, File} = Found,
    ?assertEqual({ok, [File]}, py:parallel([{py_path_probe, where, []}])),
    [
        begin
            {ok, Ctx} = py_context:new(#{mode => Mode}),
            ?assertEqual(Found, py:call(Ctx, py_path_probe, where, [])),
            ?assertEqual(Found, py:await(py:async_call(Ctx, py_path_probe, where, []))),
            ok = py_context:stop(Ctx)
        end
     || Mode <- modes()
    ].

interpreters_made_before_find_it(Config) ->
    ok = restart([]),
    Contexts = [Ctx || Mode <- modes(), {ok, Ctx} <- [py_context:new(#{mode => Mode})]],
    [?assertMatch({error, {'ModuleNotFoundError', _}}, py:call(Ctx, py_path_probe, where, [])) || Ctx <- Contexts],
    ok = py_path:export([bin(dir(Config))]),
    [?assertEqual({ok, proplists:get_value(file, Config)}, py:call(Ctx, py_path_probe, where, [])) || Ctx <- Contexts],
    [ok = py_context:stop(Ctx) || Ctx <- Contexts].

python_programs_that_are_started_find_it(Config) ->
    File = proplists:get_value(file, Config),
    {ok, #{<<"executable">> := Python}} = py:call('erlang._venv', running, []),
    Code = <<"import py_path_probe; print(py_path_probe.where(), end='')">>,
    ?assertEqual({ok, File}, py:call(subprocess, check_output, [[Python, <<"-c">>, Code]], #{text => true})),
    ok = py:exec([
        "import multiprocessing, sys\n"
        "context = multiprocessing.get_context('spawn')\n"
        "context.set_executable('", Python, "')\n"
        "import py_path_probe\n"
        "with context.Pool(1) as pool:\n"
        "    found = pool.apply(py_path_probe.where)\n"
    ]),
    ?assertEqual({ok, File}, py:eval("found")).

a_server_finds_its_application(_Config) ->
    {ok, Server} = py_asgi:serve(<<"py_path_served:app">>, #{port => 0}),
    Port = py_asgi:port(Server),
    {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}]),
    ok = gen_tcp:send(Socket, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    ?assertMatch({ok, <<"HTTP/1.1 204", _/binary>>}, gen_tcp:recv(Socket, 0, 10_000)),
    ok = gen_tcp:close(Socket),
    ok = py_asgi:stop(Server).

it_comes_before_everything_but_the_own_package(Config) ->
    %% Of the standard library, and of the directory.
    ?assertEqual({ok, bin(filename:join(dir(Config), "antigravity.py"))}, py:call(antigravity, where, [])),
    {ok, [_Own, Second | _]} = py:eval("list(__import__('sys').path)"),
    ?assertEqual(bin(dir(Config)), Second).

it_stays_in_front_of_a_venv(Config) ->
    Venv = filename:join(proplists:get_value(priv_dir, Config), "venv"),
    {ok, #{<<"executable">> := Python}} = py:call('erlang._venv', running, []),
    {ok, _} = py_command:run(Python, ["-m", "venv", "--without-pip", Venv], #{timeout => 60_000}),
    [Site] = filelib:wildcard(filename:join(Venv, "lib/python3*/site-packages")),
    ok = file:write_file(filename:join(Site, "py_path_probe.py"), "def where():\n    return 'venv'\n"),
    ok = py:activate_venv(Venv),
    ?assertEqual({ok, proplists:get_value(file, Config)}, py:call(py_path_probe, where, [])),
    %% A start in between, with a venv that is active.
    ok = restart([]),
    ok = restart([dir(Config)]),
    ok = py:deactivate_venv(),
    {ok, Path} = py:eval("list(__import__('sys').path)"),
    ?assertEqual([bin(dir(Config))], [Each || Each <- tl(Path), Each =:= bin(dir(Config)) orelse Each =:= bin(Site)]),
    ?assertEqual(bin(dir(Config)), hd(tl(Path))).

the_modules_of_preload_are_found(Config) ->
    ok = application:set_env(erlang_python, preload, [py_path_probe]),
    ok = restart([dir(Config)]),
    ?assertEqual({ok, true}, py:eval("'py_path_probe' in __import__('sys').modules")).

another_start_has_another_path(Config) ->
    Other = filename:join(proplists:get_value(priv_dir, Config), "other"),
    ok = filelib:ensure_path(Other),
    {ok, <<_/binary>> = Before} = py:call(os, 'environ.get', [<<"PYTHONPATH">>]),
    ok = restart([Other, dir(Config), Other]),
    {ok, [_Own, First, Second | Rest]} = py:eval("list(__import__('sys').path)"),
    ?assertEqual([bin(dir(Config)), bin(Other)], [First, Second]),
    ?assertNot(lists:member(bin(Other), Rest)),
    ok = restart([]),
    {ok, Path} = py:eval("list(__import__('sys').path)"),
    ?assertEqual([], [Each || Each <- Path, Each =:= bin(Other) orelse Each =:= bin(dir(Config))]),
    {ok, After} = py:call(os, 'environ.get', [<<"PYTHONPATH">>, <<>>]),
    ?assertEqual(nomatch, string:find(After, dir(Config))),
    ?assertNotEqual(nomatch, string:find(Before, dir(Config))).

it_survives_the_export_of_the_environment(Config) ->
    true = os:putenv("PYTHONPATH", "/of/erlang"),
    ok = py_env:export(),
    true = os:unsetenv("PYTHONPATH"),
    Both = <<(bin(dir(Config)))/binary, ":/of/erlang">>,
    ?assertEqual({ok, Both}, py:call(os, 'environ.get', [<<"PYTHONPATH">>])),
    ok = py_env:export(["PYTHONPATH"]),
    ?assertEqual({ok, bin(dir(Config))}, py:call(os, 'environ.get', [<<"PYTHONPATH">>])).

a_directory_of_an_application_is_found_below_its_priv(_Config) ->
    ok = restart([{priv, erlang_python, "python/erlang"}]),
    Priv = code:priv_dir(erlang_python),
    {ok, [_Own, First | _]} = py:eval("list(__import__('sys').path)"),
    ?assertEqual(bin(filename:join(Priv, "python/erlang")), First).

what_is_not_there_stops_the_start(Config) ->
    Odd = filename:join(proplists:get_value(priv_dir, Config), "a:b"),
    ok = filelib:ensure_path(Odd),
    [
        begin
            ok = application:set_env(erlang_python, python_path, Path),
            {error, {erlang_python, {Why, _}}} = application:ensure_all_started(erlang_python),
            ?assertNotEqual(nomatch, string:find(Why, Words), Why)
        end
     || {Path, Words} <- [
            {["/no/such/dir"], "python_path: /no/such/dir does not exist"},
            {[{priv, no_such_application, "python"}], "there is no application no_such_application"},
            {[Odd], "has a colon in its name"},
            {["ok", 7], "python_path must be a list of directories"},
            {[{priv, "name", "python"}], "python_path must be a list of directories"}
        ]
    ].

modes() ->
    case py_nif:built_for() of
        {_, Minor, _} when Minor >= 12 -> [worker, subinterp];
        _ -> [worker]
    end.

dir(Config) -> proplists:get_value(dir, Config).

bin(Text) -> unicode:characters_to_binary(Text).
