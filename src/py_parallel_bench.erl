%% What sub-interpreters, or threads without a GIL, bring and cost, beside processes of plain python3:
%% a part of `py_unified_bench', and `./dev bench parallel'.
-module(py_parallel_bench).

-export([run/0, print_short_jobs/0]).

-define(ROUNDS, 9).
-define(WORK, 1000000).

-spec run() -> ok.
run() ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = module(),
    case py:execution_mode() of
        multi_executor -> io:format("this Python has one GIL: nothing runs side by side~n");
        Mode -> measure(Mode)
    end.

measure(Mode) ->
    Job = {bench_cpu, cpu, [?WORK]},
    {ok, _} = py:parallel([Job]),
    {Twos, Sixteens} = lists:unzip([speed_ups(Job) || _ <- lists:seq(1, ?ROUNDS)]),
    {Two, Sixteen} = {py_bench:median(Twos), py_bench:median(Sixteens)},
    Alone = py_bench:median([pythons() || _ <- lists:seq(1, 5)]),
    Least = #{subinterp => 1.8, free_threaded => 1.7},
    speed_up("2 CPU-bound jobs at once", Two, maps:get(Mode, Least), Alone),
    speed_up("16 jobs, per pair", Sixteen, maps:get(Mode, Least), Alone),
    {Ratio, Cpu} = short_jobs(Mode),
    {Rested, RestedCpu} = without_busy_waiting(),
    speed_up("100 us jobs, 2 callers", Ratio, 1.7, Alone),
    speed_up("  in a node with +sbwt none", Rested, 1.7, Alone),
    io:format("~-40ts ~8.1f us, with +sbwt none ~.1f~n", ["  CPU of the node per job", Cpu, RestedCpu]),
    contexts(),
    calls().

%% Callers that each have an interpreter, or a thread, and jobs of 100 us: the rate of two against that of
%% one, and the CPU time of a job when two call. The best of each: a slow moment hits one of them.
short_jobs(Mode) ->
    Calls = [caller(Mode) || _ <- [1, 2]],
    N = calibrate(hd(Calls)),
    Rates = [
        {rate([element(1, hd(Calls))], N), rate([Call || {Call, _} <- Calls], N)}
     || _ <- lists:seq(1, 6)
    ],
    _ = [Stop() || {_, Stop} <- Calls],
    {Ones, Twos} = lists:unzip(Rates),
    {{One, _}, {Two, _}} = {lists:max(Ones), lists:max(Twos)},
    {Two / One, lists:min([Cpu || {_, Cpu} <- Twos])}.

%% The same in a node whose schedulers sleep at once when they have nothing to do. Where every core runs
%% Python a scheduler that looks for work takes one of them away.
without_busy_waiting() ->
    #{executable := Python} = py_runtime:python(),
    Paths = lists:append([["-pa", Path] || Path <- code:get_path(), filelib:is_dir(Path)]),
    Flags = ["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none", "-noinput"],
    Port = open_port({spawn_executable, os:find_executable("erl")}, [
        {args, Flags ++ Paths ++ ["-run", "py_parallel_bench", "print_short_jobs"]},
        {env, [{"PYTHON", unicode:characters_to_list(Python)}]},
        exit_status,
        binary
    ]),
    {match, [Ratio, Cpu]} =
        re:run(output(Port, <<>>), "=([0-9.]+)=([0-9.]+)=", [{capture, [1, 2], list}]),
    {list_to_float(Ratio), list_to_float(Cpu)}.

output(Port, Out) ->
    receive
        {Port, {data, Data}} -> output(Port, <<Out/binary, Data/binary>>);
        {Port, {exit_status, 0}} -> Out
    end.

%% For a node of its own, which it ends.
-spec print_short_jobs() -> no_return().
print_short_jobs() ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = module(),
    {Ratio, Cpu} = short_jobs(py:execution_mode()),
    io:format("=~.3f=~.1f=", [Ratio, Cpu]),
    halt().

caller(free_threaded) ->
    {fun(N) -> py:call(bench_cpu, cpu, [N]) end, fun() -> ok end};
caller(subinterp) ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    {fun(N) -> py:call(Ctx, bench_cpu, cpu, [N]) end, fun() -> py_context:stop(Ctx) end}.

%% How many rounds take 100 us.
calibrate({Call, _}) ->
    {Us, _} = py_bench:timed(fun() -> {ok, _} = Call(200000) end),
    max(1, round(200000 * 100 / Us)).

%% Calls a second, all callers together, for half a second; and what one costs the node.
rate(Calls, N) ->
    Self = self(),
    Cpu = py_bench:cpu_us(),
    End = erlang:monotonic_time(millisecond) + 500,
    Pids = [spawn_link(fun() -> Self ! {self(), count(Call, N, End, 0)} end) || Call <- Calls],
    Total = lists:sum([receive {Pid, Count} -> Count end || Pid <- Pids]),
    {Total / 0.5, (py_bench:cpu_us() - Cpu) / Total}.

count(Call, N, End, Count) ->
    case erlang:monotonic_time(millisecond) < End of
        true ->
            {ok, _} = Call(N),
            count(Call, N, End, Count + 1);
        false ->
            Count
    end.

%% How many times as many jobs two and sixteen at a time make as one, in the same moment.
speed_ups(Job) ->
    Rate = fun(N) ->
        {Us, {ok, _}} = py_bench:timed(fun() -> py:parallel(lists:duplicate(N, Job), infinity) end),
        N / Us
    end,
    One = Rate(1),
    {Rate(2) / One, Rate(16) / One}.

%% Two processes of plain python3 doing the same, against one.
pythons() ->
    One = python(1),
    2 * One / python(2).

python(N) ->
    Code =
        "x = 0\nfor i in range(" ++ integer_to_list(9 * ?WORK) ++
            "): x = (x * 251 + i) & 255",
    #{executable := Python} = py_runtime:python(),
    {Us, _} = py_bench:timed(fun() ->
        Ports = [
            open_port({spawn_executable, Python}, [{args, ["-c", "def f():\n " ++ indent(Code) ++ "\nf()"]}, exit_status])
         || _ <- lists:seq(1, N)
        ],
        [receive {Port, {exit_status, 0}} -> ok end || Port <- Ports]
    end),
    Us.

indent(Code) -> lists:flatten(string:replace(Code, "\n", "\n ", all)).

speed_up(Name, Times, Least, Alone) ->
    Text = "x one at a time, at least " ++ f(Least) ++ ", or 0.95 of two processes' " ++ f(Alone),
    row(Name, Times, Text, Times >= Least orelse Times >= 0.95 * Alone).

contexts() ->
    %% One first: libraries that all of them share are in memory then.
    {ok, First} = py_context:new(#{mode => subinterp}),
    ok = py:exec(First, "import asyncio"),
    Before = resident(),
    Made = [py_bench:timed(fun() -> py_context:new(#{mode => subinterp}) end) || _ <- lists:seq(1, 10)],
    Mb = (resident() - Before) / 10,
    _ = [ok = py:exec(Ctx, "import asyncio") || {_, {ok, Ctx}} <- Made],
    Asyncio = (resident() - Before) / 10,
    _ = [py_context:stop(Ctx) || Ctx <- [First | [Ctx || {_, {ok, Ctx}} <- Made]]],
    Ms = py_bench:median([Us || {Us, _} <- Made]) / 1000,
    row("a new sub-interpreter", Ms, "ms, under 20", Ms < 20),
    row("its memory", Mb, "MB, under 10", Mb < 10),
    row("with asyncio imported", Asyncio, "MB, under 10", Asyncio < 10).

%% What the process has in memory, in MB.
resident() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4096 / 1.0e6.

calls() ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    Main = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    Sub = fun() -> {ok, 4.0} = py:call(Ctx, math, sqrt, [16]) end,
    Ratio = py_bench:median([
        maps:get(us, py_bench:closed(1, 500, Sub)) / maps:get(us, py_bench:closed(1, 500, Main))
     || _ <- lists:seq(1, ?ROUNDS)
    ]),
    ok = py_context:stop(Ctx),
    row("py:call into a sub-interpreter", Ratio, "x into the main one, at most 1.3", Ratio =< 1.3).

row(Name, Value, Text, Reached) ->
    Verdict =
        case Reached of
            true -> "reached";
            false -> "short"
        end,
    io:format("~-40ts ~8.2f ~ts: ~ts~n", [Name, float(Value), Text, Verdict]).

f(Value) -> lists:flatten(io_lib:format("~.2f", [float(Value)])).

%% A module on the path that every interpreter gets. Its constants are small: without a GIL (3.14) threads
%% that run the code of one module wait for each other at the reference counts of large ones, in plain Python
%% too.
module() ->
    Dir = filename:join(filename:basedir(user_cache, "erlang_python"), "bench"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    ok = file:write_file(
        filename:join(Dir, "bench_cpu.py"),
        "def cpu(n):\n    x = 0\n    for i in range(n):\n        x = (x * 251 + i) & 255\n    return x\n"
    ),
    {ok, _} = py:call(sys, 'path.append', [unicode:characters_to_binary(Dir)]),
    ok.
