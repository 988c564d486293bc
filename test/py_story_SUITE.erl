%% The whole story of an exception: nothing that Python prints of it is lost.
-module(py_story_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_deep_stack_keeps_both_ends/1,
    a_group_tells_of_its_exceptions/1,
    a_wide_group_is_told_in_part/1,
    what_from_none_hides_is_told_and_not_printed/1,
    what_was_handled_and_noted_is_told/1,
    the_source_of_a_syntax_error_is_shown/1,
    a_long_chain_is_told_once/1,
    a_long_text_keeps_both_ends/1,
    every_kind_of_answer_has_the_same_story/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

%% Interpreters that were started here do not find the modules of other suites.
end_per_suite(_Config) -> py_test:stop().

%% As it is told afterwards, and as it comes with the answer.
stories(Run) ->
    {_Type, _Message} = py_test:reason(Run(#{})),
    Told = py:last_error(),
    {_, _, Details} = py_test:reason(Run(#{traceback => true})),
    ?assertEqual(Details, py:last_error()),
    [Told, Details].

stories(Function, Args) ->
    stories(fun(Opts) -> py:call(py_stories, Function, Args, #{}, Opts) end).

%% How often the text has that.
count(Text, Part) -> length(binary:matches(Text, Part)).

a_deep_stack_keeps_both_ends(_Config) ->
    [Told, Details] = Stories = stories(deep, [299]),
    [
        begin
            #{traceback := Frames, left_out := 201} = Story,
            ?assertEqual(100, length(Frames)),
            ?assertMatch(#{function := <<"deep">>, text := <<"return ", _/binary>>}, hd(Frames)),
            ?assertMatch(
                #{function := <<"bottom">>, text := <<"raise ValueError", _/binary>>},
                lists:last(Frames)
            )
        end
     || Story <- Stories
    ],
    ?assertMatch(#{formatted := _}, Told),
    ?assertEqual(1, count(maps:get(formatted, Told), <<"[201 frames left out]">>)),
    ?assertEqual(1, count(maps:get(formatted, Told), <<"in bottom">>)),
    ?assertEqual(1, count(maps:get(formatted, Details), <<"in bottom">>)).

a_group_tells_of_its_exceptions(_Config) ->
    Run = fun(Opts) -> py_event_loop:run(py_stories, group, [], Opts) end,
    [
        begin
            #{type := 'ExceptionGroup', exceptions := [First, Second], formatted := Text} = Story,
            ?assertMatch(
                #{type := 'ValueError', traceback := [#{text := <<"raise ", _/binary>>}]}, First
            ),
            ?assertMatch(#{type := 'LookupError', cause := #{message := <<"its cause">>}}, Second),
            [
                ?assertEqual(1, count(Text, Part), {Part, Text})
             || Part <- [
                    <<"ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)">>,
                    <<"    | ValueError: first">>,
                    <<"in first_task">>,
                    <<"    | LookupError: second">>,
                    <<"in second_task">>,
                    <<"ValueError: its cause">>
                ]
            ]
        end
     || Story <- stories(Run)
    ].

a_wide_group_is_told_in_part(_Config) ->
    [
        ?assertMatch(#{exceptions := [#{message := <<"0">>} | Others]} when length(Others) =:= 14, Story)
     || Story <- stories(wide_group, [1000])
    ].

what_from_none_hides_is_told_and_not_printed(_Config) ->
    [
        begin
            #{cause := undefined, context := Context, suppress_context := true} = Story,
            ?assertMatch(#{type := 'KeyError', traceback := [_]}, Context),
            #{formatted := Text} = Story,
            ?assertEqual(1, count(Text, <<"ValueError: all there is">>)),
            ?assertEqual(0, count(Text, <<"During handling">>)),
            ?assertEqual(0, count(Text, <<"KeyError">>))
        end
     || Story <- stories(hidden, [])
    ].

what_was_handled_and_noted_is_told(_Config) ->
    [
        begin
            ?assertMatch(
                #{
                    cause := undefined,
                    context := #{
                        type := 'KeyError',
                        traceback := [#{function := <<"handled">>, text := <<"raise KeyError", _/binary>>}],
                        notes := []
                    },
                    notes := [<<"a note">>, <<"another note">>]
                },
                Story
            ),
            #{formatted := Text} = Story,
            ?assertNot(is_map_key(suppress_context, Story)),
            ?assertEqual(1, count(Text, <<"During handling of the above exception">>)),
            ?assertEqual(1, count(Text, <<"ValueError: second\na note\nanother note\n">>))
        end
     || Story <- stories(handled, [])
    ].

the_source_of_a_syntax_error_is_shown(_Config) ->
    [
        begin
            #{type := 'SyntaxError', syntax := Syntax, formatted := Text} = Story,
            ?assertMatch(#{line := 1, column := 7, text := <<"a = 1 2", _/binary>>}, Syntax),
            ?assertEqual(1, count(Text, <<"    a = 1 2\n          ^\n">>), Text)
        end
     || Story <- stories(fun(Opts) ->
            py:call(builtins, compile, [<<"a = 1 2">>, <<"<text>">>, <<"exec">>], #{}, Opts)
        end)
    ],
    ?assertReason({'SyntaxError', _}, py:eval(<<"1 2">>)),
    ?assertEqual(1, count(maps:get(formatted, py:last_error()), <<"    1 2\n      ^\n">>)).

links(undefined) -> 0;
links(#{cause := Cause}) -> 1 + links(Cause).

a_long_chain_is_told_once(_Config) ->
    [
        begin
            ?assertEqual(13, links(Story)),
            ?assertMatch(#{context := #{message := <<"link 11">>}}, Story),
            %% Each is the cause and the context of the next: told in full by both, it is 2^12 stories.
            ?assert(byte_size(term_to_binary(Story)) < 50_000),
            ?assertEqual(12, count(maps:get(formatted, Story), <<"the direct cause">>))
        end
     || Story <- stories(chain, [12])
    ].

a_long_text_keeps_both_ends(_Config) ->
    [
        begin
            ?assert(byte_size(Text) < 65_000),
            ?assertMatch(<<"Traceback", _/binary>>, Text),
            ?assertEqual(1, count(Text, <<" characters left out]">>)),
            ?assertEqual(1, count(Text, <<"the end\n">>))
        end
     || #{formatted := Text} <- stories(long, [])
    ].

every_kind_of_answer_has_the_same_story(_Config) ->
    Opts = #{traceback => true},
    Call = [py_stories, fails, [], #{}, Opts],
    Calls = [{py_stories, fails, []}],
    Spawned = apply(py, spawn_call, Call),
    Async = py:async_call(py_stories, fails_async, [], #{}, Opts),
    {ok, Stream} = py:stream_start(py_stories, fails_later, [], #{}, Opts),
    Node = #{nodes => #{node => #{kind => cpu, run => {py, py_stories, fails}}}},
    {gather_failed, [{1, Gathered}]} = py_test:reason(py:async_gather(Calls, Opts)),
    {dag, node, Graph} = py_test:reason(py_dag:run(Node, #{}, Opts)),
    Answers = #{
        call => py_test:reason(apply(py, call, Call)),
        spawn_call => receive {py_response, Spawned, Response} -> py_test:reason(Response) end,
        await => py_test:reason(py:await(apply(py, spawn_call, Call))),
        async_call => receive {async_result, Async, Result} -> py_test:reason(Result) end,
        stream_start => receive {py_stream, Stream, {error, _} = Error} -> py_test:reason(Error) end,
        stream => py_test:reason(py:stream(py_stories, fails_later, [], #{}, Opts)),
        gather => Gathered,
        parallel => py_test:reason(py:parallel(Calls, Opts)),
        dag => Graph
    },
    Same = fun(_Kind, Reason) ->
        {'ValueError', <<"why">>, #{formatted := Text, traceback := Frames}} = Reason,
        Line = <<"raise ValueError(\"why\")">>,
        #{text := Line} = lists:last(Frames),
        1 = count(Text, Line),
        true
    end,
    ?assertEqual(Answers, maps:filter(Same, Answers)).
