%% Stands for one interpreter thread of a pool: dies with it, and it ends with this process.
-module(py_worker).

-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-spec start_link(atom()) -> gen_server:start_ret().
start_link(PoolName) ->
    gen_server:start_link(?MODULE, PoolName, []).

-spec init(atom()) -> {ok, py_nif:worker()}.
init(PoolName) ->
    {ok, Pool} = py_registry:pool(PoolName),
    {ok, py_nif:worker_start(Pool)}.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(_Request, _From, State) ->
    {reply, {error, unknown}, State}.

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_Request, State) ->
    {noreply, State}.

-spec handle_info(term(), State) -> {noreply, State} | {stop, {shutdown, term()}, State}.
handle_info({py_worker_down, Why}, State) ->
    %% The supervisor starts another one.
    {stop, {shutdown, Why}, State};
handle_info(_Message, State) ->
    {noreply, State}.
