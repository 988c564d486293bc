%% Python calls Erlang: starts the processes that run the functions, one callback at a time each.
%%
%% Free executors are known to the native side, which sends to them directly: to one that has worked for the same
%% caller, else to a fresh one. Only when there is none does the request come here. At most `max_callbacks' of them run
%% at once.
-module(py_callback).

-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% Fresh executors that are started at once when they are few: one message for several callers.
-define(READY, 8).

%% What the native side counts callbacks with.
-define(IS_ID(Id), (is_integer(Id) andalso Id >= 0 andalso Id =< 16#FFFFFFFFFFFFFFFF)).

-record(state, {
    max :: pos_integer(),
    executors = #{} :: #{pid() => []}
}).

-spec start_link(py_config:config()) -> gen_server:start_ret().
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

-spec init(py_config:config()) -> {ok, #state{}}.
init(#{atom_quota := Quota, max_callbacks := Max}) ->
    process_flag(trap_exit, true),
    ok = py_atoms:init(Quota),
    ok = py_nif:set_process(logger, whereis(py_logger)),
    ok = py_nif:set_process(callback, self()),
    {ok, refill(#state{max = Max})}.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({py_callback, Id, _, _, _, _, _} = Request, #state{max = Max, executors = All} = State) when
    ?IS_ID(Id), map_size(All) >= Max
->
    %% Some of them may only wait for their callers.
    case py_nif:executor_evict() of
        true ->
            {noreply, started(Request, State)};
        false ->
            ok = py_nif:callback_refuse(Id, term_to_binary({error, {overload, too_many(Max)}, []})),
            {noreply, State}
    end;
handle_info({py_callback, Id, _Name, _Args, _Caller, _Leader, _About} = Request, State) when ?IS_ID(Id) ->
    {noreply, started(Request, State)};
handle_info(py_more, State) ->
    {noreply, refill(State)};
handle_info({py_abandoned, Pid}, #state{executors = All} = State) when is_map_key(Pid, All) ->
    %% The coroutine that called it was cancelled.
    true = exit(Pid, cancelled),
    {noreply, State};
handle_info({py_abandoned, _Ended}, State) ->
    {noreply, State};
handle_info({'EXIT', Pid, _Why}, #state{executors = All} = State) when is_map_key(Pid, All) ->
    ok = py_nif:executor_died(Pid),
    {noreply, State#state{executors = maps:remove(Pid, All)}};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

started(Request, #state{executors = All} = State) ->
    Pid = py_executor:start_link(Request),
    State#state{executors = All#{Pid => []}}.

%% Never more than `max_callbacks', which may be fewer. While some that were told to leave are still there, there are
%% more already.
refill(#state{max = Max, executors = All} = State) ->
    Room = max(0, min(?READY, Max - map_size(All))),
    lists:foldl(fun(_, Filled) -> started(none, Filled) end, State, lists:seq(1, Room)).

too_many(Max) ->
    py_text:format(
        "~b Erlang functions run for Python, as many as max_callbacks allows. Let fewer calls wait at a "
        "time, or raise max_callbacks in the configuration of erlang_python.",
        [Max]
    ).

%% The executors end with this process: who waits for one of them is told.
-spec terminate(term(), term()) -> ok.
terminate(_Reason, _State) ->
    py_nif:set_process(callback, undefined).
