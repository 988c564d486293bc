%% Drives loops by messages: one `{select, Loop, _, ready_input}' per wake, whatever is ready in it.
%%
%% Process: one for as many loops as wanted. Waits for nothing itself: the emulator watches one
%% descriptor per loop. What happened is fetched with `py_nif:get_pending/1', or sent to the process
%% that was named: `{py_events, Loop, [{Id, read | write | timer}]}'.
-module(py_event_router).

-behaviour(gen_server).

-export([start_link/1, start_link/2, stop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([opts/0]).

-type opts() :: py_options:given().
-type pending() :: [{py_nif:event_id(), read | write | timer}].

-spec start_link(py_nif:raw_loop()) -> gen_server:start_ret().
start_link(Loop) ->
    start_link(Loop, #{}).

-spec start_link(py_nif:raw_loop(), opts()) -> gen_server:start_ret().
start_link(Loop, Opts) ->
    case py_options:check(event_router, Opts) of
        {ok, _} -> start_for(kind(Loop), Loop, Opts);
        {error, _} = Error -> Error
    end.

start_for(gone, _Loop, _Opts) -> {error, not_running};
start_for(none, _Loop, _Opts) -> {error, {bad_argument, loop}};
start_for(_Kind, Loop, Opts) -> gen_server:start_link(?MODULE, {Loop, Opts}, []).

kind(Loop) ->
    try
        py_nif:event_loop_kind(Loop)
    catch
        error:badarg -> none
    end.

-spec stop(pid()) -> ok | {error, {bad_argument, router}}.
stop(Router) ->
    case py_ask:stop_of([?MODULE], Router) of
        {error, no_server} -> {error, {bad_argument, router}};
        ok -> ok
    end.

%% Takes what is ready in the loop, and tells who wants to know.
-spec step(py_nif:raw_loop(), opts()) -> ok.
step(Loop, Opts) ->
    case {stepped(Loop), Opts} of
        {{ok, N}, #{notify := Pid}} when N > 0 ->
            tell(Pid, Loop, py_nif:get_pending(Loop));
        %% Nothing came, nobody asked, or the loop was destroyed meanwhile.
        _ ->
            ok
    end.

%% A message that only looks like the emulator's names no loop.
stepped(Loop) ->
    try
        py_nif:event_loop_step(Loop)
    catch
        error:badarg -> none
    end.

-spec tell(pid(), py_nif:raw_loop(), pending()) -> ok.
tell(Pid, Loop, Pending) ->
    Pid ! {py_events, Loop, Pending},
    ok.

-spec init({py_nif:raw_loop(), opts()}) -> {ok, opts()} | {stop, term()}.
init({Loop, Opts}) ->
    case py_nif:event_loop_set_router(Loop, self()) of
        ok -> {ok, Opts};
        {error, Reason} -> {stop, Reason}
    end.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), opts()) -> {noreply, opts()}.
handle_info({select, Loop, _Ref, ready_input}, Opts) ->
    ok = step(Loop, Opts),
    {noreply, Opts};
handle_info(Message, Opts) ->
    py_stray:info(?MODULE, Message, Opts).
