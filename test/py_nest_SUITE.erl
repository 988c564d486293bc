%% Erlang calls Python calls Erlang calls Python, on one worker, as deep as it goes.
-module(py_nest_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    nesting_100_deep_works_on_one_worker/1,
    nesting_1000_deep_works/1,
    nesting_past_the_stack_is_an_error/1,
    nesting_through_a_spawned_process_works_on_one_worker/1,
    each_nested_call_has_context_variables_of_its_own/1,
    a_function_whose_caller_is_gone_may_call_python/1,
    a_nested_call_leaves_a_higher_recursion_limit/1,
    a_pool_grows_though_its_calls_wait_on_threads_of_others/1,
    a_context_is_called_by_the_callback_of_a_call_that_nests_there/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    py_test:start(Config),
    ok = py:register_pool(one, #{size => 1}),
    ok = py:register_function(down, fun([N]) -> value(py:call(one, py_nest, down, [N])) end),
    Config.

end_per_suite(_Config) ->
    ok = py:unregister_pool(one),
    ok = py:unregister_function(down).

value({ok, Value}) -> Value;
value(Other) -> error(Other).

nesting_100_deep_works_on_one_worker(_Config) ->
    ?assertEqual({ok, 100}, py:call(one, py_nest, down, [100])).

nesting_1000_deep_works(_Config) ->
    ?assertEqual({ok, 1000}, py:call(one, py_nest, down, [1000], #{}, 60_000)),
    %% Depth costs stack, not threads.
    ?assert(py_test:pool_threads(one) < 10).

nesting_past_the_stack_is_an_error(_Config) ->
    case py:version() of
        {ok, <<"3.12.", _/binary>>} -> {skip, "on this Python deeper levels go to other threads"};
        _ -> nest_past_the_stack()
    end.

nest_past_the_stack() ->
    Test = self(),
    ok = py:register_function(down_too_deep, fun([N]) ->
        case py:call(py_nest, down_too_deep, [N], #{}, 60_000) of
            {error, {<<"erlang.ErlangError">>, <<"error: 'too_deep'">>}} ->
                error(too_deep);
            Innermost ->
                Test ! {innermost, N, Innermost},
                error(too_deep)
        end
    end),
    ?assertReason(
        {<<"erlang.ErlangError">>, _}, py:call(py_nest, down_too_deep, [100_000], #{}, 60_000)
    ),
    receive
        {innermost, Left, Innermost} ->
            ?assert(Left < 99_000),
            ?assertReason({'RecursionError', _}, Innermost)
    end,
    ok = py:unregister_function(down_too_deep),
    ?assertEqual({ok, 100}, py:call(one, py_nest, down, [100])).

nesting_through_a_spawned_process_works_on_one_worker(_Config) ->
    ok = py:register_function(down_spawned, fun([N]) ->
        value(py_test:in_process(fun() -> py:call(one, py_nest, down_spawned, [N]) end))
    end),
    ?assertEqual({ok, 100}, py:call(one, py_nest, down_spawned, [100])),
    ok = py:unregister_function(down_spawned).

each_nested_call_has_context_variables_of_its_own(_Config) ->
    ok = py:register_function(context_down, fun([N]) ->
        value(py:call(one, py_nest, context_down, [N]))
    end),
    ?assertEqual({ok, [{0, N} || N <- [3, 2, 1, 0]]}, py:call(one, py_nest, context_down, [3])),
    ok = py:unregister_function(context_down).

a_function_whose_caller_is_gone_may_call_python(_Config) ->
    Self = self(),
    Waiting = fun() -> maps:get(waiting_in_callbacks, py:stats()) end,
    Before = Waiting(),
    ok = py:register_function(goes_on, fun([]) ->
        Self ! {runs, self()},
        receive
            go -> Self ! {root, py:call(math, sqrt, [16], #{}, 5000)}
        end
    end),
    Ref = py:spawn_call(erlang, call, [goes_on]),
    Executor =
        receive
            {runs, Pid} -> Pid
        end,
    ?assertReason(timeout, py:await(Ref, 10)),
    %% The thread has stopped waiting for it.
    py_test:eventually(fun() -> Waiting() =< Before end),
    Executor ! go,
    ok = py_test:message({root, {ok, 4.0}}),
    ok = py:unregister_function(goes_on).

a_nested_call_leaves_a_higher_recursion_limit(_Config) ->
    {ok, Before} = py:call(sys, getrecursionlimit, []),
    {ok, _} = py:call(sys, setrecursionlimit, [50_000]),
    ?assertEqual({ok, 2}, py:call(one, py_nest, down, [2])),
    ?assertEqual({ok, 50_000}, py:call(sys, getrecursionlimit, [])),
    {ok, _} = py:call(sys, setrecursionlimit, [Before]).

%% A call without a pool nests on the thread of the context, and waits there: the main pool does not miss it.
a_pool_grows_though_its_calls_wait_on_threads_of_others(_Config) ->
    Test = self(),
    ok = py:register_function(nest_hold, fun([]) ->
        Test ! {holds, self()},
        receive
            go -> none
        end
    end),
    ok = py:register_function(nest_default, fun([]) -> value(py:call(erlang, call, [nest_hold], #{}, infinity)) end),
    {ok, Ctx} = py_context:new(#{}),
    Nested = py:spawn_call(Ctx, erlang, call, [nest_default]),
    First = held(),
    #{num_workers := Workers} = persistent_term:get(py_config),
    Waiting = [py:spawn_call(erlang, call, [nest_hold]) || _ <- lists:seq(1, Workers)],
    Held = [held() || _ <- Waiting],
    ?assertEqual({ok, 4.0}, py:call(math, sqrt, [16], #{}, 20_000)),
    [Pid ! go || Pid <- [First | Held]],
    [?assertEqual({ok, none}, py:await(Ref, 20_000)) || Ref <- [Nested | Waiting]],
    ok = py_context:stop(Ctx),
    ok = py:unregister_function(nest_default),
    ok = py:unregister_function(nest_hold).

held() ->
    receive
        {holds, Pid} -> Pid
    after 20_000 -> error(nobody)
    end.

a_context_is_called_by_the_callback_of_a_call_that_nests_there(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    ok = py:register_function(nest_inner, fun([]) -> value(py:call(Ctx, math, sqrt, [16], #{}, 20_000)) end),
    ok = py:register_function(nest_outer, fun([]) -> value(py:call(erlang, call, [nest_inner])) end),
    ?assertEqual({ok, 4.0}, py:call(Ctx, erlang, call, [nest_outer])),
    ok = py_context:stop(Ctx),
    ok = py:unregister_function(nest_outer),
    ok = py:unregister_function(nest_inner).
