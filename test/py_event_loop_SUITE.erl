%% The node's event loops: how they live and end, what they cost, and the functions below `py:async_call'.
-module(py_event_loop_SUITE).

-include("py_test.hrl").

-export([init_per_testcase/2]).
-export([
    exit_and_stop_in_a_task_do_not_end_the_loop/1,
    a_loop_that_is_killed_answers_and_comes_back/1,
    what_is_asked_while_loops_die_is_always_answered/1,
    a_loop_that_blocks_is_killed_and_its_callers_hear_of_it/1,
    a_full_queue_is_an_answer/1,
    suspended_tasks_are_bounded/1,
    a_gather_names_the_calls_there_is_no_room_for/1,
    the_loop_of_a_process_is_always_the_same/1,
    the_low_level_functions_run_and_await/1,
    a_task_is_cancelled_by_the_reference_its_caller_gave/1,
    all_tasks_of_one_reference_are_cancelled_by_it/1,
    a_task_nobody_waits_for_runs/1,
    a_callback_of_another_thread_wakes_the_loop/1,
    work_is_submitted_under_a_number/1,
    what_is_submitted_ends_with_its_caller/1,
    what_can_not_be_submitted_says_why/1,
    an_idle_loop_costs_nothing/1,
    loops_without_threads_share_one/1,
    a_loop_that_is_stopped_in_its_step_is_closed_after_it/1,
    a_loop_that_gets_rid_of_a_closed_descriptor_is_still_woken/1,
    asyncio_is_not_imported_before_it_is_needed/1,
    stopping_the_application_answers_who_waits/1
]).

-include("py_drivers.hrl").

init_per_testcase(_Case, Config) -> py_test:start(Config).

exit_and_stop_in_a_task_do_not_end_the_loop(_Config) ->
    {ok, [Thread, _]} = py:await(py:async_call(py_asyncs, where, [])),
    Other = py:async_call(py_asyncs, nap, [0.2, other]),
    ?assertReason({'SystemExit', _}, py:await(py:async_call(py_asyncs, leave, []))),
    ?assertEqual({ok, none}, py:await(py:async_call(py_asyncs, stop_the_loop, []))),
    ?assertEqual({ok, <<"other">>}, py:await(Other)),
    ?assertMatch({ok, [Thread, _]}, py:await(py:async_call(py_asyncs, where, []))).

a_loop_that_is_killed_answers_and_comes_back(_Config) ->
    Refs = [py:async_call(py_asyncs, hang, [<<"killed">>]) || _ <- lists:seq(1, 10)],
    ok = py_test:begun(<<"killed">>),
    ok = py_test:down(loop_process()),
    [?assertReason({context_died, _}, py:await(Ref, 5000)) || Ref <- Refs],
    ok = works_again(),
    py_test:ended(<<"killed">>).

what_is_asked_while_loops_die_is_always_answered(_Config) ->
    {ok, 1} = py:await(py:async_call(py_asyncs, one, [])),
    Callers = [spawn_monitor(fun() -> exit({answers, ask(#{})}) end) || _ <- lists:seq(1, 20)],
    [ok = kill_while_asked() || _ <- lists:seq(1, 50)],
    Answers = [
        begin
            Pid ! enough,
            receive
                {'DOWN', Monitor, process, Pid, {answers, Seen}} -> Seen
            end
        end
     || {Pid, Monitor} <- Callers
    ],
    ct:log("~p", [Answers]),
    Kinds = lists:usort(lists:append([maps:keys(Seen) || Seen <- Answers])),
    ?assertEqual([], Kinds -- [{ok, 1}, context_died, not_running]),
    ?assert(lists:member(context_died, Kinds)),
    ok = works_again().

%% Asks again and again; how often what came.
ask(Seen) ->
    Kind =
        case py:await(py:async_call(py_asyncs, one, []), 5000) of
            {ok, 1} -> {ok, 1};
            {error, {context_died, _}} -> context_died;
            {error, Reason} -> Reason
        end,
    Counted = Seen#{Kind => maps:get(Kind, Seen, 0) + 1},
    receive
        enough -> Counted
    after 0 -> ask(Counted)
    end.

%% The loop of these callers, once it has begun to work.
kill_while_asked() ->
    ok = py_test:eventually(fun() -> is_pid(loop_process()) andalso started() > 0 end),
    py_test:down(loop_process()).

started() -> lists:sum([Started || #{started := Started} <- py_event_loop_pool:get_stats()]).

a_loop_that_blocks_is_killed_and_its_callers_hear_of_it(_Config) ->
    Name = unique(),
    Blocks = py:async_call(py_asyncs, blocks, [2, Name]),
    Behind = py:async_call(py_asyncs, one, []),
    ok = py_test:begun(Name),
    ok = py_test:down(loop_process()),
    ?assertReason({context_died, _}, py:await(Behind, 20_000)),
    ok = works_again(),
    %% What blocks can't be stopped. In its first step (3.12+) it is answered when it lets go.
    case py:await(Blocks, 5000) of
        {ok, <<"blocked">>} -> ok;
        Died -> ?assertReason({context_died, _}, Died)
    end.

a_full_queue_is_an_answer(_Config) ->
    Name = unique(),
    Blocks = py:async_call(py_asyncs, blocks, [1, Name]),
    ok = py_test:begun(Name),
    Most = 10_000,
    Refs = [py:async_call(py_asyncs, one, []) || _ <- lists:seq(1, Most + 10)],
    Answers = [py:await(Ref, 20_000) || Ref <- Refs],
    Refused = [Answer || {error, overload} = Answer <- Answers],
    ?assertEqual(10, length(Refused)),
    ?assertEqual(Most, length([1 || {ok, 1} <- Answers])),
    {ok, _} = py:await(Blocks).

%% A hundred times as many as may be queued.
suspended_tasks_are_bounded(_Config) ->
    ok = py_test:stop(),
    ok = application:set_env(erlang_python, max_queue, 1),
    try
        {ok, _} = application:ensure_all_started(erlang_python),
        Hang = fun() ->
            Name = unique(),
            Ref = py:async_call(py_asyncs, hang, [Name]),
            ok = py_test:begun(Name),
            Ref
        end,
        Refs = [Hang() || _ <- lists:seq(1, 100)],
        ?assertReason(overload, py:await(py:async_call(py_asyncs, one, []))),
        ok = py:cancel(hd(Refs)),
        ok = py_test:eventually(fun() -> py:await(py:async_call(py_asyncs, one, [])) =:= {ok, 1} end),
        [ok = py:cancel(Ref) || Ref <- tl(Refs)]
    after
        ok = py_test:stop(),
        ok = application:unset_env(erlang_python, max_queue)
    end.

a_gather_names_the_calls_there_is_no_room_for(_Config) ->
    Name = unique(),
    Blocks = py:async_call(py_asyncs, blocks, [1, Name]),
    ok = py_test:begun(Name),
    Calls = lists:duplicate(10_010, {py_asyncs, one, []}),
    Refused = [{N, overload} || N <- lists:seq(10_001, 10_010)],
    ?assertEqual({error, {gather_failed, Refused}}, py:async_gather(Calls, 20_000)),
    {ok, _} = py:await(Blocks).

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
    Others = [
        py_event_loop:await(py_event_loop:create_task(py_asyncs, nap, [0], #{value => 7}), 5000),
        py_event_loop_pool:await(py_event_loop_pool:create_task(py_asyncs, give, [8])),
        py_event_loop_pool:run(py_asyncs, nap, [0], #{kwargs => #{value => 9}})
    ],
    ?assertEqual([{ok, 7}, {ok, 8}, {ok, 9}], Others),
    ?assertMatch({ok, _}, py_event_loop_pool:get_loop()),
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

all_tasks_of_one_reference_are_cancelled_by_it(_Config) ->
    {ok, Loop} = py_event_loop:get_loop(),
    Ref = make_ref(),
    Names = [<<"same_first">>, <<"same_second">>, <<"same_third">>],
    Begin = fun(Name) ->
        Request = #{module => py_asyncs, func => hang, args => [Name], ref => Ref},
        {ok, Ref} = py_event_loop:run_async(Loop, Request),
        ok = py_test:begun(Name)
    end,
    ok = lists:foreach(Begin, Names),
    %% One that ends takes no other's place.
    Give = #{module => py_asyncs, func => give, args => [6], ref => Ref},
    {ok, Ref} = py_event_loop:run_async(Loop, Give),
    ok = py_test:message({async_result, Ref, {ok, 6}}),
    ok = py:cancel(Ref),
    [ok = py_test:ended(Name) || Name <- Names],
    py_test:nothing_waits().

a_task_is_cancelled_by_the_reference_its_caller_gave(_Config) ->
    {ok, Loop} = py_event_loop:get_loop(),
    Hang = fun(Name) -> #{module => py_asyncs, func => hang, args => [Name], ref => make_ref()} end,
    Begin = fun(#{ref := Ref, args := [Name]} = Request) ->
        {ok, Ref} = py_event_loop:run_async(Loop, Request),
        ok = py_test:begun(Name),
        Ref
    end,
    ?assertEqual({error, timeout}, py:await(Begin(Hang(<<"given_late">>)), 20)),
    ok = py_test:ended(<<"given_late">>),
    ?assertEqual(ok, py:cancel(Begin(Hang(<<"given_away">>)))),
    ok = py_test:ended(<<"given_away">>),
    %% By another process than the one that asked, and than the one that is told.
    Other = spawn_link(fun() -> receive stop -> ok end end),
    Request = Hang(<<"given_by_others">>),
    Ref = Begin(Request#{caller => Other}),
    ok = py_test:in_process(fun() -> py:cancel(Ref) end),
    ok = py_test:ended(<<"given_by_others">>),
    %% What was over before has given its answer, which nobody wants any more.
    Give = #{module => py_asyncs, func => give, args => [6], ref => Ref},
    {ok, Ref} = py_event_loop:run_async(Loop, Give),
    %% The loop answers in turn. (process_info/2 of oneself leaves out what no receive has looked for yet.)
    ?assertEqual({ok, 5}, py:await(py:async_call(py_asyncs, give, [5]))),
    ?assertMatch({messages, [_]}, process_info(self(), messages)),
    ok = py:cancel(Ref),
    %% The answers of the others would have come by now: the loop has run tasks since.
    ?assertEqual({ok, 7}, py:await(py:async_call(py_asyncs, give, [7]))),
    ?assertEqual({messages, []}, process_info(Other, messages)),
    Other ! stop,
    py_test:nothing_waits().

a_task_nobody_waits_for_runs(_Config) ->
    ok = py_event_loop:spawn_task(py_asyncs, note, [<<"spawned">>]),
    py_test:ended(<<"spawned">>),
    ok = py_event_loop:spawn_task(py_asyncs, note, [], #{name => <<"named">>}),
    py_test:ended(<<"named">>).

a_callback_of_another_thread_wakes_the_loop(_Config) ->
    ?assertEqual({ok, 7}, py:await(py:async_call(py_asyncs, through_thread, [0.05, 7]), 10_000)).

work_is_submitted_under_a_number(_Config) ->
    {ok, Own} = py_event_loop:get_loop(),
    {ok, Raw} = py_nif:event_loop_new(),
    [
        begin
            ok = py_nif:submit_call(Loop, 1, self(), math, sqrt, {[16], #{}}),
            ok = py_test:message({async_result, 1, {ok, 4.0}}),
            ok = py_nif:submit_call(Loop, 2, self(), py_asyncs, plain, {[1], #{b => 2}}),
            ok = py_test:message({async_result, 2, {ok, 3}}),
            ok = py_nif:submit_coroutine(Loop, 3, self(), py_asyncs, nap, {[0.001], #{value => 4}}),
            ok = py_test:message({async_result, 3, {ok, 4}}),
            ok = py_nif:submit_coroutine(Loop, 1 bsl 60, self(), py_asyncs, fail, {[<<"no">>], #{}}),
            ok = py_test:message({async_result, 1 bsl 60, {error, {'ValueError', <<"no">>}}}),
            Wide = maps:from_list([{N, N} || N <- lists:seq(1, 1000)]),
            ok = py_nif:submit_coroutine(Loop, 5, self(), "py_asyncs", <<"give">>, {[Wide], #{}}),
            ok = py_test:message({async_result, 5, {ok, Wide}})
        end
     || Loop <- [Own, Raw]
    ],
    {Other, Monitor} = spawn_monitor(py_test, message, [{async_result, 9, {ok, 1}}]),
    ok = py_nif:submit_coroutine(Own, 9, Other, py_asyncs, one, {[], #{}}),
    receive
        {'DOWN', Monitor, process, Other, Why} -> ?assertEqual(normal, Why)
    end,
    py_test:nothing_waits().

what_is_submitted_ends_with_its_caller(_Config) ->
    Self = self(),
    Caller = spawn(fun() ->
        {ok, Loop} = py_event_loop:get_loop(),
        ok = py_nif:submit_coroutine(Loop, 1, Self, py_asyncs, hang, {[<<"submitted">>], #{}}),
        receive
            never -> ok
        end
    end),
    ok = py_test:begun(<<"submitted">>),
    ok = py_test:down(Caller),
    ok = py_test:ended(<<"submitted">>),
    py_test:nothing_waits().

what_can_not_be_submitted_says_why(_Config) ->
    {ok, Raw} = py_nif:event_loop_new(),
    ?assertReason({bad_argument, args}, py_nif:submit_call(Raw, 1, self(), a, b, {[1 | 2], #{}})),
    ?assertReason({bad_argument, <<"keyword arguments", _/binary>>}, py_nif:submit_coroutine(Raw, 1, self(), a, b, {[], none})),
    ok = py_nif:event_loop_destroy(Raw),
    ?assertReason(not_running, py_nif:submit_call(Raw, 1, self(), math, sqrt, {[1], #{}})),
    ?assertReason(not_running, py_nif:submit_coroutine(Raw, 1, self(), py_asyncs, one, {[], #{}})),
    {ok, Own} = py_event_loop:get_loop(),
    ?assertReason(not_supported, py_nif:event_loop_set_router(Own, self())),
    Name = unique(),
    Blocks = py:async_call(py_asyncs, blocks, [1, Name]),
    ok = py_test:begun(Name),
    Submit = fun(N) -> py_nif:submit_coroutine(Own, N, self(), py_asyncs, one, {[], #{}}) end,
    Answers = [Submit(N) || N <- lists:seq(1, 10_010)],
    ?assertEqual(10, length([refused || {error, overload} <- Answers])),
    [ok = py_test:message({async_result, N, {ok, 1}}) || {N, ok} <- lists:enumerate(Answers)],
    {ok, _} = py:await(Blocks),
    py_test:nothing_waits().

an_idle_loop_costs_nothing(_Config) ->
    {ok, 1} = py:await(py:async_call(py_asyncs, one, [])),
    %% Once all are asleep none of them is woken any more.
    py_test:eventually(fun() ->
        Before = switches(),
        timer:sleep(1000),
        Before =/= [] andalso Before =:= switches()
    end).

loops_without_threads_share_one(_Config) ->
    {ok, First} = py_event_loop:start_link(#{driver => beam}),
    ?assertEqual({ok, 1}, on(First)),
    Threads = fun() -> length(filelib:wildcard("/proc/self/task/*")) end,
    Before = Threads(),
    Loops = [element(2, {ok, _} = py_event_loop:start_link(#{driver => beam})) || _ <- lists:seq(1, 200)],
    ?assertEqual([{ok, 1}], lists:usort([on(Loop) || Loop <- Loops])),
    %% Less if one of an earlier test has ended meanwhile.
    ?assert(Threads() =< Before),
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

a_loop_that_gets_rid_of_a_closed_descriptor_is_still_woken(_Config) ->
    {ok, Loop} = py_event_loop:start_link(#{driver => beam}),
    Request = #{module => py_asyncs, func => after_a_twin, args => [3]},
    {ok, Ref} = py_event_loop:run_async(Loop, Request),
    ?assertEqual({ok, lists:duplicate(3, <<"data">>)}, py:await(Ref, 20_000)),
    %% And by nothing else: its process sleeps.
    py_test:eventually(fun() ->
        {reductions, Before} = process_info(Loop, reductions),
        timer:sleep(500),
        {reductions, Before} =:= process_info(Loop, reductions)
    end),
    ok = gen_server:stop(Loop).

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
    ok = py_test:begun(<<"stopped">>),
    ok = py_test:stop(),
    receive
        {Caller, Answer} -> ?assertReason({context_died, _}, Answer)
    end,
    ?assertReason(not_running, py:await(py:async_call(py_asyncs, one, []))).

%% ---- helpers

%% What has begun in an earlier test is noted for ever.
unique() ->
    integer_to_binary(erlang:unique_integer([positive])).

loop_process() ->
    [{_, Pid, _, _} | _] = supervisor:which_children(py_event_loop_sup),
    Pid.

works_again() ->
    py_test:eventually(fun() -> py:await(py:async_call(py_asyncs, one, []), 5000) =:= {ok, 1} end).


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
