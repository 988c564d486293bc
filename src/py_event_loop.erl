%% Stands for one event loop: a thread that sleeps in epoll until there is work. The loop ends with
%% this process, and this process with the loop; its supervisor starts another.
-module(py_event_loop).

-behaviour(gen_server).

-export([start_link/0, start_link/1, child_spec/1, get_loop/0, loop/1]).
-export([begin_link/0]).
-export([run_async/2, run/3, run/4, create_task/3, create_task/4, await/1, await/2]).
-export([spawn_task/3, spawn_task/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([event_loop/0, request/0]).

-include("py_nif.hrl").

%% The process of a loop, its name, or what it stands for.
-type event_loop() :: pid() | atom() | py_nif:event_loop().
%% `module' and `func' are among them.
-type request() :: py_options:given().

-spec start_link() -> py_owned:start_ret().
start_link() ->
    start_link(#{}).

%% `driver': a thread of its own, or none: the emulator watches the loop's descriptor, and all such
%% loops share one thread. What is not said the configuration says.
-spec start_link(py_options:given()) -> py_owned:start_ret().
start_link(Opts) ->
    case py_options:check(event_loop, Opts) of
        {ok, _} ->
            case py_owned:services() of
                ok -> start_driver(Opts);
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% For a supervisor of the user's.
-spec child_spec(py_options:given()) -> supervisor:child_spec().
child_spec(Opts) -> py_owned:child_spec(?MODULE, Opts).

%% The same for the application itself, which does not wait for its own services.
-spec begin_link() -> py_owned:start_ret().
begin_link() ->
    case py_registry:is_running() of
        true -> start_driver(#{});
        false -> {error, not_running}
    end.

start_driver(Opts) ->
    #{driver := Configured} = persistent_term:get(py_config),
    case maps:get(driver, Opts, Configured) of
        thread -> py_owned:start_link(Opts, ?MODULE, []);
        beam -> py_owned:start_link(Opts, py_event_loop_beam, [])
    end.

%% A loop of the pool.
-spec get_loop() -> {ok, py_nif:event_loop()} | {error, py_error:reason()}.
get_loop() ->
    py_event_loop_pool:get_loop().

%% What a process stands for.
-spec loop(event_loop()) -> py_nif:event_loop() | {error, not_running | {bad_argument, loop}}.
loop(Pid) when is_pid(Pid); is_atom(Pid) ->
    case ask(Pid, {error, not_running}) of
        {error, no_server} -> {error, {bad_argument, loop}};
        Answer -> Answer
    end;
loop(Loop) ->
    Loop.

%% A loop of another node is none here.
ask(Pid, _Otherwise) when is_pid(Pid), node(Pid) =/= node() -> {error, no_server};
ask(Pid, Otherwise) -> py_ask:server_of([?MODULE, py_event_loop_beam], Pid, loop, Otherwise).

%% `{async_result, Ref, Answer}' goes to the caller. Gives the reference to cancel by.
-spec run_async(event_loop(), request()) -> {ok, reference()} | {error, py_error:reason()}.
run_async(Loop, Request) ->
    case py_options:check(run_async, Request) of
        {ok, Checked} -> begin_async(Loop, Checked);
        {error, _} = Error -> Error
    end.

begin_async(Loop, #{module := M, func := F} = Request) ->
    Args = maps:get(args, Request, []),
    Kwargs = maps:get(kwargs, Request, #{}),
    To = maps:get(caller, Request, self()),
    case {py_call:payload(M, F, Args, Kwargs), find(Loop), Request} of
        {{ok, Payload}, {ok, Found}, #{ref := Ref}} ->
            case py_call:named(To, Ref, Found, ?OP_ASYNC, py_about:flags(), Payload) of
                ok -> {ok, Ref};
                {error, _} = Error -> Error
            end;
        {{ok, Payload}, {ok, Found}, #{}} ->
            {ok, py_call:spawn(To, async_result, Found, ?OP_ASYNC, py_about:flags(), Payload)};
        {{error, _} = Error, _, #{}} ->
            Error;
        {_, {error, _} = Error, #{}} ->
            Error
    end;
begin_async(_Loop, Request) ->
    {error, {bad_argument, hd([module, func] -- maps:keys(Request))}}.

find(Pid) when is_pid(Pid); is_atom(Pid) ->
    case ask(Pid, gone) of
        gone -> {error, not_running};
        {error, no_server} -> {error, {bad_argument, loop}};
        Loop -> {ok, Loop}
    end;
find(Loop) ->
    try py_nif:event_loop_kind(Loop) of
        gone -> {error, not_running};
        python -> {ok, Loop};
        raw -> {error, not_supported}
    catch
        error:badarg -> {error, {bad_argument, loop}}
    end.

-spec run(py_call:name(), py_call:name(), [term()]) -> py:result().
run(M, F, A) -> run(M, F, A, #{}).

%% Waits for the value. The keyword arguments are an option.
-spec run(py_call:name(), py_call:name(), [term()], py:timeout_or_opts()) -> py:result().
run(M, F, A, Opts) -> py_request:run(?OP_ASYNC, py_call:payload(M, F, A, kwargs(Opts)), Opts).

-spec create_task(py_call:name(), py_call:name(), [term()]) -> reference().
create_task(M, F, A) -> create_task(M, F, A, #{}).

-spec create_task(py_call:name(), py_call:name(), [term()], py_call:kwargs()) -> reference().
create_task(M, F, A, Kw) -> py:async_call(M, F, A, Kw).

-spec await(reference()) -> py:result().
await(Ref) -> py:await(Ref).

-spec await(reference(), timeout()) -> py:result().
await(Ref, Timeout) -> py:await(Ref, Timeout).

-spec spawn_task(py_call:name(), py_call:name(), [term()]) -> ok | {error, py_error:reason()}.
spawn_task(M, F, A) -> spawn_task(M, F, A, #{}).

%% Nobody waits; a failure is logged.
-spec spawn_task(py_call:name(), py_call:name(), [term()], py_call:kwargs()) ->
    ok | {error, py_error:reason()}.
spawn_task(M, F, A, Kw) ->
    case {py_call:payload(M, F, A, Kw), get_loop()} of
        {{ok, Payload}, {ok, Loop}} -> py_call:cast(Loop, ?OP_ASYNC, py_about:flags(), Payload, infinity);
        {{ok, _}, Error} -> Error;
        {Error, _} -> Error
    end.

kwargs(#{kwargs := Kw}) -> Kw;
kwargs(_) -> #{}.

-spec init({py_owned:starter(), []}) -> {ok, py_nif:event_loop()}.
init({_Starter, []}) ->
    process_flag(trap_exit, true),
    #{max_queue := MaxQueue} = persistent_term:get(py_config),
    {ok, py_nif:loop_new(MaxQueue)}.

-spec handle_call(loop | term(), gen_server:from(), State) ->
    {reply, State | {error, unknown}, State}.
handle_call(loop, _From, Loop) ->
    {reply, Loop, Loop};
handle_call(Request, _From, Loop) ->
    py_stray:call(?MODULE, Request, Loop).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, Loop) ->
    py_stray:cast(?MODULE, Request, Loop).

-spec handle_info(term(), State) -> {noreply, State} | {stop, {shutdown, term()}, State}.
handle_info({py_worker_down, Why}, Loop) ->
    {stop, {shutdown, Why}, Loop};
handle_info(Message, Loop) ->
    py_stray:info(?MODULE, Message, Loop).

-spec terminate(term(), py_nif:event_loop()) -> ok.
terminate(_Reason, Loop) ->
    py_nif:loop_close(Loop).
