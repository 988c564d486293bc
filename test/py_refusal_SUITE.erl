%% Packages that hide that a module of theirs refuses sub-interpreters: the error says so all the same, and a call
%% with `fallback' runs in the main interpreter.
-module(py_refusal_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_hidden_refusal_is_told/1,
    a_hidden_refusal_falls_back/1,
    a_mistake_is_no_refusal/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    _ = py_test:start(Config),
    case {py:execution_mode(), py:exec(<<"import _testsinglephase">>)} of
        {subinterp, ok} -> Config;
        {subinterp, {error, {'ModuleNotFoundError', _}}} -> {skip, "this Python lacks its test modules"};
        _ -> {skip, "this Python has no own-GIL sub-interpreters"}
    end.

end_per_suite(_Config) -> ok.

%% As each package fails: the class of the error, and the call.
calls() ->
    [
        {'NameError', {py_hidden, add, [1, 2]}},
        {'AttributeError', {py_hidden_user, load, [2]}},
        {'AttributeError', {py_hidden, 'Loader.load', [none, 2]}},
        {'ImportError', {py_hidden_strict, add, [1, 2]}}
    ].

with_context(Test) ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    try
        Test(Ctx)
    after
        py_context:stop(Ctx)
    end.

a_hidden_refusal_is_told(_Config) ->
    with_context(fun(Ctx) ->
        [
            begin
                {Class, Text} = py_test:reason(py:call(Ctx, M, F, A)),
                [
                    ?assertNotEqual(nomatch, string:find(Text, Part), {M, F, Text})
                 || Part <- ["_testsinglephase", "fallback => main"]
                ]
            end
         || {Class, {M, F, A}} <- calls()
        ]
    end).

a_hidden_refusal_falls_back(_Config) ->
    with_context(fun(Ctx) ->
        [
            begin
                ?assertEqual({ok, 3}, py:call(Ctx, M, F, A, #{}, #{fallback => main})),
                Told = #{fallback => main, traceback => true},
                ?assertEqual({ok, 3}, py:call(Ctx, M, F, A, #{}, Told)),
                ?assertEqual({ok, [3, 3]}, py:parallel([Call, Call], #{fallback => main}))
            end
         || {_Class, {M, F, A} = Call} <- calls()
        ]
    end).

a_mistake_is_no_refusal(_Config) ->
    with_context(fun(Ctx) ->
        Opts = #{fallback => main},
        {'NameError', Text} = py_test:reason(py:call(Ctx, py_hidden_user, wrong, [self()], #{}, Opts)),
        ?assertEqual(nomatch, string:find(Text, "fallback"), Text),
        %% Once.
        ok = py_test:message(<<"ran">>),
        py_test:nothing_waits()
    end).
