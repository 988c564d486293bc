%% @doc Coroutines that never yield: they are stopped by their timeout, told about while they run, and the
%% other tasks of their loop go on afterwards.
-module(py_hang_SUITE).

-include("py_test.hrl").

-export([all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([log/2]).
-export([
    a_coroutine_that_never_yields_is_stopped_by_its_timeout/1,
    a_coroutine_that_never_yields_is_told_about_while_it_runs/1,
    a_coroutine_that_never_yields_leaves_no_lock_taken/1,
    what_others_cancel_does_not_stop_the_task_that_runs/1,
    an_interrupt_of_a_context_reaches_its_loop/1
]).

all() -> [{group, thread}, {group, beam}].

groups() ->
    Cases = [
        a_coroutine_that_never_yields_is_stopped_by_its_timeout,
        a_coroutine_that_never_yields_is_told_about_while_it_runs,
        a_coroutine_that_never_yields_leaves_no_lock_taken,
        what_others_cancel_does_not_stop_the_task_that_runs,
        an_interrupt_of_a_context_reaches_its_loop
    ],
    [{Driver, py_test:order(), Cases} || Driver <- [thread, beam]].

init_per_suite(Config) -> Config.

end_per_suite(_Config) -> ok.

init_per_group(Driver, Config) -> py_test:start_on(Driver, Config).

end_per_group(_Driver, _Config) -> py_test:stop_driver().

%% The callback of the handler: what is told of slow tasks.
log(#{msg := {Format, Args}, meta := #{logger_name := <<"asyncio">>}}, #{config := #{to := Pid}}) ->
    Pid ! {slow, unicode:characters_to_binary(io_lib:format(Format, Args))};
log(_Event, _Config) ->
    ok.

a_coroutine_that_never_yields_is_stopped_by_its_timeout(_Config) ->
    %% A task that another one has started is known as such since Python 3.12.
    {ok, [_, Minor | _]} = py:eval(<<"list(__import__('sys').version_info)">>),
    Children = [spin_in_a_child || Minor >= 12],
    Other = py:async_call(py_hangs, tick, [self()]),
    {<<"ticking">>, _} = py_test:message(),
    [
        begin
            Ref = py:async_call(py_hangs, Function, [self()]),
            ok = py_test:message(<<"spinning">>),
            ?assertReason(timeout, py:await(Ref, 20)),
            ok = py_test:message(<<"stopped">>),
            ?assertEqual({ok, 1}, py:await(py:async_call(py_hangs, one, [])))
        end
     || Function <- [spin, spin_at_once, lock_and_spin | Children], _ <- lists:seq(1, 5)
    ],
    true = register(py_hang_over, self()),
    ?assertMatch({ok, Count} when Count > 0, py:await(Other)),
    true = unregister(py_hang_over),
    ok = py_test:nothing_waits().

a_coroutine_that_never_yields_is_told_about_while_it_runs(_Config) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    Ref = py:async_call(py_hangs, spin, [self()]),
    ok = py_test:message(<<"spinning">>),
    {slow, Text} = py_test:message(),
    ?assertMatch({match, _}, re:run(Text, "^<spin\\(\\) running at .*py_hangs.py:[0-9]+> has run for [0-9.]+ seconds"), Text),
    ok = logger:remove_handler(?MODULE),
    ok = py:cancel(Ref),
    ok = py_test:message(<<"stopped">>).

a_coroutine_that_never_yields_leaves_no_lock_taken(_Config) ->
    [
        begin
            Ref = py:async_call(py_hangs, lock_and_spin, [self()]),
            ok = py_test:message(<<"spinning">>),
            ok = py:cancel(Ref),
            ok = py_test:message(<<"stopped">>),
            ?assertEqual({ok, true}, py:await(py:async_call(py_hangs, is_free, [])))
        end
     || _ <- lists:seq(1, 30)
    ],
    ok.

%% It is the one that runs, and nobody wants it to end.
what_others_cancel_does_not_stop_the_task_that_runs(_Config) ->
    Waiting = py:async_call(py_hangs, forever, [self()]),
    ok = py_test:message(<<"waiting">>),
    Ref = py:async_call(py_hangs, spin, [self()]),
    ok = py_test:message(<<"spinning">>),
    ok = py:cancel(Waiting),
    %% Longer than a loop is trusted.
    ?assertEqual(nothing, receive Early -> Early after 300 -> nothing end),
    ok = py:cancel(Ref),
    ok = py_test:message(<<"stopped">>).

an_interrupt_of_a_context_reaches_its_loop(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    [
        begin
            Ref = py:async_call(Ctx, py_hangs, Function, [self()]),
            ok = py_test:message(Begun),
            ?assertEqual(ok, py:interrupt(Ctx)),
            ?assertReason(interrupted, py:await(Ref)),
            ?assertEqual({ok, 1}, py:await(py:async_call(Ctx, py_hangs, one, [])))
        end
     || {Function, Begun} <- [{forever, <<"waiting">>}, {spin, <<"spinning">>}, {spin_at_once, <<"spinning">>}],
        _ <- [drain()]
    ],
    %% An answer comes a moment before its task is forgotten.
    ok = py_test:eventually(fun() -> not_running =:= py:interrupt(Ctx) end),
    ok = py_context:stop(Ctx),
    drain().

drain() ->
    receive _ -> drain() after 0 -> ok end.
