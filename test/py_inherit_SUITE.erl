%% What a sub-interpreter has of the node: the settings that an interpreter keeps for itself, and the
%% converters, whether they were registered before it was made or after.
-module(py_inherit_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([log/2]).
-export([
    what_is_printed_goes_to_the_log/1,
    asyncio_keeps_its_own_loop/1,
    converters_are_in_every_interpreter/1,
    a_converter_that_can_not_be_imported_is_logged/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Started = py_test:start(Config),
    case py:execution_mode() of
        subinterp -> Started;
        _ -> {skip, "this Python has no own-GIL sub-interpreters, or needs none"}
    end.

end_per_suite(_Config) -> ok.

%% A restart with other settings.
init_per_testcase(Case, Config) ->
    _ = application:stop(erlang_python),
    [ok = application:set_env(erlang_python, Key, Value) || {Key, Value} <- settings(Case)],
    {ok, _} = application:ensure_all_started(erlang_python),
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, all),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    [{level, Level} | Config].

end_per_testcase(Case, Config) ->
    ok = logger:remove_handler(?MODULE),
    ok = logger:set_primary_config(level, proplists:get_value(level, Config)),
    _ = application:stop(erlang_python),
    [ok = application:unset_env(erlang_python, Key) || {Key, _} <- settings(Case)],
    %% Other suites may run in this node: Python is told of the settings anew.
    {ok, _} = application:ensure_all_started(erlang_python),
    ok.

settings(what_is_printed_goes_to_the_log) -> [{log_stdout, true}];
settings(asyncio_keeps_its_own_loop) -> [{asyncio_policy, false}];
settings(_Case) -> [].

%% The callback of the test's own handler.
log(#{level := Level, meta := #{logger_name := Name}, msg := {Format, Args}}, #{config := #{to := To}}) when
    is_list(Args)
->
    To ! {logged, Level, Name, unicode:characters_to_binary(io_lib:format(Format, Args))};
log(#{level := Level, meta := #{logger_name := Name}, msg := {string, Text}}, #{config := #{to := To}}) ->
    To ! {logged, Level, Name, unicode:characters_to_binary(Text)};
log(_Event, _Config) ->
    ok.

%% A context of one's own, an interpreter of a named pool, and those of `py:parallel'.
everywhere(M, F, A) ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    ok = py:register_pool(?MODULE, #{mode => subinterp}),
    {ok, [Parallel]} = py:parallel([{M, F, A}]),
    Values = [py:call(Ctx, M, F, A), py:call(?MODULE, M, F, A), {ok, Parallel}],
    ok = py:unregister_pool(?MODULE),
    ok = py_context:stop(Ctx),
    Values.

what_is_printed_goes_to_the_log(_Config) ->
    _ = everywhere(builtins, print, [<<"here">>]),
    [ok = py_test:message({logged, info, <<"stdout">>, <<"here">>}) || _ <- [1, 2, 3]],
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    ok = py:exec(Ctx, "import sys\nprint('there', file=sys.stderr)"),
    ok = py_test:message({logged, warning, <<"stderr">>, <<"there">>}).

asyncio_keeps_its_own_loop(_Config) ->
    ?assertEqual(
        [{ok, <<"_UnixSelectorEventLoop">>} || _ <- [1, 2, 3]],
        everywhere(py_inherits, loop_of_asyncio_run, [])
    ).

converters_are_in_every_interpreter(_Config) ->
    ok = py:register_converter(to_erlang, 'py_inherits.Money', {py_inherits, money_term}),
    {ok, Earlier} = py_context:new(#{mode => subinterp}),
    ok = py:register_converter(to_python, money, {py_inherits, 'Money'}),
    Expected = {ok, {<<"money">>, 5, <<"EUR">>}},
    ?assertEqual(Expected, py:call(Earlier, py_inherits, more, [{money, 4, 'EUR'}])),
    ?assertEqual([Expected, Expected, Expected], everywhere(py_inherits, more, [{money, 4, 'EUR'}])),
    %% The latest counts, in those that are there and in those that come.
    ok = py:register_converter(to_erlang, 'py_inherits.Money', {py_inherits, money_text}),
    Text = {ok, <<"5 EUR">>},
    ?assertEqual(Text, py:call(Earlier, py_inherits, more, [{money, 4, 'EUR'}])),
    ?assertEqual([Text, Text, Text], everywhere(py_inherits, more, [{money, 4, 'EUR'}])).

a_converter_that_can_not_be_imported_is_logged(_Config) ->
    ok = py:register_converter(to_python, picky, {py_inherits_main, make}),
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    receive
        {logged, warning, <<"erlang">>, <<"the converter py_inherits_main.make of picky is missing", _/binary>>} ->
            ok
    after 20_000 -> error(no_word)
    end,
    %% There such a tuple is what it was.
    ?assertEqual({ok, {<<"picky">>, 1}}, py:eval(Ctx, "value", #{value => {picky, 1}})),
    ?assertEqual({ok, [1]}, py:eval("value", #{value => {picky, 1}})).
