%% The closed list of reasons: each is recognised, and each has a sentence with advice.
-module(py_error_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0]).
-export([
    every_reason_of_the_list_is_recognised/1,
    what_is_not_in_the_list_is_not_a_reason/1,
    every_reason_has_a_sentence/1,
    a_sentence_says_what_to_do/1,
    the_traceback_is_shown_as_python_shows_it/1,
    without_pythons_own_text_the_frames_are_laid_out_like_it/1,
    a_message_in_any_script_or_with_broken_bytes_is_printed/1,
    a_failed_gather_lists_every_failure/1,
    an_unknown_reason_is_printed_not_a_crash/1,
    otp_prints_the_sentence_beside_the_stack/1,
    formatting_makes_no_atom/1
]).

all() ->
    [
        every_reason_of_the_list_is_recognised,
        what_is_not_in_the_list_is_not_a_reason,
        every_reason_has_a_sentence,
        a_sentence_says_what_to_do,
        the_traceback_is_shown_as_python_shows_it,
        without_pythons_own_text_the_frames_are_laid_out_like_it,
        a_message_in_any_script_or_with_broken_bytes_is_printed,
        a_failed_gather_lists_every_failure,
        an_unknown_reason_is_printed_not_a_crash,
        otp_prints_the_sentence_beside_the_stack,
        formatting_makes_no_atom
    ].

reasons() ->
    [
        {'ValueError', <<"bad value">>},
        {<<"mypkg.errors.Refused">>, <<"no">>},
        {'KeyError', <<"k">>, #{formatted => <<"Traceback ...\nKeyError: 'k'">>}},
        timeout,
        cancelled,
        interrupted,
        overload,
        not_running,
        no_workers_available,
        not_supported,
        would_block,
        {context_died, killed},
        {bad_argument, too_deep},
        {bad_argument, <<"the key <<\"a\">> is there twice">>},
        {bad_argument, {no_such_pool, foo}},
        {not_convertible, <<"<object object at 0x1>">>},
        {gather_failed, [{2, timeout}, {3, {'ValueError', <<"x">>}}]},
        {asgi, <<"http.response.body before http.response.start">>},
        {dag, load, timeout},
        {posix, econnrefused}
    ].

every_reason_of_the_list_is_recognised(_Config) ->
    [?assert(py_error:is_reason(Reason), Reason) || Reason <- reasons()],
    ?assert(py_error:is_builtin_exception('ZeroDivisionError')),
    ?assertNot(py_error:is_builtin_exception('CancelledError')).

what_is_not_in_the_list_is_not_a_reason(_Config) ->
    Others = [
        badarg,
        {'CancelledError', <<"not built in: must be a binary">>},
        {'ValueError', "a string"},
        {'ValueError', <<255>>},
        {'ValueError', <<"x">>, []},
        {bad_argument, 7},
        {posix, "enoent"},
        {gather_failed, []},
        {gather_failed, [{0, timeout}]},
        {gather_failed, [{1, nonsense}]},
        {dag, load, nonsense},
        {error, timeout},
        {}
    ],
    [?assertNot(py_error:is_reason(Other), Other) || Other <- Others].

every_reason_has_a_sentence(_Config) ->
    [
        begin
            Text = py_error:format(Reason),
            ?assert(is_binary(Text)),
            ?assert(byte_size(Text) > 15),
            ?assertEqual(nomatch, string:find(Text, "report it as a defect"), Reason)
        end
     || Reason <- [context_not_bound | reasons()]
    ].

a_sentence_says_what_to_do(_Config) ->
    Advice = [
        {overload, ["num_workers", "max_queue"]},
        {timeout, ["call_timeout"]},
        {no_workers_available, ["max_bound", "unbind"]},
        {not_running, ["application:ensure_all_started(erlang_python)"]},
        {{not_convertible, <<"<object>">>}, ["<object>", "#{return => ref}", "converter"]},
        {{bad_argument, too_deep}, ["max_depth"]},
        {not_running, ["no such server"]},
        {{not_convertible, <<"<coroutine object f at 0x1>">>}, ["py:async_call/3"]},
        {{'ModuleNotFoundError', <<"No module named 'x'">>}, ["'x'", "py:ensure_venv/2", "python_path"]},
        {{'NameError', <<"name 'x' is not defined">>}, ["'x'", "in the shell", "py:exec/1"]},
        {{'AttributeError', <<"module '__main__' has no attribute 'x'">>}, ["'x'", "in the shell"]},
        {{'AttributeError', <<"module 'math' has no attribute 'x'">>}, ["py:last_error()"]},
        {{bad_argument, args}, ["list"]},
        {{bad_argument, calls}, ["{Module, Function, Args}"]},
        {{bad_argument, code}, ["UTF-8"]},
        {{bad_argument, module}, ["name of a module"]},
        {{bad_argument, {unknown_option, foo}}, ["unknown option", "foo"]},
        {{'ValueError', <<"bad">>}, ["ValueError: bad", "py:last_error()"]},
        {{posix, enoent}, ["no such file or directory", "enoent"]},
        {{dag, load, overload}, ["load", "max_queue", "retries"]},
        {{bad_argument, name}, ["missing"]},
        {{shutdown, {failed_to_start_child, images, overload}}, ["images did not start", "max_queue"]}
    ],
    [
        ?assertNotEqual(nomatch, string:find(py_error:format(Reason), Word), {Reason, Word})
     || {Reason, Words} <- Advice, Word <- Words
    ].

the_traceback_is_shown_as_python_shows_it(_Config) ->
    Formatted = <<"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: é\n"/utf8>>,
    Shown = py_error:format({'ValueError', <<"é"/utf8>>, #{formatted => Formatted}}),
    ?assertEqual(string:trim(Formatted, trailing, "\n"), Shown).

without_pythons_own_text_the_frames_are_laid_out_like_it(_Config) ->
    Details = #{
        traceback => [
            #{file => <<"a.py">>, line => 3, function => <<"f">>, text => <<"  return g(0)">>},
            #{file => <<"<string>">>, line => 1, function => <<"<module>">>, text => none}
        ],
        notes => [<<"a note">>]
    },
    ?assertEqual(
        <<
            "Traceback (most recent call last):\n"
            "  File \"a.py\", line 3, in f\n"
            "    return g(0)\n"
            "  File \"<string>\", line 1, in <module>\n"
            "ZeroDivisionError: division by zero\n"
            "a note"
        >>,
        py_error:format({'ZeroDivisionError', <<"division by zero">>, Details})
    ).

a_message_in_any_script_or_with_broken_bytes_is_printed(_Config) ->
    ?assertNotEqual(
        nomatch, string:find(py_error:format({<<"m.Err">>, <<"шибка 例"/utf8>>}), <<"例"/utf8>>)
    ),
    ?assert(is_binary(py_error:format({<<"m.Err">>, <<255, 254>>}))),
    ?assert(is_binary(py_error:format({bad_argument, <<255>>}))).

a_failed_gather_lists_every_failure(_Config) ->
    Text = py_error:format({gather_failed, [{2, overload}, {5, {'KeyError', <<"'k'">>}}]}),
    ?assertMatch([<<"2 of the gathered", _/binary>>, <<"  2. ", _/binary>>, <<"  5. ", _/binary>>],
        string:split(Text, "\n", all)).

an_unknown_reason_is_printed_not_a_crash(_Config) ->
    [
        ?assertNotEqual(nomatch, string:find(py_error:format(Odd), "report it as a defect"))
     || Odd <- [nonsense, {a, b, c, d}, {"x", 1}, self(), #{}]
    ].

otp_prints_the_sentence_beside_the_stack(_Config) ->
    try
        erlang:error(context_not_bound, [ctx], [{error_info, #{module => py_error}}])
    catch
        error:Reason:Stack ->
            Shown = erl_error:format_exception(error, Reason, Stack),
            ?assertNotEqual(nomatch, string:find(Shown, "py:bind(new)"))
    end.

formatting_makes_no_atom(_Config) ->
    _ = [py_error:format(Reason) || Reason <- reasons()],
    Before = erlang:system_info(atom_count),
    [
        py_error:format({<<"pkg.Error", (integer_to_binary(N))/binary>>, <<"m">>})
     || N <- lists:seq(1, 1000)
    ],
    ?assertEqual(Before, erlang:system_info(atom_count)).
