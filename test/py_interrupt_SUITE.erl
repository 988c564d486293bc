%% @doc Calls whose callers give up are interrupted where it does no harm: no lock stays taken.
-module(py_interrupt_SUITE).

-include("py_test.hrl").

%% For each kind of lock; in full 10 000 interrupts of all kinds.
-define(ROUNDS, 60).
-define(ALL_ROUNDS, 310).
-define(AT_ONCE, 3).

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    no_interrupt_leaves_a_lock_taken/1,
    code_that_waits_in_short_steps_is_interrupted/1,
    a_loop_of_one_instruction_is_interrupted/1,
    interrupts_work_where_code_may_not_be_compiled/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

no_interrupt_leaves_a_lock_taken(_Config) ->
    Kinds = [
        plain, reentrant, conditional, counted, signalled, queued, logged, acquired, generated, classic, awaited
    ],
    Left = [{Kind, Count} || Kind <- Kinds, Count <- [left_taken(Kind)], Count > 0],
    ?assertEqual([], Left).

%% The first one that stays taken ends the rounds: nobody could take it any more.
left_taken(Kind) ->
    case os:getenv("PY_TEST_FULL") of
        false -> left_taken(Kind, ?ROUNDS);
        _ -> left_taken(Kind, ?ALL_ROUNDS)
    end.

left_taken(_Kind, 0) ->
    0;
left_taken(Kind, Round) ->
    Refs = [py:spawn_call(py_locked, Kind, []) || _ <- lists:seq(1, ?AT_ONCE)],
    busy_until(erlang:monotonic_time(microsecond) + Round * 7 rem 1500),
    [ok = py:cancel(Ref) || Ref <- Refs],
    case py:call(py_locked, is_free, [Kind], #{}, 30_000) of
        {ok, true} -> left_taken(Kind, Round - 1);
        {ok, false} -> Round
    end.

busy_until(Time) ->
    case erlang:monotonic_time(microsecond) >= Time of
        true -> ok;
        false -> busy_until(Time)
    end.

%% The thread is hardly ever found in their own code.
code_that_waits_in_short_steps_is_interrupted(_Config) ->
    [
        begin
            Ref = py:spawn_call(py_locked, run, [Kind, self(), self()]),
            ok = py_test:message(<<"began">>),
            ok = py:cancel(Ref),
            receive
                <<"ended">> -> ok
            after 60_000 -> error({never_ended, Kind})
            end
        end
     || Kind <- [
            wait_for_items, wait_for_an_event, wait_for_a_permit, wait_for_a_thread, wait_with_a_lock,
            wait_with_a_condition, wait_for_files, retry
        ]
    ],
    ok.

%% On Python 3.11 it begins no line, and nothing else is ever run.
a_loop_of_one_instruction_is_interrupted(_Config) ->
    [stops(py_locked, spin) || _ <- lists:seq(1, 20)],
    ok.

stops(Module, Function) ->
    ?assertEqual({error, timeout}, py:call(Module, Function, [], #{}, 20)),
    [?assertEqual({ok, 3}, py:call(operator, add, [1, 2], #{}, 4000)) || _ <- lists:seq(1, 8)].

%% Python stays when the application stops, so the module is there already.
interrupts_work_where_code_may_not_be_compiled(Config) ->
    Peer = py_test:peer([]),
    try
        _ = peer:call(Peer, py_test, start, [Config]),
        {ok, _} = peer:call(Peer, py, call, [py_locked, is_free, [plain]]),
        ok = peer:call(Peer, application, stop, [erlang_python]),
        ok = peer:call(Peer, application, set_env, [erlang_python, audit, ["compile"]]),
        {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
        ?assertMatch({error, {'PermissionError', _}}, peer:call(Peer, py, eval, [<<"1 + 1">>])),
        [
            begin
                ?assertEqual({error, timeout}, peer:call(Peer, py, call, [py_locked, Kind, [], #{}, 20])),
                [
                    ?assertEqual({ok, 3}, peer:call(Peer, py, call, [operator, add, [1, 2], #{}, 4000]))
                 || _ <- lists:seq(1, 8)
                ]
            end
         || _ <- lists:seq(1, 10), Kind <- [spin, plain, queued]
        ]
    after
        py_test:stop_peer(Peer)
    end.
