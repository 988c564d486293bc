%% Callers that are killed in the middle of a call, in each of its stages, leave nothing behind.
-module(py_death_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([ten_thousand_killed_callers_leave_nothing_behind/1]).

%% What dies at once: as many as run side by side, or that many in a queue.
-define(TOGETHER, 4).
-define(QUEUE, 100).

all() -> [ten_thousand_killed_callers_leave_nothing_behind].

init_per_suite(Config) ->
    py_test:start(Config),
    ok = py:register_pool(one, #{size => 1}),
    ok = py:register_pool(some, #{size => ?TOGETHER}),
    Config.

end_per_suite(_Config) ->
    ok = py:unregister_pool(one),
    ok = py:unregister_pool(some).

ten_thousand_killed_callers_leave_nothing_behind(_Config) ->
    Test = self(),
    ok = py:register_function(wait_for_ever, fun([]) ->
        Test ! {waits, self()},
        receive
            go_on -> none
        end
    end),
    %% What is made once and kept is made by the first ones.
    #{running := 40, queued := 300, in_a_callback := 40} = kill(10, 3, 10),
    Before = state(),
    Tenths = py_test:full(1, 10),
    #{running := Running, queued := Queued, in_a_callback := Waiting} = kill(25 * Tenths, 8 * Tenths, 25 * Tenths),
    ?assertEqual({100 * Tenths, 800 * Tenths, 100 * Tenths}, {Running, Queued, Waiting}),
    {ProcessesBefore, BlocksBefore, MemoryBefore} = Before,
    %% A process that has run functions for Python stays for two seconds.
    ok = py_test:eventually(fun() -> erlang:system_info(process_count) - ProcessesBefore < 20 end),
    {_, Blocks, Memory} = state(),
    ?assert(Blocks - BlocksBefore < 5_000, {Blocks, BlocksBefore}),
    ?assert(Memory - MemoryBefore < 20_000_000, {Memory, MemoryBefore}),
    ?assertEqual({ok, 3}, py:call(operator, add, [1, 2])),
    ok = py_test:nothing_waits(),
    ok = py:unregister_function(wait_for_ever).

%% So many rounds of each kind; how many of it had come as far as it says.
kill(Running, Queued, InCallback) ->
    #{
        running => total(Running, fun kill_running/0),
        queued => total(Queued, fun kill_queued/0),
        in_a_callback => total(InCallback, fun kill_in_a_callback/0)
    }.

total(Rounds, Kill) -> lists:sum([Kill() || _ <- lists:seq(1, Rounds)]).

kill_running() ->
    Test = self(),
    Victims = victims(?TOGETHER, fun() -> py:call(some, py_tools, nap_here, [Test, 60]) end),
    Begun = [py_test:message(<<"here">>) || _ <- Victims],
    [ok = py_test:down(Pid) || Pid <- Victims],
    length(Begun).

kill_queued() ->
    Busy = py_test:occupy(one, 1),
    Victims = victims(?QUEUE, fun() -> py:call(one, py_tools, nap, [60]) end),
    ok = py_test:eventually(fun() -> queued(one) =:= ?QUEUE end),
    [ok = py_test:down(Pid) || Pid <- Victims],
    ok = py_test:release(Busy),
    %% None of them runs: the next comes at once.
    {ok, 2.0} = py:call(one, math, sqrt, [4], #{}, 5000),
    length(Victims).

kill_in_a_callback() ->
    Victims = victims(?TOGETHER, fun() -> py:call(some, erlang, call, [wait_for_ever]) end),
    Executors = [
        receive
            {waits, Executor} -> Executor
        end
     || _ <- Victims
    ],
    [ok = py_test:down(Pid) || Pid <- Victims],
    _ = [Executor ! go_on || Executor <- Executors],
    length(Executors).

%% Processes with names of their own in Python, which then make the call.
victims(Count, Call) ->
    [
        spawn(fun() ->
            ok = py:exec(<<"kept = [1] * 100">>),
            Call()
        end)
     || _ <- lists:seq(1, Count)
    ].

queued(Pool) ->
    #{pools := #{Pool := #{queued := Queued}}} = py:stats(),
    Queued.

%% Once nothing is under way, and surplus threads are gone.
state() ->
    Workers = length(py_test:workers(main)),
    ok = py_test:eventually(fun() ->
        #{pools := Pools, waiting_in_callbacks := Waiting} = py:stats(),
        #{main := #{threads := Main}, one := #{threads := One}, some := #{threads := Some}} = Pools,
        lists:all(fun(#{queued := Queued}) -> Queued =:= 0 end, maps:values(Pools)) andalso
            {Main, One, Some, Waiting} =:= {Workers, 1, ?TOGETHER, 0}
    end),
    {ok, _} = py:gc(),
    _ = [garbage_collect(P) || P <- processes()],
    #{<<"allocated_blocks">> := Blocks} = py:memory_stats(),
    {erlang:system_info(process_count), Blocks, erlang:memory(total)}.
