%% What calls cost, beside the floors of the same run: `py_unified_bench:run_all()'.
%%
%% Each row ends in `reached' or `short'. Trust ratios of one run on a quiet machine.
-module(py_unified_bench).

-export([run_all/0, run_all/1]).

-define(MS, 700).
-define(ROUNDS, 3).

-spec run_all() -> ok.
run_all() ->
    run_all(#{}).

%% `#{only => [Section]}' runs some of the sections.
-spec run_all(#{only => [atom()]}) -> ok.
run_all(Opts) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    {ok, Version} = py:version(),
    say("# Python ~ts, OTP ~ts, ~b schedulers, median of ~b rounds~n", [
        hd(binary:split(Version, <<" ">>)),
        erlang:system_info(otp_release),
        erlang:system_info(schedulers_online),
        ?ROUNDS
    ]),
    Sections = [
        {floors, fun floors/0},
        {calls, fun calls/0},
        {priorities, fun priorities/0},
        {mailbox, fun mailbox/0},
        {eval, fun eval/0},
        {callbacks, fun callbacks/0},
        {async, fun async/0},
        {asgi, fun asgi/0},
        {loops, fun loops/0},
        {streams, fun streams/0},
        {bytes, fun bytes/0},
        {terms, fun terms/0},
        {hog, fun hog/0},
        {parallel, fun py_parallel_bench:run/0}
    ],
    Only = maps:get(only, Opts, [Name || {Name, _} <- Sections]),
    _ = [Run() || {Name, Run} <- Sections, lists:member(Name, Only)],
    ok.

%% ---- sections

floors() ->
    row("empty NIF", measure(1, fun py_nif:nothing/0), none),
    row("empty dirty IO NIF", measure(1, fun py_nif:nothing_dirty/0), none).

calls() ->
    Server = spawn_link(fun echo_server/0),
    Call = fun() -> gen_server:call(Server, x) end,
    Sqrt = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    _ = [
        begin
            {Floor, Ours} = beside(Callers, Call, Sqrt),
            row(["gen_server:call, ", count(Callers)], Floor, none),
            Ratio = maps:get(us, Ours) / maps:get(us, Floor),
            row(["py:call(math, sqrt, [16]), ", count(Callers)], Ours, goal(Callers, Ratio))
        end
     || Callers <- [1, 10, 50, 1000]
    ],
    true = unlink(Server),
    exit(Server, kill).

goal(1, Ratio) -> {Ratio, "x gen_server:call, at most 4", Ratio =< 4};
goal(50, Ratio) -> {1 / Ratio, "of gen_server:call's rate, at least 0.33", 1 / Ratio >= 1 / 3};
goal(_, Ratio) -> {1 / Ratio, "of gen_server:call's rate", true}.

%% One caller beside a thousand that call again as soon as they are answered.
priorities() ->
    Sqrt = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    High = fun() -> {ok, 4.0} = py:call(math, sqrt, [16], #{}, #{priority => high}) end,
    Crowd = [spawn_link(fun() -> again(Sqrt) end) || _ <- lists:seq(1, 1000)],
    {Normal, Ours} = beside(1, Sqrt, High),
    _ = [{unlink(Pid), exit(Pid, kill)} || Pid <- Crowd],
    Ratio = maps:get(p50, Normal) / maps:get(p50, Ours),
    row("py:call behind 1000 that wait", Normal, none),
    row("the same of high priority", Ours, {Ratio, "times as soon (p50), at least 10", Ratio >= 10}).

-spec again(fun()) -> no_return().
again(Fun) ->
    _ = Fun(),
    again(Fun).

mailbox() ->
    Sqrt = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    Full = fun() ->
        case get(filled) of
            undefined ->
                _ = put(filled, true),
                _ = [self() ! {noise, I} || I <- lists:seq(1, 10000)],
                Sqrt();
            true ->
                Sqrt()
        end
    end,
    {Empty, Ours} = beside(1, Sqrt, Full),
    Ratio = maps:get(us, Ours) / maps:get(us, Empty),
    row("py:call with 10 000 messages waiting", Ours, {Ratio, "x empty, at most 1.3", Ratio =< 1.3}).

eval() ->
    Sqrt = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    Eval = fun() -> {ok, 2} = py:eval(<<"1+1">>) end,
    {Floor, Ours} = beside(1, Sqrt, Eval),
    Ratio = maps:get(us, Ours) / maps:get(us, Floor),
    row("py:eval(<<\"1+1\">>)", Ours, {Ratio, "x py:call, at most 1.5", Ratio =< 1.5}).

async() ->
    %% Coroutines of the standard library that never wait.
    Sqrt = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    Async = fun() -> {ok, none} = py:await(py:async_call(asyncio, sleep, [0.0])) end,
    {ok, none} = Async(),
    {Floor, Ours} = beside(1, Sqrt, Async),
    Ratio = maps:get(us, Ours) / maps:get(us, Floor),
    row("async_call + await, 1 caller", Ours, {Ratio, "x py:call, one turn of the loop more", true}),
    _ = [
        row(["async_call + await, ", count(Callers)], measure(Callers, Async), none)
     || Callers <- [50, 1000]
    ],
    Gather = lists:duplicate(100, {asyncio, sleep, [0.0]}),
    row("async_gather of 100", measure(1, fun() -> {ok, _} = py:async_gather(Gather) end), none).

asgi() ->
    %% An application that answers at once, in a module that was never a file.
    ok = py:exec(<<
        "import sys, types\n"
        "async def app(scope, receive, send):\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'a', b'b')]})\n"
        "    await send({'type': 'http.response.body', 'body': b'hello'})\n"
        "sys.modules['bench_asgi_app'] = types.SimpleNamespace(app=app)\n"
    >>),
    Scope = #{
        method => <<"GET">>,
        path => <<"/hello">>,
        query_string => <<"a=1">>,
        headers => [{<<"host">>, <<"localhost">>}, {<<"accept">>, <<"*/*">>}]
    },
    Sqrt = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    Ask = fun() -> {ok, {200, _, <<"hello">>}} = py_asgi:run(bench_asgi_app, app, Scope, <<>>) end,
    {ok, _} = Ask(),
    {Floor, Ours} = beside(1, Sqrt, Ask),
    Ratio = maps:get(us, Ours) / maps:get(us, Floor),
    row("py_asgi:run, 1 caller", Ours, {Ratio, "x py:call, at most 5", Ratio =< 5}),
    row("py_asgi:run, 50 callers", measure(50, Ask), none).

callbacks() ->
    ok = py:register_function(bench_cb, fun([X]) -> X end),
    ok = py:exec(<<
        "def bench_cb_loop(n):\n"
        "    import erlang\n"
        "    c = erlang.call\n"
        "    for i in range(n):\n"
        "        c('bench_cb', i)\n"
    >>),
    N = 10000,
    Sqrt = fun() -> {ok, 4.0} = py:call(math, sqrt, [16]) end,
    Rounds = [
        begin
            #{us := Call} = py_bench:closed(1, ?MS, Sqrt),
            Cpu0 = py_bench:cpu_us(),
            {Us, {ok, none}} = py_bench:timed(fun() ->
                py:call('__main__', bench_cb_loop, [N], #{}, infinity)
            end),
            {Us / N / Call, Us / N, (py_bench:cpu_us() - Cpu0) / N}
        end
     || _ <- lists:seq(1, ?ROUNDS)
    ],
    {Ratio, Us, Cpu} = median_by_first(Rounds),
    ok = py:unregister_function(bench_cb),
    plain("callback from Python, loop of 10 000", Us, Cpu, {Ratio, "x py:call, at most 2", Ratio =< 2}).

loops() ->
    _ = [
        say("~-48ts ~9.2f ~ts  ~ts~n", [Name, Value, Unit, wanted(Wanted, Reached)])
     || {Name, Value, Unit, Wanted, Reached} <- py_loop_bench:rows(#{seconds => 1, idle_seconds => 3})
    ].

wanted(Wanted, none) -> [Wanted, ": not measured"];
wanted(Wanted, true) -> [Wanted, ": reached"];
wanted(Wanted, false) -> [Wanted, ": short"].

streams() ->
    N = 100000,
    Rounds = [
        begin
            Cpu0 = py_bench:cpu_us(),
            {Us, {ok, Items}} = py_bench:timed(fun() -> py:stream(builtins, range, [N]) end),
            N = length(Items),
            {Us / N, (py_bench:cpu_us() - Cpu0) / N}
        end
     || _ <- lists:seq(1, ?ROUNDS * 3)
    ],
    {Us, Cpu} = median_by_first(Rounds),
    Rate = 1 / Us,
    plain("stream of 100 000 ints", Us, Cpu, {Rate, "million items/s, at least 2", Rate >= 2}).

bytes() ->
    Bin = rand:bytes(1048576),
    ok = py:exec(<<"def bench_ident(x):\n    return x\n">>),
    Ident = fun() ->
        {ok, R} = py:call('__main__', bench_ident, [{bytes, Bin}]),
        1048576 = byte_size(R)
    end,
    Rounds = [
        begin
            Copy = py_bench:median([py_nif:copy_fresh(Bin) / 1000 || _ <- lists:seq(1, 200)]),
            #{p50 := Us, cpu := Cpu} = in_own(fun() -> py_bench:closed(1, ?MS, with_ident(Ident)) end),
            {Us / Copy, Us, Cpu}
        end
     || _ <- lists:seq(1, ?ROUNDS)
    ],
    {Ratio, Us, Cpu} = median_by_first(Rounds),
    plain("1 MB bytes in and out", Us, Cpu, {Ratio, "x memcpy into fresh memory, at most 2", Ratio =< 2}).

%% Names are those of the calling process: each caller defines its own.
with_ident(Fun) ->
    fun() ->
        case get(ident) of
            undefined ->
                ok = py:exec(<<"def bench_ident(x):\n    return x\n">>),
                _ = put(ident, true),
                Fun();
            true ->
                Fun()
        end
    end.

in_own(Fun) -> Fun().

terms() ->
    Ints = lists:seq(1, 10000),
    Keys = [<<"key", (integer_to_binary(I))/binary>> || I <- lists:seq(1, 1000)],
    Map = maps:from_list(lists:zip(Keys, lists:seq(1, 1000))),
    term("list of 10 000 ints, in and out", Ints),
    term("map of 1000, in and out", Map).

term(Name, Term) ->
    Floor = fun() -> Term = binary_to_term(term_to_binary(Term)) end,
    Ident = with_ident(fun() -> {ok, Term} = py:call('__main__', bench_ident, [Term]) end),
    {Codec, Ours} = beside(1, Floor, Ident),
    Ratio = maps:get(us, Ours) / maps:get(us, Codec),
    Text = "x term_to_binary + binary_to_term, at most 3",
    row(Name, Ours, {Ratio, Text, Ratio =< 3}).

hog() ->
    Sqrt = fun() -> {ok, 4.0} = py:call(math, sqrt, [16], #{}, infinity) end,
    Alone = py_bench:closed(1000, ?MS, Sqrt),
    ok = py:exec(<<
        "import threading\n"
        "class BenchHog(threading.Thread):\n"
        "    stop = False\n"
        "    def run(self):\n"
        "        x = 0\n"
        "        while not self.stop:\n"
        "            x += 1\n"
        "bench_hog = BenchHog(daemon=True)\n"
        "bench_hog.start()\n"
    >>),
    Self = self(),
    Timer = spawn_link(fun() -> Self ! {slept, self(), sleeps(10, [])} end),
    Hogged = py_bench:closed(1000, ?MS, Sqrt),
    Slept = receive {slept, Timer, Longest} -> Longest end,
    File = file_us(),
    ok = py:exec(<<"bench_hog.stop = True\nbench_hog.join()\n">>),
    Quiet = file_us(),
    Part = maps:get(rate, Hogged) / maps:get(rate, Alone),
    row("1000 callers beside a thread that hogs the GIL", Hogged, {
        Part, "of the rate without it, at least 0.33", Part >= 1 / 3
    }),
    plain("  longest timer:sleep(50) meanwhile", Slept, 0.0, {
        Slept / 1000, "ms, under 60", Slept < 60000
    }),
    plain("  file:read_file_info meanwhile", File, 0.0, {
        File / Quiet, "x without the hog, at most 3", File / Quiet =< 3
    }).

sleeps(0, Kept) ->
    lists:max(Kept);
sleeps(N, Kept) ->
    {Us, ok} = py_bench:timed(fun() -> timer:sleep(50) end),
    sleeps(N - 1, [Us | Kept]).

file_us() ->
    py_bench:median([
        element(1, py_bench:timed(fun() -> file:read_file_info("/") end))
     || _ <- lists:seq(1, 500)
    ]).

%% ---- the floor of every message pair

-spec echo_server() -> no_return().
echo_server() ->
    receive
        {'$gen_call', {Pid, _} = From, _} when is_pid(Pid) ->
            gen_server:reply(From, ok),
            echo_server()
    end.

%% ---- measuring and printing

measure(Callers, Fun) ->
    middle([py_bench:closed(Callers, ?MS, Fun) || _ <- lists:seq(1, ?ROUNDS)]).

%% Both in turn, so that a slow moment hits both.
beside(Callers, Floor, Fun) ->
    Pairs = [
        {py_bench:closed(Callers, ?MS, Floor), py_bench:closed(Callers, ?MS, Fun)}
     || _ <- lists:seq(1, ?ROUNDS)
    ],
    {Floors, Ours} = lists:unzip(Pairs),
    {middle(Floors), middle(Ours)}.

middle(Samples) ->
    Sorted = lists:sort(fun(#{us := A}, #{us := B}) -> A =< B end, Samples),
    lists:nth((length(Sorted) + 1) div 2, Sorted).

median_by_first(Tuples) ->
    Sorted = lists:sort(Tuples),
    lists:nth((length(Sorted) + 1) div 2, Sorted).

row(Name, #{us := Us, cpu := Cpu, min := Min, p50 := P50, p99 := P99, rate := Rate}, Goal) ->
    say("~-48ts ~9.2f us  cpu ~7.2f us  min ~.1f p50 ~.1f p99 ~.1f  ~b/s  ~ts~n", [
        Name, Us, Cpu, Min, P50, P99, round(Rate), verdict(Goal)
    ]).

plain(Name, Us, Cpu, Goal) ->
    say("~-48ts ~9.3f us  cpu ~7.3f us  ~ts~n", [Name, Us, Cpu, verdict(Goal)]).

verdict(none) -> "floor: reached";
verdict({Value, Text, true}) -> io_lib:format("~.2f ~ts: reached", [float(Value), Text]);
verdict({Value, Text, false}) -> io_lib:format("~.2f ~ts: short", [float(Value), Text]).

count(1) -> "1 caller";
count(N) -> io_lib:format("~b callers", [N]).

say(Format, Args) ->
    io:format(Format, Args).
