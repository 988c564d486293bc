%% `./dev bench start': time to start the application, and memory over a bare node, each measured
%% in fresh nodes.
-module(bench_start).

-export([main/1]).

-define(ROUNDS, 5).

-spec main([string()]) -> ok.
main(_Args) ->
    Bare = median([bare() || _ <- lists:seq(1, ?ROUNDS)]),
    Started = [started() || _ <- lists:seq(1, ?ROUNDS)],
    Ms = median([Time || [Time, _] <- Started]),
    Mb = (median([Pss || [_, Pss] <- Started]) - Bare) / 1024,
    row("application start", Ms / 1000, "ms, under 120", 120),
    row("memory over a bare node (PSS)", Mb, "MB, under 15", 15).

row(Name, Value, Text, Limit) ->
    Verdict =
        case Value < Limit of
            true -> "reached";
            false -> "short"
        end,
    io:format("~-48ts ~9.2f ~ts: ~ts~n", [Name, float(Value), Text, Verdict]).

%% Numbers printed by a child node.
bare() ->
    [Pss] = child("P = " ++ pss() ++ ", io:format(\"=~b=\", [P])"),
    Pss.
started() ->
    child(
        "{T, {ok, _}} = timer:tc(fun() -> application:ensure_all_started(erlang_python) end), "
        "{ok, 4.0} = py:call(math, sqrt, [16]), "
        "P = " ++ pss() ++ ", io:format(\"=~b=~b=\", [T, P])"
    ).

pss() ->
    "(fun() -> {ok, B} = file:read_file(\"/proc/self/smaps_rollup\"), "
    "{match, [N]} = re:run(B, \"Pss: +([0-9]+)\", [{capture, [1], list}]), "
    "list_to_integer(N) end)()".

child(Code) ->
    Erl = os:find_executable("erl"),
    Paths = lists:append([["-pa", Path] || Path <- code:get_path(), filelib:is_dir(Path)]),
    Port = open_port({spawn_executable, Erl}, [
        {args, ["-noinput"] ++ Paths ++ ["-eval", Code ++ ", halt()."]},
        exit_status,
        binary,
        stderr_to_stdout
    ]),
    Out = output(Port, <<>>),
    {match, Found} = re:run(Out, "=([0-9]+)(?==)", [global, {capture, [1], list}]),
    [list_to_integer(N) || [N] <- Found].

output(Port, Out) ->
    receive
        {Port, {data, Data}} -> output(Port, <<Out/binary, Data/binary>>);
        {Port, {exit_status, _}} -> Out
    end.

median(Values) ->
    py_bench:median(Values).
