%% Calls under stress: timeouts, cancellation, death, isolation, load.
%%
%% Known traps of calls, and the test that each one has here:
%%   timeout ignored while the worker is busy   a_timeout_is_kept_while_all_workers_are_busy,
%%                                              a_queued_job_that_timed_out_never_runs
%%   a timeout interrupts another caller        only_the_job_that_timed_out_is_interrupted
%%   a late message after a timeout             a_call_that_timed_out_leaves_no_message_behind
%%   an abandoned call burns the processor      an_abandoned_call_is_interrupted
%%   the caller is killed                       py_death_SUITE
%%   a killed worker is not replaced            a_killed_worker_is_replaced
%%   eval with a callback is executed twice     an_eval_that_calls_back_runs_once
%%   names of others are seen                   names_belong_to_one_process,
%%                                              a_callback_leaves_no_names_behind
%%   nesting deadlocks                          py_nest_SUITE
%%   hidden time limits                         there_is_no_hidden_limit
%%   values reach the wrong caller              every_caller_gets_its_own_value
%%   calls hop between thread states            a_thread_keeps_its_state_for_life,
%%                                              a_bound_process_keeps_its_thread
%%   libpython not for all                      py_smoke_SUITE:c_extensions_find_the_symbols_of_python
%%   the GIL on a scheduler                     py_gil_SUITE
%%   exception names, NUL, surrogates, atoms, depth, changed dicts, binary_to_term, views
%%                                              py_hostile_SUITE
%%   bignums, Unicode atoms, failed conversion  py_convert_SUITE
%%   subprocess, sys.exit, daemon threads, stop and start
%%                                              py_life_SUITE
-module(py_call_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([log/2]).
-export([
    as_many_calls_as_there_are_workers_block_side_by_side/1,
    a_timeout_is_kept_while_all_workers_are_busy/1,
    a_queued_job_that_timed_out_never_runs/1,
    only_the_job_that_timed_out_is_interrupted/1,
    a_call_that_timed_out_leaves_no_message_behind/1,
    an_await_that_timed_out_leaves_no_message_behind/1,
    a_cancelled_call_sends_nothing/1,
    an_abandoned_call_is_interrupted/1,
    a_job_in_a_callback_is_interrupted/1,
    a_killed_worker_is_replaced/1,
    a_spawned_call_or_stream_past_its_time_is_told_so/1,
    an_eval_that_calls_back_runs_once/1,
    names_belong_to_one_process/1,
    functions_that_look_at_names_look_at_those_of_the_caller/1,
    a_callback_leaves_no_names_behind/1,
    the_names_of_a_process_go_with_it/1,
    there_is_no_hidden_limit/1,
    every_caller_gets_its_own_value/1,
    a_thread_keeps_its_state_for_life/1,
    a_bound_process_keeps_its_thread/1,
    a_cast_runs_and_its_failure_is_logged/1,
    a_cast_that_is_refused_is_logged/1,
    a_cast_ends_when_its_time_is_up/1,
    a_traceback_comes_with_every_kind_of_answer/1,
    a_class_built_into_python_is_an_atom/1,
    a_refused_call_is_awaited_and_cancelled_like_any_other/1
]).

all() ->
    Last = there_is_no_hidden_limit,
    (py_test:cases(?MODULE) -- [Last]) ++ [Last].

init_per_suite(Config) ->
    py_test:start(Config),
    ok = py:register_pool(one, #{size => 1}),
    [{slow, begin_slow_callback()} | Config].

%% One that takes long, beside all tests; it is asked for by the last of them.
begin_slow_callback() ->
    ok = py:register_pool(patient, #{size => 1}),
    Seconds = py_test:full(6, 31),
    ok = py:register_function(slow, fun([Number]) -> timer:sleep(1000 * Number), Number end),
    Caller = spawn(fun() ->
        Answer = py:call(patient, py_calls, slow_callback, [Seconds], #{}, infinity),
        receive {tell, Test} -> Test ! {self(), Answer} end
    end),
    {Caller, Seconds}.

end_per_suite(_Config) ->
    ok = py:unregister_function(slow),
    ok = py:unregister_pool(patient),
    ok = py:unregister_pool(one).

init_per_testcase(_Case, Config) ->
    {ok, _} = py:call(py_tools, notes, []),
    Config.

value({ok, Value}) -> Value;
value(Other) -> error(Other).

workers() ->
    #{num_workers := Workers} = persistent_term:get(py_config),
    Workers.

%% ---- timeouts and cancellation

as_many_calls_as_there_are_workers_block_side_by_side(_Config) ->
    [ok = py_test:release(py_test:occupy(main, workers())) || _ <- lists:seq(1, 50)].

a_timeout_is_kept_while_all_workers_are_busy(_Config) ->
    Busy = py_test:occupy(main, workers()),
    {Millis, Answer} = py_test:milliseconds(fun() -> py:call(py_tools, note, [x], #{}, 200) end),
    ?assertReason(timeout, Answer),
    ?assert(Millis >= 199),
    %% The workers are busy until they are released: a call that waited for them would not have come back.
    ok = py_test:release(Busy).

a_queued_job_that_timed_out_never_runs(_Config) ->
    Busy = py_test:occupy(main, workers()),
    [?assertReason(timeout, py:call(py_tools, note, [N], #{}, 20)) || N <- [1, 2, 3]],
    Ref = py:spawn_call(py_tools, note, [4]),
    ok = py:cancel(Ref),
    ok = py_test:release(Busy),
    %% Behind those, if they were still in the queue.
    {ok, _} = py:call(py_tools, note, [last]),
    ?assertEqual({ok, [<<"last">>]}, py:call(py_tools, notes, [])).

only_the_job_that_timed_out_is_interrupted(_Config) ->
    {Gate, [Running]} = py_test:occupy(one, 1),
    [?assertReason(timeout, py:call(one, py_tools, note, [N], #{}, 20)) || N <- lists:seq(1, 20)],
    ok = py_test:release({Gate, [Running]}).

a_call_that_timed_out_leaves_no_message_behind(_Config) ->
    Answers = [py:call(py_tools, nap, [0.001], #{}, N rem 4) || N <- lists:seq(1, 300)],
    ok = py_test:nothing_waits(),
    Errors = [Error || {error, _} = Error <- Answers],
    [?assertReason(timeout, Error) || Error <- Errors],
    ?assertMatch([_ | _], Errors),
    %% And none comes later.
    {ok, _} = py:call(py_tools, nap, [0.1]),
    ok = py_test:nothing_waits().

an_await_that_timed_out_leaves_no_message_behind(_Config) ->
    %% The answer comes long before, long after, and in the very moment in which the wait ends.
    Answers = [
        {Limit, py:await(py:spawn_call(py_tools, nap, [Nap]), Limit)}
     || _ <- lists:seq(1, 75), {Nap, Limit} <- [{60, 0}, {0.001, 1}, {0.001, 2}, {0, 20_000}]
    ],
    [
        case {Limit, Answer} of
            {0, _} -> ?assertReason(timeout, Answer);
            {20_000, _} -> ?assertEqual({ok, 0}, Answer);
            {_, {ok, 0.001}} -> ok;
            _ -> ?assertReason(timeout, Answer)
        end
     || {Limit, Answer} <- Answers
    ],
    %% All of them have ended.
    {ok, Pool} = py_registry:pool(main),
    ok = py_test:eventually(fun() -> not py_nif:pool_busy(Pool) end),
    ok = py_test:nothing_waits().

a_cancelled_call_sends_nothing(_Config) ->
    [
        begin
            Ref = py:spawn_call(operator, add, [1, 1]),
            N rem 3 =:= 0 andalso erlang:yield(),
            ok = py:cancel(Ref),
            ok = py_test:nothing_waits()
        end
     || N <- lists:seq(1, 1000)
    ],
    {ok, _} = py:call(py_tools, nap, [0.1]),
    ok = py_test:nothing_waits().

an_abandoned_call_is_interrupted(_Config) ->
    ?assertReason(timeout, py:call(py_tools, spin, [self()], #{}, 50)),
    ok = py_test:message(<<"spinning">>),
    ok = py_test:message(<<"stopped">>),
    %% The same for a caller that is killed, for a cancelled ref and for an await.
    Test = self(),
    Pid = spawn(fun() -> py:call(py_tools, spin, [Test]) end),
    ok = py_test:message(<<"spinning">>),
    ok = py_test:down(Pid),
    ok = py_test:message(<<"stopped">>),
    Ref = py:spawn_call(py_tools, spin, [Test]),
    ok = py_test:message(<<"spinning">>),
    ok = py:cancel(Ref),
    ok = py_test:message(<<"stopped">>),
    ok = py_test:eventually(fun is_idle/0).

%% Less than a quarter of a processor is used, by the whole node.
is_idle() ->
    {ok, Before} = py:call(py_tools, cpu_seconds, []),
    timer:sleep(100),
    {ok, After} = py:call(py_tools, cpu_seconds, []),
    After - Before < 0.025.

a_job_in_a_callback_is_interrupted(_Config) ->
    Test = self(),
    ok = py:register_function(wait_here, fun([]) ->
        Test ! {waiting, self()},
        receive
            go_on -> ok
        end
    end),
    ok = py:exec(<<
        "import erlang\n"
        "def wait(pid):\n"
        "    try:\n        erlang.wait_here()\n"
        "    finally:\n        erlang.send(pid, 'woken')\n"
    >>),
    ?assertReason(timeout, py:call('__main__', wait, [self()], #{}, 50)),
    ok = py_test:message(<<"woken">>),
    receive
        {waiting, Executor} -> Executor ! go_on
    end,
    ok = py_test:nothing_waits(),
    ok = py:unregister_function(wait_here).

a_killed_worker_is_replaced(_Config) ->
    Before = py_test:workers(main),
    Threads = py_test:pool_threads(main),
    %% By itself: the others stay.
    [First | Others] = Before,
    ok = py_test:down(First),
    ok = replaced([First], length(Before)),
    ?assertEqual([], Others -- py_test:workers(main)),
    Second = py_test:workers(main),
    [ok = py_test:down(Pid) || Pid <- Second],
    ok = replaced(Second, length(Before)),
    ok = py_test:eventually(fun() -> py_test:pool_threads(main) =:= Threads end),
    Busy = py_test:occupy(main, workers()),
    ok = py_test:release(Busy),
    [?assertEqual({ok, N}, py:call(operator, pos, [N])) || N <- lists:seq(1, 200)].

replaced(Killed, Count) ->
    py_test:eventually(fun() ->
        Workers = py_test:workers(main),
        length(Workers) =:= Count andalso Workers -- Killed =:= Workers
    end).

a_spawned_call_or_stream_past_its_time_is_told_so(_Config) ->
    Ref = py:spawn_call(time, sleep, [1.5], #{}, 50),
    ok = py_test:message({py_response, Ref, {error, timeout}}),
    {ok, Stream} = py:stream_start(itertools, count, [], #{}, #{timeout => 50, window => 1}),
    ok = py_test:message({py_stream, Stream, {data, 0}}),
    ok = py_test:message({py_stream, Stream, {error, timeout}}),
    %% One that is over is not told twice.
    Done = py:spawn_call(math, sqrt, [4], #{}, 50),
    ok = py_test:message({py_response, Done, {ok, 2.0}}),
    timer:sleep(100),
    receive
        Message -> error({left_behind, Message})
    after 0 -> ok
    end.

%% ---- isolation

an_eval_that_calls_back_runs_once(_Config) ->
    Calls = counters:new(1, []),
    ok = py:register_function(counted, fun([]) -> counters:add(Calls, 1, 1) end),
    ok = py:exec(<<"import erlang\ndone = []">>),
    ?assertEqual(
        {ok, 3},
        py:eval(<<"[done.append(1), erlang.counted(), done.append(2), erlang.counted(), len(done) + 1][-1]">>)
    ),
    ?assertEqual({ok, [1, 2]}, py:eval(<<"done">>)),
    ?assertEqual(2, counters:get(Calls, 1)),
    ok = py:unregister_function(counted).

names_belong_to_one_process(_Config) ->
    ok = py:exec(<<"secret = 1">>),
    ?assertReason({'NameError', _}, py_test:in_process(fun() -> py:eval(<<"secret">>) end)),
    ?assertReason({_, _}, py_test:in_process(fun() -> py:call('__main__', secret, []) end)),
    ?assertEqual({ok, 1}, py:eval(<<"secret">>)),
    %% Locals of an eval are gone with it.
    {ok, 5} = py:eval(<<"given">>, #{given => 5}),
    ?assertReason({'NameError', _}, py:eval(<<"given">>)).

functions_that_look_at_names_look_at_those_of_the_caller(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    py_test:in_process(fun() -> [looks_at_names(Place) || Place <- [main, Ctx]] end),
    ok = py_context:stop(Ctx).

looks_at_names(Place) ->
    Call = fun(Function, Args, Kw) -> py:call(Place, builtins, Function, Args, Kw) end,
    ?assertEqual({ok, 2}, Call(eval, [<<"1 + 1">>], #{})),
    ?assertEqual({ok, none}, Call(exec, [<<"mine = 5\ndef twice(): return 2 * mine">>], #{})),
    ?assertEqual({ok, 10}, py:eval(Place, <<"twice()">>)),
    ?assertEqual({ok, 10}, Call(eval, [<<"twice()">>], #{})),
    ?assertEqual({ok, 7}, Call(eval, [<<"mine + 1">>, #{mine => 6}], #{})),
    ?assertEqual({ok, 7}, Call(eval, [<<"mine + other">>, none, #{other => 2}], #{})),
    ?assertEqual({ok, 10}, py:await(py:spawn_call(Place, builtins, eval, [<<"twice()">>]))),
    {ok, Names} = Call(dir, [], #{}),
    ?assert(lists:member(<<"mine">>, Names), Names),
    {ok, Attributes} = Call(dir, [1], #{}),
    ?assert(lists:member(<<"bit_length">>, Attributes)),
    [
        begin
            {ok, Dict} = py:call(Place, builtins, Function, [], #{}, #{return => ref}),
            ?assertEqual({ok, 5}, py:call_method(Dict, get, [<<"mine">>]))
        end
     || Function <- [globals, locals, vars]
    ],
    ?assertReason({'NameError', _}, Call(eval, [<<"nobody_has_this">>], #{})),
    ?assertReason({'TypeError', _}, Call(eval, [], #{})).

a_callback_leaves_no_names_behind(_Config) ->
    ok = py:register_function(meddle, fun([]) ->
        ok = py:exec(<<"leaked = 1\nmine = 'theirs'">>),
        ?assertReason({'NameError', _}, py:eval(<<"given">>)),
        value(py:eval(<<"mine">>))
    end),
    ok = py:exec(<<"import erlang\nmine = 'mine'">>),
    ?assertEqual({ok, {<<"theirs">>, <<"mine">>}}, py:eval(<<"(erlang.meddle(), mine)">>)),
    ?assertReason({'NameError', _}, py:eval(<<"leaked">>)),
    %% Nor does it see the locals of an eval, which are there after it, and gone with the eval.
    ?assertEqual({ok, {<<"theirs">>, 5}}, py:eval(<<"(erlang.meddle(), given)">>, #{given => 5})),
    ?assertReason({'NameError', _}, py:eval(<<"given">>)),
    ok = py:unregister_function(meddle).

the_names_of_a_process_go_with_it(_Config) ->
    {ok, _} = py:call(py_calls, forget, []),
    Pid = spawn(fun() ->
        ok = py:exec(<<"import py_calls\nthing = py_calls.Thing()\npy_calls.watch(thing)">>),
        receive
            stop -> ok
        end
    end),
    ok = py_test:eventually(fun() -> py:call(py_calls, watched, []) =:= {ok, [true]} end),
    ok = py_test:down(Pid),
    ok = py_test:eventually(fun() ->
        ok = py_test:collect_if_free_threaded(),
        py:call(py_calls, watched, []) =:= {ok, [false]}
    end).

there_is_no_hidden_limit(Config) ->
    {Caller, Seconds} = proplists:get_value(slow, Config),
    Caller ! {tell, self()},
    receive
        {Caller, Answer} -> ?assertEqual({ok, Seconds}, Answer)
    after 60_000 -> error(no_answer)
    end.

%% ---- load

every_caller_gets_its_own_value(_Config) ->
    Calls = py_test:full(200_000, 1_000_000),
    Callers = 1000,
    Each = Calls div Callers,
    Monitors = [
        element(2, spawn_monitor(fun() -> check_own_values(Id, Each) end))
     || Id <- lists:seq(1, Callers)
    ],
    [
        receive
            {'DOWN', Monitor, process, _, Why} -> ?assertEqual(normal, Why)
        end
     || Monitor <- Monitors
    ].

check_own_values(Id, Each) ->
    [{ok, {Id, N}} = py:call(py_tools, identity, [{Id, N}]) || N <- lists:seq(1, Each)],
    ok = py_test:nothing_waits().

a_thread_keeps_its_state_for_life(_Config) ->
    Run = fun() -> [value(py:call(py_calls, thread_and_token, [])) || _ <- lists:seq(1, 200)] end,
    Monitors = [spawn_monitor(fun() -> exit({seen, Run()}) end) || _ <- lists:seq(1, 20)],
    Seen = lists:usort(
        lists:append([
            receive
                {'DOWN', Monitor, process, Pid, {seen, Pairs}} -> Pairs
            end
         || {Pid, Monitor} <- Monitors
        ])
    ),
    {Threads, _Tokens} = lists:unzip(Seen),
    ?assertEqual(length(Threads), length(lists:usort(Threads))).

a_bound_process_keeps_its_thread(_Config) ->
    ok = py:bind(),
    Hogs = [py:spawn_call(main, py_tools, nap, [0.05]) || _ <- lists:seq(1, 8)],
    Seen = [value(py:call(py_calls, thread_and_token, [])) || _ <- lists:seq(1, 200)],
    ?assertMatch([_], lists:usort(Seen)),
    [{ok, _} = py:await(Ref) || Ref <- Hogs],
    ok = py:unbind().

%% ---- the rest of the face

a_cast_runs_and_its_failure_is_logged(_Config) ->
    ?assertEqual(ok, py:cast(erlang, send, [self(), cast])),
    ok = py_test:message(<<"cast">>),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        ?assertEqual(ok, py:cast(py_tools, fail, ['ValueError', lost])),
        told("py:cast failed: ValueError: lost"),
        ok = py_test:nothing_waits()
    after
        ok = logger:remove_handler(?MODULE)
    end.

a_cast_that_is_refused_is_logged(_Config) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        {ok, Full} = py_context:new(#{max_queue => 1}),
        Busy = py_test:occupy(Full, 1),
        ?assertEqual(ok, py:cast(Full, py_tools, note, [1])),
        ?assertEqual(ok, py:cast(Full, py_tools, note, [2])),
        told("py:cast of py_tools:note failed: The queue of waiting calls is full. "),
        %% The one that waits is lost with its context.
        ok = py_context:stop(Full),
        told("py:cast failed: its pool or context has ended"),
        [?assertReason({context_died, _}, py:await(Ref)) || Ref <- element(2, Busy)],
        ?assertEqual(ok, py:cast(Full, py_tools, note, [3])),
        told("py:cast of py_tools:note failed: "),
        ?assertEqual(ok, py:cast("py_tools", note, not_a_list)),
        told("py:cast of \"py_tools\":note failed: "),
        ?assertEqual(ok, py:cast(py_tools, note, [4], #{}, #{tiemout => 5})),
        told("py:cast of py_tools:note failed: "),
        ?assertEqual({ok, []}, py:call(py_tools, notes, []))
    after
        ok = logger:remove_handler(?MODULE)
    end.

%% The callback of the test's own handler: errors alone.
log(#{level := error, msg := {string, Text}}, #{config := #{to := To}}) ->
    To ! {told, unicode:characters_to_list(Text)};
log(#{level := error, msg := {Format, Args}}, #{config := #{to := To}}) when is_list(Args) ->
    To ! {told, lists:flatten(io_lib:format(Format, Args))};
log(_Event, _Config) ->
    ok.

told(Beginning) ->
    %% Answers of calls may come before it.
    Text = receive {told, Said} -> Said after 60_000 -> error(nothing_was_told) end,
    ?assertEqual(Beginning, lists:sublist(Text, length(Beginning))).

a_cast_ends_when_its_time_is_up(_Config) ->
    %% Left alone it would take an hour.
    ok = py:exec(<<
        "import erlang, time\n"
        "def cast_for_long(pid):\n"
        "    try:\n"
        "        erlang.sleep(3600)\n"
        "    finally:\n"
        "        erlang.send(pid, 'ended')\n"
    >>),
    ?assertEqual(ok, py:cast('__main__', cast_for_long, [self()], #{}, 50)),
    ok = py_test:message(<<"ended">>).

%% Of those that end no thread and no loop.
a_class_built_into_python_is_an_atom(_Config) ->
    Code = <<"[n for n, c in vars(__import__('builtins')).items() if isinstance(c, type) and issubclass(c, Exception)]">>,
    {ok, Names} = py:eval(Code),
    ?assert(length(Names) > 50),
    Answers = [{Name, py:call(builtins, exec, [<<"raise ", Name/binary, "(1)">>])} || Name <- Names],
    Other = [Answer || {_, {error, Reason}} = Answer <- Answers, not py_error:is_builtin_exception(element(1, Reason))],
    ?assertEqual([], Other).

a_traceback_comes_with_every_kind_of_answer(_Config) ->
    Opts = #{traceback => true},
    Fail = [py_tools, fail, ['ValueError', <<"why">>], #{}, Opts],
    Ref = apply(py, spawn_call, Fail),
    {py_response, Ref, Message} = py_test:message(),
    Answers = [apply(py, call, Fail), py:await(apply(py, spawn_call, Fail)), Message],
    [
        ?assertReason(
            {'ValueError', <<"why">>, #{
                type := 'ValueError',
                message := <<"why">>,
                args := [<<"'why'">>],
                traceback := [#{function := <<"fail">>, line := _, file := _}],
                cause := undefined,
                notes := []
            }},
            Answer
        )
     || Answer <- Answers
    ],
    #{formatted := Formatted} = py:last_error(),
    ?assertMatch(<<"Traceback (most recent call last):\n  File", _/binary>>, Formatted),
    ?assertNotEqual(nomatch, string:find(Formatted, "ValueError: why")).

a_refused_call_is_awaited_and_cancelled_like_any_other(_Config) ->
    Refused = py:spawn_call(nowhere, math, sqrt, [4]),
    ?assertReason({bad_argument, {no_such_pool, nowhere}}, py:await(Refused)),
    ok = py:cancel(py:spawn_call(nowhere, math, sqrt, [4])),
    ?assertReason(timeout, py:await(make_ref(), 10)),
    ok = py_test:nothing_waits().
