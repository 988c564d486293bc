%% A named pool of sub-interpreters: each call goes to one that is free. One that dies is replaced.
-module(py_interp_pool).

-behaviour(gen_server).

-export([start_link/2, start_own/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {name :: atom(), contexts :: [{pid(), py_nif:pool()}]}).

-spec start_link(atom(), pos_integer()) -> gen_server:start_ret().
start_link(Name, Size) ->
    gen_server:start_link(?MODULE, {Name, Size}, []).

%% One that a user owns.
-spec start_own(atom(), pos_integer()) -> py_owned:start_ret().
start_own(Name, Size) ->
    py_owned:start_link(#{}, ?MODULE, {own, Name, Size}).

-spec init({atom(), pos_integer()} | {py_owned:starter(), {own, atom(), pos_integer()}}) ->
    {ok, #state{}} | {stop, term()} | ignore.
init({Starter, {own, Name, Size}}) ->
    ok = py_owned:watch_names(),
    case init({Name, Size}) of
        {ok, State} -> {ok, State};
        {stop, Reason} -> py_owned:refuse(Starter, Reason)
    end;
init({Name, Size}) ->
    process_flag(trap_exit, true),
    case fill(Size, []) of
        {ok, Contexts} -> {ok, publish(#state{name = Name, contexts = Contexts})};
        {error, Reason} -> {stop, Reason}
    end.

%% One after another, as CPython wants it. Linked: they end with this process.
fill(0, Contexts) ->
    {ok, Contexts};
fill(Missing, Contexts) ->
    case py_context:subinterp_link() of
        {ok, Pid} ->
            {ok, Pool} = py_registry:pool(Pid),
            fill(Missing - 1, [{Pid, Pool} | Contexts]);
        {error, _} = Error ->
            Error
    end.

publish(#state{name = Name, contexts = Contexts} = State) ->
    ok = py_registry:add_pools(Name, [Pool || {_, Pool} <- Contexts]),
    State.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({'EXIT', Pid, _Why}, #state{contexts = Contexts} = State) ->
    case lists:keytake(Pid, 1, Contexts) of
        {value, _, Left} ->
            case fill(1, Left) of
                {ok, Filled} -> {noreply, publish(State#state{contexts = Filled})};
                %% Its supervisor tries again, with all of them.
                {error, Reason} -> {stop, Reason, State}
            end;
        false ->
            {noreply, State}
    end;
handle_info({py_owned_down, _, process, _, _}, State) ->
    {stop, {shutdown, not_running}, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).
