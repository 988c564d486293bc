%% The interpreters that `py:parallel' works with: started when first needed, replaced when one dies, ended when
%% nobody has used them for a while, or when Python code wants to fork.
%%
%% Where Python has no own-GIL sub-interpreters (3.11), or needs none (free-threaded), the main
%% pool's threads do the work.
-module(py_subinterp_pool).

-behaviour(gen_server).

-export([start_link/1, workers/1, new_path/0, end_idle/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([worker/0]).

%% `default' stands for one thread of the main pool.
-type worker() :: py_nif:pool() | default.

-record(state, {
    size :: pos_integer(),
    threads :: pos_integer(),
    %% Milliseconds that unused interpreters stay.
    idle :: timeout(),
    contexts = [] :: [{pid(), py_nif:pool()}],
    %% Who may submit to them, by the monitor of each.
    users = #{} :: #{reference() => pid()},
    timer = none :: none | reference()
}).

%% Milliseconds that a thread which forks waits for this process: it may be making interpreters.
-define(END_IDLE, 5000).

-spec start_link(py_config:config()) -> gen_server:start_ret().
start_link(#{num_subinterp_workers := Size, num_workers := Threads, subinterp_idle_ms := Idle}) ->
    State = #state{size = Size, threads = Threads, idle = Idle},
    gen_server:start_link({local, ?MODULE}, ?MODULE, State, []).

%% Those that work is given to, one call at a time each. They stay while the user lives.
-spec workers(User :: pid()) -> {ok, [worker(), ...]} | {error, py_error:reason()}.
workers(User) -> py_ask:server(?MODULE, {workers, User}, {error, not_running}).

%% Ends those that nobody uses. Whether no sub-interpreter at all is left, save those that just end.
-spec end_idle() -> boolean().
end_idle() ->
    try
        gen_server:call(?MODULE, end_idle, ?END_IDLE)
    catch
        exit:_ -> false
    end.

%% The main interpreter finds modules elsewhere now: so do those of the pool, from their next call on.
-spec new_path() -> ok.
new_path() ->
    gen_server:cast(?MODULE, new_path).

-spec init(#state{}) -> {ok, #state{}}.
init(State) ->
    {ok, State}.

-spec handle_call({workers, pid()} | end_idle | term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({workers, User}, _From, #state{threads = Threads} = State) when is_pid(User) ->
    case py_stats:execution_mode() of
        subinterp ->
            case fill(State) of
                {ok, #state{contexts = Contexts} = Filled} ->
                    {reply, {ok, free([Pool || {_, Pool} <- Contexts])}, used_by(User, Filled)};
                {error, _} = Error ->
                    {reply, Error, State}
            end;
        _ ->
            {reply, {ok, lists:duplicate(Threads, default)}, State}
    end;
handle_call(end_idle, _From, State) ->
    Left = without_idle(State),
    {reply, py_registry:interpreters() =:= [], Left};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

%% The same run asks again when an interpreter of its was replaced.
used_by(User, #state{users = Users} = State) ->
    Timeless = forget_timer(State),
    case lists:member(User, maps:values(Users)) of
        true -> Timeless;
        false -> Timeless#state{users = Users#{monitor(process, User) => User}}
    end.

forget_timer(#state{timer = none} = State) ->
    State;
forget_timer(#state{timer = Timer} = State) ->
    _ = erlang:cancel_timer(Timer),
    State#state{timer = none}.

%% Without users nobody submits: who works is a call that was cancelled and does not stop.
without_idle(#state{users = Users, contexts = Contexts} = State) when map_size(Users) =:= 0 ->
    {Stay, Idle} = lists:partition(fun({_, Pool}) -> py_nif:pool_in_use(Pool) end, Contexts),
    ok = lists:foreach(fun({Pid, _Pool}) -> py_context:stop(Pid) end, Idle),
    State#state{contexts = Stay};
without_idle(State) ->
    State.

wait_idle(#state{idle = Idle, users = Users, contexts = [_ | _], timer = none} = State) when
    Idle =/= infinity, map_size(Users) =:= 0
->
    State#state{timer = erlang:start_timer(Idle, self(), idle)};
wait_idle(State) ->
    State.

%% Those that have nothing to do, if there are any: one may hang in a call that nobody waits for.
free(Pools) ->
    case [Pool || Pool <- Pools, not py_nif:pool_busy(Pool)] of
        [] -> Pools;
        Free -> Free
    end.

%% One after another, as CPython wants it.
fill(#state{size = Size, contexts = Contexts} = State) when length(Contexts) >= Size ->
    {ok, State};
fill(#state{contexts = Contexts} = State) ->
    case py_context:new(#{mode => subinterp, timeout => infinity}) of
        {ok, Pid} ->
            _ = monitor(process, Pid),
            {ok, Pool} = py_registry:pool(Pid),
            fill(State#state{contexts = [{Pid, Pool} | Contexts]});
        {error, _} = Error ->
            Error
    end.

-spec handle_cast(new_path | term(), #state{}) -> {noreply, #state{}}.
handle_cast(new_path, #state{contexts = []} = State) ->
    %% Interpreters take the path when they start.
    {noreply, State};
handle_cast(new_path, #state{contexts = Contexts} = State) ->
    _ =
        case py:call('erlang._boot', before_subinterpreters, []) of
            {ok, {Path, _Converters}} ->
                [py:cast(Pid, 'erlang._boot', inherit, [Path]) || {Pid, _Pool} <- Contexts];
            {error, _} ->
                []
        end,
    {noreply, State};
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', Monitor, process, _User, _Why}, #state{users = Users} = State) when
    is_map_key(Monitor, Users)
->
    {noreply, wait_idle(State#state{users = maps:remove(Monitor, Users)})};
handle_info({'DOWN', _Monitor, process, Pid, _Why}, #state{contexts = Contexts} = State) ->
    %% The next one that asks gets a full pool again.
    {noreply, State#state{contexts = lists:keydelete(Pid, 1, Contexts)}};
handle_info({timeout, Timer, idle}, #state{timer = Timer} = State) ->
    {noreply, wait_idle(without_idle(State#state{timer = none}))};
handle_info({timeout, _Cancelled, idle}, State) ->
    {noreply, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).
