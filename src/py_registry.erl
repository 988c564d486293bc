%% The tables everyone reads: functions that Python may call, pools and contexts by name or pid.
%%
%% Process: owns the table of pools, and takes out the contexts of processes that are gone. The
%% functions are the supervisor's: what users registered outlives every process of the tree.
-module(py_registry).

-behaviour(gen_server).

-export([start_link/0, new_functions/0]).
-export([add_function/2, remove_function/1, function/1]).
-export([add_pool/2, add_pools/2, pool_owner/1, remove_pool/1, remove_pools_of/1]).
-export([is_running/0, pool/1, pools/1, pools/0]).
-export([add_interpreter/1, interpreter/1, interpreters/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([callback/0, pool_name/0]).

-type callback() :: fun(([term()]) -> term()) | {module(), atom()}.
%% A context's process, a bound handle, or the name of a pool.
-type pool_name() :: pid() | reference() | atom() | {atom() | interpreter, pos_integer()}.

-define(FUNCTIONS, py_functions).
-define(POOLS, py_pools).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Makes the table of functions; its owner is the calling process.
-spec new_functions() -> ok.
new_functions() ->
    ?FUNCTIONS = ets:new(?FUNCTIONS, [named_table, public, {read_concurrency, true}]),
    ok.

-spec add_function(binary(), callback()) -> ok | {error, not_running}.
add_function(Name, Function) ->
    try ets:insert(?FUNCTIONS, {Name, Function}) of
        true -> ok
    catch
        %% The application is not running.
        error:badarg -> {error, not_running}
    end.

-spec remove_function(binary()) -> ok.
remove_function(Name) ->
    try ets:delete(?FUNCTIONS, Name) of
        true -> ok
    catch
        error:badarg -> ok
    end.

-spec function(binary()) -> {ok, callback()} | error.
function(Name) ->
    case ets:lookup(?FUNCTIONS, Name) of
        [{_, Function}] -> {ok, Function};
        [] -> error
    end.

%% Called by the process that owns the pool: with its death the entry goes. Nobody takes a name from a
%% process that lives.
-spec add_pool(pool_name(), py_nif:pool()) -> ok | {error, taken}.
add_pool(Name, Pool) ->
    gen_server:call(?MODULE, {add_pool, Name, Pool, self()}).

%% The same for several interpreters under one name.
-spec add_pools(atom(), [py_nif:pool(), ...]) -> ok | {error, taken}.
add_pools(Name, Pools) ->
    gen_server:call(?MODULE, {add_pool, Name, list_to_tuple(Pools), self()}).

%% A sub-interpreter, found by the number of it that object references have.
-spec add_interpreter(py_nif:pool()) -> ok.
add_interpreter(Pool) ->
    %% Numbers are given once.
    ok = add_pool({interpreter, py_nif:pool_interp(Pool)}, Pool).

-spec interpreter(pos_integer()) -> {ok, py_nif:pool()} | error.
interpreter(Number) ->
    pool({interpreter, Number}).

%% All sub-interpreters.
-spec interpreters() -> [py_nif:pool()].
interpreters() ->
    [Pool || {{interpreter, _}, Pool, _Owner} <- entries()].

-spec pool_owner(pool_name()) -> {ok, pid()} | error.
pool_owner(Name) ->
    case ets:lookup(?POOLS, Name) of
        [{_, _, Owner}] -> {ok, Owner};
        [] -> error
    end.

-spec remove_pool(pool_name()) -> ok.
remove_pool(Name) ->
    gen_server:call(?MODULE, {remove_pool, Name}).

%% Of a process that is gone: nobody shall find them who knows of its end.
-spec remove_pools_of(pid()) -> ok.
remove_pools_of(Owner) -> py_ask:server(?MODULE, {remove_pools_of, Owner}, ok).

%% Of several interpreters, one that is free; if all are busy, the one with the fewest calls that wait.
-spec pool(pool_name()) -> {ok, py_nif:pool()} | error.
pool(Name) ->
    case pools(Name) of
        [Pool] -> {ok, Pool};
        [] -> error;
        Pools -> {ok, least_busy(Pools)}
    end.

-spec is_running() -> boolean().
is_running() -> ets:whereis(?POOLS) =/= undefined.

%% All that have this name.
-spec pools(pool_name()) -> [py_nif:pool()].
pools(Name) ->
    try ets:lookup(?POOLS, Name) of
        [{_, Pools, _Owner}] when is_tuple(Pools) -> tuple_to_list(Pools);
        [{_, Pool, _Owner}] -> [Pool];
        [] -> []
    catch
        %% The application is not running.
        error:badarg -> []
    end.

least_busy(Pools) ->
    case [Pool || Pool <- Pools, not py_nif:pool_busy(Pool)] of
        [Free | _] ->
            Free;
        [] ->
            {_, Pool} = lists:min([{element(1, py_nif:pool_info(Pool)), Pool} || Pool <- Pools]),
            Pool
    end.

%% Interpreters that share a name are numbered.
-spec pools() -> [{pool_name(), py_nif:pool()}].
pools() ->
    lists:append([named(Name, Pools) || {Name, Pools, _Owner} <- entries()]).

entries() ->
    try
        ets:tab2list(?POOLS)
    catch
        error:badarg -> []
    end.

%% A sub-interpreter has the name of its context already.
named({interpreter, _Number}, _Pool) ->
    [];
named(Name, Pools) when is_tuple(Pools) ->
    Numbered = lists:zip(lists:seq(1, tuple_size(Pools)), tuple_to_list(Pools)),
    [{{Name, N}, Pool} || {N, Pool} <- Numbered];
named(Name, Pool) ->
    [{Name, Pool}].

%% A monitor for each process that has entries, and how many those are.
-type owners() :: #{pid() => {Monitor :: reference(), pos_integer()}}.

-spec init([]) -> {ok, owners()}.
init([]) ->
    ?POOLS = ets:new(?POOLS, [named_table, protected, {read_concurrency, true}]),
    {ok, #{}}.

-spec handle_call(term(), gen_server:from(), owners()) ->
    {reply, ok | {error, taken | unknown}, owners()}.
handle_call({add_pool, Name, Pool, Owner}, _From, Owners) when is_pid(Owner), node(Owner) =:= node() ->
    case ets:lookup(?POOLS, Name) of
        [{_, _, Other}] when Other =/= Owner ->
            %% The news of its end may be on its way.
            case is_process_alive(Other) of
                true -> {reply, {error, taken}, Owners};
                false -> {reply, ok, insert(Name, Pool, Owner, Owners)}
            end;
        _ ->
            {reply, ok, insert(Name, Pool, Owner, Owners)}
    end;
handle_call({remove_pool, Name}, _From, Owners) ->
    {reply, ok, remove(Name, Owners)};
handle_call({remove_pools_of, Owner}, _From, Owners) ->
    {reply, ok, remove_all(Owner, Owners)};
handle_call(Request, _From, Owners) ->
    py_stray:call(?MODULE, Request, Owners).

insert(Name, Pool, Owner, Owners) ->
    Others = remove(Name, Owners),
    true = ets:insert(?POOLS, {Name, Pool, Owner}),
    case Others of
        #{Owner := {Monitor, Count}} -> Others#{Owner := {Monitor, Count + 1}};
        #{} -> Others#{Owner => {monitor(process, Owner), 1}}
    end.

remove(Name, Owners) ->
    case ets:take(?POOLS, Name) of
        [{_, _, Owner}] -> leave(Owner, Owners);
        [] -> Owners
    end.

%% With its last entry nobody needs to know of its end.
leave(Owner, Owners) ->
    case Owners of
        #{Owner := {Monitor, 1}} ->
            true = demonitor(Monitor, [flush]),
            maps:remove(Owner, Owners);
        #{Owner := {Monitor, Count}} ->
            Owners#{Owner := {Monitor, Count - 1}};
        #{} ->
            Owners
    end.

remove_all(Owner, Owners) ->
    true = ets:match_delete(?POOLS, {'_', '_', Owner}),
    case maps:take(Owner, Owners) of
        {{Monitor, _Count}, Others} ->
            true = demonitor(Monitor, [flush]),
            Others;
        error ->
            Owners
    end.

-spec handle_cast(term(), owners()) -> {noreply, owners()}.
handle_cast(Request, Owners) ->
    py_stray:cast(?MODULE, Request, Owners).

-spec handle_info(term(), owners()) -> {noreply, owners()}.
handle_info({'DOWN', _Monitor, process, Owner, _Why}, Owners) when is_pid(Owner) ->
    {noreply, remove_all(Owner, Owners)};
handle_info(Message, Owners) ->
    py_stray:info(?MODULE, Message, Owners).
