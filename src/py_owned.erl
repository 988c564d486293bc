%% What stands in the supervision tree of a user: `py_asgi', `py_context', `py_pool', `py_event_loop' and the like.
%%
%% Process: each function says which. A start that fails is a value: the new process ends in order, so that no crash
%% report is written and no caller ends with it.
-module(py_owned).

-export([start_link/3, refuse/2, services/0, watch/0, watch_names/0, child_spec/2, is_orphan/2, after_orphan/2]).

-export_type([starter/0, start_ret/0]).

%% Who waits for the start, in `init'.
-type starter() :: {pid(), reference()}.
-type start_ret() :: {ok, pid()} | {error, py_error:reason() | {already_started, pid()}}.

%% The messages that end a process which `watch/0' or `watch_names/0' was called for.
-define(TAG, py_owned_down).

%% Milliseconds that what has nothing to finish may take for its end.
-define(SHUTDOWN, 5000).

%% Milliseconds in which the services come back when one of them has ended.
-define(PATIENCE, 10_000).
-define(PAUSE, 20).

%% Starts a `gen_server' whose `init' is given `{Starter, Args}', registered under the option `name'. Called by the
%% owner.
-spec start_link(py_options:given(), module(), term()) -> start_ret().
start_link(Opts, Module, Args) ->
    Name = maps:get(name, Opts, none),
    Starter = {_, Key} = {self(), make_ref()},
    case after_orphan(fun() -> start(Name, Module, {Starter, Args}) end, ?SHUTDOWN) of
        {ok, Pid} ->
            {ok, Pid};
        %% `refuse/2' has sent it before.
        ignore ->
            receive
                {Key, Reason} -> {error, Reason}
            end;
        {error, {already_started, _}} = Error ->
            Error;
        {error, Reason} ->
            {error, {context_died, Reason}}
    end.

start(none, Module, Args) -> gen_server:start_link(Module, Args, []);
start(Name, Module, Args) -> gen_server:start_link({local, Name}, Module, Args, []).

%% One of that name whose supervisor was killed is on its way to its end: the next one waits for it.
-spec after_orphan(fun(() -> Started), timeout()) -> Started when Started :: gen_server:start_ret().
after_orphan(Start, Patience) ->
    case Start() of
        {error, {already_started, Pid}} = Error ->
            Monitor = monitor(process, Pid),
            Ended =
                is_orphan(Pid, 1) andalso
                    receive
                        {'DOWN', Monitor, process, Pid, _} -> true
                    after Patience -> false
                    end,
            true = demonitor(Monitor, [flush]),
            case Ended of
                true -> after_orphan(Start, Patience);
                false -> Error
            end;
        Started ->
            Started
    end.

%% Whether one of the nearest `Generations' that it comes from has ended, or itself.
-spec is_orphan(pid(), pos_integer()) -> boolean().
is_orphan(Pid, Generations) ->
    case process_info(Pid, dictionary) of
        undefined ->
            true;
        {dictionary, Entries} ->
            {_, Ancestors} = lists:keyfind('$ancestors', 1, Entries ++ [{'$ancestors', []}]),
            lists:any(fun has_ended/1, lists:sublist(Ancestors, Generations))
    end.

has_ended(Pid) when is_pid(Pid) -> node(Pid) =:= node() andalso not is_process_alive(Pid);
has_ended(Name) -> whereis(Name) =:= undefined.

%% The result of an `init' that fails.
-spec refuse(starter(), py_error:reason()) -> ignore.
refuse({Pid, Key}, Reason) ->
    _ = Pid ! {Key, Reason},
    ignore.

%% Waits for services that are being replaced. A supervisor would start the child again at once, and give up.
-spec services() -> ok | {error, not_running}.
services() -> services(py_deadline:at(?PATIENCE)).

services(Deadline) ->
    %% The last one that is started, and the first one that goes when the application stops.
    Last = [whereis(py_bind), whereis(py_asgi_keeper)],
    case {whereis(erlang_python_sup), lists:member(undefined, Last), py_deadline:left(Deadline)} of
        {undefined, _, _} ->
            {error, not_running};
        {_, true, 0} ->
            {error, not_running};
        {_, true, _} ->
            ok = timer:sleep(?PAUSE),
            services(Deadline);
        {_, false, _} ->
            ok
    end.

%% `{py_owned_down, _, process, _, _}' will come when the application has ended. Called in `init'.
-spec watch() -> ok.
watch() -> watch(erlang_python_sup).

%% The same, also when the table of names is made anew: nobody would find what was in it.
-spec watch_names() -> ok.
watch_names() -> watch(py_registry).

watch(Process) ->
    _ = monitor(process, Process, [{tag, ?TAG}]),
    ok.

%% Its `id' is the name in the options, else the module. Always started again: its end in order may be that of its
%% thread.
-spec child_spec(module(), py_options:given()) -> supervisor:child_spec().
child_spec(Module, Opts) ->
    #{
        id => id(Module, Opts),
        start => {Module, start_link, [Opts]},
        restart => permanent,
        shutdown => ?SHUTDOWN,
        type => worker
    }.

id(_Module, #{name := Name}) -> Name;
id(Module, _Opts) -> Module.
