%% Binding: a process, or a handle, that keeps one interpreter thread.
%%
%% Process: owns the threads that are lent out and takes back those of processes that are gone.
%% A thread ends when it is given back, and its names with it: nobody else ever gets them.
-module(py_bind).

-behaviour(gen_server).

-export([start_link/1, bind/0, is_bound/0, new/0, unbind/0, unbind/1, check/1, with_context/1, bound/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% Entry of the process dictionary: whose it is, and the handle. As in `py_call', that of another process is
%% none: it must not be given back in its name.
-define(KEY, '$py_bound').

-record(state, {
    max :: pos_integer(),
    %% Lent: by handle.
    lent = #{} :: #{reference() => {pid(), reference(), thread()}},
    contexts = #{} :: #{pos_integer() => pid()}
}).

-type thread() :: {py_nif:pool(), py_nif:worker()}.

-spec start_link(py_config:config()) -> gen_server:start_ret().
start_link(#{max_bound := Max}) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Max, []).

%% The calling process keeps one thread, and its own names.
-spec bind() -> ok | {error, py_error:reason()}.
bind() ->
    case is_bound() of
        false ->
            case lend(false) of
                {ok, Handle, Pool} ->
                    _ = put(?KEY, {self(), Handle}),
                    py_call:bind_to(Pool);
                {error, _} = Error ->
                    Error
            end;
        true ->
            ok
    end.

%% A binding that the application's stop has taken away is none.
-spec is_bound() -> boolean().
is_bound() ->
    case own_handle() of
        none -> false;
        Handle -> py_registry:pool(Handle) =/= error
    end.

own_handle() ->
    Self = self(),
    case get(?KEY) of
        {Self, Handle} -> Handle;
        _ -> none
    end.

%% A handle with a thread and names of its own.
-spec new() -> {ok, reference()} | {error, py_error:reason()}.
new() ->
    case lend(true) of
        {ok, Handle, _Pool} -> {ok, Handle};
        {error, _} = Error -> Error
    end.

-spec unbind() -> ok.
unbind() ->
    case own_handle() of
        none ->
            ok;
        Handle ->
            _ = erase(?KEY),
            ok = py_call:bind_to(default),
            unbind(Handle)
    end.

-spec unbind(py:context()) -> ok.
unbind(Handle) ->
    request({give_back, Handle}, ok).

%% The handle itself, or `error:context_not_bound'.
-spec check(py:context()) -> py:context().
check(Handle) ->
    case py_registry:pool(Handle) of
        {ok, _} -> Handle;
        error -> error(context_not_bound)
    end.

-spec with_context(fun(() -> T) | fun((reference()) -> T)) -> T | {error, py_error:reason()}.
with_context(Fun) when is_function(Fun, 0) ->
    case {py:is_bound(), bind()} of
        {true, ok} -> Fun();
        {false, ok} -> try Fun() after unbind() end;
        {_, {error, _} = Error} -> Error
    end;
with_context(Fun) when is_function(Fun, 1) ->
    case new() of
        {ok, Handle} -> try Fun(Handle) after unbind(Handle) end;
        {error, _} = Error -> Error
    end.

%% How many threads are lent out.
-spec bound() -> non_neg_integer().
bound() ->
    request(bound, 0).

lend(OwnNames) ->
    request({lend, self(), OwnNames}, {error, not_running}).

request(Request, Otherwise) -> py_ask:server(?MODULE, Request, Otherwise).

-spec init(pos_integer()) -> {ok, #state{}}.
init(Max) ->
    process_flag(trap_exit, true),
    {ok, #state{max = Max}}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({lend, _Pid, _OwnNames}, _From, #state{lent = Lent, max = Max} = State) when
    map_size(Lent) >= Max
->
    {reply, {error, no_workers_available}, State};
handle_call({lend, Pid, OwnNames}, _From, #state{lent = Lent} = State) when is_pid(Pid), is_boolean(OwnNames) ->
    {Pool, _Worker} = Thread = thread(OwnNames),
    Monitor = monitor(process, Pid),
    Handle = make_ref(),
    ok = py_registry:add_pool(Handle, Pool),
    {reply, {ok, Handle, Pool}, State#state{lent = Lent#{Handle => {Pid, Monitor, Thread}}}};
handle_call({give_back, Handle}, _From, State) ->
    {reply, ok, give_back(Handle, State)};
handle_call(bound, _From, #state{lent = Lent} = State) ->
    {reply, map_size(Lent), State};
handle_call({context, N}, _From, #state{contexts = Contexts} = State) ->
    case Contexts of
        #{N := Pid} ->
            {reply, Pid, State};
        #{} ->
            case py_context:new(#{}) of
                {ok, Pid} ->
                    _ = monitor(process, Pid),
                    {reply, Pid, State#state{contexts = Contexts#{N => Pid}}};
                {error, _} = Error ->
                    {reply, Error, State}
            end
    end;
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

thread(OwnNames) ->
    #{max_queue := MaxQueue} = persistent_term:get(py_config),
    Pool = py_nif:pool_new(#{size => 1, max_threads => 1, max_queue => MaxQueue, own_namespace => OwnNames}),
    {Pool, py_nif:worker_start(Pool)}.

%% A thread that has ended, or hangs in C code, is replaced: names and handle stay.
with_thread({Pid, Monitor, {Pool, Worker}} = Loan) ->
    case py_nif:worker_is_down(Worker) of
        true -> {Pid, Monitor, {Pool, py_nif:worker_start(Pool)}};
        false -> Loan
    end.

give_back(Handle, #state{lent = Lent} = State) ->
    case maps:take(Handle, Lent) of
        {{_Pid, Monitor, {Pool, _Worker}}, Rest} ->
            true = demonitor(Monitor, [flush]),
            ok = py_registry:remove_pool(Handle),
            ok = py_nif:pool_close(Pool),
            State#state{lent = Rest};
        error ->
            State
    end.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', _Monitor, process, Pid, _Why}, #state{lent = Lent} = State) ->
    Handles = [Handle || {Handle, {Owner, _, _}} <- maps:to_list(Lent), Owner =:= Pid],
    Contexts = maps:filter(fun(_N, Context) -> Context =/= Pid end, State#state.contexts),
    {noreply, lists:foldl(fun give_back/2, State#state{contexts = Contexts}, Handles)};
handle_info({py_worker_down, _Why}, #state{lent = Lent} = State) ->
    {noreply, State#state{lent = maps:map(fun(_Handle, Loan) -> with_thread(Loan) end, Lent)}};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).
