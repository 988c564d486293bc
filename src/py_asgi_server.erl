%% A server: has the listening sockets, and starts a worker again when its loop has died.
%%
%% Process: one per server, under a `py_asgi_server_sup'. The sockets end with it, and one that was killed listens at
%% the same port again.
-module(py_asgi_server).

-behaviour(gen_server).

-export([start_link/2, start_own/1, history/0]).
-export_type([history/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-include_lib("kernel/include/logger.hrl").

%% A worker that fails so often in a row does not start any more: the server gives up.
-define(MOST_FAILURES, 5).
%% Milliseconds before a worker that failed is started again; doubled each time.
-define(PAUSE, 100).
%% How often a server that was killed tries to listen again, and the milliseconds between: its loops have
%% copies of the socket, and end after it.
-define(TRIES, 200).
-define(NEXT_TRY, 50).

%% How often a server was started, and the port that it got.
-define(STARTS, 1).
-define(PORT, 2).
-type history() :: counters:counters_ref().

-record(worker, {
    pid :: pid() | undefined,
    status = starting :: starting | up | down,
    restarts = 0 :: non_neg_integer(),
    %% Since it was up the last time.
    failures = 0 :: non_neg_integer()
}).
-record(state, {
    supervisor :: pid() | {own, Owner :: pid()},
    options :: py_asgi_options:options(),
    sockets = [] :: py_asgi_socket:sockets(),
    file = none :: py_asgi_socket:file(),
    %% Workers with one socket share its connections.
    share :: pos_integer() | none,
    address :: #{atom() => term()},
    workers = #{} :: #{pos_integer() => #worker{}},
    %% Who waits for the end.
    stoppers = [] :: [gen_server:from()],
    phase = starting :: starting | up | stopping
}).

%% Of a server that is to be started for the first time.
-spec history() -> history().
history() -> counters:new(2, []).

-spec start_link(pid(), py_asgi_options:options()) -> gen_server:start_ret().
start_link(Supervisor, #{name := Name} = Options) ->
    gen_server:start_link({local, Name}, ?MODULE, {Supervisor, Options}, []);
start_link(Supervisor, Options) ->
    gen_server:start_link(?MODULE, {Supervisor, Options}, []).

%% One that a user owns, who starts it again: its end is not that of its supervisor.
-spec start_own(py_asgi_options:options()) -> gen_server:start_ret().
start_own(#{name := Name} = Options) ->
    gen_server:start_link({local, Name}, ?MODULE, {{own, self()}, Options}, []);
start_own(Options) ->
    gen_server:start_link(?MODULE, {{own, self()}, Options}, []).

-spec init({pid() | {own, pid()}, py_asgi_options:options()}) ->
    {ok, #state{}, {continue, start | {refuse, py_error:reason()}}} | {stop, {shutdown, py_error:reason()}}.
init({Supervisor, #{history := History} = Given}) ->
    process_flag(trap_exit, true),
    ok = if_own(fun py_owned:watch/0, Supervisor),
    Before = counters:get(History, ?STARTS),
    ok = counters:add(History, ?STARTS, 1),
    Options = same_port(counters:get(History, ?PORT), Given),
    case listen(tries(Before, Supervisor, Options), Options) of
        {ok, Sockets} ->
            ok = if_own(fun() -> py_asgi_socket:own(Options) end, Supervisor),
            Address = py_asgi_socket:address(Sockets),
            ok = counters:put(History, ?PORT, maps:get(port, Address, 0)),
            State = #state{
                supervisor = Supervisor,
                options = Options,
                sockets = Sockets,
                file = py_asgi_socket:file(Options),
                share = share(Sockets, Options),
                address = Address
            },
            {ok, State, {continue, start}};
        {error, Reason} when Before =:= 0 ->
            %% Ends as after any other refusal: the report of a supervisor would not say where it can't listen.
            State = #state{supervisor = Supervisor, options = Options, share = none, address = where(Options)},
            {ok, State, {continue, {refuse, Reason}}};
        {error, Reason} ->
            {stop, {shutdown, Reason}}
    end.

same_port(0, Options) -> Options;
same_port(Port, Options) -> Options#{port := Port}.

%% A user's server was started before with options of its own.
tries(0, {own, _}, Options) ->
    case py_asgi_socket:is_left(Options) of
        true -> ?TRIES;
        false -> 0
    end;
tries(0, _Supervisor, _Options) ->
    0;
tries(_, _Supervisor, _Options) ->
    ?TRIES.

if_own(Do, {own, _}) -> Do();
if_own(_Do, _Supervisor) -> ok.

where(#{uds := Path}) -> #{uds => Path};
where(#{host := Host, port := Port}) -> #{host => Host, port => Port}.

listen(Tries, Options) ->
    case py_asgi_socket:listen(Options) of
        {error, {posix, eaddrinuse}} when Tries > 0 ->
            ok = timer:sleep(?NEXT_TRY),
            listen(Tries - 1, Options);
        Answer ->
            Answer
    end.

share([_], #{workers := Workers}) when Workers > 1 -> erlang:unique_integer([positive]);
share(_Sockets, _Options) -> none.

-spec handle_continue(start | {refuse, py_error:reason()}, #state{}) ->
    {noreply, #state{}} | {stop, {shutdown, py_error:reason()}, #state{}}.
handle_continue({refuse, Reason}, #state{address = Address} = State) ->
    ?LOG_ERROR("py_asgi: ~ts can't listen on ~ts. ~ts", [app(State), shown(Address), py_error:format(Reason)]),
    {stop, {shutdown, Reason}, alone(State)};
handle_continue(start, #state{options = #{workers := Count, start_timeout := Limit}} = State) ->
    _ = Limit =/= infinity andalso erlang:send_after(Limit, self(), start_is_late),
    Started = fun(N, Workers) -> Workers#{N => started(N, #worker{}, State)} end,
    {noreply, State#state{workers = lists:foldl(Started, #{}, lists:seq(1, Count))}}.

shown(#{uds := Path}) -> Path;
shown(#{host := Host, port := Port}) -> [Host, $:, integer_to_list(Port)].

%% The result comes as `worker_ready' or as its exit, also when it can't even begin.
started(N, Worker, #state{options = Options, sockets = Sockets, share = Share}) ->
    Socket = lists:nth(1 + (N - 1) rem length(Sockets), Sockets),
    case py_asgi_worker:start_link(N, py_asgi_socket:fd(Socket), Share, Options) of
        {ok, Pid} ->
            Worker#worker{pid = Pid, status = starting};
        {error, Why} ->
            Worker#worker{pid = spawn_link(erlang, exit, [Why]), status = starting}
    end.

-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({stop, Timeout}, From, #state{stoppers = Stoppers} = State) ->
    after_exit(begin_stop(Timeout, State#state{stoppers = [From | Stoppers]}));
handle_call(address, _From, #state{address = Address} = State) ->
    {reply, {ok, Address}, State};
handle_call(workers, _From, #state{workers = Workers} = State) ->
    Shown = [
        #{pid => Pid, status => Status, restarts => Restarts}
     || {_, #worker{pid = Pid, status = Status, restarts = Restarts}} <- lists:sort(
            maps:to_list(Workers)
        )
    ],
    {reply, {ok, Shown}, State};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({worker_ready, N}, #state{workers = Workers} = State) when is_map_key(N, Workers) ->
    #{N := Worker} = Workers,
    Up = Worker#worker{status = up, failures = 0},
    {noreply, if_all_are_up(State#state{workers = Workers#{N := Up}})};
handle_info({'EXIT', Pid, Why}, #state{workers = Workers} = State) ->
    case [N || {N, #worker{pid = P}} <- maps:to_list(Workers), P =:= Pid] of
        [N] -> worker_ended(N, reason(Why), State);
        %% A listening socket.
        [] when is_port(Pid) -> {stop, Why, State};
        [] -> py_stray:info(?MODULE, {'EXIT', Pid, Why}, State)
    end;
handle_info({start_worker, N}, #state{phase = up, workers = Workers} = State) when is_map_key(N, Workers) ->
    #{N := Worker} = Workers,
    {noreply, State#state{workers = Workers#{N := started(N, Worker, State)}}};
handle_info(start_is_late, #state{phase = starting} = State) ->
    refuse(timeout, State);
handle_info(start_is_late, State) ->
    {noreply, State};
handle_info({start_worker, _}, #state{phase = stopping} = State) ->
    {noreply, State};
handle_info({py_owned_down, _, process, _, _}, State) ->
    {stop, {shutdown, not_running}, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

if_all_are_up(#state{phase = starting, workers = Workers} = State) ->
    case lists:all(fun(#worker{status = Status}) -> Status =:= up end, maps:values(Workers)) of
        true ->
            ok = tell_starter({ok, self()}, State),
            ok = keep(State),
            State#state{phase = up};
        false ->
            State
    end;
if_all_are_up(State) ->
    State.

keep(#state{supervisor = {own, _}}) -> ok;
keep(#state{supervisor = Supervisor, options = Options}) -> py_asgi_keeper:keep(Supervisor, Options).

tell_starter(Result, #state{options = #{starter := Starter}}) ->
    _ = Starter ! {Starter, Result},
    ok.

reason({shutdown, Reason}) -> Reason;
reason(Reason) -> {context_died, Reason}.

worker_ended(N, Why, #state{phase = starting} = State) ->
    refuse(Why, forget(N, State));
worker_ended(N, _Why, #state{phase = stopping} = State) ->
    after_exit(forget(N, State));
worker_ended(N, not_running, #state{workers = Workers} = State) ->
    %% A service that it needs is being replaced.
    #{N := Worker} = Workers,
    _ = erlang:send_after(?PAUSE, self(), {start_worker, N}),
    {noreply, State#state{workers = Workers#{N := Worker#worker{pid = undefined, status = down}}}};
worker_ended(N, Why, #state{workers = Workers} = State) ->
    #{N := #worker{failures = Failures, restarts = Restarts} = Worker} = Workers,
    case Failures < ?MOST_FAILURES of
        true ->
            ?LOG_ERROR("py_asgi: worker ~b of ~ts ended and is started again. ~ts", [
                N, app(State), py_error:format(Why)
            ]),
            _ = erlang:send_after(?PAUSE bsl Failures, self(), {start_worker, N}),
            Down = Worker#worker{
                pid = undefined, status = down, failures = Failures + 1, restarts = Restarts + 1
            },
            {noreply, State#state{workers = Workers#{N := Down}}};
        false ->
            ?LOG_ERROR("py_asgi: ~ts does not start any more, and its server ends. ~ts", [
                app(State), py_error:format(Why)
            ]),
            {stop, {shutdown, Why}, forget(N, State)}
    end.

app(#state{options = #{app := {_, Name}}}) -> Name.

forget(N, #state{workers = Workers} = State) ->
    State#state{workers = maps:remove(N, Workers)}.

%% The application did not start: whoever waits hears why, when all is gone.
refuse(Why, State) ->
    ?LOG_ERROR("py_asgi: ~ts did not start. ~ts", [app(State), py_error:format(Why)]),
    {stop, {shutdown, Why}, alone(State)}.

%% Who waits for the start of its own server gets the reason, and does not end with it.
alone(#state{supervisor = {own, Owner}} = State) ->
    true = unlink(Owner),
    State;
alone(State) ->
    State.

begin_stop(Timeout, #state{phase = stopping} = State) ->
    ok = tell_stop(Timeout, State),
    State;
begin_stop(Timeout, #state{sockets = Sockets, file = File} = State) ->
    ok = if_own(fun py_asgi_socket:ends/0, State#state.supervisor),
    ok = py_asgi_socket:close(Sockets, File),
    ok = tell_stop(Timeout, State),
    Alive = maps:filter(fun(_, #worker{pid = Pid}) -> is_pid(Pid) end, State#state.workers),
    State#state{phase = stopping, workers = Alive}.

tell_stop(default, #state{options = #{stop_timeout := Timeout}} = State) ->
    tell_stop(Timeout, State);
tell_stop(Timeout, #state{workers = Workers}) ->
    Pids = [Pid || #worker{pid = Pid} <- maps:values(Workers), is_pid(Pid)],
    lists:foreach(fun(Pid) -> ok = py_asgi_worker:stop(Pid, Timeout) end, Pids).

%% The last worker is gone: so is the server.
after_exit(#state{phase = stopping, workers = Workers} = State) when map_size(Workers) =:= 0 ->
    {stop, normal, State};
after_exit(State) ->
    {noreply, State}.

-spec terminate(term(), #state{}) -> ok.
terminate(Reason, #state{phase = Phase} = State) ->
    #state{stoppers = Stoppers, supervisor = Supervisor} = wait_for_all(begin_stop(default, State)),
    ok = if_own(fun py_asgi_socket:disown/0, Supervisor),
    Phase =:= starting andalso tell_starter({error, reason(Reason)}, State),
    lists:foreach(fun(From) -> gen_server:reply(From, ok) end, Stoppers).

wait_for_all(#state{workers = Workers} = State) when map_size(Workers) =:= 0 ->
    State;
wait_for_all(#state{workers = Workers} = State) ->
    receive
        {'EXIT', Pid, _} ->
            Left = maps:filter(fun(_, #worker{pid = P}) -> P =/= Pid end, Workers),
            wait_for_all(State#state{workers = Left})
    end.
