%% Owns a pool: its queue lives as long as this process.
-module(py_pool).

-behaviour(gen_server).

-export([start_link/2, register/2, unregister/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% Milliseconds that the owner of a pool has to end after its supervisor.
-define(LAST_OWNER, 5000).

-spec start_link(atom(), pos_integer()) -> gen_server:start_ret().
start_link(Name, Size) ->
    gen_server:start_link(?MODULE, {Name, Size}, []).

%% A pool of its own under a name.
-spec register(atom(), py_options:given()) -> ok | {error, py_error:reason()}.
register(Name, Opts) when is_atom(Name), is_map(Opts) ->
    case py_options:check(pool, Opts) of
        {ok, #{mode := Mode, size := Size}} -> start(Name, Mode, Size);
        {error, _} = Error -> Error
    end;
register(_Name, _Opts) ->
    {error, {bad_argument, name}}.

start(Name, Mode, Size) ->
    case {py_registry:pool(Name), Mode} of
        {{ok, _}, _} -> {error, {bad_argument, <<"a pool of this name exists">>}};
        {error, worker} -> py_context_sup:start_pool(worker, Name, Size);
        {error, _} -> py_context_sup:start_pool(subinterp, Name, Size)
    end.

-spec unregister(atom()) -> ok | {error, py_error:reason()}.
unregister(main) ->
    {error, {bad_argument, <<"the main pool belongs to the application">>}};
unregister(Name) when is_atom(Name) ->
    py_context_sup:stop_pool(Name);
unregister(_Name) ->
    {error, {bad_argument, name}}.

-spec init({atom(), pos_integer()}) -> {ok, py_nif:pool()}.
init({Name, Size}) ->
    process_flag(trap_exit, true),
    #{max_threads := MaxThreads, max_queue := MaxQueue} = persistent_term:get(py_config),
    Pool = py_nif:pool_new(#{
        size => Size, max_threads => max(MaxThreads, Size + 1), max_queue => MaxQueue, own_namespace => false
    }),
    ok = add(Name, Pool),
    case Name of
        main -> py_nif:set_main_pool(Pool);
        _ -> ok
    end,
    {ok, Pool}.

%% Where the supervisor was killed, the owner before this one is still on its way to its end.
add(Name, Pool) ->
    case {py_registry:add_pool(Name, Pool), py_registry:pool_owner(Name)} of
        {{error, taken}, {ok, Owner}} ->
            Monitor = monitor(process, Owner),
            receive
                {'DOWN', Monitor, process, Owner, _} -> py_registry:add_pool(Name, Pool)
            after ?LAST_OWNER ->
                true = demonitor(Monitor, [flush]),
                {error, taken}
            end;
        {Added, _} ->
            Added
    end.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), State) -> {noreply, State}.
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), py_nif:pool()) -> ok.
terminate(_Reason, Pool) ->
    py_nif:pool_close(Pool).
