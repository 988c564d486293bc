%% A Python thread that keeps the GIL for seconds costs the node's schedulers nothing. See also
%% py_scheduler_SUITE.
-module(py_gil_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    sleepers_wake_on_time_while_the_gil_is_held/1,
    dropping_objects_does_not_wait_for_the_gil/1,
    a_timeout_is_kept_while_the_gil_is_held/1,
    killed_callers_and_contexts_do_not_wait_for_the_gil/1,
    calls_go_on_beside_a_thread_that_computes/1,
    a_sub_interpreter_is_stopped_while_the_main_gil_is_held/1,
    the_main_interpreter_is_stopped_while_another_gil_is_held/1
]).

%% Milliseconds.
-define(HOLD, 2000).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

sleepers_wake_on_time_while_the_gil_is_held(_Config) ->
    Naps = py_test:holding_gil(fun() ->
        %% One on each scheduler, and callers that wait for Python beside them.
        _ = [spawn(fun() -> py:call(math, sqrt, [4]) end) || _ <- lists:seq(1, 100)],
        [element(1, py_test:milliseconds(fun() -> timer:sleep(50) end)) || _ <- lists:seq(1, 10)]
    end),
    %% A nap that waited for the GIL would take until the end of this test. How late it may be is for a benchmark.
    ?assert(lists:max(Naps) < 10_000, Naps),
    ?assert(lists:min(Naps) < 1_000, Naps).

dropping_objects_does_not_wait_for_the_gil(_Config) ->
    #{exported_objects := Before} = py:stats(),
    Owners = [spawn_monitor(fun owner/0) || _ <- lists:seq(1, 20)],
    ok = py_test:eventually(fun() ->
        #{exported_objects := Now} = py:stats(),
        Now =:= Before + 20
    end),
    Times = py_test:holding_gil(fun() -> [drop_objects(Owner) || Owner <- Owners] end),
    ?assert(lists:max(Times) < 10_000, Times),
    ?assert(lists:min(Times) < 1, Times),
    ok = py_test:eventually(fun() ->
        #{exported_objects := Now} = py:stats(),
        Now =:= Before
    end).

%% Has a namespace, an object, a view and a large result; lets go of them when told.
owner() ->
    ok = py:exec(<<"names = [1, 2, 3]">>),
    Objects = {
        py:call(py_gil, thing, [], #{}, #{return => ref}), py:eval(<<"b'x' * 100_000">>)
    },
    owner(Objects).

owner(Objects) ->
    receive
        {drop, From} ->
            true = is_tuple(Objects),
            From ! {self(), element(1, py_test:milliseconds(fun garbage_collect_all/0))}
    end.

garbage_collect_all() ->
    true = garbage_collect().

drop_objects({Pid, Monitor}) ->
    Pid ! {drop, self()},
    receive
        {Pid, Millis} ->
            receive
                {'DOWN', Monitor, process, Pid, normal} -> Millis
            end
    end.

a_timeout_is_kept_while_the_gil_is_held(Config) ->
    case py:execution_mode() of
        free_threaded -> {skip, "there is no GIL to hold"};
        _ -> timeout_while_held(Config)
    end.

timeout_while_held(_Config) ->
    {Millis, Answer} = py_test:holding_gil(fun() ->
        py_test:milliseconds(fun() -> py:call(math, sqrt, [4], #{}, 200) end)
    end),
    ?assertReason(timeout, Answer),
    ?assert(Millis < 10_000, Millis),
    ok = py_test:nothing_waits().

killed_callers_and_contexts_do_not_wait_for_the_gil(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    Millis = py_test:holding_gil(fun() ->
        Callers = [spawn(fun() -> py:call(math, sqrt, [4]) end) || _ <- lists:seq(1, 100)],
        Bound = spawn(fun() -> ok = py:bind(), py:call(math, sqrt, [4]) end),
        {Millis, _} = py_test:milliseconds(fun() ->
            [ok = py_test:down(Pid) || Pid <- [Bound | Callers]],
            ok = py_context:stop(Ctx)
        end),
        Millis
    end),
    ?assert(Millis < 10_000, Millis).

calls_go_on_beside_a_thread_that_computes(_Config) ->
    Ref = py:spawn_call(py_tools, spin, [self()]),
    ok = py_test:message(<<"spinning">>),
    Callers = [
        spawn_monitor(fun() -> [{ok, 4.0} = py:call(math, sqrt, [16]) || _ <- lists:seq(1, 20)] end)
     || _ <- lists:seq(1, 100)
    ],
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why)
        end
     || {Pid, Monitor} <- Callers
    ],
    ok = py:cancel(Ref),
    ok = py_test:message(<<"stopped">>).

a_sub_interpreter_is_stopped_while_the_main_gil_is_held(_Config) ->
    stopped_beside(fun(Ctx) -> {default, Ctx} end).

the_main_interpreter_is_stopped_while_another_gil_is_held(_Config) ->
    stopped_beside(fun(Ctx) -> {Ctx, default} end).

%% What is cancelled where the GIL is held waits for it; what is cancelled elsewhere does not.
stopped_beside(Where) ->
    case py:execution_mode() of
        subinterp ->
            {ok, Ctx} = py_context:new(#{mode => subinterp}),
            Result =
                case py:call(Ctx, py_gil, thing, [], #{}, #{return => ref}) of
                    {ok, _} -> stopped_beside_it(Where(Ctx));
                    {error, {'ImportError', _}} -> {skip, "ctypes has to be in the main interpreter"}
                end,
            ok = py_context:stop(Ctx),
            Result;
        Mode ->
            {skip, {"there is no second GIL", Mode}}
    end.

stopped_beside_it({Held, Free}) ->
    Spinning = spawn_in(Free, py_tools, spin, [self()]),
    ok = py_test:message(<<"spinning">>),
    Holding = spawn_in(Held, py_gil, hold, [self(), ?HOLD]),
    ok = py_test:message(<<"holding">>),
    ok = py:cancel(Holding),
    %% Its stop waits for the GIL by then.
    timer:sleep(20),
    ok = py:cancel(Spinning),
    receive
        <<"stopped">> -> ok;
        <<"released">> -> ct:fail("stopped only when another interpreter's GIL was free")
    after 60_000 -> ct:fail(timeout)
    end,
    ok = py_test:message(<<"released">>).

spawn_in(default, Module, Function, Args) -> py:spawn_call(Module, Function, Args);
spawn_in(Ctx, Module, Function, Args) -> py:spawn_call(Ctx, Module, Function, Args).
