%% Measuring: closed loops of callers, with time and CPU per operation.
-module(py_bench).

-export([closed/3, timed/1, median/1, cpu_us/0]).

-export_type([sample/0]).

%% Microseconds per operation; `cpu' is of the whole node.
-type sample() :: #{
    ops := pos_integer(),
    us := float(),
    cpu := float(),
    min := float(),
    p50 := float(),
    p99 := float(),
    rate := float()
}.

%% At most so many latencies are kept per caller.
-define(KEPT, 20000).

%% `Callers' processes call `Fun' one after another for `Ms' milliseconds.
-spec closed(pos_integer(), pos_integer(), fun(() -> term())) -> sample().
closed(Callers, Ms, Fun) ->
    Self = self(),
    Pids = [spawn_link(fun() -> caller(Self, Fun) end) || _ <- lists:seq(1, Callers)],
    _ = [receive {ready, Pid} -> ok end || Pid <- Pids],
    Cpu0 = cpu_us(),
    Start = now_ns(),
    _ = [Pid ! {go, Start + Ms * 1000000} || Pid <- Pids],
    Done = [receive {done, Pid, N, Kept} -> {N, Kept} end || Pid <- Pids],
    Took = (now_ns() - Start) / 1000,
    Cpu = cpu_us() - Cpu0,
    Ops = lists:sum([N || {N, _} <- Done]),
    Sorted = lists:sort(lists:append([Kept || {_, Kept} <- Done])),
    #{
        ops => Ops,
        us => Took / Ops,
        cpu => Cpu / Ops,
        rate => Ops * 1.0e6 / Took,
        min => hd(Sorted) / 1000,
        p50 => at(Sorted, 0.5),
        p99 => at(Sorted, 0.99)
    }.

caller(Parent, Fun) ->
    _ = Fun(),
    Parent ! {ready, self()},
    receive
        {go, End} -> loop(Parent, Fun, End, now_ns(), 0, [])
    end.

loop(Parent, Fun, End, Before, N, Kept) ->
    _ = Fun(),
    After = now_ns(),
    Kept1 =
        case N < ?KEPT of
            true -> [After - Before | Kept];
            false -> Kept
        end,
    case After >= End of
        true -> Parent ! {done, self(), N + 1, Kept1};
        false -> loop(Parent, Fun, End, After, N + 1, Kept1)
    end.

at(Sorted, Part) ->
    lists:nth(max(1, round(length(Sorted) * Part)), Sorted) / 1000.

%% Microseconds that one run of `Fun' takes, and its value.
-spec timed(fun(() -> T)) -> {float(), T}.
timed(Fun) ->
    Start = now_ns(),
    Value = Fun(),
    {(now_ns() - Start) / 1000, Value}.

-spec median([number()]) -> number().
median(Values) ->
    Sorted = lists:sort(Values),
    lists:nth((length(Sorted) + 1) div 2, Sorted).

%% CPU of all threads of this node so far, in microseconds.
-spec cpu_us() -> non_neg_integer().
cpu_us() ->
    {Ms, _} = erlang:statistics(runtime),
    Ms * 1000.

now_ns() ->
    erlang:monotonic_time(nanosecond).
