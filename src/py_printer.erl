%% Hears what group leaders answer to what Python prints: who is behind gets no more.
%%
%% The requests go from Python's threads to the leaders themselves, so that they come before the answer of the
%% call that printed. They name this process as their sender.
-module(py_printer).

-behaviour(gen_server).

-export([start_link/0, local/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% The processes that stand for leaders on other nodes, both ways.
-type state() :: #{pid() => pid()}.

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% A group leader of this node, which passes on what it gets if the given one is on another: only processes of
%% this node can be sent to from Python's threads.
-spec local(pid()) -> pid().
local(Leader) when node(Leader) =:= node() -> Leader;
local(Leader) ->
    try
        gen_server:call(?MODULE, {local, Leader}, infinity)
    catch
        %% The application is not running.
        exit:_ -> whereis(user)
    end.

-spec init([]) -> {ok, state()}.
init([]) ->
    _ = process_flag(message_queue_data, off_heap),
    _ = process_flag(trap_exit, true),
    ok = py_nif:set_process(printer, self()),
    {ok, #{}}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, pid() | {error, unknown}, state()}.
handle_call({local, Leader}, _From, State) when is_pid(Leader) ->
    case State of
        #{Leader := Relay} ->
            {reply, Relay, State};
        #{} ->
            Relay = spawn_link(fun() -> relay(Leader, monitor(process, Leader)) end),
            {reply, Relay, State#{Leader => Relay, Relay => Leader}}
    end;
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(Request, State) -> py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({io_reply, {py_printed, Leader, Bytes}, _Answer}, State) when is_reference(Leader), is_integer(Bytes) ->
    ok = printed(Leader, Bytes),
    {noreply, State};
handle_info({'EXIT', Relay, _Why}, State) ->
    case maps:take(Relay, State) of
        {Leader, Others} -> {noreply, maps:remove(Leader, Others)};
        error -> {noreply, State}
    end;
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), state()) -> ok.
terminate(_Reason, _State) -> py_nif:set_process(printer, undefined).

%% Anybody can send an answer to what was never asked.
printed(Leader, Bytes) ->
    try
        py_nif:printed(Leader, Bytes)
    catch
        error:badarg -> ok
    end.

%% The answers go to whoever asked, not through here.
relay(Leader, Monitor) ->
    receive
        {'DOWN', Monitor, process, _, _} -> ok;
        Request -> Leader ! Request, relay(Leader, Monitor)
    end.
