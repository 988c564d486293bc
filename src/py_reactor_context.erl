%% Connections that Erlang accepts and Python protocols handle: an event loop, and one object of a
%% class made from `erlang.reactor.Protocol' per descriptor that is handed over.
%%
%% Process: stands for the loop, and ends with it. Handing over happens in the process that does it.
-module(py_reactor_context).

-behaviour(gen_server).

-export([start_link/1, child_spec/1, handoff/2, info/1, stop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([opts/0]).

%% `protocol' is among them.
-type opts() :: py_options:given().
%% The loop, and the number of the context in it.
-type way() :: {py_nif:event_loop(), pos_integer()}.

-define(PYTHON, 'erlang.reactor').

-spec start_link(opts()) -> py_owned:start_ret().
start_link(Opts) ->
    case py_options:check(reactor_context, Opts) of
        {ok, #{protocol := _} = Checked} -> py_owned:start_link(Checked, ?MODULE, Checked);
        {ok, _} -> {error, {bad_argument, protocol}};
        {error, _} = Error -> Error
    end.

%% For a supervisor of the user's.
-spec child_spec(opts()) -> supervisor:child_spec().
child_spec(Opts) -> py_owned:child_spec(?MODULE, Opts).

%% The descriptor is duplicated: close your own when this has returned, whatever it returned.
-spec handoff(pid() | atom(), Fd :: non_neg_integer()) -> ok | {error, full | py_error:reason()}.
handoff(Context, Fd) when is_integer(Fd), Fd >= 0 ->
    case on_loop(way(Context), '_handoff', [Fd]) of
        {ok, true} -> ok;
        {ok, false} -> {error, full};
        {error, _} = Error -> Error
    end;
handoff(_Context, _Fd) ->
    {error, {bad_argument, fd}}.

%% How many connections there are, and how many there were.
-spec info(pid() | atom()) -> {ok, #{binary() => non_neg_integer()}} | {error, py_error:reason()}.
info(Context) ->
    on_loop(way(Context), '_info', []).

%% Every connection is closed, and its protocol told.
-spec stop(pid() | atom()) -> ok | {error, {bad_argument, context}}.
stop(Context) ->
    known(py_ask:stop_of([?MODULE], Context)).

-spec way(pid() | atom()) -> way() | {error, not_running | {bad_argument, context}}.
way(Context) ->
    known(py_ask:server_of([?MODULE], Context, way, {error, not_running})).

known({error, no_server}) -> {error, {bad_argument, context}};
known(Answer) -> Answer.

-spec on_loop(way() | {error, not_running | {bad_argument, context}}, atom(), [term()]) -> py:result().
on_loop({error, _} = Error, _Function, _Args) ->
    Error;
on_loop({Loop, Number}, Function, Args) ->
    Request = #{module => ?PYTHON, func => Function, args => [Number | Args]},
    case py_event_loop:run_async(Loop, Request) of
        {ok, Ref} -> py:await(Ref);
        {error, _} = Error -> Error
    end.

-spec init({py_owned:starter(), opts()}) -> {ok, {pid(), way()}} | ignore.
init({Starter, #{protocol := {Module, Class}, max_connections := Most} = Opts}) ->
    process_flag(trap_exit, true),
    case py_event_loop:start_link(maps:with([driver], Opts)) of
        {ok, Pid} ->
            Way = {py_event_loop:loop(Pid), erlang:unique_integer([positive])},
            case on_loop(Way, '_open', [py_call:text(Module), py_call:text(Class), Most]) of
                {ok, none} ->
                    {ok, {Pid, Way}};
                {error, Reason} ->
                    ok = py_ask:otherwise(fun() -> gen_server:stop(Pid) end, ok),
                    py_owned:refuse(Starter, Reason)
            end;
        {error, Reason} ->
            py_owned:refuse(Starter, Reason)
    end.

-spec handle_call(way | term(), gen_server:from(), {pid(), way()}) ->
    {reply, way() | {error, unknown}, {pid(), way()}}.
handle_call(way, _From, {_, Way} = State) ->
    {reply, Way, State};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), {pid(), way()}) -> {noreply, {pid(), way()}} | {stop, term(), {pid(), way()}}.
handle_info({'EXIT', Pid, Why}, {Pid, _} = State) ->
    {stop, Why, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), {pid(), way()}) -> ok.
terminate(_Reason, {_Pid, Way}) ->
    _ = on_loop(Way, '_close', []),
    ok.
