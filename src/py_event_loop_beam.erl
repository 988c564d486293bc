%% Drives one event loop without a thread of its own: the emulator watches the loop's descriptor, one
%% message a wake, and this process asks for a step. The steps of all such loops run on one thread.
%%
%% Process: between a wake and the end of its step it does not ask again. The loop ends with it.
-module(py_event_loop_beam).

-behaviour(gen_server).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% The names of the two things that wake it.
-define(WORK, 1).
-define(TIMER, 2).

-record(state, {
    loop :: py_nif:event_loop(),
    %% Watches the descriptor of the loop, and keeps its next deadline.
    raw :: py_nif:raw_loop(),
    %% Its watch over that descriptor.
    watch :: reference() | undefined,
    timer :: reference() | undefined
}).

-spec init({py_owned:starter(), []}) -> {ok, #state{}} | ignore.
init({Starter, []}) ->
    process_flag(trap_exit, true),
    #{max_queue := MaxQueue} = persistent_term:get(py_config),
    case py_nif:event_loop_new() of
        {ok, Raw} ->
            ok = py_nif:event_loop_set_router(Raw, self()),
            {ok, #state{raw = Raw, loop = py_nif:loop_new_beam(MaxQueue)}};
        {error, Reason} ->
            py_owned:refuse(Starter, Reason)
    end.

-spec handle_call(loop | term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(loop, _From, #state{loop = Loop} = State) ->
    {reply, Loop, State};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({select, Raw, _Ref, ready_input}, #state{raw = Raw, loop = Loop} = State) ->
    %% What it was is fetched when the step is over: until then it wakes nobody again.
    case py_nif:event_loop_step(Raw) of
        {ok, 0} -> ok;
        {ok, _} -> ok = py_nif:loop_step(Loop)
    end,
    {noreply, State};
handle_info({py_loop_up, Fd}, #state{raw = Raw, watch = Old} = State) when is_integer(Fd) ->
    %% A loop that had to begin with a new set of descriptors has a new one itself. The old one goes
    %% first: what it has told is forgotten with it.
    ok = forget(Raw, Old),
    case py_nif:add_reader(Raw, Fd, ?WORK) of
        {ok, New} ->
            {noreply, State#state{watch = New}};
        {error, {posix, Gone}} when Gone =:= ebadf; Gone =:= eperm ->
            %% Replaced once more already; the next message says by which.
            {noreply, State#state{watch = undefined}}
    end;
handle_info({py_loop_rests, Deadline}, #state{raw = Raw} = State) when is_integer(Deadline) ->
    _ = py_nif:get_pending(Raw),
    {noreply, set_timer(Deadline, State)};
handle_info({py_worker_down, Why}, State) ->
    {stop, {shutdown, Why}, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

forget(_Raw, undefined) -> ok;
forget(Raw, Watch) -> py_nif:remove_reader(Raw, Watch).

set_timer(Deadline, #state{raw = Raw, timer = Timer} = State) ->
    ok = cancel_timer(Raw, Timer),
    State#state{timer = timer(Raw, Deadline)}.

cancel_timer(_Raw, undefined) -> ok;
cancel_timer(Raw, Timer) -> py_nif:cancel_timer(Raw, Timer).

timer(_Raw, -1) ->
    undefined;
timer(Raw, Deadline) ->
    {ok, Timer} = py_nif:call_at(Raw, Deadline, ?TIMER),
    Timer.

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{raw = Raw, loop = Loop}) ->
    ok = py_nif:event_loop_destroy(Raw),
    py_nif:loop_close(Loop).
