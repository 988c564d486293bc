%% `./dev bench parallel': what sub-interpreters bring and cost, beside processes of plain python3.
-module(bench_parallel).

-export([main/1]).

-define(ROUNDS, 3).
-define(WORK, 3000000).

-spec main([string()]) -> ok.
main(_Args) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    case py:execution_mode() of
        subinterp -> measure();
        Mode -> io:format("this Python has no own-GIL sub-interpreters (~p)~n", [Mode])
    end.

measure() ->
    ok = module(),
    Job = {bench_cpu, cpu, [?WORK]},
    {ok, _} = py:parallel([Job]),
    {One, Two, Sixteen} = middle([speed_ups(Job) || _ <- lists:seq(1, ?ROUNDS)]),
    Alone = middle([pythons() || _ <- lists:seq(1, ?ROUNDS)]),
    speed_up("2 CPU-bound jobs at once", Two / One, Alone),
    speed_up("16 jobs, per pair", Sixteen / One, Alone),
    contexts(),
    calls().

%% How many jobs a second one, two and sixteen at a time make.
speed_ups(Job) ->
    Rate = fun(N) ->
        {Us, {ok, _}} = py_bench:timed(fun() -> py:parallel(lists:duplicate(N, Job), infinity) end),
        N / Us
    end,
    {Rate(1), Rate(2), Rate(16)}.

%% Two processes of plain python3 doing the same, against one.
pythons() ->
    One = python(1),
    2 * One / python(2).

python(N) ->
    Code =
        "x = 0\nfor i in range(" ++ integer_to_list(3 * ?WORK) ++
            "): x = (x * 1103515245 + i) & 0x7fffffff",
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

speed_up(Name, Times, Alone) ->
    Text = "x one at a time, at least 1.8, or 0.95 of two processes' " ++ f(Alone),
    row(Name, Times, Text, Times >= 1.8 orelse Times >= 0.95 * Alone).

contexts() ->
    Made = [py_bench:timed(fun() -> py_context:new(#{mode => subinterp}) end) || _ <- lists:seq(1, 5)],
    _ = [py_context:stop(Ctx) || {_, {ok, Ctx}} <- Made],
    Ms = py_bench:median([Us || {Us, _} <- Made]) / 1000,
    row("a new sub-interpreter", Ms, "ms, under 20", Ms < 20).

calls() ->
    {ok, Ctx} = py_context:new(#{mode => subinterp}),
    Main = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    Sub = fun() -> {ok, 4.0} = py:call(Ctx, math, sqrt, [16]) end,
    Ratio = py_bench:median([
        maps:get(us, py_bench:closed(1, 500, Sub)) / maps:get(us, py_bench:closed(1, 500, Main))
     || _ <- lists:seq(1, ?ROUNDS)
    ]),
    py_context:stop(Ctx),
    row("py:call into a sub-interpreter", Ratio, "x into the main one, at most 1.3", Ratio =< 1.3).

row(Name, Value, Text, Reached) ->
    Verdict =
        case Reached of
            true -> "reached";
            false -> "short"
        end,
    io:format("~-40ts ~8.2f ~ts: ~ts~n", [Name, float(Value), Text, Verdict]).

f(Value) -> lists:flatten(io_lib:format("~.2f", [float(Value)])).

middle(Values) -> lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

%% A module on the path that every interpreter gets.
module() ->
    Dir = filename:join(filename:basedir(user_cache, "erlang_python"), "bench"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    ok = file:write_file(
        filename:join(Dir, "bench_cpu.py"),
        "def cpu(n):\n    x = 0\n    for i in range(n):\n        x = (x * 1103515245 + i) & 0x7FFFFFFF\n    return x\n"
    ),
    {ok, _} = py:call(sys, 'path.append', [unicode:characters_to_binary(Dir)]),
    ok.
