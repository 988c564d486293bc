%% Coroutines called from Erlang: on a loop or a worker, awaited, gathered, collected, cancelled.
-module(py_async_SUITE).

-include("py_test.hrl").

-export([all/0, groups/0, init_per_suite/1, end_per_suite/1]).
-export([init_per_group/2, end_per_group/2, init_per_testcase/2]).
-export([
    a_coroutine_gives_its_value_by_message/1,
    values_of_every_size_come_back/1,
    a_plain_function_runs_on_a_worker_and_does_not_stall_the_loop/1,
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
    every_failure_of_a_gather_is_told/1,
    the_first_failure_cancels_the_rest_when_asked_to/1,
    a_gather_past_its_time_leaves_nothing_behind/1,
    asynchronous_and_plain_generators_are_collected/1,
    a_collection_that_timed_out_closes_its_generator/1,
    a_coroutine_runs_in_its_context/1,
    a_coroutine_runs_in_a_subinterpreter/1,
    exit_and_stop_in_a_task_do_not_end_the_loop/1,
    a_loop_that_is_killed_answers_and_comes_back/1,
    a_loop_that_blocks_is_killed_and_its_callers_hear_of_it/1,
    a_full_queue_is_an_answer/1,
    every_caller_gets_its_own_value/1,
    a_thousand_sleepers_sleep_together/1,
    the_loop_of_a_process_is_always_the_same/1,
    the_low_level_functions_run_and_await/1,
    a_task_nobody_waits_for_runs/1,
    an_idle_loop_costs_nothing/1,
    a_callback_of_another_thread_wakes_the_loop/1,
    loops_without_threads_share_one/1,
    a_loop_that_is_stopped_in_its_step_is_closed_after_it/1,
    asyncio_is_not_imported_before_it_is_needed/1,
    stopping_the_application_answers_who_waits/1
]).

%% Everything on loops with a thread each, and on loops that Erlang drives.
all() ->
    [{group, thread}, {group, beam}].

groups() ->
    Cases = [Name || {Name, 1} <- ?MODULE:module_info(exports), is_test(Name)],
    [{Driver, [], Cases} || Driver <- [thread, beam]].

is_test(Name) ->
    not lists:member(Name, [module_info, init_per_suite, end_per_suite]).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_group(Driver, Config) -> py_test:start_on(Driver, Config).

end_per_group(_Driver, _Config) -> py_test:stop_driver().

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

whatever_gives_a_coroutine_is_awaited(_Config) ->
    [
        ?assertEqual({ok, V}, py:await(py:async_call(py_asyncs, F, [1])))
     || {F, V} <- [{later, 1}, {'thing.method', 2}, {'Thing.static', 3}, {partial, 1}, {future, 1}]
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
        {bad_argument, {option, nonsense}},
        py:await(py:async_call(py_asyncs, give, [1], #{}, #{nonsense => 1}))
    ).

a_call_past_its_time_is_cancelled_and_leaves_no_message(_Config) ->
    Ref = py:async_call(py_asyncs, hang, [<<"late">>]),
    ?assertReason(timeout, py:await(Ref, 50)),
    ok = ended(<<"late">>),
    ?assertReason(timeout, py_event_loop:run(py_asyncs, hang, [<<"later">>], 50)),
    ok = ended(<<"later">>),
    py_test:nothing_waits().

a_deadline_among_the_options_is_kept(_Config) ->
    Ref = py:async_call(py_asyncs, hang, [<<"deadline">>], #{}, #{timeout => 50}),
    ?assertReason(timeout, py:await(Ref)),
    ended(<<"deadline">>).

a_cancelled_task_sends_nothing_and_runs_its_finally(_Config) ->
    Ref = py:async_call(py_asyncs, hang, [<<"cancelled">>]),
    ok = py:cancel(Ref),
    ok = ended_or_never(<<"cancelled">>),
    Again = py:async_call(py_asyncs, hang, [<<"begun">>]),
    ok = begun(<<"begun">>),
    ok = py:cancel(Again),
    ok = ended(<<"begun">>),
    ok = py:cancel(Again),
    py_test:nothing_waits().

a_task_whose_caller_died_is_cancelled(_Config) ->
    Caller = spawn(fun() -> py:await(py:async_call(py_asyncs, hang, [<<"orphan">>]), infinity) end),
    ok = begun(<<"orphan">>),
    ok = py_test:down(Caller),
    ended(<<"orphan">>).

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
    Calls = [{py_asyncs, nap, [0.2, N]} || N <- lists:seq(1, 20)],
    {Ms, Result} = py_test:milliseconds(fun() -> py:async_gather(Calls) end),
    ?assertEqual({ok, lists:seq(1, 20)}, Result),
    ?assert(Ms < 2000),
    ?assertEqual({ok, []}, py:async_gather([])),
    Mixed = [{py_asyncs, give, [1]}, {py_asyncs, plain, [1], #{b => 1}}, {math, sqrt, [9]}],
    ?assertEqual({ok, [1, 2, 3.0]}, py:async_gather(Mixed)),
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
    ended(<<"rest">>).

a_gather_past_its_time_leaves_nothing_behind(_Config) ->
    Calls = [{py_asyncs, one, []}, {py_asyncs, hang, [<<"gathered">>]}],
    ?assertReason({gather_failed, [{2, timeout}]}, py:async_gather(Calls, 100)),
    ok = ended(<<"gathered">>),
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
    ended(<<"count">>).

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

exit_and_stop_in_a_task_do_not_end_the_loop(_Config) ->
    {ok, [Thread, _]} = py:await(py:async_call(py_asyncs, where, [])),
    Other = py:async_call(py_asyncs, nap, [0.2, other]),
    ?assertReason({'SystemExit', _}, py:await(py:async_call(py_asyncs, leave, []))),
    ?assertEqual({ok, none}, py:await(py:async_call(py_asyncs, stop_the_loop, []))),
    ?assertEqual({ok, <<"other">>}, py:await(Other)),
    ?assertMatch({ok, [Thread, _]}, py:await(py:async_call(py_asyncs, where, []))).

a_loop_that_is_killed_answers_and_comes_back(_Config) ->
    Refs = [py:async_call(py_asyncs, hang, [<<"killed">>]) || _ <- lists:seq(1, 10)],
    ok = begun(<<"killed">>),
    ok = py_test:down(loop_process()),
    [?assertReason({context_died, _}, py:await(Ref, 5000)) || Ref <- Refs],
    ok = works_again(),
    ended(<<"killed">>).

a_loop_that_blocks_is_killed_and_its_callers_hear_of_it(_Config) ->
    Blocks = py:async_call(py_asyncs, blocks, [2]),
    Behind = py:async_call(py_asyncs, one, []),
    ok = begun(<<"blocks">>),
    ok = py_test:down(loop_process()),
    {Ms, _} = py_test:milliseconds(fun() ->
        ?assertReason({context_died, _}, py:await(Behind, 5000))
    end),
    ?assert(Ms < 1500),
    ok = works_again(),
    %% What blocks can't be stopped. In its first step (3.12+) it is answered when it lets go.
    case py:await(Blocks, 5000) of
        {ok, <<"blocked">>} -> ok;
        Died -> ?assertReason({context_died, _}, Died)
    end.

a_full_queue_is_an_answer(_Config) ->
    Blocks = py:async_call(py_asyncs, blocks, [1]),
    ok = begun(<<"blocks">>),
    Most = 10_000,
    Refs = [py:async_call(py_asyncs, one, []) || _ <- lists:seq(1, Most + 10)],
    Answers = [py:await(Ref, 20_000) || Ref <- Refs],
    Refused = [Answer || {error, overload} = Answer <- Answers],
    ?assertEqual(10, length(Refused)),
    ?assertEqual(Most, length([1 || {ok, 1} <- Answers])),
    {ok, _} = py:await(Blocks).

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
    ?assert(Ms < 1000).

the_loop_of_a_process_is_always_the_same(_Config) ->
    ok = py_test:stop(),
    ok = application:set_env(erlang_python, num_loops, 3),
    try
        {ok, _} = application:ensure_all_started(erlang_python),
        Loops = [
            py_test:in_process(fun() ->
                {ok, Loop} = py:await(py:async_call(py_asyncs, which, [])),
                {ok, Loop} = py:await(py:async_call(py_asyncs, which, [])),
                Loop
            end)
         || _ <- lists:seq(1, 50)
        ],
        ?assertEqual(3, length(lists:usort(Loops))),
        ?assertEqual(3, length(py_event_loop_pool:get_stats()))
    after
        ok = py_test:stop(),
        ok = application:unset_env(erlang_python, num_loops)
    end.

the_low_level_functions_run_and_await(_Config) ->
    ?assertEqual({ok, 1}, py_event_loop:run(py_asyncs, give, [1])),
    ?assertEqual({ok, 2}, py_event_loop:run(py_asyncs, nap, [0], #{kwargs => #{value => 2}})),
    ?assertEqual({ok, 3}, py_event_loop:await(py_event_loop:create_task(py_asyncs, give, [3]))),
    ?assertEqual({ok, 4}, py_event_loop_pool:run(py_asyncs, give, [4])),
    Task = py_event_loop_pool:create_task(py_asyncs, nap, [0], #{value => 5}),
    ?assertEqual({ok, 5}, py_event_loop_pool:await(Task, 5000)),
    {ok, Loop} = py_event_loop:get_loop(),
    Request = #{module => py_asyncs, func => give, args => [6]},
    {ok, Ref} = py_event_loop:run_async(Loop, Request),
    ?assertEqual({ok, 6}, py:await(Ref)),
    Mine = make_ref(),
    {ok, Mine} = py_event_loop:run_async(Loop, Request#{ref => Mine, caller => self()}),
    ?assertEqual({ok, 6}, py:await(Mine)),
    {ok, Own} = py_event_loop:start_link(),
    {ok, Other} = py_event_loop:run_async(Own, Request),
    ?assertEqual({ok, 6}, py:await(Other)),
    unlink(Own),
    py_test:down(Own).

a_task_nobody_waits_for_runs(_Config) ->
    ok = py_event_loop:spawn_task(py_asyncs, note, [<<"spawned">>]),
    ended(<<"spawned">>).

an_idle_loop_costs_nothing(_Config) ->
    {ok, 1} = py:await(py:async_call(py_asyncs, one, [])),
    %% Once all are asleep none of them is woken any more.
    py_test:eventually(fun() ->
        Before = switches(),
        timer:sleep(1000),
        Before =/= [] andalso Before =:= switches()
    end).

a_callback_of_another_thread_wakes_the_loop(_Config) ->
    ?assertEqual({ok, 7}, py:await(py:async_call(py_asyncs, through_thread, [0.05, 7]), 10_000)).

loops_without_threads_share_one(_Config) ->
    {ok, First} = py_event_loop:start_link(#{driver => beam}),
    ?assertEqual({ok, 1}, on(First)),
    Threads = fun() -> length(filelib:wildcard("/proc/self/task/*")) end,
    Before = Threads(),
    Loops = [element(2, {ok, _} = py_event_loop:start_link(#{driver => beam})) || _ <- lists:seq(1, 200)],
    ?assertEqual([{ok, 1}], lists:usort([on(Loop) || Loop <- Loops])),
    ?assertEqual(Before, Threads()),
    ?assertReason({bad_argument, _}, py_event_loop:start_link(#{driver => bus})),
    [ok = gen_server:stop(Loop) || Loop <- [First | Loops]],
    ok.

a_loop_that_is_stopped_in_its_step_is_closed_after_it(_Config) ->
    {ok, Loop} = py_event_loop:start_link(#{driver => beam}),
    Request = #{module => py_asyncs, func => holds, args => [self(), 0.3]},
    {ok, _} = py_event_loop:run_async(Loop, Request),
    ok = py_test:message(<<"blocks">>),
    ok = gen_server:stop(Loop),
    ok = py_test:eventually(fun() -> {ok, true} =:= py:call(py_asyncs, all_closed, []) end).

%% A coroutine that waits, on this loop.
on(Loop) ->
    Request = #{module => py_asyncs, func => nap, args => [0.001], kwargs => #{value => 1}},
    {ok, Ref} = py_event_loop:run_async(Loop, Request),
    py:await(Ref).

asyncio_is_not_imported_before_it_is_needed(_Config) ->
    Expression =
        "{ok, _} = application:ensure_all_started(erlang_python),"
        "{ok, false} = py:eval(<<\"'asyncio' in __import__('sys').modules\">>),"
        "[] = py_event_loop_pool:get_stats(),"
        "{ok, none} = py:await(py:async_call(asyncio, sleep, [0])),"
        "io:format(\"as it should be~n\"), init:stop().",
    {0, Output, _} = py_test:run_node(Expression, 20_000),
    ?assertMatch({_, _}, binary:match(Output, <<"as it should be">>)).

stopping_the_application_answers_who_waits(_Config) ->
    Self = self(),
    Caller = spawn_link(fun() ->
        Self ! {self(), py:await(py:async_call(py_asyncs, hang, [<<"stopped">>]), infinity)}
    end),
    ok = begun(<<"stopped">>),
    ok = py_test:stop(),
    receive
        {Caller, Answer} -> ?assertReason({context_died, _}, Answer)
    end,
    ?assertReason(not_running, py:await(py:async_call(py_asyncs, one, []))).

%% ---- helpers

loop_process() ->
    [{_, Pid, _, _} | _] = supervisor:which_children(py_event_loop_sup),
    Pid.

works_again() ->
    py_test:eventually(fun() -> py:await(py:async_call(py_asyncs, one, []), 5000) =:= {ok, 1} end).

waiting() ->
    lists:sum([N || #{waiting := N} <- py_event_loop_pool:get_stats()]).

begun(Name) -> noted(begun, Name).

ended(Name) -> noted(ended, Name).

%% A task that was cancelled before it ran has nothing to end.
ended_or_never(Name) ->
    py_test:eventually(fun() ->
        {ok, Begun} = py:call(py_asyncs, has, [begun, Name]),
        {ok, Ended} = py:call(py_asyncs, has, [ended, Name]),
        (not Begun orelse Ended) andalso waiting() =:= 0
    end).

noted(List, Name) ->
    py_test:eventually(fun() -> {ok, true} =:= py:call(py_asyncs, has, [List, Name]) end).

%% Context switches of the threads of loops.
switches() ->
    Tasks = filelib:wildcard("/proc/self/task/*"),
    lists:sort([
        {Task, Lines}
     || Task <- Tasks,
        {ok, <<"py-", Kind:4/binary, _/binary>>} <- [file:read_file(Task ++ "/comm")],
        Kind =:= <<"loop">> orelse Kind =:= <<"turn">>,
        {ok, Status} <- [file:read_file(Task ++ "/status")],
        Lines <- [[L || <<"voluntary", _/binary>> = L <- binary:split(Status, <<"\n">>, [global])]]
    ]).
