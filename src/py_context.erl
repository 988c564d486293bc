%% A context: one interpreter thread, one namespace, one process that stands for both.
-module(py_context).

-behaviour(gen_server).

-export([new/1, stop/1, default/1, interrupt/1]).
-export([start_link/1, child_spec/1]).
-export([begin_link/1, subinterp_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([opts/0]).

-type opts() :: py_options:given().

-include("py_nif.hrl").

-spec new(opts()) -> {ok, pid()} | {error, py_error:reason()}.
new(Opts) ->
    case py_options:check(context, Opts) of
        {ok, #{mode := Mode} = Checked} -> new(Mode, Checked);
        {error, _} = Error -> Error
    end.

%% Objects of contexts that share an interpreter can't be told apart.
new(worker, #{max_memory := _}) -> {error, not_supported};
new(worker, Opts) -> preload(start(Opts), Opts);
new(_Interpreter, Opts) -> preload(start_subinterp(Opts, timeout(Opts)), Opts).

timeout(Opts) -> maps:get(timeout, Opts, py_call:default_timeout()).

%% It needs the GIL of the main interpreter, and one interpreter is made after another: another process waits
%% for it, and ends what comes too late.
start_subinterp(Opts, Timeout) ->
    Caller = self(),
    Key = alias([reply]),
    {Pid, Monitor} = spawn_monitor(fun() -> make_for(Caller, Key, Opts) end),
    Made =
        receive
            {Key, Given} ->
                Pid ! {Key, taken},
                Given;
            {'DOWN', Monitor, process, Pid, Why} ->
                {error, {context_died, Why}}
        after Timeout ->
            Pid ! {Key, late},
            {error, timeout}
        end,
    _ = unalias(Key),
    true = demonitor(Monitor, [flush]),
    receive
        %% It came just now, and is ended.
        {Key, _} -> Made
    after 0 -> Made
    end.

make_for(Caller, Key, Opts) ->
    Monitor = monitor(process, Caller),
    Made = start_subinterp(Opts),
    Key ! {Key, Made},
    receive
        {Key, taken} -> ok;
        {Key, late} -> stop_made(Made);
        {'DOWN', Monitor, process, Caller, _} -> stop_made(Made)
    end.

start_subinterp(Opts) ->
    case subinterp(Opts, infinity) of
        {ok, Full} -> start(Full);
        {error, _} = Error -> Error
    end.

stop_made({ok, Pid}) -> stop(Pid);
stop_made({error, _}) -> ok.

%% Some modules of the standard library are not safe to be first imported by several interpreters
%% at once: the main one has them before there is another.
subinterp(Opts, Timeout) ->
    case py_nif:is_loaded() andalso py_nif:built_for() of
        false ->
            {error, not_running};
        {_, _, true} when is_map_key(max_memory, Opts) ->
            {error, not_supported};
        {_, Minor, _} when Minor >= 12 ->
            case py:call('erlang._boot', before_subinterpreters, [], #{}, Timeout) of
                {ok, Inherited} -> {ok, Opts#{mode => subinterp, inherited => Inherited}};
                {error, _} = Error -> Error
            end;
        _ ->
            {error, not_supported}
    end.

%% A sub-interpreter that ends with the calling process, which hears of its end.
-spec subinterp_link() -> {ok, pid()} | {error, py_error:reason()}.
subinterp_link() ->
    case subinterp(#{}, infinity) of
        {ok, Opts} ->
            case begin_link(Opts) of
                {ok, Pid} -> {ok, Pid};
                {error, Reason} -> {error, {context_died, Reason}}
            end;
        {error, _} = Error ->
            Error
    end.

start(Opts) ->
    case py_context_sup:start_context(Opts) of
        {ok, Pid} ->
            {ok, Pid};
        {error, not_running} ->
            {error, not_running};
        {error, Taken} when Taken =:= taken; element(1, Taken) =:= already_started ->
            {error, taken()};
        {error, Reason} ->
            {error, {context_died, Reason}}
    end.

preload({ok, Pid}, Opts) ->
    case imported(Pid, Opts) of
        ok ->
            {ok, Pid};
        {error, Error} ->
            ok = stop(Pid),
            {error, Error}
    end;
preload({error, _} = Error, _Opts) ->
    Error.

imported(Pid, Opts) ->
    Modules = maps:get(preload, Opts, []),
    case [Error || Module <- Modules, {error, Error} <- [import(Pid, Module, timeout(Opts))]] of
        [] -> ok;
        [Error | _] -> {error, Error}
    end.

import(Pid, Module, Timeout) ->
    Args = [py_call:text(Module)],
    py:call(Pid, importlib, import_module, Args, #{}, #{return => ref, timeout => Timeout}).

%% One that has ended is stopped already. A context that a user owns is started again by its supervisor: there it is
%% `supervisor:terminate_child/2' that stops it.
-spec stop(pid()) -> ok | {error, {bad_argument, context}}.
stop(Pid) when is_pid(Pid), node(Pid) =:= node() ->
    case py_context_sup:stop_context(Pid) orelse not is_process_alive(Pid) orelse py_ask:stop_of([?MODULE], Pid) of
        {error, no_server} -> {error, {bad_argument, context}};
        _Stopped -> py_registry:remove_pools_of(Pid)
    end;
stop(_Context) ->
    {error, {bad_argument, context}}.

%% The N-th of the contexts that anybody may use; made when first asked for.
-spec default(pos_integer()) -> pid() | {error, py_error:reason()}.
default(N) -> py_ask:server(py_bind, {context, N}, {error, not_running}).

%% Stops what the context runs at this moment; its caller hears `interrupted'.
-spec interrupt(py:context()) -> ok | not_running.
interrupt(Context) ->
    case lists:member(ok, [py_nif:pool_interrupt(Pool) || Pool <- py_registry:pools(Context)]) of
        true -> ok;
        false -> not_running
    end.

%% A context that belongs to the calling process, with the options of `new/1'. Returns when its modules are imported.
-spec start_link(opts()) -> py_owned:start_ret().
start_link(Opts) ->
    case checked(Opts) of
        {ok, Checked} -> py_owned:start_link(Checked, ?MODULE, {own, Checked});
        {error, _} = Error -> Error
    end.

%% For a supervisor of the user's.
-spec child_spec(opts()) -> supervisor:child_spec().
child_spec(Opts) ->
    py_owned:child_spec(?MODULE, Opts).

checked(Opts) ->
    case {py_options:check(context, Opts), py_owned:services()} of
        {{ok, #{mode := worker, max_memory := _}}, _} -> {error, not_supported};
        {{ok, Checked}, ok} -> {ok, Checked};
        {{ok, _}, {error, _} = Error} -> Error;
        {{error, _} = Error, _} -> Error
    end.

%% The options, and what a sub-interpreter inherits.
-spec begin_link(map()) -> gen_server:start_ret().
begin_link(#{name := Name} = Opts) when is_atom(Name) ->
    gen_server:start_link({local, Name}, ?MODULE, Opts, []);
begin_link(Opts) ->
    gen_server:start_link(?MODULE, Opts, []).

-spec init(map() | {py_owned:starter(), {own, opts()}}) ->
    {ok, {py_nif:pool(), py_nif:worker()}} | {stop, binary() | py_error:reason() | taken} | ignore.
init({Starter, {own, Opts}}) ->
    ok = py_owned:watch_names(),
    case own(Opts) of
        {ok, {Pool, _Worker}} = Made ->
            case imported(self(), Opts) of
                ok ->
                    Made;
                {error, Reason} ->
                    ok = py_nif:pool_close(Pool),
                    py_owned:refuse(Starter, Reason)
            end;
        {error, Reason} ->
            py_owned:refuse(Starter, Reason)
    end;
init(Opts) ->
    process_flag(trap_exit, true),
    #{max_queue := Configured} = persistent_term:get(py_config),
    MaxQueue = maps:get(max_queue, Opts, Configured),
    case ready(make(Opts, MaxQueue), Opts) of
        {ok, {Pool, _Worker} = Made} ->
            ok = py_nif:pool_add_loop(Pool, MaxQueue),
            ok = py_registry:add_pool(self(), Pool),
            ok = number(Opts, Pool),
            case name(Opts, Pool) of
                ok ->
                    {ok, Made};
                {error, Taken} ->
                    ok = py_nif:pool_close(Pool),
                    {stop, Taken}
            end;
        {error, Why} ->
            {stop, Why}
    end.

%% The same in a process that a user owns.
own(Opts) ->
    Full =
        case Opts of
            #{mode := worker} -> {ok, Opts};
            #{} -> subinterp(Opts, timeout(Opts))
        end,
    case Full of
        {ok, All} ->
            case init(All) of
                {ok, Made} -> {ok, Made};
                {stop, taken} -> {error, taken()};
                {stop, Why} when is_binary(Why) -> {error, {context_died, Why}};
                {stop, Reason} -> {error, Reason}
            end;
        {error, _} = Error ->
            Error
    end.

taken() -> {bad_argument, <<"a context, pool or process of this name exists">>}.

make(#{mode := subinterp} = Opts, MaxQueue) ->
    py_nif:subinterp_new(MaxQueue, maps:get(max_memory, Opts, 0));
make(#{}, MaxQueue) ->
    Pool = py_nif:pool_new(#{size => 1, max_threads => 1, max_queue => MaxQueue, own_namespace => true}),
    {ok, {Pool, py_nif:worker_start(Pool)}}.

name(#{name := Name}, Pool) -> py_registry:add_pool(Name, Pool);
name(#{}, _Pool) -> ok.

number(#{mode := subinterp}, Pool) -> py_registry:add_interpreter(Pool);
number(#{}, _Pool) -> ok.

%% A new interpreter finds modules where the main one does, and has its settings and converters, before
%% anybody else can call it: what `audit' refuses is refused from the first call on.
ready({ok, {Pool, _Worker}} = Made, #{inherited := {Path, Converters}}) ->
    Settings = py_boot:settings(persistent_term:get(py_config)),
    %% The refusals come before the converters, which are code of a user.
    Calls = [{inherit, [Path]}, {settle, [Settings]}, {add_converters, [Converters]}],
    case [Error || {F, A} <- Calls, {error, Error} <- [boot(Pool, F, A)]] of
        [] ->
            Made;
        [Error | _] ->
            ok = py_nif:pool_close(Pool),
            {error, Error}
    end;
ready(Made, #{}) ->
    Made.

boot(Pool, Function, Args) ->
    {ok, Payload} = py_call:payload('erlang._boot', Function, Args, #{}),
    py_call:sync(Pool, ?OP_CALL, 0, Payload, infinity).

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), State) -> {noreply, State} | {stop, {shutdown, term()}, State}.
handle_info({py_worker_down, Why}, State) ->
    {stop, {shutdown, Why}, State};
handle_info({py_owned_down, _, process, _, _}, State) ->
    {stop, {shutdown, not_running}, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), {py_nif:pool(), py_nif:worker()}) -> ok.
terminate(_Reason, {Pool, _Worker}) ->
    py_nif:pool_close(Pool).
