%% What the suites share: the application started, Python modules of the tests on the path, errors
%% checked against the closed list, child nodes.
%%
%% Process: the test's own.
-module(py_test).

-export([cases/1, order/0, full/2, start/1, start_on/2, stop_driver/0, stop/0, export_python/1, add_path/1, root/0]).
-export([with_numpy/1, use_venv/0, leave_venv/0]).
-export([reason/1, collect_if_free_threaded/0, eventually/1, eventually/2, milliseconds/1, median/1]).
-export([message/0, message/1, nothing_waits/0, in_process/1, down/1]).
-export([holding_gil/1, begun/1, ended/1, occupy/2, release/1, pool_threads/1, workers/1]).
-export([written/2]).
-export([peer/1, peer/2, distributed_peer/2, free_port/0, stop_peer/1, run_node/2, run_program/3, paths/0]).

%% No event of ours takes longer than this on a machine that works.
-define(PATIENCE, 60_000).

%% The cases of a suite: its functions with one argument.
-spec cases(module()) -> [atom()].
cases(Suite) ->
    [Name || {Name, 1} <- Suite:module_info(exports)] -- [module_info, init_per_suite, end_per_suite].

%% The order of the cases of a group: theirs, or a random one (`./dev test --stress').
-spec order() -> [{shuffle, {integer(), integer(), integer()}}].
order() ->
    case os:getenv("PY_TEST_SEED") of
        false -> [];
        Seed -> [{shuffle, {list_to_integer(Seed), 1, 1}}]
    end.

%% How many of something: the second is for `./dev test --all'.
-spec full(T, T) -> T.
full(Usual, Full) ->
    case os:getenv("PY_TEST_FULL") of
        false -> Usual;
        _ -> Full
    end.

%% Starts the application, with the Python modules of all suites and of this one on `sys.path'.
-spec start(ct_suite:ct_config()) -> ct_suite:ct_config().
start(Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = export_python(proplists:get_value(data_dir, Config)),
    Config.

%% The same with event loops of that driver, until `stop_driver/0'.
-spec start_on(thread | beam, ct_suite:ct_config()) -> ct_suite:ct_config().
start_on(Driver, Config) ->
    _ = application:stop(erlang_python),
    ok = application:set_env(erlang_python, driver, Driver),
    start(Config).

-spec stop_driver() -> ok.
stop_driver() ->
    _ = application:stop(erlang_python),
    application:unset_env(erlang_python, driver).

-spec export_python(file:filename()) -> ok.
export_python(DataDir) ->
    Test = filename:dirname(filename:absname(DataDir)),
    ok = add_path(filename:join(Test, "py_test_data")),
    add_path(filename:absname(DataDir)).

%% Modules in the directory can be imported from now on.
-spec add_path(file:filename()) -> ok.
add_path(Dir) ->
    {ok, _} = py:eval(
        <<"dir in __import__('sys').path or __import__('sys').path.append(dir)">>,
        #{dir => unicode:characters_to_binary(Dir)}
    ),
    ok.

%% The project, which is above the build directory that this module was compiled into.
-spec root() -> file:filename().
root() -> root(filename:absname(filename:dirname(code:which(?MODULE)))).

root("/") -> error("the suite is not in a build directory of the project");
root(Dir) ->
    case filelib:is_file(filename:join(Dir, "dev")) andalso filelib:is_dir(filename:join(Dir, "native")) of
        true -> Dir;
        false -> root(filename:dirname(Dir))
    end.

%% The packages of the tests can be imported, if there are any.
-spec use_venv() -> ok.
use_venv() ->
    case os:getenv("PY_TEST_VENV", "") of
        "" -> ok;
        Venv -> py:activate_venv(Venv)
    end.

-spec leave_venv() -> ok.
leave_venv() -> py:deactivate_venv().

%% Runs the fun where numpy can be imported, from the tests' own packages if there are any.
-spec with_numpy(fun(() -> term())) -> term().
with_numpy(Fun) ->
    ok = use_venv(),
    try
        case py:exec(<<"import numpy">>) of
            ok -> Fun();
            {error, {'ModuleNotFoundError', _}} -> {skip, "numpy is not installed"}
        end
    after
        ok = leave_venv()
    end.

-spec stop() -> ok.
stop() ->
    ok = application:stop(erlang_python).

%% The reason of an error, if it belongs to the closed list.
-spec reason({error, term()}) -> term().
reason({error, Reason}) ->
    case py_error:is_reason(Reason) of
        true -> Reason;
        false -> error({not_in_the_closed_list, Reason})
    end;
reason(Other) ->
    error({no_error, Other}).

%% Waits until the fun is true; for what sends no event.
-spec eventually(fun(() -> boolean())) -> ok.
eventually(Fun) -> eventually(Fun, ?PATIENCE).

-spec eventually(fun(() -> boolean()), timeout()) -> ok.
eventually(Fun, Left) ->
    case Fun() of
        true ->
            ok;
        _ when Left =< 0 ->
            error({never, Fun, erlang:fun_info(Fun, env), process_info(self(), messages)});
        _ ->
            timer:sleep(10),
            eventually(Fun, Left - 10)
    end.

%% Without a GIL an object that one thread made and another one dropped is freed when the first one runs
%% again, or by a collection.
-spec collect_if_free_threaded() -> ok.
collect_if_free_threaded() ->
    case py:execution_mode() of
        free_threaded -> {ok, _} = py:gc(), ok;
        _ -> ok
    end.

%% How long it took, and what came of it.
-spec milliseconds(fun(() -> T)) -> {float(), T}.
milliseconds(Fun) ->
    {Micros, Value} = timer:tc(Fun),
    {Micros / 1000, Value}.

-spec median([number()]) -> number().
median(Numbers) ->
    lists:nth(length(Numbers) div 2 + 1, lists:sort(Numbers)).

%% The next message, whatever it is.
-spec message() -> term().
message() ->
    receive
        Message -> Message
    after ?PATIENCE -> error(no_message)
    end.

%% Waits for this message.
-spec message(term()) -> ok.
message(Expected) ->
    receive
        Expected -> ok
    after ?PATIENCE -> error({no_message, Expected, process_info(self(), messages)})
    end.

-spec nothing_waits() -> ok.
nothing_waits() ->
    {messages, []} = process_info(self(), messages),
    ok.

%% Runs the fun in a process of its own, and gives its value or fails as it did.
-spec in_process(fun(() -> T)) -> T.
in_process(Fun) ->
    {_, Monitor} = spawn_monitor(fun() -> exit({value, Fun()}) end),
    receive
        {'DOWN', Monitor, process, _, {value, Value}} -> Value;
        {'DOWN', Monitor, process, _, Why} -> error(Why)
    end.

%% Kills a process and waits for its end.
-spec down(pid()) -> ok.
down(Pid) ->
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Monitor, process, Pid, _} -> ok
    end.

%% Runs the fun while a Python thread holds the GIL: until the fun is over, so that no load of the machine matters.
%% What waits for the GIL waits for half a minute, and then the test fails.
-spec holding_gil(fun(() -> T)) -> T.
holding_gil(Fun) ->
    Ref = py:spawn_call(py_gil, hold_until_written, [self()]),
    Pipe = receive {<<"holding">>, Path} -> Path after ?PATIENCE -> error(never_held) end,
    %% The send comes just before the GIL is kept.
    timer:sleep(20),
    Value = Fun(),
    receive
        <<"released">> -> error("the GIL was released before the end of the test")
    after 0 -> ok
    end,
    ok = file:write_file(Pipe, <<"x">>),
    ok = message(<<"released">>),
    {ok, none} = py:await(Ref),
    Value.

%% A coroutine of `py_asyncs' has begun, or ended, under this name.
-spec begun(binary()) -> ok.
begun(Name) -> noted(begun, Name).

-spec ended(binary()) -> ok.
ended(Name) -> noted(ended, Name).

noted(List, Name) ->
    eventually(fun() -> {ok, true} =:= py:call(py_asyncs, has, [List, Name]) end).

%% Keeps `Count' threads of a pool busy, until `release/1'.
-spec occupy(atom() | pid(), pos_integer()) -> {binary(), [reference()]}.
occupy(Pool, Count) ->
    Gate = integer_to_binary(erlang:unique_integer([positive])),
    Refs = [py:spawn_call(Pool, py_tools, wait_at, [Gate, self()]) || _ <- lists:seq(1, Count)],
    [ok = message({<<"at">>, Gate}) || _ <- Refs],
    {Gate, Refs}.

-spec release({binary(), [reference()]}) -> ok.
release({Gate, Refs}) ->
    %% Not by a call: all threads may be busy.
    ok = py:bind(),
    {ok, _} = py:call(py_tools, open_gate, [Gate]),
    ok = py:unbind(),
    [{ok, <<"through">>} = py:await(Ref) || Ref <- Refs],
    ok.

-spec pool_threads(atom()) -> non_neg_integer().
pool_threads(Name) ->
    #{pools := #{Name := #{threads := Threads}}} = py:stats(),
    Threads.

%% The processes that stand for the threads of the main pool.
-spec workers(main) -> [pid()].
workers(main) ->
    [Sup] = [P || {{py_pool_sup, main}, P, _, _} <- supervisor:which_children(py_services_sup)],
    [Workers] = [P || {py_worker_sup, P, _, _} <- supervisor:which_children(Sup)],
    [Pid || {{py_worker, _}, Pid, _, _} <- supervisor:which_children(Workers), is_pid(Pid)].

%% A node of its own, reached over its standard input and output, with settings of the application.
-spec peer([{atom(), term()}]) -> pid().
peer(Settings) -> peer(Settings, []).

%% The same with variables of the environment.
-spec peer([{atom(), term()}], [{string(), string()}]) -> pid().
peer(Settings, Env) ->
    {ok, Peer, _Node} = peer:start(#{
        connection => standard_io, args => paths(), env => Env, wait_boot => 20_000
    }),
    ok = peer:call(Peer, application, load, [erlang_python]),
    [ok = peer:call(Peer, application, set_env, [erlang_python, K, V]) || {K, V} <- Settings],
    Peer.

%% A node that other such nodes can connect to, without epmd and whatever the machine is called. They agree on a port;
%% one of them listens there.
-spec distributed_peer(inet:port_number(), Listens :: boolean()) -> pid().
distributed_peer(Port, Listens) ->
    Args = [
        ["-start_epmd", "false"],
        ["-erl_epmd_port", integer_to_list(Port)],
        ["-dist_listen", atom_to_list(Listens)],
        paths()
    ],
    {ok, Peer, _Node} = peer:start(#{
        name => peer:random_name(),
        host => "127.0.0.1",
        longnames => true,
        connection => standard_io,
        args => lists:append(Args),
        wait_boot => 20_000
    }),
    Peer.

%% A port of this machine that nobody listens on.
-spec free_port() -> inet:port_number().
free_port() ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

%% A page of the documentation as `./dev fmt' would write it.
-spec written(file:filename(), ct_suite:ct_config()) -> binary().
written(Page, Config) ->
    Copy = filename:join(proplists:get_value(priv_dir, Config), filename:basename(Page)),
    {ok, _} = file:copy(filename:join(root(), Page), Copy),
    Args = [filename:join(root(), "scripts/tables.escript"), filename:dirname(code:which(py)), "write", Copy],
    {0, _, _} = run_program(os:find_executable("escript"), Args, ?PATIENCE),
    {ok, Text} = file:read_file(Copy),
    Text.

-spec stop_peer(pid()) -> ok.
stop_peer(Peer) -> peer:stop(Peer).

%% Runs an expression in a node as its user would: `{ExitCode, Output, Milliseconds}'. The
%% expression ends the node.
-spec run_node(string(), timeout()) -> {integer() | timeout, binary(), float()}.
run_node(Expression, Limit) ->
    run_program(os:find_executable("erl"), paths() ++ ["-noinput", "-eval", Expression], Limit).

-spec run_program(file:filename(), [string() | binary()], timeout()) -> {integer() | timeout, binary(), float()}.
run_program(Program, Args, Limit) ->
    Port = open_port({spawn_executable, Program}, [
        {args, Args},
        {env, [{"ERL_CRASH_DUMP_BYTES", "0"}]},
        exit_status,
        stderr_to_stdout,
        binary
    ]),
    Start = erlang:monotonic_time(microsecond),
    {Status, Output} = collect(Port, Limit, []),
    {Status, Output, (erlang:monotonic_time(microsecond) - Start) / 1000}.

collect(Port, Limit, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, Limit, [Output, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Output)}
    after Limit ->
        {os_pid, Pid} = erlang:port_info(Port, os_pid),
        _ = os:cmd("kill -9 " ++ integer_to_list(Pid)),
        {timeout, iolist_to_binary(Output)}
    end.

%% What `erl' needs to find the application and the tests.
-spec paths() -> [string()].
paths() ->
    Ours = [filename:absname(filename:dirname(code:which(M))) || M <- [py, ?MODULE]],
    ["-pa" | Ours].
