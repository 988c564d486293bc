%% `./dev bench async': coroutines from Erlang, next to `py:call' in the same run.
-module(bench_async).

-export([main/1, rows/1]).

-define(ROUNDS, 5).

-spec main([string()]) -> ok.
main(_Args) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    lists:foreach(fun print/1, rows(1.0) ++ py_loop_bench:rows(#{})).

%% `{Name, Value, Unit, Floor, Reached}'; `Size' scales how long it takes.
-spec rows(float()) -> [{string(), float(), string(), string(), boolean()}].
rows(Size) ->
    ok = module(),
    Calls = max(1000, round(20_000 * Size)),
    {Call, Async} = one_caller(Calls),
    Wanted = wanted(),
    Many = [{N, many(N, max(N, round(100_000 * Size)))} || N <- [50, 1000]],
    Gather = gather(max(10, round(200 * Size))),
    Sleeps = sleeps(),
    Items = stream(),
    [
        row("py:call, 1 caller", Call, "us", "", true),
        row("async_call + await, 1 caller", Async, "us", "3 x py:call", Async =< 3 * Call)
    ] ++
        [
            row(
                io_lib:format("async_call + await, ~b callers", [N]),
                Rate,
                "/s",
                io_lib:format("~b/s", [Wanted]),
                Rate >= Wanted
            )
         || {N, Rate} <- Many
        ] ++
        [
            row("async_gather of 100", Gather, "us", "half of 100 calls", Gather =< 50 * Async),
            row("1000 sleeps of 100 ms", Sleeps, "ms", "110 ms", Sleeps < 110),
            row("async_stream of 100 000 items", Items, "/s", "500 000/s", Items >= 500_000)
        ].

row(Name, Value, Unit, Wanted, Reached) ->
    {lists:flatten(Name), Value, Unit, lists:flatten(Wanted), Reached}.

print({Name, Value, Unit, Wanted, Reached}) ->
    Verdict =
        case Reached of
            true -> "reached";
            false -> "short";
            none -> "not measured"
        end,
    io:format("~-40s ~12.2f ~-3s ~-18s ~s~n", [Name, Value, Unit, Wanted, Verdict]).

%% Eager tasks came with Python 3.12.
wanted() ->
    case py_nif:built_for() of
        {_, 11, _} -> 180_000;
        _ -> 250_000
    end.

module() ->
    Code = <<
        "import sys, types, asyncio\n"
        "m = types.ModuleType('bench_async')\n"
        "exec('''\n"
        "import asyncio\n"
        "def f(): return 1\n"
        "async def one(): return 1\n"
        "async def nap(s): await asyncio.sleep(s)\n"
        "async def count(n):\n"
        "    for i in range(n): yield i\n"
        "''', m.__dict__)\n"
        "sys.modules['bench_async'] = m\n"
    >>,
    ok = py:exec(Code),
    {ok, 1} = py:await(py:async_call(bench_async, one, [])),
    ok.

%% The best of some rounds each, taken in turn: the machine may be busy with other things.
one_caller(N) ->
    Rounds = [
        {
            micros(fun() -> repeat(N, fun() -> {ok, 1} = py:call(bench_async, f, []) end) end) / N,
            micros(fun() -> repeat(N, fun async/0) end) / N
        }
     || _ <- lists:seq(1, ?ROUNDS)
    ],
    {lists:min([Call || {Call, _} <- Rounds]), lists:min([Async || {_, Async} <- Rounds])}.

async() ->
    {ok, 1} = py:await(py:async_call(bench_async, one, [])).

many(Callers, Total) ->
    Each = Total div Callers,
    Rates = [
        Each * Callers * 1.0e6 / micros(fun() -> together(Callers, Each) end)
     || _ <- lists:seq(1, ?ROUNDS)
    ],
    lists:max(Rates).

together(Callers, Each) ->
    Pids = [spawn_monitor(fun() -> repeat(Each, fun async/0) end) || _ <- lists:seq(1, Callers)],
    lists:foreach(
        fun({Pid, Monitor}) ->
            receive
                {'DOWN', Monitor, process, Pid, normal} -> ok
            end
        end,
        Pids
    ).

gather(N) ->
    Calls = lists:duplicate(100, {bench_async, one, []}),
    lists:min([
        micros(fun() -> repeat(N, fun() -> {ok, _} = py:async_gather(Calls) end) end) / N
     || _ <- lists:seq(1, ?ROUNDS)
    ]).

sleeps() ->
    Calls = lists:duplicate(1000, {bench_async, nap, [0.1]}),
    lists:min([
        micros(fun() -> {ok, _} = py:async_gather(Calls) end) / 1000
     || _ <- lists:seq(1, ?ROUNDS)
    ]).

stream() ->
    lists:max([
        100_000 * 1.0e6 / micros(fun() -> {ok, _} = py:async_stream(bench_async, count, [100_000]) end)
     || _ <- lists:seq(1, ?ROUNDS)
    ]).

micros(Fun) ->
    {Micros, _} = timer:tc(Fun),
    max(1, Micros).

repeat(0, _Fun) ->
    ok;
repeat(N, Fun) ->
    _ = Fun(),
    repeat(N - 1, Fun).
