%% Contexts, named pools, bound processes: whose thread, whose names, and what their end means.
-module(py_context_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_context_has_one_thread_and_its_own_names/1,
    a_context_is_used_by_any_process/1,
    every_function_takes_a_context_first/1,
    a_named_context_is_called_by_its_name/1,
    a_context_of_a_taken_name_is_refused/1,
    preloaded_modules_are_there_and_a_wrong_one_is_an_error/1,
    a_mode_that_does_not_exist_is_refused/1,
    context_0_gives_the_same_one_again/1,
    a_stopped_context_is_an_error/1,
    calls_queued_in_a_context_that_is_killed_hear_of_it/1,
    a_call_running_in_a_context_that_is_killed_hears_of_it/1,
    a_call_that_waits_below_another_one_hears_of_the_end_of_its_context/1,
    a_call_that_waits_below_another_one_is_interrupted/1,
    an_interrupted_call_is_an_error_and_the_context_lives/1,
    code_that_swallows_the_interrupt_is_told_again/1,
    interrupting_an_idle_context_says_so/1,
    a_named_pool_runs_as_many_calls_as_its_size/1,
    a_pool_of_a_taken_name_is_refused/1,
    an_unregistered_pool_is_gone_and_its_name_free/1,
    calls_queued_in_a_pool_that_is_unregistered_hear_of_it/1,
    binding_keeps_thread_and_names/1,
    binding_twice_is_binding_once/1,
    binding_leaves_no_monitor_behind/1,
    only_a_context_can_be_stopped_as_one/1,
    a_bound_process_that_dies_gives_its_thread_back/1,
    a_bound_process_whose_thread_hung_gets_another/1,
    a_handle_has_names_of_its_own_until_it_is_unbound/1,
    a_handle_goes_with_the_process_that_bound_it/1,
    with_context_unbinds_also_when_it_crashes/1,
    past_max_bound_there_are_no_workers/1,
    what_a_bound_process_left_is_wiped/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

new() -> new(#{}).

new(Opts) ->
    {ok, Ctx} = py_context:new(Opts),
    Ctx.

thread(Ctx) ->
    {ok, Thread} = py:call(Ctx, py_contexts, thread, []),
    Thread.

%% ---- contexts

a_context_has_one_thread_and_its_own_names(_Config) ->
    {A, B} = {new(), new()},
    ok = py:exec(A, <<"x = 'a'">>),
    ok = py:exec(B, <<"x = 'b'">>),
    ?assertEqual({ok, <<"a">>}, py:eval(A, <<"x">>)),
    ?assertEqual({ok, <<"b">>}, py:eval(B, <<"x">>)),
    ?assertReason({'NameError', _}, py:eval(<<"x">>)),
    ok = py:exec(A, <<"def double(n):\n    return 2 * n">>),
    ?assertEqual({ok, 8}, py:call(A, '__main__', double, [4])),
    ?assertEqual({ok, 8}, py:call('__main__', double, [4], #{}, #{context => A})),
    ?assertMatch([_], lists:usort([thread(A) || _ <- lists:seq(1, 20)])),
    ?assertNotEqual(thread(A), thread(B)),
    [ok = py_context:stop(Ctx) || Ctx <- [A, B]].

every_function_takes_a_context_first(_Config) ->
    Ctx = new(#{name => first_of_all}),
    ok = py:exec(Ctx, <<
        "import erlang\n"
        "def text(pid, *, end='.'):\n    return 'here' + end\n"
        "def tell(pid, *, end='.'):\n    erlang.send(pid, text(pid, end=end))\n"
        "def items(pid, *, end='.'):\n    yield text(pid, end=end)\n"
        "kept = ['here.']\n"
    >>),
    Tell = fun(ok) -> py_test:message() end,
    First = fun({ok, Stream}) ->
        receive
            {py_stream, Stream, {data, Value}} -> {ok, [Value]}
        end
    end,
    Forms = [
        {fun({ok, Text}) -> {ok, [Text]} end, call, text},
        {fun(Cast) -> {ok, [Tell(Cast)]} end, cast, tell},
        {fun(Ref) -> {ok, [value(py:await(Ref))]} end, spawn_call, text},
        {fun(Ref) -> {ok, [value(py:await(Ref))]} end, async_call, text},
        {fun(Answer) -> Answer end, stream, items},
        {fun(Answer) -> Answer end, async_stream, items},
        {First, stream_start, items}
    ],
    [
        begin
            Given = [Here, '__main__', Name, [self()]],
            ?assertEqual({ok, [<<"here.">>]}, Result(apply(py, Function, Given))),
            Keys = Given ++ [#{'end' => <<"!">>}],
            ?assertEqual({ok, [<<"here!">>]}, Result(apply(py, Function, Keys))),
            [
                ?assertEqual({ok, [<<"here!">>]}, Result(apply(py, Function, Keys ++ [Opts])))
             || Opts <- [10_000, #{timeout => 10_000}]
            ]
        end
     || {Result, Function, Name} <- Forms, Here <- [Ctx, first_of_all]
    ],
    [
        ?assertEqual({ok, [<<"here.">>]}, apply(py, stream_eval, [Here, <<"kept">> | Rest]))
     || Here <- [Ctx, first_of_all], Rest <- [[], [#{}], [#{}, 10_000], [#{}, #{timeout => 10_000}]]
    ],
    ?assertEqual({ok, [7]}, py:stream_eval(Ctx, <<"[x]">>, #{x => 7})),
    ?assertEqual({ok, [7]}, py:stream_eval(<<"[x]">>, #{x => 7}, 10_000)),
    ok = py_context:stop(Ctx).

value({ok, Value}) -> Value;
value(Other) -> error(Other).

a_context_is_used_by_any_process(_Config) ->
    Ctx = new(),
    ok = py:exec(Ctx, <<"shared = []">>),
    Pids = [spawn_monitor(fun() -> ok = py:exec(Ctx, <<"shared.append(1)">>) end) || _ <- lists:seq(1, 20)],
    [
        receive
            {'DOWN', Monitor, process, Pid, normal} -> ok
        end
     || {Pid, Monitor} <- Pids
    ],
    ?assertEqual({ok, 20}, py:eval(Ctx, <<"len(shared)">>)),
    ok = py_context:stop(Ctx).

a_context_of_a_taken_name_is_refused(_Config) ->
    ok = py:register_pool(ctx_pool, #{}),
    Ctx = new(#{name => ctx_named}),
    Threads = py_test:pool_threads(main),
    [
        begin
            ?assertReason({bad_argument, <<"a context, pool or process ", _/binary>>}, py_context:new(#{name => Name})),
            Sub = py_context:new(#{name => Name, mode => subinterp}),
            ?assert(lists:member(element(2, Sub), [not_supported, element(2, py_context:new(#{name => Name}))]))
        end
     || Name <- [main, ctx_pool, ctx_named, py_registry, init]
    ],
    ?assertReason({bad_argument, <<"the option name must be an atom, got undefined">>}, py_context:new(#{name => undefined})),
    %% All is where it was.
    ?assertEqual(Threads, py_test:pool_threads(main)),
    ok = py:exec(Ctx, <<"x = 1">>),
    ?assertEqual({ok, 1}, py:eval(ctx_named, <<"x">>)),
    ?assertReason({'NameError', _}, py:eval(ctx_pool, <<"x">>)),
    %% A name is free again after its context.
    ok = py_test:down(Ctx),
    ok = py_context:stop(new(#{name => ctx_named})),
    ok = py_context:stop(new(#{name => ctx_named})),
    ok = py:register_pool(ctx_named, #{}),
    ok = py:unregister_pool(ctx_named),
    ok = py:unregister_pool(ctx_pool).

a_named_context_is_called_by_its_name(_Config) ->
    Ctx = new(#{name => ctx_by_name}),
    ?assertEqual(Ctx, whereis(ctx_by_name)),
    ok = py:exec(ctx_by_name, <<"x = 1">>),
    ?assertEqual({ok, 1}, py:eval(Ctx, <<"x">>)),
    ?assertReason({bad_argument, _}, py_context:new(#{name => ctx_by_name})),
    ok = py_context:stop(Ctx),
    ?assertReason({bad_argument, {no_such_pool, ctx_by_name}}, py:eval(ctx_by_name, <<"x">>)).

preloaded_modules_are_there_and_a_wrong_one_is_an_error(_Config) ->
    Ctx = new(#{preload => [json, <<"string">>, "bisect"]}),
    ?assertEqual({ok, true}, py:eval(Ctx, <<"'bisect' in __import__('sys').modules">>)),
    ok = py_context:stop(Ctx),
    #{pools := Before} = py:stats(),
    ?assertReason({'ModuleNotFoundError', _}, py_context:new(#{preload => [there_is_none]})),
    ok = py_test:eventually(fun() ->
        #{pools := Pools} = py:stats(),
        maps:without(maps:keys(Before), Pools) =:= #{}
    end).

a_mode_that_does_not_exist_is_refused(_Config) ->
    ?assertReason({bad_argument, <<"the option mode must be worker, subinterp or owngil", _/binary>>}, py_context:new(#{mode => process})),
    ?assertReason({bad_argument, opts}, py_context:new([])),
    ?assertReason({bad_argument, _}, py_context:new(#{nmae => x})),
    ?assertReason({bad_argument, _}, py_context:new(#{name => "text"})).

context_0_gives_the_same_one_again(_Config) ->
    One = py:context(1),
    ?assertEqual(One, py:context(1)),
    ?assertNotEqual(One, py:context(2)),
    ?assert(is_pid(py:context())),
    ok = py_test:down(One),
    ok = py_test:eventually(fun() -> py:context(1) =/= One end),
    ?assertEqual({ok, 2}, py:eval(py:context(1), <<"1 + 1">>)),
    [ok = py_context:stop(py:context(N)) || N <- [1, 2]].

a_stopped_context_is_an_error(_Config) ->
    Ctx = new(),
    ok = py_context:stop(Ctx),
    ?assertReason({context_died, _}, py:call(Ctx, math, sqrt, [4])),
    ?assertReason({context_died, _}, py:eval(Ctx, <<"1">>)),
    ?assertReason({context_died, _}, py:exec(Ctx, <<"1">>)),
    ?assertReason({context_died, _}, py:await(py:spawn_call(Ctx, math, sqrt, [4]))),
    ?assertEqual(not_running, py:interrupt(Ctx)),
    ?assertEqual(ok, py_context:stop(Ctx)).

calls_queued_in_a_context_that_is_killed_hear_of_it(_Config) ->
    Ctx = new(),
    {_Gate, [Running]} = py_test:occupy(Ctx, 1),
    Queued = [py:spawn_call(Ctx, py_tools, note, [N]) || N <- lists:seq(1, 10)],
    {Pid, Monitor} = spawn_monitor(fun() -> exit(py:call(Ctx, py_tools, note, [x], #{}, infinity)) end),
    ok = py_test:eventually(fun() ->
        #{pools := #{Ctx := #{queued := Count}}} = py:stats(),
        Count =:= 11
    end),
    ok = py_test:down(Ctx),
    [?assertReason({context_died, _}, py:await(Ref, 5000)) || Ref <- [Running | Queued]],
    receive
        {'DOWN', Monitor, process, Pid, Error} -> ?assertReason({context_died, _}, Error)
    end,
    ?assertEqual({ok, []}, py:call(py_tools, notes, [])).

a_call_running_in_a_context_that_is_killed_hears_of_it(_Config) ->
    [
        begin
            Ctx = new(),
            Ref = py:spawn_call(Ctx, py_tools, spin, [self()]),
            ok = py_test:message(<<"spinning">>),
            ok = Stop(Ctx),
            ?assertReason({context_died, _}, py:await(Ref, 5000)),
            ok = py_test:message(<<"stopped">>)
        end
     || Stop <- [fun py_test:down/1, fun py_context:stop/1]
    ].

a_call_that_waits_below_another_one_hears_of_the_end_of_its_context(_Config) ->
    ?assertMatch({error, {context_died, _}}, below(fun py_context:stop/1)).

a_call_that_waits_below_another_one_is_interrupted(_Config) ->
    ?assertEqual({error, interrupted}, below(fun py:interrupt/1)).

%% The one on top of it hears of it, too; what the function does then is its own business.
below(End) ->
    Self = self(),
    Waits = fun(_) ->
        Self ! waits,
        receive
            never -> ok
        end
    end,
    ok = py:register_function(ctx_on_top, Waits),
    ok = py:register_function(ctx_below, fun(_) ->
        _ = py:call(erlang, call, [ctx_on_top]),
        Waits([])
    end),
    Ctx = new(),
    Opts = #{context => Ctx, timeout => infinity},
    {_, Monitor} = spawn_monitor(fun() -> exit(py:call(erlang, call, [ctx_below], #{}, Opts)) end),
    Hears = fun() ->
        receive
            waits -> ok;
            {'DOWN', Monitor, process, _, Answer} -> Answer
        after 60_000 -> silent
        end
    end,
    ok = Hears(),
    ok = End(Ctx),
    ok = Hears(),
    Hears().

an_interrupted_call_is_an_error_and_the_context_lives(_Config) ->
    Ctx = new(),
    ok = py:exec(Ctx, <<"kept = 1">>),
    Ref = py:spawn_call(Ctx, py_tools, spin, [self()]),
    ok = py_test:message(<<"spinning">>),
    ?assertEqual(ok, py:interrupt(Ctx)),
    ?assertReason(interrupted, py:await(Ref)),
    ok = py_test:message(<<"stopped">>),
    ?assertEqual({ok, 1}, py:eval(Ctx, <<"kept">>)),
    ok = py_context:stop(Ctx).

code_that_swallows_the_interrupt_is_told_again(_Config) ->
    Ctx = new(),
    Ref = py:spawn_call(Ctx, py_contexts, swallow, [self()]),
    ok = py_test:message(<<"running">>),
    ?assertEqual(ok, py:interrupt(Ctx)),
    ok = py_test:message(<<"swallowed">>),
    ?assertReason(interrupted, py:await(Ref, 5000)),
    ok = py_context:stop(Ctx).

interrupting_an_idle_context_says_so(_Config) ->
    Ctx = new(),
    ?assertEqual(not_running, py:interrupt(Ctx)),
    ?assertEqual({ok, 2}, py:eval(Ctx, <<"1 + 1">>)),
    ok = py_context:stop(Ctx).

%% ---- named pools

a_named_pool_runs_as_many_calls_as_its_size(_Config) ->
    ok = py:register_pool(ctx_three, #{size => 3}),
    Busy = py_test:occupy(ctx_three, 3),
    ?assertReason(timeout, py:call(ctx_three, math, sqrt, [4], #{}, 100)),
    ?assertEqual({ok, 2.0}, py:call(math, sqrt, [4])),
    ok = py_test:release(Busy),
    ?assertEqual({ok, 2.0}, py:call(ctx_three, math, sqrt, [4])),
    ok = py:unregister_pool(ctx_three).

a_pool_of_a_taken_name_is_refused(_Config) ->
    ok = py:register_pool(ctx_taken, #{}),
    ?assertReason({bad_argument, _}, py:register_pool(ctx_taken, #{})),
    ?assertReason({bad_argument, _}, py:register_pool(main, #{})),
    ?assertReason({bad_argument, _}, py:unregister_pool(main)),
    ?assertReason({bad_argument, <<"the option size must be", _/binary>>}, py:register_pool(ctx_other, #{size => 0})),
    ?assertReason({bad_argument, <<"the option mode must be", _/binary>>}, py:register_pool(ctx_other, #{mode => other})),
    ?assertReason({bad_argument, name}, py:register_pool("ctx_other", #{})),
    ?assertReason({bad_argument, _}, py:register_pool(ctx_other, #{sise => 1})),
    ok = py:unregister_pool(ctx_taken).

an_unregistered_pool_is_gone_and_its_name_free(_Config) ->
    [
        begin
            ok = py:register_pool(ctx_again, #{size => 2}),
            ?assertEqual({ok, 2.0}, py:call(ctx_again, math, sqrt, [4])),
            ok = py:unregister_pool(ctx_again),
            ?assertReason({bad_argument, _}, py:call(ctx_again, math, sqrt, [4]))
        end
     || _ <- lists:seq(1, 10)
    ],
    ?assertReason({bad_argument, _}, py:unregister_pool(ctx_again)).

calls_queued_in_a_pool_that_is_unregistered_hear_of_it(_Config) ->
    ok = py:register_pool(ctx_ending, #{size => 1}),
    {_Gate, [Running]} = py_test:occupy(ctx_ending, 1),
    Queued = [py:spawn_call(ctx_ending, py_tools, note, [N]) || N <- lists:seq(1, 10)],
    ok = py:unregister_pool(ctx_ending),
    [?assertReason({context_died, _}, py:await(Ref, 5000)) || Ref <- [Running | Queued]].

%% ---- binding

binding_keeps_thread_and_names(_Config) ->
    ok = py:exec(<<"before = 1">>),
    ?assertNot(py:is_bound()),
    ok = py:bind(),
    ?assert(py:is_bound()),
    %% The names of the process stay its own.
    ?assertEqual({ok, 1}, py:eval(<<"before">>)),
    {ok, Thread} = py:call(py_contexts, thread, []),
    ?assertEqual({ok, Thread}, py:eval(<<"__import__('py_contexts').thread()">>)),
    ok = py:unbind(),
    ?assertNot(py:is_bound()),
    ?assertEqual({ok, 1}, py:eval(<<"before">>)).

binding_twice_is_binding_once(_Config) ->
    #{bound := Before} = py:stats(),
    ok = py:bind(),
    ok = py:bind(),
    ?assertMatch(#{bound := Bound} when Bound =:= Before + 1, py:stats()),
    ok = py:unbind(),
    ok = py:unbind(),
    ?assertMatch(#{bound := Before}, py:stats()).

binding_leaves_no_monitor_behind(_Config) ->
    Monitors = fun() -> length(element(2, process_info(whereis(py_registry), monitors))) end,
    ok = py:bind(),
    ok = py:unbind(),
    Before = Monitors(),
    [begin ok = py:bind(), ok = py:unbind() end || _ <- lists:seq(1, 50)],
    ?assertEqual(Before, Monitors()),
    Contexts = [element(2, py_context:new(#{})) || _ <- lists:seq(1, 5)],
    ?assertEqual(Before + 5, Monitors()),
    [ok = py_context:stop(Context) || Context <- Contexts],
    ok = py_test:eventually(fun() -> Monitors() =:= Before end).

a_bound_process_that_dies_gives_its_thread_back(_Config) ->
    #{bound := Before} = py:stats(),
    Test = self(),
    Pids = [spawn(fun() -> ok = py:bind(), Test ! bound, py:call(py_tools, nap, [60]) end) || _ <- lists:seq(1, 20)],
    [ok = py_test:message(bound) || _ <- Pids],
    ?assertMatch(#{bound := Bound} when Bound =:= Before + 20, py:stats()),
    [ok = py_test:down(Pid) || Pid <- Pids],
    ok = py_test:eventually(fun() -> maps:get(bound, py:stats()) =:= Before end).

only_a_context_can_be_stopped_as_one(_Config) ->
    {ok, Context} = py_context:new(#{}),
    {ok, Handle} = py:bind(new),
    [
        ?assertReason({bad_argument, context}, py_context:stop(Wrong))
     || Wrong <- [nosuch, 17, <<"context">>, make_ref(), Handle, self(), whereis(py_bind), whereis(py_pool_sup)]
    ],
    %% What others have is still theirs.
    ?assertEqual({ok, 4.0}, py:call(Handle, math, sqrt, [16])),
    ?assertEqual({ok, 4.0}, py:call(Context, math, sqrt, [16])),
    ok = py:unbind(Handle),
    [?assertEqual(ok, py_context:stop(Context)) || _ <- [1, 2]].

%% The C code returns, and its thread ends, before `py_bind' hears that it hung.
a_bound_process_whose_thread_hung_gets_another(_Config) ->
    ok = py_test:in_process(fun() ->
        ok = py:bind(),
        ok = py:exec(<<"kept = 17; import ctypes, threading">>),
        {ok, Ident} = py:eval(<<"threading.get_ident()">>),
        true = erlang:suspend_process(whereis(py_bind)),
        ?assertEqual({error, timeout}, py:eval(<<"ctypes.CDLL(None).usleep(8_000_000)">>, #{}, 50)),
        Frames = <<"ident in __import__('sys')._current_frames()">>,
        ok = py_test:eventually(fun() ->
            py_test:in_process(fun() -> py:eval(Frames, #{ident => Ident}) end) =:= {ok, false}
        end),
        true = erlang:resume_process(whereis(py_bind)),
        %% The names are those of the process, not of the thread.
        ?assertEqual({ok, 17}, py:eval(<<"kept">>, #{}, 10_000)),
        {ok, Other} = py:eval(<<"threading.get_ident()">>),
        %% One, not two.
        [?assertEqual({ok, Other}, py:eval(<<"threading.get_ident()">>)) || _ <- lists:seq(1, 20)],
        ok
    end).

a_handle_has_names_of_its_own_until_it_is_unbound(_Config) ->
    {ok, Handle} = py:bind(new),
    ?assertNot(py:is_bound()),
    ok = py:ctx_exec(Handle, <<"x = 5">>),
    ?assertEqual({ok, 5}, py:ctx_eval(Handle, <<"x">>)),
    ?assertEqual({ok, 6}, py:ctx_eval(Handle, <<"x + y">>, #{y => 1})),
    ?assertReason({'NameError', _}, py:eval(<<"x">>)),
    ?assertEqual({ok, 2.0}, py:ctx_call(Handle, math, sqrt, [4])),
    ok = py:unbind(Handle),
    [
        ?assertError(context_not_bound, F())
     || F <- [
            fun() -> py:ctx_call(Handle, math, sqrt, [4]) end,
            fun() -> py:ctx_eval(Handle, <<"x">>) end,
            fun() -> py:ctx_exec(Handle, <<"x">>) end
        ]
    ],
    ?assertEqual(ok, py:unbind(Handle)).

a_handle_goes_with_the_process_that_bound_it(_Config) ->
    {ok, Handle} = py_test:in_process(fun() -> py:bind(new) end),
    ok = py_test:eventually(fun() ->
        try py:ctx_eval(Handle, <<"1">>) of
            _ -> false
        catch
            error:context_not_bound -> true
        end
    end).

with_context_unbinds_also_when_it_crashes(_Config) ->
    #{bound := Before} = py:stats(),
    ?assertEqual(17, py:with_context(fun() -> true = py:is_bound(), 17 end)),
    ?assertEqual({ok, 3}, py:with_context(fun(Ctx) -> py:ctx_eval(Ctx, <<"1 + 2">>) end)),
    ?assertError(oops, py:with_context(fun() -> error(oops) end)),
    ?assertExit(oops, py:with_context(fun(_) -> exit(oops) end)),
    ?assertThrow(oops, py:with_context(fun() -> throw(oops) end)),
    ?assertNot(py:is_bound()),
    %% Within a bound process it leaves the binding as it was.
    ok = py:bind(),
    ?assertError(oops, py:with_context(fun() -> error(oops) end)),
    ?assert(py:is_bound()),
    ok = py:unbind(),
    ?assertMatch(#{bound := Before}, py:stats()).

past_max_bound_there_are_no_workers(_Config) ->
    #{max_bound := Max} = persistent_term:get(py_config),
    #{bound := Before} = py:stats(),
    Handles = [Handle || _ <- lists:seq(Before + 1, Max), {ok, Handle} <- [py:bind(new)]],
    ?assertEqual(Max - Before, length(Handles)),
    ?assertReason(no_workers_available, py:bind()),
    ?assertReason(no_workers_available, py:bind(new)),
    ?assertReason(no_workers_available, py:with_context(fun() -> unreached end)),
    ?assertReason(no_workers_available, py:with_context(fun(_) -> unreached end)),
    ?assertNot(py:is_bound()),
    [ok = py:unbind(Handle) || Handle <- Handles],
    ok = py:bind(),
    ok = py:unbind().

what_a_bound_process_left_is_wiped(_Config) ->
    [
        begin
            {ok, Handle} = py:bind(new),
            ?assertReason({'NameError', _}, py:ctx_eval(Handle, <<"left">>)),
            ok = py:ctx_exec(Handle, <<"left = 1">>),
            ok = py:unbind(Handle)
        end
     || _ <- lists:seq(1, 20)
    ].
