%% What loops inside the node cost: an echo server beside the same loop outside, idle connections, the
%% way of an event to its handler. Rows for `py_unified_bench' and `./dev bench async'.
-module(py_loop_bench).

-export([rows/1]).

-export_type([row/0, opts/0]).

%% Value, unit, what is wanted, and whether that was reached; `none' if it was not measured.
-type row() :: {Name :: string(), float(), Unit :: string(), Wanted :: string(), boolean() | none}.
-type opts() :: #{
    %% Of the echo, each time.
    seconds => number(),
    %% Without anything to do.
    idle_seconds => number(),
    events => pos_integer()
}.

-define(CONNECTIONS, 10).
-define(SIZE, 1024).
-define(ROUNDS, 3).

-spec rows(opts()) -> [row()].
rows(Opts) ->
    echo(maps:get(seconds, Opts, 2)) ++
        reactions(maps:get(events, Opts, 1000)) ++
        [idle(maps:get(idle_seconds, Opts, 10))].

%% ---- an echo server

echo(Seconds) ->
    {ok, Inside} = py:await(py:async_call('erlang.bench.node', serve, [])),
    case os:getenv("PY_BENCH_PYTHON") of
        false ->
            {Rate, Cpu} = client(Inside, Seconds, fun cpu_here/0),
            Wanted = "0.9 x the loop outside, which PY_BENCH_PYTHON would name",
            [
                {"TCP echo of 1 KiB in the node", Rate, "/s", Wanted, none},
                {"  CPU per round trip", Cpu, "us", "", true}
            ];
        Python ->
            {Server, Outside} = outside(Python),
            Pairs = [
                {
                    client(Inside, Seconds, fun cpu_here/0),
                    client(Outside, Seconds, fun() -> cpu_of(Server) end)
                }
             || _ <- lists:seq(1, ?ROUNDS)
            ],
            true = port_close(Server),
            {In, Out} = lists:unzip(Pairs),
            {{InRate, InCpu}, {OutRate, OutCpu}} = {best(In), best(Out)},
            [
                {"TCP echo of 1 KiB outside", OutRate, "/s", "", true},
                {"  CPU per round trip", OutCpu, "us", "", true},
                {"TCP echo of 1 KiB in the node", InRate, "/s", "0.9 x outside", InRate >= 0.9 * OutRate},
                {"  CPU per round trip", InCpu, "us", "outside / 0.9", InCpu * 0.9 =< OutCpu}
            ]
    end.

%% The highest rate, and the least CPU.
best(Rounds) ->
    {Rates, Cpus} = lists:unzip(Rounds),
    {lists:max(Rates), lists:min(Cpus)}.

outside(Python) ->
    Server = open_port({spawn_executable, Python}, [
        {args, ["-P", "-m", "erlang.bench.node"]}, {line, 100}, binary
    ]),
    {Server, line(Server)}.

%% Of the whole node.
cpu_here() ->
    {ok, Seconds} = py:call('erlang.bench.network', cpu, []),
    Seconds * 1.0e6.

cpu_of(Server) ->
    true = port_command(Server, "\n"),
    binary_to_integer(line(Server)).

line(Port) ->
    receive
        {Port, {data, {eol, Line}}} -> Line
    after 30_000 -> error({silent, Port})
    end.

%% Round trips a second, and microseconds of the server's CPU for each.
client(Address, Seconds, Cpu) ->
    {ok, Program} = py:call('erlang.bench.node', client, []),
    {ok, Python} = py:eval(<<"__import__('sys').executable">>),
    Arguments = [<<"tcp">>, Address, count(?CONNECTIONS), count(?SIZE), number(Seconds)],
    Client = open_port({spawn_executable, Python}, [
        {args, [<<"-I">>, Program | Arguments]}, {line, 100}, binary
    ]),
    <<"ready", _/binary>> = line(Client),
    Before = Cpu(),
    true = port_command(Client, "\n"),
    Said = line(Client),
    Used = Cpu() - Before,
    [Count | _] = binary:split(Said, <<" ">>),
    Trips = binary_to_integer(Count),
    true = port_close(Client),
    {Trips / Seconds, Used / Trips}.

count(N) -> integer_to_binary(N).

number(N) -> iolist_to_binary(io_lib:format("~p", [N])).

%% ---- the way of an event to its handler

reactions(Events) ->
    [
        {
            "event to handler, driver " ++ atom_to_list(Driver),
            Us,
            "us",
            lists:flatten(io_lib:format("~b us", [Most])),
            Us < Most
        }
     || {Driver, Most} <- [{thread, 30}, {beam, 90}],
        Us <- [lists:min([reaction(Driver, Events) || _ <- lists:seq(1, ?ROUNDS)])]
    ].

reaction(Driver, Events) ->
    {ok, Loop} = py_event_loop:start_link(#{driver => Driver}),
    Request = #{module => 'erlang.bench.node', func => reaction, args => [Events]},
    {ok, Ref} = py_event_loop:run_async(Loop, Request),
    {ok, Us} = py:await(Ref, infinity),
    ok = gen_server:stop(Loop),
    Us.

%% ---- idle connections

idle(Seconds) ->
    Loops = [element(2, {ok, _} = py_event_loop:start_link(#{driver => thread})) || _ <- lists:seq(1, 4)],
    Sockets = lists:append([connections(serve(Loop), 250) || Loop <- Loops]),
    Before = settled(switches(), 20),
    timer:sleep(round(Seconds * 1000)),
    Switches = switches() - Before,
    lists:foreach(fun gen_tcp:close/1, Sockets),
    lists:foreach(fun gen_server:stop/1, Loops),
    Name = io_lib:format("switches, 1000 idle connections, ~p s", [Seconds]),
    {lists:flatten(Name), float(Switches), "", "0", Switches =:= 0}.

serve(Loop) ->
    {ok, Ref} = py_event_loop:run_async(Loop, #{module => 'erlang.bench.node', func => serve}),
    {ok, Address} = py:await(Ref),
    [_, Port] = binary:split(Address, <<":">>),
    binary_to_integer(Port).

connections(Port, Count) ->
    [element(2, {ok, _} = gen_tcp:connect("127.0.0.1", Port, [])) || _ <- lists:seq(1, Count)].

%% Once nothing moves for a second.
settled(Now, 0) ->
    Now;
settled(Now, Left) ->
    timer:sleep(1000),
    case switches() of
        Now -> Now;
        Next -> settled(Next, Left - 1)
    end.

%% Of all threads of ours.
switches() ->
    lists:sum([
        binary_to_integer(Number)
     || Task <- filelib:wildcard("/proc/self/task/*"),
        {ok, <<"py-", _/binary>>} <- [file:read_file(Task ++ "/comm")],
        {ok, Status} <- [file:read_file(Task ++ "/status")],
        Line <- binary:split(Status, <<"\n">>, [global]),
        [<<_/binary>> = Key, Number] <- [binary:split(Line, <<":\t">>)],
        Key =:= <<"voluntary_ctxt_switches">> orelse Key =:= <<"nonvoluntary_ctxt_switches">>
    ]).
