%% @doc Imports whose callers give up: the code of imports keeps a lock for each module, and an
%% exception between two steps of it would leave that lock to nobody, for ever.
-module(py_import_SUITE).

-include("py_test.hrl").

%% Registered: the import may end.
-define(GATE, py_import_gate).

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    those_who_give_up_leave_the_import_to_the_others/1,
    an_import_goes_on_without_its_caller/1,
    a_function_that_has_imported_is_stopped/1,
    a_coroutine_that_nobody_waits_for_is_closed/1,
    an_import_may_be_cancelled_at_any_moment/1,
    an_interpreter_ends_in_the_midst_of_an_import/1,
    an_endless_import_is_stopped_after_a_minute/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(an_endless_import_is_stopped_after_a_minute, Config) ->
    case os:getenv("PY_TEST_FULL") of
        false -> {skip, "takes a minute: with --all"};
        _ -> Config
    end;
init_per_testcase(_Case, Config) ->
    ok = prepare(main),
    Config.

prepare(Pool) ->
    {ok, _} = py:call(Pool, py_imports, prepare, [?GATE, self()]),
    ok.

those_who_give_up_leave_the_import_to_the_others(_Config) ->
    #{num_workers := Workers} = persistent_term:get(py_config),
    First = py:spawn_call(py_slow, answer, []),
    ok = py_test:message(<<"importing">>),
    Impatient = [py:spawn_call(py_slow, answer, [], #{}, 50) || _ <- lists:seq(3, Workers)],
    [ok = py_test:message({py_response, Ref, {error, timeout}}) || Ref <- Impatient],
    Last = py:spawn_call(py_slow, answer, []),
    ok = py_test:eventually(fun() -> idle() =:= 0 end),
    true = register(?GATE, self()),
    [?assertEqual({ok, 42}, py:await(Ref)) || Ref <- [First, Last]].

idle() ->
    #{pools := #{main := #{idle := Idle}}} = py:stats(),
    Idle.

%% The import goes on, and the function gives a coroutine that its loop won't await.
a_coroutine_that_nobody_waits_for_is_closed(_Config) ->
    {ok, none} = py:call(py_imports, note_complaints, []),
    %% One thread: what is called there later comes after the end of the import.
    {ok, Ctx} = py_context:new(#{}),
    Ref = py:async_call(Ctx, py_slow, answer_later, []),
    ok = py_test:message(<<"importing">>),
    {error, timeout} = py:await(Ref, 10),
    true = register(?GATE, self()),
    {ok, _} = py:call(Ctx, gc, collect, []),
    ?assertEqual({ok, []}, py:call(Ctx, py_imports, told, [])),
    {ok, 42} = py:await(py:async_call(Ctx, py_slow, answer_later, [])),
    py_context:stop(Ctx).

%% Who asks again finds it done.
an_import_goes_on_without_its_caller(_Config) ->
    goes_on(main),
    case py_context:new(#{mode => subinterp}) of
        {ok, Context} ->
            ok = prepare(Context),
            goes_on(Context),
            ok = py_context:stop(Context);
        %% Python 3.11
        {error, not_supported} ->
            ok
    end.

goes_on(Pool) ->
    ?assertEqual({error, timeout}, py:call(Pool, py_slow, answer, [], #{}, 50)),
    ok = py_test:message(<<"importing">>),
    Again = py:spawn_call(Pool, py_slow, answer, []),
    true = register(?GATE, self()),
    ?assertEqual({ok, 42}, py:await(Again)),
    ?assertEqual({ok, 1}, py:call(Pool, py_imports, count, [])),
    true = unregister(?GATE).

a_function_that_has_imported_is_stopped(_Config) ->
    ?assertEqual({error, timeout}, py:call(py_imports, import_and_spin, [self()], #{}, 50)),
    ok = py_test:message(<<"importing">>),
    true = register(?GATE, self()),
    ok = py_test:message(<<"spinning">>),
    ok = py_test:message(<<"stopped">>).

%% By the call itself, and by the function it calls.
an_import_may_be_cancelled_at_any_moment(_Config) ->
    [
        begin
            {ok, _} = py:call(py_imports, forget, [<<"py_quick">>]),
            Refs = [py:spawn_call(Module, Function, []) || _ <- lists:seq(1, 4)],
            busy(N rem 300),
            [ok = py:cancel(Ref) || Ref <- Refs],
            ?assertEqual({N, {ok, 42}}, {N, py:call(py_quick, answer, [], #{}, 5000)})
        end
     || N <- lists:seq(1, 600),
        {Module, Function} <- [{py_quick, answer}, {py_imports, import_quick}]
    ].

%% For so many microseconds.
busy(Micros) -> busy_until(erlang:monotonic_time(microsecond) + Micros).

busy_until(Time) ->
    case erlang:monotonic_time(microsecond) >= Time of
        true -> ok;
        false -> busy_until(Time)
    end.

an_interpreter_ends_in_the_midst_of_an_import(_Config) ->
    case py_context:new(#{mode => subinterp}) of
        {ok, Context} ->
            ok = prepare(Context),
            Ref = py:spawn_call(Context, py_slow, answer, []),
            ok = py_test:message(<<"importing">>),
            #{ended := Ended, left_behind := Left} = subinterpreters(),
            ok = py_context:stop(Context),
            ?assertMatch({error, _}, py:await(Ref)),
            ok = py_test:eventually(fun() -> maps:get(ended, subinterpreters()) > Ended end),
            ?assertMatch(#{left_behind := Left}, subinterpreters());
        {error, not_supported} ->
            {skip, "no sub-interpreters"}
    end.

subinterpreters() -> maps:get(subinterpreters, py:stats()).

an_endless_import_is_stopped_after_a_minute(_Config) ->
    ?assertEqual({error, timeout}, py:call(py_endless, answer, [], #{}, 50)),
    ?assert(is_there()),
    ok = py_test:eventually(fun() -> not is_there() end, 70_000).

is_there() ->
    {ok, There} = py:eval(<<"'py_endless' in __import__('sys').modules">>),
    There.
