%% One loop that serves: in a thread of its own, or in a sub-interpreter. Accepts from a socket that
%% belongs to the server, and ends with its loop.
%%
%% Process: one per worker, linked to its `py_asgi_server', which starts another when it ends.
-module(py_asgi_worker).

-behaviour(gen_server).

-export([start_link/4, ask/2, stop/2, interpreter/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-include("py_nif.hrl").

-define(PYTHON, 'erlang.serve._node').

-record(state, {
    server :: pid(),
    number :: pos_integer(),
    mode :: loop | subinterp,
    %% The task that serves, as a job.
    job :: reference(),
    %% Who stands for the loop or the interpreter.
    place :: pid(),
    %% The task's mailbox, from when it serves on; `lost' until it has another one.
    box :: pid() | undefined | lost,
    %% The milliseconds it was told to stop within.
    stop = none :: timeout() | none,
    waiting = #{} :: #{reference() => gen_server:from()}
}).

%% `{worker_ready, Number}' comes to the calling process, or the worker ends with the reason. Workers with
%% the same `Share' have the same socket, and share its connections.
-spec start_link(pos_integer(), integer(), pos_integer() | none, py_asgi_options:options()) ->
    gen_server:start_ret().
start_link(Number, Fd, Share, Options) ->
    gen_server:start_link(?MODULE, {self(), Number, Fd, Share, Options}, []).

%% Asks the Python side.
-spec ask(pid(), info | {reload, Anew :: boolean()}) -> {ok, term()} | {error, py_error:reason()}.
ask(Worker, Question) ->
    try
        gen_server:call(Worker, {ask, Question}, infinity)
    catch
        exit:{_, _} -> {error, not_running}
    end.

%% The worker ends when its requests are answered, or when the milliseconds are over.
-spec stop(pid(), non_neg_integer()) -> ok.
stop(Worker, Timeout) ->
    gen_server:cast(Worker, {stop, Timeout}).

%% Workers with the same answer share their modules.
-spec interpreter(pid()) -> main | pid().
interpreter(Worker) ->
    try
        gen_server:call(Worker, interpreter, infinity)
    catch
        exit:{_, _} -> Worker
    end.

-spec init({pid(), pos_integer(), integer(), pos_integer() | none, py_asgi_options:options()}) ->
    {ok, #state{}} | {stop, {shutdown, py_error:reason()}}.
init({Server, Number, Fd, Share, #{mode := Mode, app := App} = Options}) ->
    process_flag(trap_exit, true),
    Mounts = maps:get(mounts, Options, []),
    Directory = maps:get(app_dir, Options, none),
    Args = [self(), Fd, Share, App, Mounts, Directory, python_options(Options)],
    {ok, Payload} = py_call:payload(?PYTHON, work, Args, #{}),
    case place(Mode) of
        {ok, Place, Loop} ->
            Job = py_call:spawn(self(), async_result, Loop, ?OP_ASYNC, ?FLAG_TRACEBACK, Payload),
            {ok, #state{server = Server, number = Number, mode = Mode, place = Place, job = Job}};
        {error, Reason} ->
            {stop, {shutdown, Reason}}
    end.

%% Lines that nobody will see are not made. With a file of its own the log does not go to `logger'.
python_options(#{access_log := Wanted} = Options) ->
    Seen = is_map_key(access_log_file, Options) orelse logger:allow(info, ?MODULE),
    (py_asgi_options:for_python(Options))#{access_log := Wanted andalso Seen}.

place(loop) ->
    case py_event_loop:begin_link() of
        {ok, Pid} -> {ok, Pid, py_event_loop:loop(Pid)};
        {error, _} = Error -> Error
    end;
place(subinterp) ->
    %% Nobody finds the interpreter any more when that has ended.
    _ = monitor(process, py_registry, [{tag, registry_down}]),
    case py_context:subinterp_link() of
        {ok, Pid} ->
            {ok, Pool} = py_call:pool(Pid),
            {ok, Pid, py_nif:pool_loop(Pool)};
        {error, _} = Error ->
            Error
    end.

-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}}.
handle_call({ask, Question}, From, #state{box = Box, waiting = Waiting} = State) when is_pid(Box) ->
    Ref = make_ref(),
    _ = Box ! command(Ref, Question),
    {noreply, State#state{waiting = Waiting#{Ref => From}}};
handle_call({ask, _}, _From, State) ->
    {reply, {error, not_running}, State};
handle_call(interpreter, _From, #state{mode = loop} = State) ->
    {reply, main, State};
handle_call(interpreter, _From, State) ->
    {reply, self(), State};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

command(Ref, {reload, Anew}) -> {reload, Ref, Anew};
command(Ref, info) -> {info, Ref, none}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}} | {stop, {shutdown, stopped}, #state{}}.
handle_cast({stop, _Timeout}, #state{box = undefined} = State) ->
    {stop, {shutdown, stopped}, State};
handle_cast({stop, Timeout}, State) ->
    Told = State#state{stop = Timeout},
    ok = tell_stop(Told),
    {noreply, Told};
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

tell_stop(#state{stop = Timeout, box = Box}) when Timeout =/= none, is_pid(Box) ->
    _ = Box ! {stop, none, seconds(Timeout)},
    ok;
tell_stop(_State) ->
    ok.

%% Python reads the name of it as a number.
seconds(infinity) -> infinity;
seconds(Milliseconds) -> Milliseconds / 1000.

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({<<"ready">>, Box}, #state{server = Server, number = Number} = State) when is_pid(Box) ->
    _ = monitor(process, Box, [{tag, box_down}]),
    Server ! {worker_ready, Number},
    Ready = State#state{box = Box},
    ok = tell_stop(Ready),
    {noreply, Ready};
handle_info({box_down, _, process, Box, _}, #state{box = Box, waiting = Waiting} = State) ->
    %% With what it was asked.
    ok = lists:foreach(fun(From) -> gen_server:reply(From, {error, not_running}) end, maps:values(Waiting)),
    {noreply, State#state{box = lost, waiting = #{}}};
handle_info({box_down, _, process, _Replaced, _}, State) ->
    {noreply, State};
handle_info({registry_down, _, process, _, Why}, State) ->
    {stop, {shutdown, {context_died, Why}}, State};
handle_info({<<"answer">>, Ref, Answer}, #state{waiting = Waiting} = State) when is_map_key(Ref, Waiting) ->
    {From, Left} = maps:take(Ref, Waiting),
    ok = gen_server:reply(From, answer(Answer)),
    {noreply, State#state{waiting = Left}};
handle_info({async_result, Job, {ok, _}}, #state{job = Job} = State) ->
    {stop, {shutdown, stopped}, State};
handle_info({async_result, Job, {error, Reason}}, #state{job = Job} = State) ->
    {stop, {shutdown, plain(Reason)}, State};
handle_info({'EXIT', Server, Why}, #state{server = Server} = State) ->
    {stop, Why, State};
handle_info({'EXIT', Place, Why}, #state{place = Place} = State) ->
    {stop, {shutdown, {context_died, Why}}, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

answer({<<"ok">>, Value}) -> {ok, keyed(Value)};
answer({<<"failed">>, Type, Message, Formatted}) ->
    {error, plain({type(Type), Message, #{message => Message, formatted => Formatted}})}.

%% A wrong name or file is told by its message; the frames of the server would hide it.
plain({<<"erlang.serve.AppNotFound">> = Type, Message, _Details}) -> {Type, Message};
plain({<<"erlang.serve.BadOption">>, Message, _Details}) -> {bad_argument, Message};
plain(Reason) -> Reason.

keyed(#{<<"connections">> := C, <<"in_flight">> := I, <<"served">> := S}) ->
    #{connections => C, in_flight => I, served => S};
keyed(Value) ->
    Value.

%% An atom for a class built into Python.
type(Name) ->
    try binary_to_existing_atom(Name, utf8) of
        Atom ->
            case py_error:is_builtin_exception(Atom) of
                true -> Atom;
                false -> Name
            end
    catch
        error:badarg -> Name
    end.
