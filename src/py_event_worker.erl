%% A process with a loop of its own: descriptors and timers become messages to whoever asked.
%%
%% Process: owns the loop, which ends with it. What it watches belongs to the process that asked for
%% it and is forgotten when that process ends. Events come as `{py_event, Worker, Id, Kind}'.
-module(py_event_worker).

-behaviour(gen_server).

-export([start_link/1, start_link/2, child_spec/1, stop/1, loop/1]).
-export([add_reader/2, add_writer/2, remove/2, call_later/2, cancel_timer/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-type name() :: atom() | binary().
-type opts() :: py_options:given().
-type id() :: py_nif:event_id().
-type handle() :: {read | write, reference()} | {timer, reference()}.

-record(state, {
    loop :: py_nif:raw_loop(),
    next = 1 :: id(),
    %% Who asked for an event, and what takes it back.
    asked = #{} :: #{id() => {pid(), handle()}},
    %% One monitor a process.
    owners = #{} :: #{pid() => {reference(), [id()]}}
}).

-spec start_link(name()) -> gen_server:start_ret().
start_link(Name) ->
    start_link(Name, #{}).

%% An atom is registered; a binary only tells workers apart.
-spec start_link(name(), opts()) -> gen_server:start_ret().
start_link(Name, Opts) ->
    case {py_options:check(event_worker, Opts), py_nif:is_loaded()} of
        {{error, _} = Error, _} -> Error;
        {{ok, _}, false} -> {error, not_running};
        {{ok, _}, true} when is_atom(Name) -> gen_server:start_link({local, Name}, ?MODULE, Opts, []);
        {{ok, _}, true} when is_binary(Name) -> gen_server:start_link(?MODULE, Opts, []);
        {{ok, _}, true} -> {error, {bad_argument, name}}
    end.

%% For a supervisor of the user's.
-spec child_spec(name()) -> supervisor:child_spec().
child_spec(Name) -> (py_owned:child_spec(?MODULE, #{name => Name}))#{start := {?MODULE, start_link, [Name]}}.

-spec stop(gen_server:server_ref()) -> ok | {error, {bad_argument, worker}}.
stop(Worker) ->
    known(py_ask:stop_of([?MODULE], Worker)).

-spec loop(gen_server:server_ref()) -> {ok, py_nif:raw_loop()} | {error, py_error:reason()}.
loop(Worker) ->
    request(Worker, loop).

%% `{py_event, Worker, Id, read}' comes once, when there is something to read. Whoever wants more asks
%% again when it has read.
-spec add_reader(gen_server:server_ref(), non_neg_integer()) -> {ok, id()} | {error, py_error:reason()}.
add_reader(Worker, Fd) ->
    request(Worker, {ask, read, Fd, self()}).

-spec add_writer(gen_server:server_ref(), non_neg_integer()) -> {ok, id()} | {error, py_error:reason()}.
add_writer(Worker, Fd) ->
    request(Worker, {ask, write, Fd, self()}).

-spec remove(gen_server:server_ref(), id()) -> ok | {error, py_error:reason()}.
remove(Worker, Id) ->
    request(Worker, {remove, Id}).

%% `{py_event, Worker, Id, timer}' comes once.
-spec call_later(gen_server:server_ref(), non_neg_integer()) -> {ok, id()} | {error, py_error:reason()}.
call_later(Worker, Ms) ->
    request(Worker, {ask, timer, Ms, self()}).

-spec cancel_timer(gen_server:server_ref(), id()) -> ok | {error, py_error:reason()}.
cancel_timer(Worker, Id) ->
    remove(Worker, Id).

request(Worker, Request) -> known(py_ask:server_of([?MODULE], Worker, Request, {error, not_running})).

known({error, no_server}) -> {error, {bad_argument, worker}};
known(Answer) -> Answer.

-spec init(opts()) -> {ok, #state{}} | {stop, py_error:reason()}.
init(_Opts) ->
    case py_nif:event_loop_new() of
        {ok, Loop} ->
            ok = py_nif:event_loop_set_router(Loop, self()),
            {ok, #state{loop = Loop}};
        {error, Reason} ->
            {stop, Reason}
    end.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(loop, _From, #state{loop = Loop} = State) ->
    {reply, {ok, Loop}, State};
handle_call({ask, Kind, What, Pid}, _From, #state{loop = Loop, next = Id} = State) when
    Kind =:= read orelse Kind =:= write orelse Kind =:= timer, is_pid(Pid)
->
    case begin_to(Kind, Loop, What, Id) of
        {ok, Ref} -> {reply, {ok, Id}, ask(Id, Pid, {Kind, Ref}, State)};
        {error, _} = Error -> {reply, Error, State}
    end;
handle_call({remove, Id}, _From, State) ->
    {reply, ok, forget(Id, State)};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({select, Loop, _Ref, ready_input}, #state{loop = Loop} = State) ->
    _ = py_nif:event_loop_step(Loop),
    {noreply, lists:foldl(fun tell/2, State, py_nif:get_pending(Loop))};
handle_info({'DOWN', _Monitor, process, Pid, _Why}, #state{owners = Owners} = State) ->
    {_, Ids} = maps:get(Pid, Owners, {none, []}),
    {noreply, lists:foldl(fun forget/2, State, Ids)};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), #state{}) -> ok.
terminate(_Why, #state{loop = Loop}) ->
    py_nif:event_loop_destroy(Loop).

%% The worker is shared: an argument that the library refuses concerns the one who gave it.
begin_to(Kind, Loop, What, Id) ->
    try
        begin_in(Kind, Loop, What, Id)
    catch
        error:badarg -> {error, {bad_argument, refused(Kind, What)}}
    end.

begin_in(read, Loop, Fd, Id) -> py_nif:add_reader(Loop, Fd, Id);
begin_in(write, Loop, Fd, Id) -> py_nif:add_writer(Loop, Fd, Id);
begin_in(timer, Loop, Ms, Id) -> py_nif:call_later(Loop, Ms, Id).

refused(timer, Ms) ->
    py_text:format("a timer needs a non-negative integer of milliseconds, got ~0tP", [Ms, 10]);
refused(_, Fd) ->
    py_text:format("a descriptor is a non-negative integer, got ~0tP", [Fd, 10]).

tell({Id, Kind}, #state{asked = Asked} = State) ->
    case Asked of
        #{Id := {Pid, _}} ->
            _ = Pid ! {py_event, self(), Id, Kind},
            forget(Id, State);
        #{} ->
            State
    end.

ask(Id, Pid, Handle, #state{asked = Asked, owners = Owners} = State) ->
    {Monitor, Ids} =
        case Owners of
            #{Pid := Owner} -> Owner;
            #{} -> {monitor(process, Pid), []}
        end,
    State#state{
        next = Id + 1,
        asked = Asked#{Id => {Pid, Handle}},
        owners = Owners#{Pid => {Monitor, [Id | Ids]}}
    }.

forget(Id, #state{loop = Loop, asked = Asked, owners = Owners} = State) ->
    case maps:take(Id, Asked) of
        {{Pid, Handle}, Left} ->
            ok = take_back(Loop, Handle),
            {Monitor, Ids} = maps:get(Pid, Owners),
            State#state{asked = Left, owners = owner(Pid, Monitor, lists:delete(Id, Ids), Owners)};
        error ->
            State
    end.

owner(Pid, Monitor, [], Owners) ->
    true = demonitor(Monitor, [flush]),
    maps:remove(Pid, Owners);
owner(Pid, Monitor, Ids, Owners) ->
    Owners#{Pid := {Monitor, Ids}}.

take_back(Loop, {read, Ref}) -> py_nif:remove_reader(Loop, Ref);
take_back(Loop, {write, Ref}) -> py_nif:remove_writer(Loop, Ref);
take_back(Loop, {timer, Ref}) -> py_nif:cancel_timer(Loop, Ref).
