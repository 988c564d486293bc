%% The guided tour: every step gives its answer, in time, and the exit code tells.
-module(py_tour_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    the_tour_ends_well_and_in_time/1,
    every_step_and_its_answer_are_shown/1,
    no_line_is_wider_than_a_terminal/1,
    no_answer_is_longer_than_a_screen/1,
    what_is_no_terminal_gets_plain_text/1,
    a_wrong_answer_is_shown_and_counted/1,
    a_step_that_raises_is_shown_and_counted/1,
    the_chat_runs_where_fastapi_is/1,
    a_step_without_its_module_is_left_out/1,
    an_application_that_does_not_start_gives_exit_code_1/1
]).

%% Far less on a machine that has nothing else to do: the tour shows its own time.
-define(LIMIT, 60_000).

all() ->
    [
        the_tour_ends_well_and_in_time,
        every_step_and_its_answer_are_shown,
        no_line_is_wider_than_a_terminal,
        no_answer_is_longer_than_a_screen,
        what_is_no_terminal_gets_plain_text,
        a_wrong_answer_is_shown_and_counted,
        a_step_that_raises_is_shown_and_counted,
        the_chat_runs_where_fastapi_is,
        a_step_without_its_module_is_left_out,
        an_application_that_does_not_start_gives_exit_code_1
    ].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(erlang_python),
    {Time, {Status, Output}} = timer:tc(fun() -> node_runs("py_tour:main().", []) end),
    ct:log("~ts", [Output]),
    [{started, Started}, {time, Time div 1000}, {status, Status}, {output, Output} | Config].

end_per_suite(Config) ->
    lists:foreach(fun application:stop/1, lists:reverse(proplists:get_value(started, Config))).

the_tour_ends_well_and_in_time(Config) ->
    ?assertEqual(0, proplists:get_value(status, Config)),
    ?assert(proplists:get_value(time, Config) < ?LIMIT).

every_step_and_its_answer_are_shown(Config) ->
    Output = proplists:get_value(output, Config),
    Shown = fun(Text) -> ?assertNotEqual({Text, nomatch}, {Text, string:find(Output, Text)}) end,
    lists:foreach(fun(#{title := Title}) -> Shown(Title) end, py_tour:steps()),
    lists:foreach(Shown, [
        "{ok,4.0}",
        "{ok,1180591620717411303425}",
        "{ok,12}",
        "{ok,#{<<\"on\">> => true,<<\"parts\">> => [1,2.5,{<<\"two\">>,none}]}}",
        "{error,{'TypeError',",
        "Traceback (most recent call last):",
        "{error,timeout}",
        "{ok,<<\"HELLO\">>}",
        "[{data,7},{data,8}]",
        "{ok,[0,1,4,9,16,25,36,49,64,81]}",
        "{ok,[{<<\"i\">>,4},{<<\"s\">>,4}]}",
        "{ok,42}",
        "    printed by Python",
        "{20000,calls,",
        "What to do next"
    ]),
    OneOf = fun(Texts) -> ?assertMatch([_], [Text || Text <- Texts, string:find(Output, Text) =/= nomatch]) end,
    OneOf(["{ndarray,<<\"<i8\">>,[4],", "left out: there is no numpy"]),
    OneOf(["{\"HTTP/1.1\",200,\"OK\"}", "left out: there is no fastapi", "left out: there is no examples/chat"]).

no_line_is_wider_than_a_terminal(Config) ->
    Lines = string:split(proplists:get_value(output, Config), "\n", all),
    ?assertEqual([], [Line || Line <- Lines, string:length(Line) > 80]).

no_answer_is_longer_than_a_screen(Config) ->
    Typed = string:split(proplists:get_value(output, Config), "\n    > ", all),
    ?assertEqual([], [Each || Each <- Typed, length(string:split(Each, "\n", all)) > 24]).

what_is_no_terminal_gets_plain_text(Config) ->
    ?assertEqual(nomatch, string:find(proplists:get_value(output, Config), "\e")).

a_wrong_answer_is_shown_and_counted(_Config) ->
    Wrong = #{title => "wrong", code => ["1 + 1."], answer => "3"},
    Right = #{title => "right", code => ["Two = 2.", "Two + 1."], answer => "3"},
    {1, Output} = captured([Wrong, Right]),
    ?assertNotEqual(nomatch, string:find(Output, "this should have been 3")),
    ?assertNotEqual(nomatch, string:find(Output, "1 of the steps went wrong")).

a_step_that_raises_is_shown_and_counted(_Config) ->
    {1, Output} = captured([#{title => "raises", code => ["error(oops)."], answer => "ok"}]),
    ?assertNotEqual(nomatch, string:find(Output, "oops")).

the_chat_runs_where_fastapi_is(_Config) ->
    case os:getenv("PY_TEST_VENV") of
        Venv when Venv =:= false; Venv =:= "" ->
            {skip, "there is no FastAPI"};
        Venv ->
            %% From the project's directory, which has examples/.
            Root = filename:join(filename:dirname(code:which(py)), "../../../../.."),
            Env = [{"PYTHON", filename:join(Venv, "bin/python")}],
            {Status, Output} = node_runs("py_tour:main().", [], Root, Env),
            ct:log("~ts", [Output]),
            ?assertEqual(0, Status),
            ?assertNotEqual(nomatch, string:find(Output, "{\"HTTP/1.1\",200,\"OK\"}"))
    end.

a_step_without_its_module_is_left_out(_Config) ->
    Step = #{title => "more", code => ["1."], answer => "2", needs => no_such_module},
    {0, Output} = captured([Step]),
    ?assertNotEqual(nomatch, string:find(Output, "left out")).

an_application_that_does_not_start_gives_exit_code_1(_Config) ->
    {Status, Output} = node_runs("py_tour:main().", ["-erlang_python", "num_workers", "0"]),
    ?assertEqual(1, Status),
    ?assertNotEqual(nomatch, string:find(Output, "num_workers must be a positive integer")).

%% ---- how it is run

captured(Steps) ->
    ct:capture_start(),
    Failed = py_tour:run(Steps),
    ct:capture_stop(),
    {Failed, unicode:characters_to_list(ct:capture_get([]))}.

node_runs(Expression, Args) ->
    node_runs(Expression, Args, ".", []).

node_runs(Expression, Args, Folder, Env) ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Ebin = filename:dirname(code:which(py)),
    Port = open_port({spawn_executable, Erl}, [
        %% On a busy machine warnings of slow callbacks come between the lines of the tour.
        {args, ["-noinput", "-kernel", "logger_level", "error", "-pa", Ebin, "-eval", Expression | Args]},
        {cd, Folder},
        {env, [{"ERL_CRASH_DUMP", "/dev/null"} | Env]},
        binary, exit_status, stderr_to_stdout
    ]),
    collect(Port, []).

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, [Output, Data]);
        {Port, {exit_status, Status}} -> {Status, unicode:characters_to_list(iolist_to_binary(Output))}
    after 60_000 -> error({no_end, Output})
    end.
