%% Starts a server again whose supervisor was killed, its own or that of all servers. If a server is stopped, or gives
%% up, its supervisor ends in order, and the server is forgotten. The servers that users own are stopped before the
%% application: they need it until then.
%%
%% Process: one, beside `py_asgi_sup', which it may wait for.
-module(py_asgi_keeper).

-behaviour(gen_server).

-export([start_link/0, keep/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-include_lib("kernel/include/logger.hrl").

%% Milliseconds until the next try, and beyond `stop_timeout' until the last one: the old server may still answer
%% requests, and has the name until then.
-define(NEXT_TRY, 100).
-define(MORE, 10_000).

%% By a monitor of the supervisor of each.
-type state() :: #{reference() => {pid(), py_asgi_options:options()}}.

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% A server that is up, by its supervisor.
-spec keep(pid(), py_asgi_options:options()) -> ok.
keep(Supervisor, Options) ->
    gen_server:cast(?MODULE, {keep, Supervisor, Options}).

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

-spec handle_call(term(), gen_server:from(), state()) -> {reply, {error, unknown}, state()}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast({keep, Supervisor, #{app := _} = Options}, State) when is_pid(Supervisor) ->
    {noreply, kept(Supervisor, Options, State)};
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'DOWN', Monitor, process, _Supervisor, Why}, State) when is_map_key(Monitor, State) ->
    {{_, #{app := {_, App}, stop_timeout := Limit} = Options}, Others} = maps:take(Monitor, State),
    ok =
        case Why of
            shutdown ->
                ok;
            %% It ended before it was known here.
            noproc ->
                ok;
            _ ->
                ?LOG_ERROR("py_asgi: the supervisor of ~ts was ended (~tp), it is started again", [App, Why]),
                again(Options, py_deadline:at(Limit + ?MORE))
        end,
    {noreply, Others};
handle_info({again, #{app := _} = Options, Deadline}, State) when is_integer(Deadline) ->
    ok = again(Options, Deadline),
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

%% It tells when it is up.
again(#{app := {_, App}} = Options, Deadline) ->
    case {py_asgi_sup:start_server(Options), py_deadline:left(Deadline)} of
        {{ok, _}, _} ->
            ok;
        {{error, Reason}, 0} ->
            ?LOG_ERROR("py_asgi: ~ts is not started again. ~ts", [App, py_error:format(Reason)]);
        {{error, _}, _} ->
            _ = erlang:send_after(?NEXT_TRY, self(), {again, Options, Deadline}),
            ok
    end.
