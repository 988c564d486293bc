%% The Erlang shell as people use it, at a terminal, and processes that are given the dictionary of another
%% one, as the shell's evaluators are.
-module(py_shell_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    calls_work_after_an_exception_in_the_shell/1,
    who_asks_for_the_keyboard_is_refused_at_once/1,
    a_process_with_the_dictionary_of_a_dead_one_calls_python/1,
    a_process_with_the_dictionary_of_a_living_one_has_names_of_its_own/1,
    a_process_with_the_dictionary_of_a_bound_one_is_not_bound/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

calls_work_after_an_exception_in_the_shell(Config) ->
    Output = at_shell(Config, [
        "application:ensure_all_started(erlang_python).",
        "py:exec(\"import math\").",
        "py:bind().",
        "1 = 2.",
        "{first, py:eval(\"20 + 22\", #{}, 10000)}.",
        "{bound, py:is_bound()}.",
        "py:bind().",
        "{second, py:call(math, sqrt, [16.0], #{}, 10000)}.",
        "py:unbind().",
        "exit(typo).",
        "{third, py:await(py:spawn_call(math, sqrt, [25.0]), 10000)}.",
        "halt(0)."
    ]),
    Says = ["no match of right hand side", "{first,{ok,42}}", "{bound,false}", "{second,{ok,4.0}}", "{third,{ok,5.0}}"],
    [?assertNotEqual(nomatch, string:find(Output, Text), {Text, Output}) || Text <- Says].

%% The lines that follow are the shell's: nobody in Python has taken one.
who_asks_for_the_keyboard_is_refused_at_once(Config) ->
    Asks = [
        {input, "input('name? ')"},
        {breakpoint, "breakpoint()"},
        {pdb, "__import__('pdb').set_trace()"},
        {read, "__import__('sys').stdin.read()"},
        {interact, "__import__('code').interact()"}
    ],
    Output = at_shell(Config, lists:append([
        ["application:ensure_all_started(erlang_python)."],
        [
            lists:flatten(io_lib:format("{~p, element(1, element(2, py:exec(~p)))}.", [Name, Code ++ "\nx = 1"]))
         || {Name, Code} <- Asks
        ],
        ["py:exec(\"input()\").", "{typed, 6 * 7}.", "halt(0)."]
    ])),
    Says = [lists:flatten(io_lib:format("{~p,'RuntimeError'}", [Name])) || {Name, _} <- Asks],
    [
        ?assertNotEqual(nomatch, string:find(Output, Text), {Text, Output})
     || Text <- Says ++ ["the keyboard belongs to the Erlang shell", "{typed,42}"]
    ].

a_process_with_the_dictionary_of_a_dead_one_calls_python(_Config) ->
    Dictionary = py_test:in_process(fun() ->
        {ok, 2.0} = py:call(math, sqrt, [4]),
        get()
    end),
    {ok, 3.0} = with_dictionary(Dictionary, fun() -> py:call(math, sqrt, [9], #{}, 10_000) end).

a_process_with_the_dictionary_of_a_living_one_has_names_of_its_own(_Config) ->
    py_test:in_process(fun() ->
        ok = py:exec(<<"mine = 1">>),
        Seen = with_dictionary(get(), fun() ->
            [py_test:reason(py:eval(<<"mine">>)), py:exec(<<"mine = 2">>), py:eval(<<"mine">>)]
        end),
        ?assertMatch([{'NameError', _}, ok, {ok, 2}], Seen),
        {ok, 1} = py:eval(<<"mine">>)
    end).

a_process_with_the_dictionary_of_a_bound_one_is_not_bound(_Config) ->
    py_test:in_process(fun() ->
        ok = py:bind(),
        {ok, Thread} = py:call(threading, get_ident, []),
        Seen = with_dictionary(get(), fun() ->
            Before = py:is_bound(),
            {ok, Free} = py:call(threading, get_ident, []),
            ok = py:unbind(),
            ok = py:bind(),
            {ok, Bound} = py:call(threading, get_ident, []),
            {Before, lists:member(Thread, [Free, Bound]), py:is_bound()}
        end),
        ?assertEqual({false, false, true}, Seen),
        %% Nobody has given back its thread.
        true = py:is_bound(),
        {ok, Thread} = py:call(threading, get_ident, []),
        ok = py:unbind()
    end).

%% What the fun gives in a process that has got these entries, as an evaluator of the shell has.
with_dictionary(Dictionary, Fun) ->
    py_test:in_process(fun() ->
        [_ = put(Key, Value) || {Key, Value} <- Dictionary],
        Fun()
    end).

%% What `erl' writes while somebody types these lines at its prompts.
at_shell(Config, Lines) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "lines"),
    ok = file:write_file(File, lists:join($\n, Lines)),
    Script = filename:join(proplists:get_value(data_dir, Config), "at_terminal.py"),
    {ok, Python} = py:eval(<<"__import__('sys').executable">>),
    Args = [Script, File, os:find_executable("erl") | py_test:paths()],
    {Status, Output, _} = py_test:run_program(binary_to_list(Python), Args, 120_000),
    ?assertEqual(0, Status, Output),
    Output.
