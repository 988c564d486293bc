%% `./dev bench async_soak [-N] [-beam]': N asynchronous calls with cancellation, failures, killed callers
%% and killed loops, on either driver. Every call is answered exactly once, or its caller is dead; nothing stays behind.
-module(bench_async_soak).

-export([main/1]).

-define(CALLERS, 16).
%% One caller process makes so many calls, then another takes its place.
-define(TURN, 500).

-spec main([string()]) -> ok.
main(Args) ->
    {N, Driver} = lists:foldl(fun option/2, {1_000_000, thread}, Args),
    _ = application:load(erlang_python),
    ok = application:set_env(erlang_python, driver, Driver),
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = py:register_function(soak_echo, fun([X]) -> X end),
    ok = module(),
    ok = run(max(N div 10, 5000)),
    Before = settled(),
    {Us, ok} = timer:tc(fun() -> run(N) end),
    After = settled(),
    io:format("~b calls in ~.1f s, ~b/s, driver ~s~n", [N, Us / 1.0e6, round(N * 1.0e6 / Us), Driver]),
    Short = [Key || Key <- [waiting, processes, threads, memory], not row(Key, Before, After)],
    case Short of
        [] -> io:format("every call was answered once, nothing was left behind~n");
        _ -> halt(1)
    end.

option("-" ++ Driver, {N, _}) when Driver =:= "beam"; Driver =:= "thread" ->
    {N, list_to_atom(Driver)};
option("-" ++ Text, {_, Driver}) ->
    {list_to_integer([Digit || Digit <- Text, Digit =/= $_]), Driver}.

row(Key, Before, After) ->
    #{Key := Was} = Before,
    #{Key := Is} = After,
    Fine =
        case Key of
            %% Resident memory in KiB breathes with the allocators.
            memory -> Is =< Was * 1.1 + 8192;
            _ -> Is =< Was
        end,
    Verdict =
        case Fine of
            true -> "reached";
            false -> "short"
        end,
    io:format("~-12s ~12b before ~12b after  ~s~n", [Key, Was, Is, Verdict]),
    Fine.

%% The numbers once they stay the same: threads and executors that are not needed end by themselves.
settled() -> settled(40, numbers()).

settled(0, Numbers) ->
    Numbers;
settled(Tries, #{threads := T, processes := P, waiting := W}) ->
    _ = [garbage_collect(Pid) || Pid <- processes()],
    timer:sleep(1500),
    case numbers() of
        #{threads := T, processes := P, waiting := W} = Same -> Same;
        Next -> settled(Tries - 1, Next)
    end.

numbers() ->
    #{
        waiting => lists:sum([W + Q || #{waiting := W, queued := Q} <- py_event_loop_pool:get_stats()]),
        processes => erlang:system_info(process_count),
        threads => status("Threads:"),
        memory => status("VmRSS:")
    }.

status(Key) ->
    {ok, Text} = file:read_file("/proc/self/status"),
    [Line] = [L || L <- string:split(binary_to_list(Text), "\n", all), lists:prefix(Key, L)],
    [_, Number | _] = string:lexemes(Line, " \t"),
    list_to_integer(Number).

module() ->
    py:exec(<<
        "import sys, types\n"
        "m = types.ModuleType('async_soak')\n"
        "exec('''\n"
        "import asyncio, erlang\n"
        "async def ident(x): return x\n"
        "async def nap(s, x):\n"
        "    await asyncio.sleep(s)\n"
        "    return x\n"
        "async def boom(): raise ValueError('boom')\n"
        "async def ask(x): return await erlang.async_call('soak_echo', x)\n"
        "async def count(n):\n"
        "    for i in range(n): yield i\n"
        "def plain(x): return x\n"
        "''', m.__dict__)\n"
        "sys.modules['async_soak'] = m\n"
    >>).

run(N) ->
    Left = atomics:new(1, []),
    ok = atomics:put(Left, 1, N),
    Callers = [spawn_monitor(fun() -> turns(Left) end) || _ <- lists:seq(1, ?CALLERS)],
    Killer = spawn_link(fun() -> killer(0) end),
    _ = [
        receive
            {'DOWN', Monitor, process, Pid, normal} -> ok;
            {'DOWN', Monitor, process, Pid, Why} -> exit(Why)
        end
     || {Pid, Monitor} <- Callers
    ],
    Killer ! {stop, self()},
    receive
        {stopped, Killer} -> ok
    end.

turns(Left) ->
    case atomics:sub_get(Left, 1, ?TURN) of
        More when More > -?TURN ->
            {Pid, Monitor} = spawn_monitor(fun() -> turn(?TURN) end),
            receive
                {'DOWN', Monitor, process, Pid, normal} -> turns(Left);
                {'DOWN', Monitor, process, Pid, Why} -> exit(Why)
            end;
        _ ->
            ok
    end.

%% No message may be left: each was answered once, or never again after its cancellation.
turn(0) ->
    {messages, []} = process_info(self(), messages),
    ok;
turn(N) ->
    ok = one(N, rand:uniform(20)),
    turn(N - 1).

one(N, 1) ->
    ok = py:cancel(py:async_call(async_soak, nap, [0.001 * rand:uniform(3), N]));
one(N, 2) ->
    expect([{error, timeout}, {ok, N}], py:await(py:async_call(async_soak, nap, [0.002, N]), 1));
one(_N, 3) ->
    expect([{error, {'ValueError', <<"boom">>}}], py:await(py:async_call(async_soak, boom, [])));
one(N, 4) ->
    expect([{ok, N}], py:await(py:async_call(async_soak, ask, [N])));
one(N, 5) ->
    expect([{ok, N}], py:await(py:async_call(async_soak, plain, [N])));
one(_N, 6) ->
    expect([{ok, [0, 1, 2]}], py:async_stream(async_soak, count, [3]));
one(N, 7) ->
    case py:async_gather([{async_soak, ident, [N]}, {async_soak, nap, [0.001, N]}]) of
        {ok, [N, N]} -> ok;
        {error, {gather_failed, Failed}} -> lists:foreach(fun({_, R}) -> died(R) end, Failed)
    end;
one(N, 8) ->
    expect([{ok, N}], py:await(py:async_call(async_soak, nap, [0.001, N])));
one(_N, 9) ->
    {ok, Ref} = py:stream_start(async_soak, count, [3], #{}, #{window => 2}),
    streamed(Ref, 0);
one(_N, 10) ->
    {ok, Ref} = py:stream_start(async_soak, count, [1000], #{}, #{window => rand:uniform(10)}),
    ok = py:stream_cancel(Ref),
    drained(Ref);
one(N, _) ->
    expect([{ok, N}], py:await(py:async_call(async_soak, ident, [N]))).

%% Every item in order, then one end.
streamed(Ref, Next) ->
    receive
        {py_stream, Ref, {data, Next}} ->
            ok = py:stream_ack(Ref, 1),
            streamed(Ref, Next + 1);
        {py_stream, Ref, done} ->
            3 = Next,
            ok;
        {py_stream, Ref, {error, Reason}} ->
            died(Reason)
    end.

%% What was sent before it was cancelled.
drained(Ref) ->
    receive
        {py_stream, Ref, _} -> drained(Ref)
    after 0 -> ok
    end.

%% One of these, or the loop was killed.
expect(Expected, Answer) ->
    case {lists:member(Answer, Expected), Answer} of
        {true, _} -> ok;
        {false, {error, Reason}} -> died(Reason)
    end.

died({context_died, _}) -> ok;
%% A loop's end cancels what its tasks wait for.
died(cancelled) -> ok.

%% Kills callers in mid-call and, now and then, a loop.
killer(N) ->
    receive
        {stop, From} -> From ! {stopped, self()}
    after 5 ->
        {Pid, Monitor} = spawn_monitor(fun() ->
            _ = [py:async_call(async_soak, nap, [1, X]) || X <- lists:seq(1, 10)],
            receive
                never -> ok
            end
        end),
        timer:sleep(1),
        exit(Pid, kill),
        receive
            {'DOWN', Monitor, process, Pid, _} -> ok
        end,
        N rem 100 =:= 99 andalso kill_loop(),
        killer(N + 1)
    end.

kill_loop() ->
    case supervisor:which_children(py_event_loop_sup) of
        [{_, Pid, _, _} | _] when is_pid(Pid) -> exit(Pid, kill);
        _ -> true
    end.
