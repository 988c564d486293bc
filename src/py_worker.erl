%% Stands for one interpreter thread of a pool, which ends with this process. A thread that hangs in C code is
%% replaced by another one; any other end of a thread is our bug, and that of this process.
-module(py_worker).

-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type state() :: {py_nif:pool(), py_nif:worker()}.

-spec start_link(atom()) -> gen_server:start_ret().
start_link(PoolName) ->
    gen_server:start_link(?MODULE, PoolName, []).

-spec init(atom()) -> {ok, state()}.
init(PoolName) ->
    {ok, Pool} = py_registry:pool(PoolName),
    {ok, {Pool, py_nif:worker_start(Pool)}}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, {error, unknown}, state()}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), state()) -> {noreply, state()} | {stop, {shutdown, term()}, state()}.
handle_info({py_worker_down, stuck}, {Pool, _Stuck}) ->
    %% The log has it already. The supervisor would add a report about nothing that is wrong in the tree.
    {noreply, {Pool, py_nif:worker_start(Pool)}};
handle_info({py_worker_down, Why}, State) ->
    {stop, {shutdown, Why}, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).
