%% `./dev soak [N]': N mixed calls with errors, timeouts, killed callers and nested callbacks; then
%% memory, threads, atoms, ports and processes must be where they were.
-module(bench_soak).

-export([main/1]).

-define(CALLERS, 16).
%% One caller process makes so many calls, then another takes its place.
-define(TURN, 1000).

-spec main([string()]) -> ok.
main(Args) ->
    N =
        case Args of
            [Text | _] -> list_to_integer([Digit || Digit <- Text, Digit =/= $_]);
            [] -> 10000000
        end,
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = py:register_function(soak_add, fun([A, B]) -> A + B end),
    ok = py:register_function(soak_down, fun([D]) -> {ok, V} = py:call(soak_mod, down, [D]), V end),
    ok = py:register_function(soak_boom, fun([]) -> error(boom) end),
    ok = module(),
    io:format("warming up~n"),
    ok = run(max(N div 20, 20000)),
    Before = settled(),
    io:format("~b calls~n", [N]),
    {Us, ok} = timer:tc(fun() -> run(N) end),
    After = settled(),
    io:format("~b calls in ~.1f s, ~b/s~n", [N, Us / 1.0e6, round(N * 1.0e6 / Us)]),
    Short = [Key || Key <- [threads, atoms, ports, processes, memory, exported], not row(Key, Before, After)],
    case Short of
        [] -> io:format("nothing was left behind~n");
        _ -> io:format("left behind: ~p~n", [Short]), halt(1)
    end.

row(Key, Before, After) ->
    #{Key := Was} = Before,
    #{Key := Is} = After,
    Fine = fine(Key, Was, Is),
    io:format("~-12s ~12b before ~12b after  ~s~n", [Key, Was, Is, verdict(Fine)]),
    Fine.

verdict(true) -> "reached";
verdict(false) -> "short".

%% Resident memory in KiB breathes with the allocators; everything else is exact, atoms may grow by
%% what this module itself names for the first time.
fine(memory, Was, Is) -> Is =< Was * 1.1 + 8192;
fine(atoms, Was, Is) -> Is =< Was + 20;
fine(_, Was, Is) -> Is =< Was.

%% The numbers once the node is at rest: threads and executors that are not needed end by themselves
%% within seconds.
settled() ->
    settled(40, 0, numbers()).

settled(0, _Same, Numbers) ->
    Numbers;
settled(_Tries, 8, Numbers) ->
    Numbers;
settled(Tries, Same, #{threads := T, processes := P, exported := E}) ->
    _ = [garbage_collect(Pid) || Pid <- processes()],
    {ok, _} = py:gc(),
    timer:sleep(500),
    case numbers() of
        #{threads := T, processes := P, exported := E} = Next -> settled(Tries - 1, Same + 1, Next);
        Next -> settled(Tries - 1, 0, Next)
    end.

numbers() ->
    #{exported_objects := Exported} = py:stats(),
    #{
        threads => status("Threads:"),
        memory => status("VmRSS:"),
        atoms => erlang:system_info(atom_count),
        ports => erlang:system_info(port_count),
        processes => erlang:system_info(process_count),
        exported => Exported
    }.

status(Key) ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Value]} = re:run(Text, Key ++ "\\s+([0-9]+)", [{capture, [1], list}]),
    list_to_integer(Value).

module() ->
    py:exec(<<
        "import sys, types\n"
        "m = types.ModuleType('soak_mod')\n"
        "exec('''\n"
        "import erlang, time\n"
        "def ident(x): return x\n"
        "def boom(): raise ValueError('boom')\n"
        "def down(n): return 0 if n == 0 else 1 + erlang.call('soak_down', n - 1)\n"
        "def gen(n):\n"
        "    for i in range(n): yield i\n"
        "class Thing:\n"
        "    def get(self): return 7\n"
        "def caught():\n"
        "    try: erlang.call('soak_boom')\n"
        "    except erlang.ErlangError as e: return e.kind\n"
        "''', m.__dict__)\n"
        "sys.modules['soak_mod'] = m\n"
    >>).

run(N) ->
    Left = atomics:new(1, []),
    ok = atomics:put(Left, 1, N),
    Self = self(),
    Pids = [spawn_link(fun() -> turns(Left), Self ! {done, self()} end) || _ <- lists:seq(1, ?CALLERS)],
    Killer = spawn_link(fun killer/0),
    _ = [receive {done, Pid} -> ok end || Pid <- Pids],
    Killer ! {stop, self()},
    receive {stopped, Killer} -> ok end.

%% Each turn is a process of its own: slots and namespaces come and go.
turns(Left) ->
    case atomics:sub_get(Left, 1, ?TURN) of
        More when More > 0 ->
            {_, Monitor} = spawn_monitor(fun() -> turn(?TURN) end),
            receive
                {'DOWN', Monitor, process, _, normal} -> turns(Left);
                {'DOWN', Monitor, process, _, Why} -> exit(Why)
            end;
        _ ->
            ok
    end.

turn(0) ->
    [] = element(2, process_info(self(), messages)),
    ok;
turn(N) ->
    ok = one(N),
    turn(N - 1).

one(N) when N rem 1000 =:= 500 ->
    case py:call(time, sleep, [0.005], #{}, 1) of
        {error, timeout} -> ok;
        %% On a busy machine the sleep may be over before the timeout is noticed.
        {ok, none} -> ok
    end;
one(N) when N rem 100 =:= 1 ->
    {ok, 3} = py:call(soak_mod, down, [3]),
    ok;
one(N) when N rem 100 =:= 2 ->
    {ok, <<"error">>} = py:call(soak_mod, caught, []),
    ok;
one(N) when N rem 50 =:= 3 ->
    {ok, Thing} = py:call(soak_mod, 'Thing', [], #{}, #{return => ref}),
    {ok, 7} = py:call_method(Thing, get, []),
    ok;
one(N) when N rem 50 =:= 4 ->
    {ok, Items} = py:stream(soak_mod, gen, [20]),
    20 = length(Items),
    ok;
one(N) when N rem 20 =:= 5 ->
    {error, {'ValueError', <<"boom">>}} = py:call(soak_mod, boom, []),
    ok;
one(N) when N rem 20 =:= 6 ->
    {ok, _} = py:await(py:spawn_call(math, sqrt, [N])),
    ok;
one(N) when N rem 20 =:= 7 ->
    ok = py:exec(<<"a = 1\nb = [a] * 10\n">>),
    {ok, 10} = py:eval(<<"len(b)">>),
    ok;
one(N) when N rem 20 =:= 8 ->
    Term = #{<<"n">> => N, <<"list">> => lists:seq(1, 20), <<"bin">> => {bytes, <<N:64>>}},
    {ok, #{<<"n">> := N}} = py:call(soak_mod, ident, [Term]),
    ok;
one(N) when N rem 20 =:= 9 ->
    Big = N bsl 200,
    {ok, Big} = py:call(soak_mod, ident, [Big]),
    ok;
one(N) ->
    {ok, N} = py:call(soak_mod, ident, [N]),
    ok.

%% Kills callers in mid-call, some of them inside a callback.
killer() ->
    receive
        {stop, From} -> From ! {stopped, self()}
    after 5 ->
        {Pid, Monitor} = spawn_monitor(fun() -> py:call(time, sleep, [0.02]) end),
        {Other, OtherMonitor} = spawn_monitor(fun() -> py:call(soak_mod, down, [50]) end),
        timer:sleep(1),
        exit(Pid, kill),
        exit(Other, kill),
        receive {'DOWN', Monitor, _, _, _} -> ok end,
        receive {'DOWN', OtherMonitor, _, _, _} -> ok end,
        killer()
    end.
