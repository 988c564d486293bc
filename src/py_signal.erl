%% Signals of the system for Python's event loops: which loop has handlers for which, and what came.
%%
%% A signal is taken from the emulator (`os:set_signal/2') with the first handler for it, and given back
%% with the last. While there are some, `py_signal_handler' stands in `erl_signal_server' in the place of
%% OTP's own handler, and hands on to it all that Python has no handler for.
-module(py_signal).

-behaviour(gen_server).

-export([start_link/0, open/0, add/2, remove/2, close/1, await/1]).
-export([came/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([signal/0]).

%% Those that the emulator passes on.
-type signal() ::
    sighup | sigquit | sigabrt | sigalrm | sigterm | sigusr1 | sigusr2 | sigchld | sigtstp.
%% Stands for a loop.
-type token() :: pos_integer().

%% Signals with a handler, for `py_signal_handler' to look at.
-define(TABLE, ?MODULE).

-record(loop, {
    signals = [] :: [signal()],
    %% Came, and not told yet; each once, as the system has it.
    pending = [] :: [signal()],
    waiter = none :: none | gen_server:from()
}).

-record(state, {loops = #{} :: #{token() => #loop{}}}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec open() -> token().
open() -> gen_server:call(?MODULE, open).

%% An error: this process was started anew since the token was given.
-spec add(token(), signal()) -> ok | {error, closed | {bad_argument, {signal, term()}}}.
add(Token, Signal) ->
    case is_signal(Signal) of
        true -> gen_server:call(?MODULE, {add, Token, Signal});
        false -> {error, {bad_argument, {signal, Signal}}}
    end.

-spec remove(token(), signal()) -> ok.
remove(Token, Signal) -> gen_server:call(?MODULE, {remove, Token, Signal}).

-spec close(token()) -> ok.
close(Token) -> gen_server:call(?MODULE, {close, Token}).

%% Waits for signals of a loop; none: it was closed.
-spec await(token()) -> [signal()].
await(Token) -> gen_server:call(?MODULE, {await, Token}, infinity).

%% Called where signals arrive: whether they are for Python.
-spec came(signal()) -> boolean().
came(Signal) ->
    try ets:member(?TABLE, Signal) of
        true ->
            ok = gen_server:cast(?MODULE, {came, Signal}),
            true;
        false ->
            false
    catch
        %% The application is not running.
        error:badarg -> false
    end.

-spec init([]) -> {ok, #state{}}.
init([]) ->
    process_flag(trap_exit, true),
    ?TABLE = ets:new(?TABLE, [named_table]),
    {ok, #state{}}.

-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}}.
handle_call(open, _From, #state{loops = Loops} = State) ->
    %% Never given twice, also not by the next process that has this name.
    Token = erlang:unique_integer([positive]),
    {reply, Token, State#state{loops = Loops#{Token => #loop{}}}};
handle_call({add, Token, Signal} = Request, _From, #state{loops = Loops} = State) ->
    case {Loops, is_signal(Signal)} of
        {_, false} ->
            py_stray:call(?MODULE, Request, State);
        {#{Token := #loop{signals = Signals} = Loop}, true} ->
            New = Loops#{Token := Loop#loop{signals = [Signal | lists:delete(Signal, Signals)]}},
            {reply, settle(Signal, New), State#state{loops = New}};
        {#{}, true} ->
            {reply, {error, closed}, State}
    end;
handle_call({remove, Token, Signal}, _From, State) ->
    {reply, ok, removed(Token, Signal, State)};
handle_call({close, Token}, _From, State) ->
    {reply, ok, closed(Token, State)};
handle_call({await, Token}, From, #state{loops = Loops} = State) ->
    case Loops of
        #{Token := Loop} -> {noreply, State#state{loops = serve(Token, Loop#loop{waiter = From}, Loops)}};
        #{} -> {reply, [], State}
    end;
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast({came, signal()} | term(), #state{}) -> {noreply, #state{}}.
handle_cast({came, Signal}, #state{loops = Loops} = State) ->
    Hear = fun(Token, #loop{signals = Signals, pending = Pending} = Loop, Now) ->
        case lists:member(Signal, Signals) of
            true -> serve(Token, Loop#loop{pending = [Signal | lists:delete(Signal, Pending)]}, Now);
            false -> Now
        end
    end,
    {noreply, State#state{loops = maps:fold(Hear, Loops, Loops)}};
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

%% From Python code that can't wait for an answer.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({<<"signal_remove">>, Token, Name}, State) ->
    Named = [Signal || Signal <- signals(), atom_to_binary(Signal) =:= Name],
    {noreply, lists:foldl(fun(Signal, Now) -> removed(Token, Signal, Now) end, State, Named)};
handle_info({<<"signal_close">>, Token}, State) ->
    {noreply, closed(Token, State)};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{loops = Loops}) ->
    [ok = tell(Waiter, []) || #loop{waiter = Waiter} <- maps:values(Loops)],
    [ok = settle(Signal, #{}) || {Signal} <- ets:tab2list(?TABLE)],
    ok.

removed(Token, Signal, #state{loops = Loops} = State) ->
    New = without(Token, Signal, Loops),
    ok = settle(Signal, New),
    State#state{loops = New}.

closed(Token, #state{loops = Loops} = State) ->
    case maps:take(Token, Loops) of
        {#loop{signals = Signals, waiter = Waiter}, Left} ->
            ok = tell(Waiter, []),
            [ok = settle(Signal, Left) || Signal <- Signals],
            State#state{loops = Left};
        error ->
            State
    end.

without(Token, Signal, Loops) ->
    case Loops of
        #{Token := #loop{signals = Signals, pending = Pending} = Loop} ->
            Loops#{
                Token := Loop#loop{
                    signals = lists:delete(Signal, Signals), pending = lists:delete(Signal, Pending)
                }
            };
        #{} ->
            Loops
    end.

%% Tells who waits what came.
serve(Token, #loop{pending = [_ | _] = Pending, waiter = {_, _} = Waiter} = Loop, Loops) ->
    ok = tell(Waiter, lists:reverse(Pending)),
    Loops#{Token := Loop#loop{pending = [], waiter = none}};
serve(Token, Loop, Loops) ->
    Loops#{Token := Loop}.

tell(none, _Signals) -> ok;
tell(Waiter, Signals) -> gen_server:reply(Waiter, Signals).

%% Takes a signal from the emulator, or gives it back.
settle(Signal, Loops) ->
    Wanted = lists:any(fun(#loop{signals = S}) -> lists:member(Signal, S) end, maps:values(Loops)),
    case {Wanted, ets:member(?TABLE, Signal)} of
        {true, false} ->
            true = ets:insert(?TABLE, {Signal}),
            ok = py_signal_handler:install(),
            os:set_signal(Signal, handle);
        {false, true} ->
            ok = os:set_signal(Signal, by_default(Signal)),
            true = ets:delete(?TABLE, Signal),
            case ets:info(?TABLE, size) of
                0 -> py_signal_handler:uninstall();
                _ -> ok
            end;
        _ ->
            ok
    end.

is_signal(Signal) -> lists:member(Signal, signals()).

signals() -> [sighup, sigquit, sigabrt, sigalrm, sigterm, sigusr1, sigusr2, sigchld, sigtstp].

%% As a node has it that was just started.
by_default(Signal) when Signal =:= sigterm; Signal =:= sigquit; Signal =:= sigusr1 -> handle;
by_default(_Signal) -> default.
