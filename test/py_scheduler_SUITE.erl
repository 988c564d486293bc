%% Every native function that runs on a normal scheduler returns at once, whoever holds the GIL; and so
%% does what the node does by itself when a process or a resource ends.
-module(py_scheduler_SUITE).

-include("py_test.hrl").
-include_lib("erlang_python/src/py_nif.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    every_native_function_is_in_a_test_or_on_a_dirty_scheduler/1,
    every_function_on_a_normal_scheduler_returns_at_once/1,
    the_end_of_owners_keeps_no_scheduler/1
]).

-define(NOBODY, 1 bsl 60).

%% What I9 says of one native function, in microseconds.
-define(LIMIT, 100).
-define(ROUNDS, 30).

all() ->
    [
        every_native_function_is_in_a_test_or_on_a_dirty_scheduler,
        every_function_on_a_normal_scheduler_returns_at_once,
        the_end_of_owners_keeps_no_scheduler
    ].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% On dirty schedulers: they may take their time.
dirty() ->
    [
        %% Python itself, or a sub-interpreter, starts or ends.
        start,
        finish,
        subinterp_new,
        %% Waits for events, as long as it was told.
        poll_events,
        %% Looks a name up.
        dag_redis,
        %% For graphs that take too long for a scheduler to build.
        dag_new_large,
        %% Of benchmarks: what a dirty scheduler and a copy cost.
        nothing_dirty,
        copy_fresh
    ].

every_native_function_is_in_a_test_or_on_a_dirty_scheduler(_Config) ->
    Native = [Name || {Name, _Arity} <- native()],
    ?assert(length(Native) > 70),
    Tested = lists:usort(lists:append([names(Key) || Key <- maps:keys(functions())])),
    ?assertEqual([], Native -- (Tested ++ dirty())),
    ?assertEqual([], (Tested ++ dirty()) -- Native).

native() ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(py_nif), [abstract_code]),
    [Function || {attribute, _, nifs, Functions} <- Forms, Function <- Functions].

every_function_on_a_normal_scheduler_returns_at_once(_Config) ->
    Functions = functions(),
    %% Each of them works at all. What is cancelled here may have been answered before.
    ok = maps:foreach(fun(_, Function) -> Function() end, Functions),
    ok = flush(),
    Normal = [{Name, Arity} || {Name, Arity} <- native(), not lists:member(Name, dirty())],
    ok = timed(Normal),
    Rounds = fun({Key, Function}) ->
        Timed = [Native || {Name, _} = Native <- Normal, lists:member(Name, names(Key))],
        _ = [1 = erlang:trace_pattern({py_nif, Name, Arity}, restart, [call_time]) || {Name, Arity} <- Timed],
        _ = [py_test:in_process(Function) || _ <- lists:seq(1, ?ROUNDS)],
        [{Key, Name, best(Name, Arity)} || {Name, Arity} <- Timed]
    end,
    Best = py_test:holding_gil(fun() -> lists:append(lists:map(Rounds, maps:to_list(Functions))) end),
    ok = untimed(),
    ?assertEqual([], [Slow || {_, _, Time} = Slow <- Best, Time > ?LIMIT]),
    %% Without a GIL the streams that are cancelled here have begun.
    py:execution_mode() =:= free_threaded orelse ok =:= py_test:nothing_waits().

flush() ->
    receive
        _ -> flush()
    after 0 -> ok
    end.

%% The functions of a key, without what tells it from others with the same functions.
names(Key) -> [Name || Name <- Key, is_atom(Name)].

%% The node itself times each of them, in every process that starts from now on.
timed(Functions) ->
    [1 = erlang:trace_pattern({py_nif, Name, Arity}, true, [call_time]) || {Name, Arity} <- Functions],
    _ = erlang:trace(new_processes, true, [call]),
    ok.

untimed() ->
    _ = erlang:trace(new_processes, false, [call]),
    _ = erlang:trace_pattern({py_nif, '_', '_'}, false, [call_time]),
    ok.

%% The best time of those of all rounds, each of which was a process: other work of the machine makes single ones
%% long. One that was never called is not proved to be fast.
best(Name, Arity) ->
    {call_time, Times} = erlang:trace_info({py_nif, Name, Arity}, call_time),
    lists:min([never | [(Seconds * 1_000_000 + Micros) / Count || {_Pid, Count, Seconds, Micros} <- Times, Count > 0]]).

%% ---- what is called, by the native functions that are called in it

functions() ->
    lists:foldl(fun maps:merge/2, #{}, [
        of_the_node(), of_calls(), of_pools(), of_callbacks(), of_loops(), of_graphs(), of_raw_loops()
    ]).

of_the_node() ->
    {ok, Object} = py:call(py_gil, thing, [], #{}, #{return => ref}),
    {ok, Main} = py_registry:pool(main),
    #{
        [built_for] => fun py_nif:built_for/0,
        [has_gil] => fun py_nif:has_gil/0,
        [python_version] => fun py:version/0,
        [server_options] => fun() -> [#{name := host} | _] = py_nif:server_options() end,
        [counts] => fun py:stats/0,
        [nothing] => fun py_nif:nothing/0,
        [subinterp_counts] => fun py_nif:subinterp_counts/0,
        [is_object_ref] => fun() -> true = py:is_ref(Object) end,
        [clear_main_pool, set_main_pool, set_process] => fun() ->
            ok = py_nif:clear_main_pool(),
            ok = py_nif:set_main_pool(Main),
            ok = py_nif:set_process(callback, whereis(py_callback))
        end
    }.

of_calls() ->
    Payload = payload(math, sqrt, [4]),
    #{
        [last_error] => fun() -> py_nif:last_error(py_call:slot()) end,
        [logged] => fun py_nif:logged/0,
        %% No message has this number.
        [delivered] => fun() -> ok = py_nif:delivered(16#FFFFFFFFFFFF) end,
        %% The answer to a text that the leader was never sent is harmless.
        [printed] => fun() -> no_leader = try py_nif:printed(make_ref(), 1) catch error:badarg -> no_leader end end,
        [slot_leader] => fun() -> ok = py_nif:slot_leader(py_call:slot(), group_leader()) end,
        [slot_new, slot_about] => fun() ->
            ok = py_nif:slot_about(py_nif:slot_new(group_leader()), term_to_binary({<<>>, self()}))
        end,
        ["for its answer", submit, cancel] => fun() ->
            Slot = py_call:slot(),
            Job = py_nif:submit(Slot, default, make_ref(), ?OP_CALL, 0, Payload),
            case is_integer(Job) of
                true -> ok = py_nif:cancel(Slot, Job);
                false -> ok
            end
        end,
        ["for a message", submit, linger, cancel_ref] => fun() ->
            Slot = py_call:slot(),
            Ref = py_nif:submit(Slot, default, {py_response, nobody()}, ?OP_CALL, 0, Payload),
            ok = py_nif:linger(Slot, Ref),
            ok = py_nif:cancel_ref(Ref)
        end,
        ["for nothing", submit, deadline_set] => fun() ->
            Ref = py_nif:submit(py_call:slot(), default, none, ?OP_CALL, ?FLAG_TIMED, Payload),
            ok = py_nif:deadline_set(Ref, 60_000, none, none)
        end,
        ["for a stream", submit, stream_ack] => fun() ->
            {ok, Ref} = py:stream_start(builtins, range, [3], #{}, #{window => 1}),
            ok = py:stream_ack(Ref, 1),
            ok = py:stream_cancel(Ref)
        end
    }.

of_pools() ->
    #{
        [
            pool_new,
            worker_start,
            pool_info,
            pool_busy,
            pool_in_use,
            worker_is_down,
            pool_memory,
            pool_interp,
            pool_add_loop,
            pool_loop,
            pool_interrupt,
            pool_wipe,
            worker_retire,
            pool_close
        ] => fun() ->
            Pool = py_nif:pool_new(#{size => 1, max_threads => 1, max_queue => 10, own_namespace => true}),
            Worker = py_nif:worker_start(Pool),
            {0, _, _, _} = py_nif:pool_info(Pool),
            _ = py_nif:pool_busy(Pool),
            _ = py_nif:pool_in_use(Pool),
            false = py_nif:worker_is_down(Worker),
            none = py_nif:pool_memory(Pool),
            _ = py_nif:pool_interp(Pool),
            ok = py_nif:pool_add_loop(Pool, 10),
            true = is_reference(py_nif:pool_loop(Pool)),
            not_running = py_nif:pool_interrupt(Pool),
            ok = py_nif:pool_wipe(Pool),
            ok = py_nif:worker_retire(Worker),
            ok = py_nif:pool_close(Pool)
        end
    }.

%% In a process each: whoever does so takes callbacks until it leaves.
of_callbacks() ->
    #{
        [executor_ready, executor_leaves, executor_evict] => fun() ->
            py_test:in_process(fun() ->
                ok = py_nif:executor_ready(py_call:slot()),
                _ = py_nif:executor_evict(),
                %% Whoever is told to stay and does not is dead.
                true = py_nif:executor_leaves(py_call:slot()) orelse ok =:= py_nif:executor_died(self())
            end)
        end,
        [executor_takes, executor_died, callback_reply, callback_refuse] => fun() ->
            py_test:in_process(fun() ->
                Slot = py_call:slot(),
                false = py_nif:executor_takes(Slot, ?NOBODY),
                _ = py_nif:callback_reply(Slot, ?NOBODY, true, term_to_binary(none), none, true),
                ok = py_nif:callback_refuse(?NOBODY, term_to_binary({error, none, []})),
                ok = py_nif:executor_died(self())
            end)
        end
    }.

of_loops() ->
    {ok, Loop} = py_event_loop:get_loop(),
    Payload = payload(py_asyncs, one, []),
    #{
        [loop_new, loop_close] => fun() -> ok = py_nif:loop_close(py_nif:loop_new(10)) end,
        [loop_new_beam, loop_step] => fun() ->
            py_test:in_process(fun() ->
                Beam = py_nif:loop_new_beam(10),
                ok = py_nif:loop_step(Beam),
                ok = py_nif:loop_close(Beam)
            end)
        end,
        [loop_info] => fun() -> {_, _, _} = py_nif:loop_info(Loop) end,
        ["to a loop, for its answer", submit] => fun() ->
            Slot = py_call:slot(),
            Job = py_nif:submit(Slot, Loop, make_ref(), ?OP_ASYNC, 0, Payload),
            ok = py_nif:cancel(Slot, Job)
        end,
        ["to a loop, for a message", submit] => fun() ->
            Ref = py_nif:submit(py_call:slot(), Loop, {py_response, nobody()}, ?OP_ASYNC, 0, Payload),
            ok = py_nif:cancel_ref(Ref)
        end,
        ["to a loop, for nothing", submit] => fun() ->
            ok = py_nif:submit(py_call:slot(), Loop, none, ?OP_ASYNC, 0, Payload)
        end,
        ["to a loop, for a message with a name", submit] => fun() ->
            ok = py_nif:submit(py_call:slot(), Loop, {named, nobody(), 1}, ?OP_ASYNC, 0, Payload)
        end,
        [gather_new, gather_submit, gather_close, gather_cancel] => fun() ->
            py_test:in_process(fun() ->
                Gather = gather(Loop, Payload),
                ok = py_nif:gather_close(Gather),
                _ = py_nif:gather_cancel(Gather)
            end)
        end
    }.

gather(Loop, Payload) ->
    Gather = py_nif:gather_new(py_call:slot(), make_ref(), 2, false),
    ok = py_nif:gather_submit(Gather, Loop, 0, 0, [Payload, Payload]),
    Gather.

of_graphs() ->
    {ok, Graph} = graph(),
    #{
        [dag_new, dag_limit] => fun graph/0,
        [dag_run, dag_reply, dag_more, dag_cancel] => fun() ->
            py_test:in_process(fun() ->
                {ok, Run} = py_dag:start(Graph, #{x => 4}),
                Native = element(3, Run),
                ok = py_nif:dag_reply(Native, ?NOBODY, true, term_to_binary(none)),
                ok = py_nif:dag_more(Native, ?NOBODY, maps:get(graph, Graph), [], 0, none),
                ok = py_dag:cancel(Run)
            end)
        end,
        [dag_default] => fun() -> ok = py_nif:dag_default(<<>>) end
    }.

graph() ->
    py_dag:new(
        #{
            nodes => #{
                root => #{run => {py, math, sqrt}, inputs => [x], limit => py_dag:limit(1)},
                same => #{run => fun([X]) -> X end, inputs => [root]}
            }
        },
        [x]
    ).

%% Their messages go with the process.
of_raw_loops() ->
    #{
        [
            event_loop_new,
            event_loop_kind,
            event_loop_set_router,
            create_test_udp_socket,
            set_udp_broadcast,
            sendto_test_udp,
            recvfrom_test_udp,
            add_reader,
            add_writer,
            call_later,
            call_at,
            cancel_timer,
            event_loop_wakeup,
            event_loop_step,
            get_pending,
            remove_reader,
            remove_writer,
            event_loop_destroy,
            close_test_fd
        ] => fun() -> py_test:in_process(fun raw_loop/0) end
    }.

raw_loop() ->
    {ok, Loop} = py_nif:event_loop_new(),
    raw = py_nif:event_loop_kind(Loop),
    ok = py_nif:event_loop_set_router(Loop, self()),
    {ok, {Fd, Port}} = py_nif:create_test_udp_socket(0),
    ok = py_nif:set_udp_broadcast(Fd, false),
    ok = py_nif:sendto_test_udp(Fd, <<"x">>, <<"127.0.0.1">>, Port),
    _ = py_nif:recvfrom_test_udp(Fd, 10),
    {ok, Reader} = py_nif:add_reader(Loop, Fd, 1),
    {ok, Writer} = py_nif:add_writer(Loop, Fd, 2),
    {ok, Timer} = py_nif:call_later(Loop, 0, 3),
    {ok, _} = py_nif:call_at(Loop, 0, 4),
    ok = py_nif:cancel_timer(Loop, Timer),
    ok = py_nif:event_loop_wakeup(Loop),
    {ok, _} = py_nif:event_loop_step(Loop),
    [_ | _] = py_nif:get_pending(Loop),
    ok = py_nif:remove_reader(Loop, Reader),
    ok = py_nif:remove_writer(Loop, Writer),
    ok = py_nif:event_loop_destroy(Loop),
    ok = py_nif:close_test_fd(Fd).

payload(M, F, A) -> term_to_binary({M, F, A, #{}}).

%% Messages to it go nowhere.
nobody() -> spawn(fun() -> ok end).

%% ---- what ends

the_end_of_owners_keeps_no_scheduler(_Config) ->
    {ok, Loop} = py_event_loop:get_loop(),
    {ok, Graph} = graph(),
    Payload = payload(py_asyncs, one, []),
    Owned = [
        fun() -> py_nif:loop_new(10) end,
        fun() -> py_nif:loop_new_beam(10) end,
        fun() -> gather(Loop, Payload) end,
        fun() -> py_dag:start(Graph, #{x => 4}) end,
        fun() ->
            Pool = py_nif:pool_new(#{size => 1, max_threads => 1, max_queue => 10, own_namespace => true}),
            ok = py_nif:pool_add_loop(Pool, 10),
            {Pool, py_nif:worker_start(Pool)}
        end,
        fun() -> py_nif:submit(py_call:slot(), Loop, {py_response, self()}, ?OP_ASYNC, 0, Payload) end
    ],
    Longest = py_test:holding_gil(fun() ->
        Pulses = [pulse(N) || N <- lists:seq(1, erlang:system_info(schedulers_online))],
        [ok = own_and_die(Make, How) || Make <- Owned, How <- [killed, returns], _ <- [1, 2, 3]],
        lists:max([longest(Pulse) || Pulse <- Pulses])
    end),
    %% Who waited for the GIL would have kept a scheduler for what is left of two seconds.
    ?assert(Longest < 500, Longest),
    ok = py_test:eventually(fun() -> {ok, 1} =:= py:await(py:async_call(py_asyncs, one, [])) end).

own_and_die(Make, How) ->
    Test = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        Owned = Make(),
        Test ! {self(), made},
        receive
            return -> Owned
        end
    end),
    receive
        {Pid, made} -> ok
    end,
    _ =
        case How of
            killed -> exit(Pid, kill);
            returns -> Pid ! return
        end,
    receive
        {'DOWN', Monitor, process, Pid, _} -> ok
    end.

%% A process that stays on this scheduler and notes for how long at most it did not run.
pulse(Scheduler) ->
    spawn_opt(fun() -> pulse(now_ms(), 0) end, [link, {scheduler, Scheduler}]).

pulse(Last, Longest) ->
    receive
        {stop, From} -> From ! {self(), max(Longest, now_ms() - Last)}
    after 1 ->
        Now = now_ms(),
        pulse(Now, max(Longest, Now - Last))
    end.

longest(Pulse) ->
    Pulse ! {stop, self()},
    receive
        {Pulse, Longest} -> Longest
    end.

now_ms() -> erlang:monotonic_time(millisecond).
