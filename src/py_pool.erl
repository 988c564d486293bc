%% Owns a pool: its queue lives as long as this process. `start_link/1' starts a whole pool, under a supervisor of the
%% user's.
-module(py_pool).

-behaviour(gen_server).

-export([start_link/1, child_spec/1, begin_link/2, begin_link/3, register/2, unregister/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% Milliseconds that the owner of a pool has to end after its supervisor.
-define(LAST_OWNER, 5000).

-spec begin_link(atom(), pos_integer()) -> gen_server:start_ret().
begin_link(Name, Size) ->
    gen_server:start_link(?MODULE, {Name, Size}, []).

%% Of a pool that a user owns.
-spec begin_link(atom(), pos_integer(), own) -> gen_server:start_ret().
begin_link(Name, Size, own) ->
    gen_server:start_link(?MODULE, {Name, Size, own}, []).

%% A pool that belongs to the calling process, with the options of `py:register_pool/2' and its `name'.
-spec start_link(py_options:given()) -> py_owned:start_ret().
start_link(Opts) ->
    case py_options:check(own_pool, Opts) of
        {ok, #{name := _} = Checked} ->
            case py_owned:services() of
                ok -> start_own(Checked);
                {error, _} = Error -> Error
            end;
        {ok, _} ->
            {error, {bad_argument, name}};
        {error, _} = Error ->
            Error
    end.

%% For a supervisor of the user's.
-spec child_spec(py_options:given()) -> supervisor:child_spec().
child_spec(#{mode := Mode} = Opts) when Mode =/= worker -> py_owned:child_spec(?MODULE, Opts);
child_spec(Opts) -> (py_owned:child_spec(?MODULE, Opts))#{type := supervisor, shutdown := infinity}.

start_own(#{name := Name, mode := Mode, size := Size}) ->
    case {is_taken(py_registry:pool_owner(Name)), Mode} of
        {true, _} -> {error, taken()};
        {false, worker} -> own_started(py_pool_sup:start_own(Name, Size));
        {false, _} -> py_interp_pool:start_own(Name, Size)
    end.

%% The owner of one whose supervisor was killed is on its way to its end, behind its own supervisor.
is_taken({ok, Owner}) -> not py_owned:is_orphan(Owner, 2);
is_taken(error) -> false.

own_started({ok, Pid}) -> {ok, Pid};
own_started({error, Reason}) -> {error, {context_died, Reason}}.

taken() -> {bad_argument, <<"a pool of this name exists">>}.

%% A pool of its own under a name.
-spec register(atom(), py_options:given()) -> ok | {error, py_error:reason()}.
register(Name, Opts) when is_atom(Name) ->
    case py_options:check(pool, Opts) of
        {ok, #{mode := Mode, size := Size}} -> start(Name, Mode, Size);
        {error, _} = Error -> Error
    end;
register(_Name, _Opts) ->
    {error, {bad_argument, name}}.

start(Name, Mode, Size) ->
    case {py_registry:pool(Name), Mode} of
        {{ok, _}, _} -> {error, taken()};
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

-spec init({atom(), pos_integer()} | {atom(), pos_integer(), own}) -> {ok, py_nif:pool()}.
init({Name, Size, own}) ->
    ok = py_owned:watch_names(),
    init({Name, Size});
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
        %% It has ended just now.
        {{error, taken}, error} ->
            add(Name, Pool);
        {ok, _} ->
            ok
    end.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), State) -> {noreply, State} | {stop, {shutdown, not_running}, State}.
handle_info({py_owned_down, _, process, _, _}, State) ->
    {stop, {shutdown, not_running}, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), py_nif:pool()) -> ok.
terminate(_Reason, Pool) ->
    py_nif:pool_close(Pool).
