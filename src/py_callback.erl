%% Python calls Erlang: starts the processes that run the functions, one callback at a time each.
%%
%% Free executors are known to the native side, which sends to them directly; only when there is
%% none does the request come here.
-module(py_callback).

-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% Started at once, so that the first callbacks find somebody.
-define(READY, 2).

-spec start_link(py_config:config()) -> gen_server:start_ret().
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

-spec init(py_config:config()) -> {ok, []}.
init(#{atom_quota := Quota}) ->
    process_flag(trap_exit, true),
    ok = py_atoms:init(Quota),
    ok = py_nif:set_process(logger, whereis(py_logger)),
    ok = py_nif:set_process(callback, self()),
    _ = [py_executor:start_link(none) || _ <- lists:seq(1, ?READY)],
    {ok, []}.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(_Request, _From, State) ->
    {reply, {error, unknown}, State}.

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_Request, State) ->
    {noreply, State}.

-spec handle_info(term(), State) -> {noreply, State}.
handle_info({py_callback, _Id, _Name, _Args, _Caller, _Leader, _About} = Request, State) ->
    _Pid = py_executor:start_link(Request),
    {noreply, State};
handle_info({'EXIT', Pid, _Why}, State) ->
    ok = py_nif:executor_died(Pid),
    {noreply, State};
handle_info(_Message, State) ->
    {noreply, State}.

%% The executors end with this process: who waits for one of them is told.
-spec terminate(term(), term()) -> ok.
terminate(_Reason, _State) ->
    py_nif:set_process(callback, undefined).
