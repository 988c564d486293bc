%% Starts a server again whose supervisor was killed, its own or that of all servers. If a server is stopped, or gives
%% up, its supervisor ends in order, and the server is forgotten. The servers that users own are stopped before the
%% application: they need it until then.
%%
%% Process: one, beside `py_asgi_sup', which it may wait for.
-module(py_asgi_keeper).

-behaviour(gen_server).

-export([start_link/0, keep/2, forget/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-include_lib("kernel/include/logger.hrl").

%% Milliseconds until the next try, and beyond `stop_timeout' until the last one: the old server may still answer
%% requests, and has the name until then.
-define(NEXT_TRY, 100).
-define(MORE, 10_000).

%% By a monitor of the supervisor of each; or, of one that has none now, by the reference of the next try.
-type state() :: #{reference() => {pid() | none, py_asgi_options:options()}}.

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% A server that is up, by its supervisor.
-spec keep(pid(), py_asgi_options:options()) -> ok.
keep(Supervisor, Options) ->
    gen_server:cast(?MODULE, {keep, Supervisor, Options}).

%% The server of that name, which is down, is not started again. `{supervised, Supervisor}': that one may start it yet.
-spec forget(term()) -> forgotten | {supervised, pid()} | unknown.
forget({Name, Node}) when is_atom(Name), is_atom(Node) -> forget({?MODULE, Node}, Name);
forget(Name) when is_atom(Name) -> forget(?MODULE, Name);
forget(_Server) -> unknown.

forget(Keeper, Name) ->
    case py_ask:server(Keeper, {forget, Name}, unknown) of
        {error, unknown} -> unknown;
        Answer -> Answer
    end.

%% The one before this process may have kept some.
-spec init([]) -> {ok, state()}.
init([]) ->
    process_flag(trap_exit, true),
    Keep = fun({Supervisor, Options}, State) -> kept(Supervisor, Options, State) end,
    {ok, lists:foldl(Keep, #{}, py_asgi_sup:servers())}.

kept(Supervisor, Options, State) ->
    case lists:keymember(Supervisor, 1, maps:values(State)) of
        true -> State;
        false -> State#{monitor(process, Supervisor) => {Supervisor, Options}}
    end.

-spec handle_call(term(), gen_server:from(), state()) ->
    {reply, forgotten | {supervised, pid()} | unknown | {error, unknown}, state()}.
handle_call({forget, Name}, _From, State) when is_atom(Name) ->
    case [{Key, Supervisor} || {Key, {Supervisor, #{name := N}}} <- maps:to_list(State), N =:= Name] of
        [] -> {reply, unknown, State};
        [{Key, Supervisor} | _] -> forget_one(Key, Supervisor, State)
    end;
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

forget_one(Try, none, State) ->
    {reply, forgotten, maps:remove(Try, State)};
forget_one(Monitor, Supervisor, State) ->
    case is_process_alive(Supervisor) of
        true ->
            {reply, {supervised, Supervisor}, State};
        false ->
            receive
                {'DOWN', Monitor, process, Supervisor, Why} ->
                    Answer =
                        case comes_back(Why) of
                            true -> forgotten;
                            false -> unknown
                        end,
                    {reply, Answer, maps:remove(Monitor, State)}
            end
    end.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast({keep, Supervisor, #{app := _} = Options}, State) when is_pid(Supervisor) ->
    {noreply, kept(Supervisor, Options, State)};
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'DOWN', Monitor, process, _Supervisor, Why}, State) when is_map_key(Monitor, State) ->
    {{_, #{app := {_, App}, stop_timeout := Limit} = Options}, Others} = maps:take(Monitor, State),
    case comes_back(Why) of
        false ->
            {noreply, Others};
        true ->
            ?LOG_ERROR("py_asgi: the supervisor of ~ts was ended (~tp), it is started again", [App, Why]),
            {noreply, again(Options, py_deadline:at(Limit + ?MORE), Others)}
    end;
handle_info({again, Try, Deadline}, State) when is_map_key(Try, State), is_integer(Deadline) ->
    {{none, Options}, Others} = maps:take(Try, State),
    {noreply, again(Options, Deadline, Others)};
%% It was forgotten.
handle_info({again, Try, _Deadline}, State) when is_reference(Try) ->
    {noreply, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

%% Nothing that users own is started any more once the name is gone.
-spec terminate(term(), state()) -> ok.
terminate(Reason, _State) when Reason =:= shutdown; Reason =:= killed ->
    true = unregister(?MODULE),
    Ends = [end_of(Server, Limit) || {Server, Limit} <- py_asgi_socket:owned()],
    lists:foreach(fun await_end/1, Ends);
terminate(_Reason, _State) ->
    ok.

end_of(Server, Limit) ->
    Monitor = monitor(process, Server),
    Server ! {py_owned_down, Monitor, process, self(), shutdown},
    {Server, Monitor, py_deadline:at(Limit)}.

await_end({Server, Monitor, Deadline}) ->
    receive
        {'DOWN', Monitor, process, Server, _} -> ok
    after py_deadline:left(Deadline) ->
        true = exit(Server, kill),
        ok
    end.

comes_back(shutdown) -> false;
%% It ended before it was known here.
comes_back(noproc) -> false;
comes_back(_Why) -> true.

%% It tells when it is up.
again(#{app := {_, App}} = Options, Deadline, State) ->
    case {py_asgi_sup:start_server(Options), py_deadline:left(Deadline)} of
        {{ok, _}, _} ->
            State;
        {{error, Reason}, 0} ->
            ?LOG_ERROR("py_asgi: ~ts is not started again. ~ts", [App, py_error:format(Reason)]),
            State;
        {{error, _}, _} ->
            Try = make_ref(),
            _ = erlang:send_after(?NEXT_TRY, self(), {again, Try, Deadline}),
            State#{Try => {none, Options}}
    end.
