%% `./dev bench contexts': contexts of all modes are made, used and stopped, and what stays is counted.
%% `-100' for so many instead of 1000.
-module(bench_contexts).

-export([main/1]).

%% Those that every Python has.
-define(LEAST_MODES, [worker, worker_loop]).

-spec main([string()]) -> ok.
main(Args) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = py:register_function(bench_twice, fun([X]) -> 2 * X end),
    Count = count(Args),
    Modes = modes(),
    %% The first of each kind imports what all later ones share.
    _ = [cycle(Mode) || Mode <- Modes],
    ok = settled(),
    Before = figures(),
    Per = max(1, Count div length(Modes)),
    io:format("~-28ts ~8ts ~12ts ~12ts~n", ["mode", "cycles", "ms a cycle", "MB a cycle"]),
    Kept = [{Mode, measure(Mode, Per)} || Mode <- Modes],
    report(Before, figures(), Per * length(Modes), Kept).

count(["-" ++ Digits | _]) -> list_to_integer(Digits);
count([]) -> 1000.

modes() ->
    case py_context:new(#{mode => subinterp}) of
        {ok, Ctx} ->
            ok = py_context:stop(Ctx),
            ?LEAST_MODES ++ [subinterp, subinterp_loop | bounded()];
        {error, not_supported} ->
            ?LEAST_MODES
    end.

bounded() ->
    case py_context:new(opts(subinterp_bounded)) of
        {ok, Ctx} ->
            ok = py_context:stop(Ctx),
            [subinterp_bounded];
        {error, not_supported} ->
            []
    end.

measure(Mode, Count) ->
    Before = resident(),
    {Us, _} = py_bench:timed(fun() -> [cycle(Mode) || _ <- lists:seq(1, Count)], ok = settled() end),
    Mb = (resident() - Before) / Count,
    io:format("~-28ts ~8b ~12.2f ~12.3f~n", [Mode, Count, Us / 1000 / Count, Mb]),
    Mb.

%% Makes one, uses it in every way, and stops it.
cycle(Mode) ->
    {ok, Ctx} = py_context:new(opts(Mode)),
    ok = py:exec(Ctx, "import erlang\nx = [0] * 1000\nasync def later(y):\n    return await erlang.async_call('bench_twice', y)\n"),
    {ok, 1000} = py:eval(Ctx, "len(x)"),
    {ok, 4.0} = py:call(Ctx, math, sqrt, [16]),
    {ok, 6} = py:eval(Ctx, "erlang.bench_twice(3)"),
    {error, {'ZeroDivisionError', _}} = py:eval(Ctx, "1 / 0"),
    _ = [{ok, 8} = py:await(py:async_call(Ctx, '__main__', later, [4])) || has_loop(Mode)],
    ok = py_context:stop(Ctx).

has_loop(Mode) -> lists:member(Mode, [worker_loop, subinterp_loop]).

opts(subinterp_bounded) -> #{mode => subinterp, max_memory => 64_000_000};
opts(Mode) when Mode =:= worker; Mode =:= worker_loop -> #{mode => worker};
opts(_) -> #{mode => subinterp}.

%% Interpreters and threads end a moment after their context.
settled() ->
    #{subinterpreters := #{made := Made, ended := Ended}} = py:stats(),
    case Made =:= Ended of
        true -> timer:sleep(200);
        false -> timer:sleep(20), settled()
    end.

figures() ->
    #{subinterpreters := Interpreters, pools := Pools} = py:stats(),
    #{
        interpreters => Interpreters,
        pools => map_size(Pools),
        threads => length(filelib:wildcard("/proc/self/task/*")),
        descriptors => length(filelib:wildcard("/proc/self/fd/*")),
        resident => resident()
    }.

report(Before, After, Cycles, Kept) ->
    #{interpreters := #{made := Made, ended := Ended, left_behind := Left, kept_bytes := Bytes}} = After,
    io:format("~b cycles: ~b interpreters made, ~b ended, ~b left behind, ~.1f MB kept in arenas~n", [
        Cycles, Made, Ended, Left, Bytes / 1.0e6
    ]),
    _ = [
        row(Name, maps:get(Key, After) - maps:get(Key, Before), Most)
     || {Key, Name, Most} <- [
            {threads, "threads that stay", 2},
            {descriptors, "descriptors that stay", 2},
            {pools, "pools that stay", 0}
        ]
    ],
    row("interpreters left behind", Left, 0),
    _ = [
        row("MB that stay of a cycle, " ++ atom_to_list(Mode), Mb, most(Mode))
     || {Mode, Mb} <- Kept
    ],
    ok.

%% Python keeps the arenas of an interpreter that has ended; with asyncio they are more.
%% No goals: what was measured, and some room. It tells when more stays than did.
most(subinterp_loop) -> 8;
most(Mode) when Mode =:= worker; Mode =:= worker_loop -> 0.05;
most(_) -> 5.

row(Name, Value, Most) ->
    Verdict =
        case Value =< Most of
            true -> "reached";
            false -> "short"
        end,
    io:format("~-48ts ~9.3f, at most ~p: ~ts~n", [Name, float(Value), Most, Verdict]).

%% What the process has in memory, in MB.
resident() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4096 / 1.0e6.
