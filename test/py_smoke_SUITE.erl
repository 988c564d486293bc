%% A little of everything, quickly: run on every Python that is found.
-module(py_smoke_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([log/2]).
-export([
    the_version_is_that_of_the_python_asked_for/1,
    a_function_is_called_and_its_value_comes_back/1,
    modules_and_functions_are_atoms_binaries_or_strings/1,
    keyword_arguments_reach_the_function/1,
    an_expression_is_evaluated_with_locals/1,
    statements_leave_their_names_to_the_process/1,
    an_exception_is_an_error_with_its_class_and_message/1,
    the_traceback_is_not_lost/1,
    a_call_in_the_background_is_awaited/1,
    a_generator_is_collected_and_streamed/1,
    python_calls_erlang/1,
    an_erlang_exception_is_a_python_exception/1,
    python_sends_a_message/1,
    a_context_keeps_its_names/1,
    a_bound_process_keeps_its_thread/1,
    an_object_stays_in_python_and_its_methods_are_called/1,
    values_convert_both_ways/1,
    what_is_printed_goes_to_the_group_leader/1,
    log_records_reach_logger/1,
    the_package_was_compiled_with_the_application/1,
    the_native_module_is_imported/1,
    the_native_module_is_imported_in_an_interpreter_with_its_own_gil/1,
    c_extensions_find_the_symbols_of_python/1,
    numpy_arrays_convert/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

the_version_is_that_of_the_python_asked_for(_Config) ->
    {ok, Version} = py:version(),
    {ok, Says} = py:eval(<<"__import__('sys').version">>),
    ?assertEqual(Says, Version),
    case os:getenv("PYTHON") of
        false -> ok;
        Python -> ?assertEqual({ok, unicode:characters_to_binary(Python)}, executable())
    end.

executable() ->
    py:eval(<<"__import__('sys').executable">>).

a_function_is_called_and_its_value_comes_back(_Config) ->
    ?assertEqual({ok, 4.0}, py:call(math, sqrt, [16])),
    ?assertEqual({ok, <<"a-b">>}, py:call('os.path', 'normpath', [<<"a-b/.">>])).

modules_and_functions_are_atoms_binaries_or_strings(_Config) ->
    [
        ?assertEqual({ok, 5}, py:call(M, F, [2, 3]))
     || M <- [operator, <<"operator">>, "operator"], F <- [add, <<"add">>, "add"]
    ],
    ?assertEqual({ok, #{<<"a">> => none}}, py:call(builtins, <<"dict.fromkeys">>, [[a]])).

keyword_arguments_reach_the_function(_Config) ->
    ?assertEqual(
        {ok, <<"hi you?">>},
        py:call(py_smoke, greet, [you], #{greeting => hi, <<"mark">> => <<"?">>})
    ).

an_expression_is_evaluated_with_locals(_Config) ->
    ?assertEqual({ok, 2}, py:eval(<<"1 + 1">>)),
    ?assertEqual({ok, [1, 4, 9]}, py:eval("[x * y for x in xs for y in [x]]", #{xs => [1, 2, 3]})).

statements_leave_their_names_to_the_process(_Config) ->
    ?assertEqual(ok, py:exec(<<"def double(x):\n    return factor * x\nfactor = 2">>)),
    ?assertEqual({ok, 42}, py:call('__main__', double, [21])).

an_exception_is_an_error_with_its_class_and_message(_Config) ->
    ?assertReason({'ZeroDivisionError', <<"division by zero">>}, py:eval(<<"1 / 0">>)),
    ?assertReason({<<"py_smoke.Refused">>, <<"no">>}, py:call(py_smoke, refuse, [no])),
    ?assertReason({'ModuleNotFoundError', _}, py:call(there_is_no_such_module, f, [])),
    ?assertReason({'SyntaxError', _}, py:exec(<<"if:">>)).

the_traceback_is_not_lost(_Config) ->
    {error, {_, _, Details}} =
        Error = py:call(py_smoke, refuse, [x], #{}, #{traceback => true}),
    ?assertReason({<<"py_smoke.Refused">>, <<"x">>, #{}}, Error),
    ?assertMatch(#{traceback := [#{function := <<"refuse">>, text := <<"raise ", _/binary>>}]}, Details),
    ?assertMatch(#{type := <<"py_smoke.Refused">>, message := <<"x">>}, py:last_error()).

a_call_in_the_background_is_awaited(_Config) ->
    Ref = py:spawn_call(operator, add, [1, 2]),
    ?assertEqual({ok, 3}, py:await(Ref)),
    Other = py:spawn_call(operator, add, [3, 4]),
    ?assertEqual(ok, py_test:message({py_response, Other, {ok, 7}})).

a_generator_is_collected_and_streamed(_Config) ->
    ?assertEqual({ok, [0, 1, 2]}, py:stream(py_smoke, numbers, [3])),
    ?assertEqual({ok, [0, 1, 4]}, py:stream_eval(<<"(x * x for x in range(3))">>)),
    {ok, Ref} = py:stream_start(py_smoke, numbers, [2]),
    ?assertEqual({py_stream, Ref, {data, 0}}, py_test:message()),
    ?assertEqual({py_stream, Ref, {data, 1}}, py_test:message()),
    ?assertEqual({py_stream, Ref, done}, py_test:message()).

python_calls_erlang(_Config) ->
    ok = py:register_function(smoke_add, fun([A, B]) -> A + B end),
    ?assertEqual({ok, 10}, py:call(py_smoke, twice, [5])),
    ?assertEqual({ok, 7}, py:eval(<<"__import__('erlang').smoke_add(3, 4)">>)),
    ok = py:unregister_function(smoke_add).

an_erlang_exception_is_a_python_exception(_Config) ->
    ok = py:register_function(smoke_fail, fun([Why]) -> error(Why) end),
    ok = py:exec(<<
        "import erlang\n"
        "try:\n    erlang.smoke_fail('broken')\n"
        "except erlang.ErlangError as e:\n    seen = (e.kind, e.reason)\n"
    >>),
    ?assertEqual({ok, {<<"error">>, <<"broken">>}}, py:eval(<<"seen">>)),
    ok = py:unregister_function(smoke_fail).

python_sends_a_message(_Config) ->
    ok = py:exec(<<"import erlang\nerlang.send(erlang.self(), {'k': [1]})">>),
    ?assertEqual(ok, py_test:message(#{<<"k">> => [1]})).

a_context_keeps_its_names(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    ok = py:exec(Ctx, <<"here = 1">>),
    ?assertEqual({ok, 1}, py:eval(Ctx, <<"here">>)),
    ?assertReason({'NameError', _}, py:eval(<<"here">>)),
    ok = py_context:stop(Ctx).

a_bound_process_keeps_its_thread(_Config) ->
    Threads = py:with_context(fun() -> [py:call(threading, get_native_id, []) || _ <- [1, 2, 3]] end),
    ?assertMatch([{ok, _}], lists:usort(Threads)).

an_object_stays_in_python_and_its_methods_are_called(_Config) ->
    {ok, Counter} = py:call(py_smoke, 'Counter', [], #{}, #{return => ref}),
    ?assert(py:is_ref(Counter)),
    ?assertEqual({ok, 2}, py:call_method(Counter, add, [2])),
    ?assertEqual({ok, 2}, py:getattr(Counter, value)).

values_convert_both_ways(_Config) ->
    Term = #{<<"a">> => [1, 2.5, {<<"t">>, 1 bsl 100}, true, none], 7 => <<255, 0>>},
    ?assertEqual({ok, Term}, py:call(py_tools, identity, [Term])),
    ?assertEqual({ok, {self(), <<"atom">>}}, py:call(py_tools, identity, [{self(), atom}])).

what_is_printed_goes_to_the_group_leader(_Config) ->
    ?assertEqual(<<"printed\n">>, printed_by(fun() -> ok = py:exec(<<"print('printed')">>) end)).

%% The process has this one as its group leader and ends when the fun does.
printed_by(Fun) ->
    Test = self(),
    Pid = spawn_link(fun() ->
        true = group_leader(Test, self()),
        Fun()
    end),
    receive
        {io_request, From, As, {put_chars, unicode, Text}} ->
            From ! {io_reply, As, ok},
            true = unlink(Pid),
            Text
    after 5000 -> ct:fail("nothing was printed")
    end.

log_records_reach_logger(_Config) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        ok = py:exec(<<"import logging\nlogging.getLogger('shop').warning('no %s left', 'tea')">>),
        receive
            {event, #{level := warning, meta := #{logger_name := <<"shop">>}, msg := Message}} ->
                ?assertEqual({"~ts", [<<"no tea left">>]}, Message)
        after 5000 -> ct:fail("no record came")
        end
    after
        logger:remove_handler(?MODULE)
    end.

%% The callback of the test's own handler.
log(#{meta := #{domain := [python | _]}} = Event, #{config := #{to := Pid}}) -> Pid ! {event, Event};
log(_Event, _Config) -> ok.

%% Where a node may not write, no import would leave it compiled.
the_package_was_compiled_with_the_application(_Config) ->
    {ok, File} = py:eval(<<"__import__('erlang').__spec__.cached">>),
    {ok, <<_Magic:4/binary, Flags:32/little, _/binary>>} = file:read_file(File),
    %% By the hash of its source, which is checked.
    ?assertEqual(2#11, Flags).

the_native_module_is_imported(_Config) ->
    ?assertEqual({ok, true}, py:eval(<<"hasattr(__import__('erlang._native')._native, 'Atom')">>)).

the_native_module_is_imported_in_an_interpreter_with_its_own_gil(_Config) ->
    Code = <<
        "import sys\n"
        "if sys.version_info >= (3, 13):\n"
        "    import _interpreters as interpreters\n"
        "    make = lambda: interpreters.create('isolated')\n"
        "elif sys.version_info >= (3, 12):\n"
        "    import _xxsubinterpreters as interpreters\n"
        "    make = lambda: interpreters.create(isolated=True)\n"
        "else:\n"
        "    make = None\n"
        "if make is None:\n"
        "    answer = 'none here'\n"
        "else:\n"
        "    home = [p for p in sys.path if p.endswith('priv/python')]\n"
        "    code = f'import sys; sys.path[:0] = {home!r}; import erlang._native as n; n.Atom'\n"
        "    one = make()\n"
        "    answer = repr(interpreters.run_string(one, code))\n"
        "    interpreters.destroy(one)\n"
    >>,
    ok = py:exec(Code),
    case py:eval(<<"answer">>) of
        {ok, <<"none here">>} -> {skip, "this Python has no interpreter with its own GIL"};
        Answer -> ?assertEqual({ok, <<"None">>}, Answer)
    end.

c_extensions_find_the_symbols_of_python(_Config) ->
    %% Which of them are files and which are built in is up to whoever has built Python.
    Files = <<"any(hasattr(__import__(name), '__file__') for name in ('_ctypes', '_json', '_csv', '_heapq'))">>,
    ?assertEqual({ok, true}, py:eval(Files)).

numpy_arrays_convert(_Config) ->
    py_test:with_numpy(fun() ->
        Array = {ndarray, <<"<i4">>, [2, 2], <<<<N:32/little>> || N <- [1, 2, 3, 4]>>},
        ok = py:exec(<<"import numpy">>),
        ?assertEqual({ok, Array}, py:eval(<<"numpy.array([[1, 2], [3, 4]], dtype='<i4')">>)),
        ?assertEqual({ok, 10}, py:call(numpy, sum, [Array]))
    end).
