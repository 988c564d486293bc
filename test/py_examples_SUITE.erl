%% Every example is run as its head says, and shows what it promises.
-module(py_examples_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    hello/1,
    call_back/1,
    stream_words/1,
    numpy_stats/1,
    parallel_requests/1,
    ranking/1,
    chat/1,
    elixir/1,
    live_tokens/1,
    every_example_has_a_test_case_and_is_short/1
]).

-define(LIMIT, 60_000).
-define(MOST_LINES, 80).

all() ->
    [
        hello,
        call_back,
        stream_words,
        numpy_stats,
        parallel_requests,
        ranking,
        chat,
        elixir,
        live_tokens,
        every_example_has_a_test_case_and_is_short
    ].

init_per_suite(Config) ->
    [{root, py_test:root()} | Config].

end_per_suite(_Config) ->
    ok.

hello(Config) ->
    Output = escript("hello", ["Joe"], Config),
    shows(["says the answer is 42\n", "Hello, Joe!\n"], Output).

call_back(Config) ->
    Output = escript("call_back", [], Config),
    shows(["1 of 3\n2 of 3\n3 of 3\n", "total: 7400\n", "ghost has no price"], Output).

stream_words(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "words.txt"),
    ok = file:write_file(File, [lists:duplicate(100, "one "), "\n", lists:duplicate(50, "two ")]),
    Output = escript("stream_words", [File], Config),
    shows(["2 different words\n", " 100 one\n", "  50 two\n"], Output),
    Missing = escript("stream_words", [File ++ ".missing"], Config),
    shows(["FileNotFoundError"], Missing).

numpy_stats(Config) ->
    case os:getenv("PY_TEST_VENV") of
        Venv when Venv =:= false; Venv =:= "" ->
            %% There may be one in the interpreter's own packages.
            Output = escript("numpy_stats", [], Config),
            ?assertMatch({match, _}, re:run(Output, "numpy is not installed|mean 250000\\.250"));
        Venv ->
            Output = escript("numpy_stats", [Venv], Config),
            shows(["mean 250000.250\n", "linspace: [0.0,0.25,0.5,0.75,1.0]\n"], Output)
    end.

parallel_requests(Config) ->
    Output = escript("parallel_requests", [], Config),
    {match, [Time]} = re:run(Output, "50 of 50 requests fine in (\\d+) ms", [{capture, all_but_first, list}]),
    %% One after another they would take longer.
    ?assert(list_to_integer(Time) < 5000).

ranking(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "timeline.svg"),
    Output = escript("ranking", [File], Config),
    shows([
        "the best: [{<<\"7:144\">>,99},{<<\"7:14\">>,98},{<<\"7:143\">>,94}]\n",
        "waited for: [viewer,commands,features,vm,filter,sort]\n",
        "after: 600 reads on one thread in "
    ], Output),
    {ok, <<"<svg ", _/binary>>} = file:read_file(File),
    case os:find_executable("redis-server") of
        false -> ok;
        _ -> shows(["before: 600 reads by 8 blocking threads in "], Output)
    end.

chat(Config) ->
    case os:getenv("PY_TEST_VENV") of
        Venv when Venv =:= false; Venv =:= "" -> {skip, "there is no FastAPI"};
        Venv -> chat(filename:join(Venv, "bin/python"), Config)
    end.

chat(Python, Config) ->
    Chat = start(escript(), ["examples/chat/chat.erl", "0"], [{"PYTHON", Python}], Config),
    Said = until("Enter ends it\n", Chat),
    {match, [Url]} = re:run(Said, "at (http://\\S+)", [{capture, all_but_first, list}]),
    {ok, _} = application:ensure_all_started(inets),
    {ok, {{_, 200, _}, _, Page}} = httpc:request(Url),
    shows(["<title>Chat</title>"], Page),
    Driver = filename:join(proplists:get_value(data_dir, Config), "chat.py"),
    Seen = run(Python, [Driver, Url], Config),
    true = port_command(Chat, "\n"),
    ?assertMatch({0, _}, collect(Chat, <<>>)),
    case string:find(Seen, "left out") of
        nomatch -> shows(["both saw all\n"], Seen);
        Why -> {skip, string:trim(Why)}
    end.

elixir(Config) ->
    case mix(["examples/elixir/hello.exs"], Config) of
        {skip, _} = Skip -> Skip;
        Output -> shows(["mean: 3\n", "first-post, second-post\n", "ZeroDivisionError"], Output)
    end.

live_tokens(Config) ->
    case mix(["-r", "examples/live_tokens/live_tokens.ex", "examples/live_tokens/live_tokens.exs"], Config) of
        {skip, _} = Skip -> Skip;
        Output -> shows(["Why Erlang? ", "the process ended with its subscriber\n", "nobody writes any more\n"], Output)
    end.

mix(Args, Config) ->
    case os:find_executable("mix") of
        false -> {skip, "there is no elixir"};
        Mix -> run(Mix, ["run" | Args], Config)
    end.

every_example_has_a_test_case_and_is_short(Config) ->
    Examples = filename:join(proplists:get_value(root, Config), "examples"),
    {ok, Names} = file:list_dir(Examples),
    %% Those in plain Python need no node: test/python/test_examples.py runs them.
    Cases = [Name || Name <- Names, filename:extension(Name) =/= ".py"],
    ?assertEqual([], [Case || Case <- Cases, not lists:member(list_to_atom(Case), all())]),
    Long = [
        File
     || Pattern <- ["*/*.{erl,py,ex,exs}", "*.py"],
        File <- filelib:wildcard(Pattern, Examples),
        {ok, Text} <- [file:read_file(filename:join(Examples, File))],
        length(binary:matches(Text, <<"\n">>)) > ?MOST_LINES
    ],
    ?assertEqual([], Long).

%% ---- how they are run

escript(Name, Args, Config) ->
    File = filename:join(["examples", Name, Name ++ ".erl"]),
    run(escript(), [File | Args], Config).

escript() ->
    filename:join([code:root_dir(), "bin", "escript"]).

run(Program, Args, Config) ->
    {Status, Output} = collect(start(Program, Args, [], Config), <<>>),
    ct:log("~ts", [Output]),
    ?assertEqual(0, Status),
    Output.

start(Program, Args, Env, Config) ->
    Libs = filename:dirname(filename:dirname(filename:dirname(code:which(py)))),
    open_port({spawn_executable, Program}, [
        {args, Args},
        {cd, proplists:get_value(root, Config)},
        {env, [{"ERL_LIBS", Libs}, {"LC_ALL", "C.UTF-8"} | Env]},
        binary, exit_status, stderr_to_stdout
    ]).

until(Text, Port) ->
    until(Text, Port, <<>>).

until(Text, Port, Output) ->
    case string:find(Output, Text) of
        nomatch ->
            receive
                {Port, {data, Data}} -> until(Text, Port, <<Output/binary, Data/binary>>);
                {Port, {exit_status, Status}} -> error({ended, Status, Output})
            after ?LIMIT -> error({never_said, Text, Output})
            end;
        _ ->
            Output
    end.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    after ?LIMIT -> error({no_end, Output})
    end.

shows(Texts, Output) ->
    ?assertEqual([], [Text || Text <- Texts, string:find(Output, Text) =:= nomatch]).

