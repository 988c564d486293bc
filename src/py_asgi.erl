%% ASGI applications (FastAPI, Starlette, Django) in the node, served over HTTP/1.1 and WebSocket.
%%
%% Process: the caller's own; a server is a `py_asgi_server' under `py_asgi_sup'.
-module(py_asgi).

-export([run/4, run/5, run_async/4, run_async/5, await_response/1, await_response/2, ack/2]).
-export([start_link/1, child_spec/1, serve/1, serve/2, stop/1, stop/2, port/1, reload/1, info/1]).

-export_type([server/0]).

%% What `serve' gave, or the `name' of its options.
-type server() :: pid() | atom().

-spec run(py_call:name(), py_call:name(), py_asgi_scope:scope(), py_asgi_run:body()) ->
    {ok, py_asgi_run:response()} | {error, py_error:reason()}.
run(Mod, Callable, Scope, Body) ->
    run(Mod, Callable, Scope, Body, #{}).

%% One request, for those who have a server of their own. With `stream_to' the response goes to that
%% process piece by piece, and the body of the result is empty.
-spec run(Mod, Callable, py_asgi_scope:scope(), py_asgi_run:body(), timeout() | py_asgi_run:opts()) ->
    {ok, py_asgi_run:response()} | {error, py_error:reason()}
when
    Mod :: py_call:name(), Callable :: py_call:name().
run(Mod, Callable, Scope, Body, Opts) ->
    py_asgi_run:run(Mod, Callable, Scope, Body, Opts).

-spec run_async(py_call:name(), py_call:name(), py_asgi_scope:scope(), py_asgi_run:body()) ->
    {ok, reference()}.
run_async(Mod, Callable, Scope, Body) ->
    run_async(Mod, Callable, Scope, Body, #{}).

%% `{asgi_response, Ref, Result}' will come.
-spec run_async(Mod, Callable, py_asgi_scope:scope(), py_asgi_run:body(), Opts) -> {ok, reference()} when
    Mod :: py_call:name(), Callable :: py_call:name(), Opts :: timeout() | py_asgi_run:opts().
run_async(Mod, Callable, Scope, Body, Opts) ->
    py_asgi_run:start(Mod, Callable, Scope, Body, Opts).

-spec await_response(reference()) -> {ok, py_asgi_run:response()} | {error, py_error:reason()}.
await_response(Ref) ->
    await_response(Ref, py_call:default_timeout()).

%% On timeout the request is cancelled, and no message stays behind. A response is awaited once.
-spec await_response(reference(), timeout()) ->
    {ok, py_asgi_run:response()} | {error, py_error:reason()}.
await_response(Ref, Timeout) ->
    py_asgi_run:await(Ref, Timeout).

%% So many more pieces of a streamed response may come.
-spec ack(reference(), pos_integer()) -> ok.
ack(Ref, Count) ->
    py_asgi_run:ack(Ref, Count).

-spec serve(py_asgi_options:app()) -> {ok, pid()} | {error, py_error:reason()}.
serve(App) ->
    serve(App, #{}).

%% Returns when the application has started and the server listens.
-spec serve(py_asgi_options:app(), py_asgi_options:given()) ->
    {ok, pid()} | {error, py_error:reason()}.
serve(App, Opts) ->
    case py_asgi_options:check(App, Opts) of
        {ok, Options} -> start(Options);
        {error, _} = Error -> Error
    end.

%% A server that belongs to the calling process, with the options of `serve/2' and the application as `app'. Returns
%% as `serve/2' does. When its owner ends it, it stops as by `stop/1'.
-spec start_link(#{app := py_asgi_options:app(), atom() => term()}) -> py_owned:start_ret().
start_link(#{app := App} = Opts) ->
    case py_asgi_options:check(App, maps:remove(app, Opts)) of
        {ok, Options} ->
            case py_owned:services() of
                ok -> start_own(Options);
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end;
start_link(_Opts) ->
    {error, {bad_argument, app}}.

start_own(Options) ->
    Starter = alias([reply]),
    Own = Options#{starter => Starter, history => py_asgi_server:history()},
    %% The one before may still answer what it has begun.
    case py_owned:after_orphan(fun() -> py_asgi_server:start_own(Own) end, py_asgi_options:shutdown(Options)) of
        {ok, Server} ->
            started(Server, Starter, monitor(process, Server));
        {error, {already_started, _}} = Error ->
            _ = unalias(Starter),
            Error;
        {error, Reason} ->
            _ = unalias(Starter),
            {error, {context_died, Reason}}
    end.

%% For a supervisor of the user's, which waits until requests are answered when it stops the server.
-spec child_spec(#{app := py_asgi_options:app(), atom() => term()}) -> supervisor:child_spec().
child_spec(Opts) ->
    (py_owned:child_spec(?MODULE, Opts))#{shutdown := py_asgi_options:shutdown(Opts)}.

start(Options) ->
    %% What a server that is started again says goes nowhere.
    Starter = alias([reply]),
    case py_asgi_sup:start_server(Options#{starter => Starter, history => py_asgi_server:history()}) of
        {ok, Supervisor} ->
            started(Supervisor, Starter, monitor(process, Supervisor));
        {error, _} = Error ->
            _ = unalias(Starter),
            Error
    end.

started(Supervisor, Starter, Monitor) ->
    receive
        {Starter, Result} ->
            true = demonitor(Monitor, [flush]),
            Result;
        {'DOWN', Monitor, process, Supervisor, _Why} ->
            _ = unalias(Starter),
            receive
                {Starter, Result} -> Result
            after 0 -> {error, not_running}
            end
    end.

%% Listens no more, lets requests be answered within the option `stop_timeout', ends the rest.
-spec stop(server()) -> ok | {error, not_running | {bad_argument, server}}.
stop(Server) ->
    stop_with(Server, {stop, default}).

%% The same with other milliseconds, or until all are answered.
-spec stop(server(), timeout()) -> ok | {error, not_running | {bad_argument, server | timeout}}.
stop(Server, Timeout) when Timeout =:= infinity; is_integer(Timeout), Timeout >= 0 ->
    stop_with(Server, {stop, Timeout});
stop(_Server, _Timeout) ->
    {error, {bad_argument, timeout}}.

%% One that is down may be about to be started again.
stop_with(Server, Question) ->
    case ask(Server, Question) of
        {error, not_running} ->
            case py_asgi_keeper:forget(Server) of
                forgotten ->
                    ok;
                {supervised, Supervisor} ->
                    %% Answers when it has started the server, or has ended.
                    _ = py_asgi_server_sup:options(Supervisor),
                    stop_with(Server, Question);
                unknown ->
                    ask(Server, Question)
            end;
        Answer ->
            Answer
    end.

%% The port it listens on; a Unix socket has none.
-spec port(server()) -> inet:port_number() | undefined | {error, not_running | {bad_argument, server}}.
port(Server) ->
    case ask(Server, address) of
        {ok, #{port := Port}} -> Port;
        {ok, #{}} -> undefined;
        {error, _} = Error -> Error
    end.

%% The application is imported anew and takes the requests from now on; no connection is lost. If it
%% can't be started the old one goes on.
-spec reload(server()) -> ok | {error, py_error:reason()}.
reload(Server) ->
    case ask(Server, workers) of
        {ok, Workers} -> reload_all([Pid || #{pid := Pid, status := up} <- Workers], #{});
        {error, _} = Error -> Error
    end.

%% Workers of the same interpreter share their modules: the first one imports these.
reload_all([], _Imported) ->
    ok;
reload_all([Worker | Rest], Imported) ->
    Interpreter = py_asgi_worker:interpreter(Worker),
    case py_asgi_worker:ask(Worker, {reload, not is_map_key(Interpreter, Imported)}) of
        {ok, _} -> reload_all(Rest, Imported#{Interpreter => []});
        {error, _} = Error -> Error
    end.

%% Where it listens, and the numbers of this moment.
-spec info(server()) -> {ok, map()} | {error, not_running | {bad_argument, server}}.
info(Server) ->
    case {ask(Server, address), ask(Server, workers)} of
        {{ok, Address}, {ok, Workers}} ->
            Each = [worker_info(Worker) || Worker <- Workers],
            Sums = maps:from_list([{Key, sum(Key, Each)} || Key <- counts()]),
            {ok, maps:merge(Address#{workers => Each}, Sums)};
        {{error, _} = Error, _} ->
            Error;
        {_, Error} ->
            Error
    end.

counts() -> [connections, in_flight, served, restarts].

sum(Key, Each) ->
    lists:sum([maps:get(Key, One, 0) || One <- Each]).

worker_info(#{pid := Pid, status := up} = Worker) ->
    case py_asgi_worker:ask(Pid, info) of
        {ok, Numbers} -> maps:merge(maps:remove(pid, Worker), Numbers);
        {error, _} -> (maps:remove(pid, Worker))#{status := down}
    end;
worker_info(Worker) ->
    maps:remove(pid, Worker).

ask(Server, Question) ->
    case py_ask:server_of([py_asgi_server], Server, Question, {error, not_running}) of
        {error, no_server} -> {error, {bad_argument, server}};
        Answer -> Answer
    end.
