%% Every code block of the documentation is run (`py_snippets' says how); one test case per page.
-module(py_docs_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    readme/1,
    contributing/1,
    install/1,
    releases/1,
    getting_started/1,
    calling_python/1,
    options/1,
    types/1,
    errors_and_timeouts/1,
    streaming/1,
    async/1,
    channels/1,
    event_loop/1,
    runtime_models/1,
    callbacks/1,
    pools_and_contexts/1,
    every_core/1,
    dag/1,
    redis/1,
    raw_loops/1,
    reactor/1,
    threading/1,
    virtual_environments/1,
    security/1,
    serving_asgi/1,
    from_uvicorn/1,
    packages_tried/1,
    what_we_test/1,
    versions/1,
    wheels_and_archives/1,
    phoenix_and_livebook/1,
    every_page_has_a_test_case/1,
    every_link_within_the_project_leads_somewhere/1,
    the_tables_of_the_pages_are_those_of_the_code/1,
    what_the_architecture_names_exists/1,
    a_wrong_snippet_fails_its_page/1
]).

-define(LIMIT, 60_000).

all() ->
    [
        readme,
        contributing,
        install,
        releases,
        getting_started,
        calling_python,
        options,
        types,
        errors_and_timeouts,
        streaming,
        async,
        channels,
        event_loop,
        runtime_models,
        callbacks,
        pools_and_contexts,
        every_core,
        dag,
        redis,
        raw_loops,
        reactor,
        threading,
        virtual_environments,
        security,
        serving_asgi,
        from_uvicorn,
        packages_tried,
        what_we_test,
        versions,
        wheels_and_archives,
        phoenix_and_livebook,
        every_page_has_a_test_case,
        every_link_within_the_project_leads_somewhere,
        the_tables_of_the_pages_are_those_of_the_code,
        what_the_architecture_names_exists,
        a_wrong_snippet_fails_its_page
    ].

init_per_suite(Config) ->
    [{root, py_test:root()} | Config].

end_per_suite(_Config) ->
    ok.

%% Each page with a Python of its own settings: the security page changes them.
init_per_testcase(Case, Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = py_test:use_venv(),
    [{scratch, filename:join(proplists:get_value(priv_dir, Config), Case)} | Config].

end_per_testcase(_Case, Config) ->
    Scratch = unicode:characters_to_binary(proplists:get_value(scratch, Config)),
    _ = py:eval("place in sys.path and sys.path.remove(place)", #{place => Scratch}),
    _ = py:deactivate_venv(),
    ok = application:stop(erlang_python),
    ok = application:unset_env(erlang_python, audit),
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = application:stop(erlang_python).

readme(Config) -> page("README.md", Config).
contributing(Config) -> page("CONTRIBUTING.md", Config).
install(Config) -> page("docs/install.md", Config).
releases(Config) -> page("docs/releases.md", Config).
getting_started(Config) -> page("docs/getting-started.md", Config).
calling_python(Config) -> page("docs/calling-python.md", Config).
options(Config) -> page("docs/options.md", Config).
types(Config) -> page("docs/types.md", Config).
errors_and_timeouts(Config) -> page("docs/errors-and-timeouts.md", Config).
streaming(Config) -> page("docs/streaming.md", Config).
async(Config) -> page("docs/async.md", Config).
channels(Config) -> page("docs/channels.md", Config).
event_loop(Config) -> page("docs/event-loop.md", Config).
runtime_models(Config) -> page("docs/runtime-models.md", Config).
callbacks(Config) -> page("docs/callbacks.md", Config).
pools_and_contexts(Config) -> page("docs/pools-and-contexts.md", Config).
every_core(Config) -> page("docs/every-core.md", Config).
dag(Config) -> page("docs/dag.md", Config).
redis(Config) -> page("docs/redis.md", Config).
raw_loops(Config) -> page("docs/raw-loops.md", Config).
reactor(Config) -> page("docs/reactor.md", Config).
threading(Config) -> page("docs/threading.md", Config).
virtual_environments(Config) -> page("docs/virtual-environments.md", Config).
security(Config) -> page("docs/security.md", Config).
serving_asgi(Config) -> page("docs/serving-asgi.md", Config).

from_uvicorn(Config) -> page("docs/from-uvicorn.md", Config).
packages_tried(Config) -> page("docs/packages-tried.md", Config).
what_we_test(Config) -> page("docs/what-we-test.md", Config).
versions(Config) -> page("docs/versions.md", Config).
wheels_and_archives(Config) -> page("docs/wheels-and-archives.md", Config).
phoenix_and_livebook(Config) -> page("docs/phoenix-and-livebook.md", Config).

every_page_has_a_test_case(Config) ->
    Pages = filelib:wildcard("*.md", filename:join(proplists:get_value(root, Config), "docs")),
    Cases = [list_to_atom(lists:flatten(string:replace(filename:rootname(Page), "-", "_", all))) || Page <- Pages],
    ?assertEqual([], Cases -- all()).

every_link_within_the_project_leads_somewhere(Config) ->
    Root = proplists:get_value(root, Config),
    Pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md" | filelib:wildcard("docs/*.md", Root)],
    Broken = [
        {Page, Link}
     || Page <- Pages,
        Link <- links(filename:join(Root, Page)),
        not filelib:is_file(filename:join([Root, filename:dirname(Page), Link]))
    ],
    ?assertEqual([], Broken).

%% `./dev fmt' writes them.
the_tables_of_the_pages_are_those_of_the_code(Config) ->
    Root = proplists:get_value(root, Config),
    Script = filename:join(Root, "scripts/tables.escript"),
    Tables = fun(Pages) ->
        Args = [Script, filename:dirname(code:which(py)), "check" | Pages],
        {Status, Output, _} = py_test:run_program(os:find_executable("escript"), Args, ?LIMIT),
        {Status, Output}
    end,
    ?assertEqual({0, <<>>}, Tables(filelib:wildcard(filename:join(Root, "docs/*.md")))),
    Stale = filename:join(proplists:get_value(priv_dir, Config), "stale.md"),
    ok = file:write_file(Stale, "<!-- table: options of py:map -->\n\nnothing\n\n<!-- end of table -->\n"),
    ?assertMatch({1, _}, Tables([Stale])).

what_the_architecture_names_exists(Config) ->
    Root = proplists:get_value(root, Config),
    {ok, Text} = file:read_file(filename:join(Root, "ARCHITECTURE.md")),
    Files =
        [Path || [Path] <- found("\\b((?:native|src|test|python)/[\\w/]+\\.(?:rs|erl|py))", Text)] ++
            ["native/" ++ Crate ++ "/src/" ++ File || [Crate, File] <- found("(?<!/)\\b(nif|etf|crew)/(\\w+\\.rs)", Text)] ++
            ["src/" ++ Module ++ ".erl" || [Module] <- found("(?m)^  (py_\\w+)  ", Text)],
    ?assertEqual([], [File || File <- lists:usort(Files), not filelib:is_file(filename:join(Root, File))]),
    Tests = found("\\b(py_\\w+_SUITE):(\\w+)", Text),
    ?assertEqual([], [Test || Test <- Tests, not is_test(Test, Root)]).

is_test([Suite, Case], Root) ->
    case file:read_file(filename:join([Root, "test", Suite ++ ".erl"])) of
        {ok, Text} -> re:run(Text, "(?m)^" ++ Case ++ "\\(") =/= nomatch;
        {error, enoent} -> false
    end.

found(Pattern, Text) ->
    case re:run(Text, Pattern, [global, {capture, all_but_first, list}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

a_wrong_snippet_fails_its_page(Config) ->
    fails("```erlang\n1 + 1.\n%% => 3\n```\n", Config),
    fails("```erlang\nerror(oops).\n```\n", Config),
    fails("```erlang\n#{a => 1, b => 2}.\n%% => #{a => 1}\n```\n", Config),
    fails("```erlang\n[{erlang_python, [{no_such_key, 1}]}].\n```\n", Config),
    fails("```python\n# wrong_snippet.py\nraise ValueError\n```\n", Config),
    fails("```sh\n./dev nonsense\n```\n", Config),
    fails("```erl\nok.\n```\n", Config),
    fails("```erlang\nok.\n", Config),
    case os:find_executable("elixir") of
        false -> ok;
        _ -> fails("```elixir\n1 + 1\n# => 3\n```\n", Config)
    end.

fails(Text, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "wrong.md"),
    ok = file:write_file(File, Text),
    ?assertError(_, check(File, Config), Text).

page(Page, Config) ->
    check(filename:join(proplists:get_value(root, Config), Page), Config).

check(File, Config) ->
    py_snippets:check(File, #{
        scratch => proplists:get_value(scratch, Config),
        root => proplists:get_value(root, Config),
        elixir => fun(Blocks) -> elixir(Blocks, Config) end
    }).

%% ---- elixir

elixir([], _Config) ->
    ok;
elixir(Blocks, Config) ->
    case os:find_executable("elixir") of
        false -> ct:comment("there is no elixir: its snippets were not run");
        Elixir -> elixir(Elixir, Blocks, Config)
    end.

elixir(Elixir, Blocks, Config) ->
    File = proplists:get_value(scratch, Config) ++ ".blocks",
    Texts = [{Line, unicode:characters_to_binary(Text)} || {Line, Text} <- Blocks],
    ok = file:write_file(File, term_to_binary(Texts)),
    Script = filename:join(proplists:get_value(data_dir, Config), "page.exs"),
    Libs = filename:dirname(filename:dirname(filename:dirname(code:which(py)))),
    Port = open_port({spawn_executable, Elixir}, [
        {args, [Script, proplists:get_value(root, Config), File]},
        {env, [{"ERL_LIBS", Libs}, {"LC_ALL", "C.UTF-8"}]},
        binary, exit_status, stderr_to_stdout
    ]),
    case collect(Port, <<>>) of
        {0, _Output} -> ok;
        {Status, Output} -> error({elixir, Status, Output})
    end.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    after ?LIMIT -> error({elixir, no_end, Output})
    end.

%% ---- files


links(File) ->
    {ok, Text} = file:read_file(File),
    lists:append(found("\\]\\(([^)#:]+)(?:#[^)]*)?\\)", Text)).
