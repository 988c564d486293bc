%% Coroutines called from Erlang: on a loop or a worker, awaited, gathered, collected, cancelled.
-module(py_async_SUITE).

-include("py_test.hrl").

-export([init_per_testcase/2]).
-export([
    a_coroutine_gives_its_value_by_message/1,
    values_of_every_size_come_back/1,
    a_plain_function_runs_on_a_worker_and_does_not_stall_the_loop/1,
    a_plain_function_that_was_called_before_does_not_wait_for_the_loop/1,
    a_function_that_became_a_coroutine_function_is_awaited/1,
    whatever_gives_a_coroutine_is_awaited/1,
    a_failing_coroutine_is_an_error/1,
    names_of_the_caller_are_found/1,
    a_wide_map_comes_by_the_courier/1,
    an_object_stays_in_python/1,
    a_refused_call_answers_as_every_other/1,
    a_call_past_its_time_is_cancelled_and_leaves_no_message/1,
    a_deadline_among_the_options_is_kept/1,
    a_cancelled_task_sends_nothing_and_runs_its_finally/1,
    a_task_whose_caller_died_is_cancelled/1,
    a_task_that_cancels_itself_is_an_error/1,
    a_result_goes_where_reply_to_says/1,
    calls_are_gathered_in_order_and_at_once/1,
    a_gather_runs_in_the_interpreter_of_a_pool/1,
    a_gather_is_answered_by_one_message/1,
    a_large_gather_gives_values_of_every_kind_in_order/1,
    every_failure_of_a_gather_is_told/1,
    the_first_failure_cancels_the_rest_when_asked_to/1,
    all_that_is_left_of_a_large_gather_is_cancelled/1,
    a_gather_past_its_time_leaves_nothing_behind/1,
    a_gather_ends_with_its_caller/1,
    asynchronous_and_plain_generators_are_collected/1,
    a_collection_that_timed_out_closes_its_generator/1,
    a_coroutine_runs_in_its_context/1,
    a_coroutine_runs_in_a_subinterpreter/1,
    every_caller_gets_its_own_value/1,
    a_thousand_sleepers_sleep_together/1
]).

-include("py_drivers.hrl").

init_per_testcase(_Case, Config) -> py_test:start(Config).

a_coroutine_gives_its_value_by_message(_Config) ->
    Ref = py:async_call(py_asyncs, give, [42]),
    receive
        {async_result, Ref, {ok, 42}} -> ok
    end,
    ?assertEqual({ok, 7}, py:await(py:async_call(py_asyncs, nap, [0.01, 7]))),
    ?assertEqual({ok, 8}, py:async_await(py:async_call(py_asyncs, nap, [0.01], #{value => 8}))),
    ?assertEqual({ok, 9}, py:async_await(py:async_call("py_asyncs", <<"give">>, [9]), 5000)),
    ?assertEqual({ok, none}, py:await(py:async_call(asyncio, sleep, [0]))),
    py_test:nothing_waits().

values_of_every_size_come_back(_Config) ->
    Values = [
        none, true, 1 bsl 100, -1.5, <<"text">>, [1, [2]], #{<<"k">> => {1, 2}}, self(),
        binary:copy(<<"x">>, 100_000), lists:seq(1, 1000)
    ],
    [?assertEqual({ok, V}, py:await(py:async_call(py_asyncs, give, [V]))) || V <- Values],
    ok.

a_plain_function_runs_on_a_worker_and_does_not_stall_the_loop(_Config) ->
    {ok, [Loop, <<"ErlangEventLoop">>]} = py:await(py:async_call(py_asyncs, where, [])),
    {ok, Worker} = py:await(py:async_call(threading, get_ident, [])),
    ?assertNotEqual(Loop, Worker),
    ?assertEqual({ok, 3}, py:await(py:async_call(py_asyncs, plain, [1], #{b => 2}))),
    {Gate, Refs} = py_test:occupy(main, 1),
    ?assertEqual({ok, 1}, py:await(py:async_call(py_asyncs, one, []), 5000)),
    py_test:release({Gate, Refs}).

a_plain_function_that_was_called_before_does_not_wait_for_the_loop(_Config) ->
    ?assertEqual({ok, 3}, py:await(py:async_call(py_asyncs, plain, [1], #{b => 2}))),
    Gate = integer_to_binary(erlang:unique_integer([positive])),
    %% It keeps the loop of this process.
    Blocks = py:async_call(py_asyncs, wait_at, [Gate, self()]),
    receive
        {<<"at">>, Gate} -> ok
    end,
    ?assertEqual({ok, 7}, py:await(py:async_call(py_asyncs, plain, [3], #{b => 4}))),
    Plain = [{py_asyncs, plain, [N], #{b => 1}} || N <- lists:seq(0, 99)],
    ?assertEqual({ok, lists:seq(1, 100)}, py:async_gather(Plain, 20_000)),
    ?assertEqual({ok, none}, py:call(py_tools, open_gate, [Gate])),
    ?assertEqual({ok, <<"through">>}, py:await(Blocks)).

a_function_that_became_a_coroutine_function_is_awaited(_Config) ->
    Turns = fun(How, Value) ->
        {ok, none} = py:call(py_asyncs, define_turns, [[How, <<" turns(): return ">>, integer_to_binary(Value)]]),
        [?assertEqual({ok, Value}, py:await(py:async_call(py_asyncs, turns, []))) || _ <- [1, 2, 3]]
    end,
    _ = Turns(<<"def">>, 1),
    _ = Turns(<<"async def">>, 2),
    _ = Turns(<<"def">>, 3),
    py_test:nothing_waits().

whatever_gives_a_coroutine_is_awaited(_Config) ->
    [
        ?assertEqual({ok, V}, py:await(py:async_call(py_asyncs, F, [1])))
     || {F, V} <- [
            {later, 1}, {'thing.method', 2}, {'Thing.static', 3}, {partial, 1}, {future, 1},
            {'Future', 1}, {thing, 4}, {giver, 1}, {partial_of_object, 4}, {generator, 5}
        ]
    ],
    ok.

a_failing_coroutine_is_an_error(_Config) ->
    ?assertReason(
        {'ValueError', <<"no">>}, py:await(py:async_call(py_asyncs, fail, [<<"no">>]))
    ),
    ?assertMatch(#{type := 'ValueError', traceback := [_ | _]}, py:last_error()),
    ?assertReason({'TypeError', _}, py:await(py:async_call(py_asyncs, give, []))),
    ?assertReason({'AttributeError', _}, py:await(py:async_call(py_asyncs, nothing_such, []))),
    ?assertReason({'ModuleNotFoundError', _}, py:await(py:async_call(py_no_such, f, []))),
    ?assertReason({not_convertible, _}, py:await(py:async_call(py_asyncs, stranger, []))),
    Ref = py:async_call(py_asyncs, fail, [<<"no">>], #{}, #{traceback => true}),
    ?assertReason({'ValueError', <<"no">>, #{traceback := _}}, py:await(Ref)).

names_of_the_caller_are_found(_Config) ->
    py_test:in_process(fun() ->
        ok = py:exec(<<"async def mine(x):\n    return x * 2\n">>),
        ?assertEqual({ok, 6}, py:await(py:async_call('__main__', mine, [3])))
    end).

a_wide_map_comes_by_the_courier(_Config) ->
    Wide = maps:from_list([{N, N} || N <- lists:seq(1, 1000)]),
    ?assertEqual({ok, Wide}, py:await(py:async_call(py_asyncs, give, [Wide]))).

an_object_stays_in_python(_Config) ->
    Ref = py:async_call(py_asyncs, stranger, [], #{}, #{return => ref}),
    {ok, Object} = py:await(Ref),
    ?assert(py:is_ref(Object)),
    ?assertEqual({ok, true}, py:await(py:async_call(py_asyncs, is_stranger, [Object]))).

a_refused_call_answers_as_every_other(_Config) ->
    ?assertReason({bad_argument, args}, py:await(py:async_call(py_asyncs, give, [1 | 2]))),
    ?assertReason(
        {bad_argument, <<"the option nonsense means nothing here", _/binary>>},
        py:await(py:async_call(py_asyncs, give, [1], #{}, #{nonsense => 1}))
    ).

a_call_past_its_time_is_cancelled_and_leaves_no_message(_Config) ->
    Ref = py:async_call(py_asyncs, hang, [<<"late">>]),
    ok = py_test:begun(<<"late">>),
    ?assertReason(timeout, py:await(Ref, 50)),
    ok = py_test:ended(<<"late">>),
    ok = hang_until_begun(<<"later">>, fun(Name, Timeout) ->
        ?assertReason(timeout, py_event_loop:run(py_asyncs, hang, [Name], Timeout))
    end),
    py_test:nothing_waits().

%% What has not begun when its time is over never runs: on a busy machine it gets more.
hang_until_begun(Name, Call) -> hang_until_begun(Name, Call, 50).

hang_until_begun(Name, Call, Timeout) ->
    Call(Name, Timeout),
    case py:call(py_asyncs, has, [begun, Name]) of
        {ok, true} -> py_test:ended(Name);
        {ok, false} when Timeout < 10_000 -> hang_until_begun(Name, Call, 2 * Timeout)
    end.

a_deadline_among_the_options_is_kept(_Config) ->
    hang_until_begun(<<"deadline">>, fun(Name, Timeout) ->
        Ref = py:async_call(py_asyncs, hang, [Name], #{}, #{timeout => Timeout}),
        ?assertReason(timeout, py:await(Ref))
    end).

a_cancelled_task_sends_nothing_and_runs_its_finally(_Config) ->
    Ref = py:async_call(py_asyncs, hang, [<<"cancelled">>]),
    ok = py:cancel(Ref),
    ok = ended_or_never(<<"cancelled">>),
    Again = py:async_call(py_asyncs, hang, [<<"begun">>]),
    ok = py_test:begun(<<"begun">>),
    ok = py:cancel(Again),
    ok = py_test:ended(<<"begun">>),
    ok = py:cancel(Again),
    py_test:nothing_waits().

a_task_whose_caller_died_is_cancelled(_Config) ->
    Caller = spawn(fun() -> py:await(py:async_call(py_asyncs, hang, [<<"orphan">>]), infinity) end),
    ok = py_test:begun(<<"orphan">>),
    ok = py_test:down(Caller),
    py_test:ended(<<"orphan">>).

a_task_that_cancels_itself_is_an_error(_Config) ->
    ?assertReason(cancelled, py:await(py:async_call(py_asyncs, cancel_myself, []))).

a_result_goes_where_reply_to_says(_Config) ->
    Self = self(),
    %% The task ends with whoever asked for it, so that one stays.
    Asker = spawn_link(fun() ->
        Self ! {ref, py:async_call(py_asyncs, one, [], #{}, #{reply_to => Self})},
        receive
            stop -> ok
        end
    end),
    receive
        {ref, Ref} -> ?assertEqual({ok, 1}, py:await(Ref))
    end,
    Asker ! stop.

calls_are_gathered_in_order_and_at_once(_Config) ->
    %% Each waits for the last.
    Together = [{py_asyncs, meet, [erlang:unique_integer(), 20]}],
    ?assertEqual({ok, lists:duplicate(20, 20)}, py:async_gather(lists:append(lists:duplicate(20, Together)))),
    Calls = [{py_asyncs, nap, [0.01 * (20 - N), N]} || N <- lists:seq(1, 20)],
    ?assertEqual({ok, lists:seq(1, 20)}, py:async_gather(Calls)),
    ?assertEqual({ok, []}, py:async_gather([])),
    Mixed = [{py_asyncs, give, [1]}, {py_asyncs, plain, [1], #{b => 1}}, {math, sqrt, [9]}],
    ?assertEqual({ok, [1, 2, 3.0]}, py:async_gather(Mixed)),
    py_test:nothing_waits().

a_gather_runs_in_the_interpreter_of_a_pool(_Config) ->
    ok = py:register_pool(gathers, #{size => 2}),
    Three = #{context => gathers},
    %% More at once than it has threads: each waits for the last.
    Place = erlang:unique_integer(),
    Meet = [{py_asyncs, meet, [Place, 3]} || _ <- [1, 2, 3]],
    ?assertEqual({ok, [3, 3, 3]}, py:async_gather(Meet, Three#{timeout => 10_000})),
    ?assertEqual({ok, [2.0]}, py:async_gather([{math, sqrt, [4]}], Three)),
    ok = py:unregister_pool(gathers),
    ?assertReason({bad_argument, _}, py:async_gather(Meet, Three)),
    %% A thread that is bound has names of its own, and no loop.
    {ok, Bound} = py:bind(new),
    ?assertReason(not_supported, py:async_gather(Meet, #{context => Bound})),
    ok = py:unbind(Bound).

a_gather_is_answered_by_one_message(_Config) ->
    Tracer = spawn_link(fun() -> count_traces(0) end),
    1 = erlang:trace(self(), true, ['receive', {tracer, Tracer}]),
    {ok, Values} = py:async_gather(lists:duplicate(100, {py_asyncs, nap, [0.01, 5]})),
    1 = erlang:trace(self(), false, ['receive']),
    Delivered = erlang:trace_delivered(self()),
    ok = py_test:message({trace_delivered, self(), Delivered}),
    ?assertEqual(lists:duplicate(100, 5), Values),
    Tracer ! {count, self()},
    ok = py_test:message({count, 1}).

count_traces(N) ->
    receive
        {trace, _Pid, 'receive', _Message} -> count_traces(N + 1);
        {count, To} -> To ! {count, N}
    end.

a_large_gather_gives_values_of_every_kind_in_order(_Config) ->
    Wide = maps:from_list([{N, N} || N <- lists:seq(1, 200)]),
    Kinds = [1, 1.5, true, none, <<"text">>, binary:copy(<<"x">>, 100_000), [1, {2}], Wide, self()],
    Values = lists:append(lists:duplicate(20, Kinds)),
    %% The first are over last.
    Naps = [{py_asyncs, nap, [(200 - N) / 2000, Value]} || {N, Value} <- lists:enumerate(Values)],
    ?assertEqual({ok, Values}, py:async_gather(Naps)),
    Plain = [{builtins, abs, [-N]} || N <- lists:seq(1, 200)],
    ?assertEqual({ok, lists:seq(1, 200)}, py:async_gather(Plain)),
    {ok, [Object, Same]} = py:async_gather(lists:duplicate(2, {builtins, object, []}), #{return => ref}),
    ?assertNotEqual(Object, Same),
    py_test:nothing_waits().

every_failure_of_a_gather_is_told(_Config) ->
    Calls = [{py_asyncs, fail, [<<"a">>]}, {py_asyncs, one, []}, {py_asyncs, nothing_such, []}],
    ?assertReason(
        {gather_failed, [{1, {'ValueError', <<"a">>}}, {3, {'AttributeError', _}}]},
        py:async_gather(Calls)
    ),
    ?assertReason({gather_failed, [{2, {bad_argument, args}}]}, py:async_gather([{a, b, []}, {a, b, c}])),
    ?assertReason({bad_argument, calls}, py:async_gather([nonsense])),
    ?assertReason({bad_argument, calls}, py:async_gather(nonsense)),
    py_test:nothing_waits().

the_first_failure_cancels_the_rest_when_asked_to(_Config) ->
    Calls = [{py_asyncs, hang, [<<"rest">>]}, {py_asyncs, fail, [<<"a">>]}],
    ?assertReason(
        {gather_failed, [{1, cancelled}, {2, {'ValueError', <<"a">>}}]},
        py:async_gather(Calls, #{cancel => true})
    ),
    py_test:ended(<<"rest">>).

all_that_is_left_of_a_large_gather_is_cancelled(_Config) ->
    Calls = lists:duplicate(200, {py_asyncs, hang, [<<"large">>]}),
    Failing = Calls ++ [{py_asyncs, fail, [<<"a">>]}],
    {error, {gather_failed, Failed}} = py:async_gather(Failing, #{cancel => true}),
    Rest = [{N, cancelled} || N <- lists:seq(1, 200)],
    ?assertMatch({Rest, [{201, {'ValueError', _}}]}, lists:split(200, Failed)),
    py_test:eventually(fun() -> waiting() =:= 0 end),
    Late = [{N, timeout} || N <- lists:seq(1, 200)],
    ?assertEqual({error, {gather_failed, Late}}, py:async_gather(Calls, 50)),
    py_test:eventually(fun() -> waiting() =:= 0 end),
    py_test:nothing_waits().

a_gather_ends_with_its_caller(_Config) ->
    Calls = lists:duplicate(100, {py_asyncs, hang, [<<"left">>]}),
    Caller = spawn(fun() -> py:async_gather(Calls, infinity) end),
    py_test:eventually(fun() -> waiting() =:= 100 end),
    ok = py_test:down(Caller),
    py_test:eventually(fun() -> waiting() =:= 0 end).

a_gather_past_its_time_leaves_nothing_behind(_Config) ->
    Calls = [{py_asyncs, one, []}, {py_asyncs, hang, [<<"gathered">>]}],
    ?assertReason({gather_failed, [{2, timeout}]}, py:async_gather(Calls, 100)),
    ok = py_test:ended(<<"gathered">>),
    py_test:nothing_waits().

asynchronous_and_plain_generators_are_collected(_Config) ->
    ?assertEqual({ok, lists:seq(0, 99_999)}, py:async_stream(py_asyncs, count, [100_000])),
    ?assertEqual({ok, [0, 1]}, py:async_stream(py_asyncs, slow_count, [2, 0.01])),
    ?assertEqual({ok, [0, 1, 2]}, py:async_stream(builtins, range, [3], #{})),
    ?assertEqual({ok, [0, 1, 2]}, py:async_stream(py_asyncs, wrapped_count, [3], #{}, 5000)),
    ?assertReason({'ZeroDivisionError', _}, py:async_stream(py_asyncs, count_down, [3])),
    ?assertReason({'TypeError', _}, py:async_stream(py_asyncs, plain, [1])).

a_collection_that_timed_out_closes_its_generator(_Config) ->
    ?assertReason(timeout, py:async_stream(py_asyncs, slow_count, [1000, 0.01], #{}, 100)),
    py_test:ended(<<"count">>).

a_coroutine_runs_in_its_context(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    ok = py:exec(Ctx, <<"async def mine():\n    return 'here'\n">>),
    ?assertEqual({ok, <<"here">>}, py:await(py:async_call(Ctx, '__main__', mine, []))),
    %% Those that are no coroutine functions run on the context's thread, the others on its loop.
    Thread = py:call(Ctx, threading, get_ident, []),
    ?assertEqual(Thread, py:await(py:async_call(Ctx, threading, get_ident, []))),
    Where = py:await(py:async_call(Ctx, py_asyncs, where, [])),
    ?assertMatch({ok, [_, <<"ErlangEventLoop">>]}, Where),
    ?assertEqual(Where, py:await(py:async_call(Ctx, py_asyncs, where, []))),
    ?assertEqual({ok, [0, 1]}, py:async_stream(Ctx, py_asyncs, count, [2])),
    py_context:stop(Ctx).

a_coroutine_runs_in_a_subinterpreter(_Config) ->
    case py:execution_mode() of
        subinterp ->
            {ok, Ctx} = py_context:new(#{mode => subinterp}),
            ?assertEqual({ok, 5}, py:await(py:async_call(Ctx, py_asyncs, nap, [0.01, 5]))),
            py_context:stop(Ctx);
        _ ->
            {skip, "this Python has no own-GIL sub-interpreters"}
    end.

every_caller_gets_its_own_value(_Config) ->
    Callers = [spawn_monitor(fun() -> calls(N, 200) end) || N <- lists:seq(1, 100)],
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why)
        end
     || {Pid, Monitor} <- Callers
    ],
    ok.

calls(_N, 0) ->
    ok;
calls(N, Left) ->
    Value = {N, Left},
    {ok, Value} =
        case Left rem 3 of
            0 -> py:await(py:async_call(py_asyncs, nap, [0.001, Value]));
            1 -> py:await(py:async_call(py_asyncs, give, [Value]));
            2 -> py_event_loop:run(py_asyncs, give, [Value])
        end,
    calls(N, Left - 1).

a_thousand_sleepers_sleep_together(_Config) ->
    Calls = [{py_asyncs, nap, [0.1, N]} || N <- lists:seq(1, 1000)],
    {Ms, {ok, Values}} = py_test:milliseconds(fun() -> py:async_gather(Calls) end),
    ?assertEqual(lists:seq(1, 1000), Values),
    ?assert(Ms >= 100),
    %% One after another they would take 100 s.
    ?assert(Ms < 50_000).

%% ---- helpers

waiting() ->
    lists:sum([N || #{waiting := N} <- py_event_loop_pool:get_stats()]).

%% A task that was cancelled before it ran has nothing to end.
ended_or_never(Name) ->
    py_test:eventually(fun() ->
        {ok, Begun} = py:call(py_asyncs, has, [begun, Name]),
        {ok, Ended} = py:call(py_asyncs, has, [ended, Name]),
        (not Begun orelse Ended) andalso waiting() =:= 0
    end).
