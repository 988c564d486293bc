%% A bounded queue between Erlang processes and Python code: who sends too fast hears so or waits.
%%
%% Process: one per channel. It ends when the channel is closed and empty, or with its maker.
-module(py_channel).

-behaviour(gen_server).

-export([new/0, new/1, new/2, send/2, put/2, recv/1, recv/2, close/1, info/1]).
-export([await_value/2, forget/2, give_back/2]).
-export([start_link/2]).
-export([new_table/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([channel/0]).

-type channel() :: pid().
%% What is no channel is refused.
-type refused() :: closed | {bad_argument, channel}.
-type received() :: {ok, term()} | {error, timeout | {bad_argument, timeout} | refused()}.

-include("py_nif.hrl").

%% The channels of this node, so that to know one costs next to nothing.
-define(CHANNELS, py_channels).

%% Someone who waits for a value, by a token of its own where it may change its mind.
-record(waiter, {
    from :: gen_server:from(),
    monitor :: reference(),
    timer :: reference() | undefined,
    token :: term()
}).
-record(state, {
    max :: pos_integer(),
    values = queue:new() :: queue:queue(term()),
    length = 0 :: non_neg_integer(),
    receivers = queue:new() :: queue:queue(#waiter{}),
    %% Those that wait for room, with what they bring.
    senders = queue:new() :: queue:queue({#waiter{}, term()}),
    closed = false :: boolean()
}).

-spec new() -> {ok, channel()} | {error, py_error:reason()}.
new() -> new(#{}).

%% `max': so many values wait in it.
-spec new(py_options:given()) -> {ok, channel()} | {error, py_error:reason()}.
new(Opts) -> new(self(), Opts).

%% For a process that it ends with.
-spec new(pid(), py_options:given()) -> {ok, channel()} | {error, py_error:reason()}.
new(Maker, Opts) ->
    case py_options:check(channel, Opts) of
        {ok, #{max := Max}} -> py_channel_sup:start_channel(Maker, Max);
        {error, _} = Error -> Error
    end.

%% Never waits: a full channel is `busy'.
-spec send(channel(), term()) -> ok | busy | {error, refused()}.
send(Channel, Value) -> ask(Channel, {send, Value}).

%% Waits for room.
-spec put(channel(), term()) -> ok | {error, refused()}.
put(Channel, Value) -> ask(Channel, {put, Value}).

-spec recv(channel()) -> received().
recv(Channel) -> recv(Channel, infinity).

-spec recv(channel(), timeout()) -> received().
recv(Channel, Timeout) when ?IS_TIMEOUT(Timeout) -> ask(Channel, {recv, Timeout, none});
recv(_Channel, _Timeout) -> {error, {bad_argument, timeout}}.

%% The same for one that may change its mind: `forget/2' with the token ends the wait.
-spec await_value(channel(), term()) -> received() | forgotten.
await_value(Channel, Token) -> ask(Channel, {recv, infinity, Token}).

-spec forget(channel(), term()) -> ok | {error, refused()}.
forget(Channel, Token) -> ask(Channel, {forget, Token}).

%% A value whose receiver was gone when it came: it is the next one again.
-spec give_back(channel(), term()) -> ok | {error, refused()}.
give_back(Channel, Value) -> ask(Channel, {give_back, Value}).

%% What is in it can still be received.
-spec close(channel()) -> ok | {error, {bad_argument, channel}}.
close(Channel) ->
    case ask(Channel, close) of
        {error, {bad_argument, channel}} = Error -> Error;
        _ -> ok
    end.

-spec info(channel()) -> #{atom() => term()} | {error, refused()}.
info(Channel) -> ask(Channel, info).

ask(Channel, Request) ->
    Otherwise = {error, closed},
    case is_known(Channel) of
        true ->
            py_ask:server(Channel, Request, Otherwise);
        false ->
            case py_ask:server_of([?MODULE], Channel, Request, Otherwise) of
                {error, no_server} -> {error, {bad_argument, channel}};
                Answer -> Answer
            end
    end.

is_known(Channel) ->
    try
        ets:member(?CHANNELS, Channel)
    catch
        %% The application is not running.
        error:badarg -> false
    end.

%% Makes the table of channels; its owner is the calling process, and they end with that.
-spec new_table() -> ok.
new_table() ->
    ?CHANNELS = ets:new(?CHANNELS, [named_table, public, {read_concurrency, true}]),
    ok.

-spec start_link(pid(), pos_integer()) -> gen_server:start_ret().
start_link(Maker, Max) ->
    gen_server:start_link(?MODULE, {Maker, Max}, []).

-spec init({pid(), pos_integer()}) -> {ok, #state{}}.
init({Maker, Max}) ->
    _ = monitor(process, Maker, [{tag, maker_down}]),
    true = ets:insert(?CHANNELS, {self()}),
    ok = remove_killed(),
    {ok, #state{max = Max}}.

%% Channels that were killed have left their rows: each new one removes those that stand next to its own, so there are
%% about as many of them as there are channels.
remove_killed() ->
    case next(self()) of
        Next when Next =:= self() ->
            ok;
        Next ->
            case is_process_alive(Next) of
                true ->
                    ok;
                false ->
                    true = ets:delete(?CHANNELS, Next),
                    remove_killed()
            end
    end.

%% The rows stand in a ring.
next(Channel) ->
    case ets:next(?CHANNELS, Channel) of
        '$end_of_table' -> ets:first(?CHANNELS);
        Next -> Next
    end.

-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {noreply, #state{}} | {stop, normal, term(), #state{}}.
handle_call({send, _}, _From, #state{closed = true} = State) ->
    {reply, {error, closed}, State};
handle_call({send, Value}, _From, #state{length = Length, max = Max} = State) when Length < Max ->
    {reply, ok, arrived(Value, State)};
handle_call({send, _}, _From, State) ->
    {reply, busy, State};
handle_call({put, _}, _From, #state{closed = true} = State) ->
    {reply, {error, closed}, State};
handle_call({put, Value}, _From, #state{length = Length, max = Max} = State) when Length < Max ->
    {reply, ok, arrived(Value, State)};
handle_call({put, Value}, From, #state{senders = Senders} = State) ->
    Waiter = waiter(From, infinity, none),
    {noreply, State#state{senders = queue:in({Waiter, Value}, Senders)}};
handle_call({recv, Timeout, Token}, From, #state{length = 0} = State) when ?IS_TIMEOUT(Timeout) ->
    wait(From, Timeout, Token, State);
handle_call({recv, _, _}, _From, #state{values = Values, length = Length} = State) when Length > 0 ->
    {{value, Value}, Rest} = queue:out(Values),
    after_receive({ok, Value}, room(State#state{values = Rest, length = Length - 1}));
handle_call({forget, Token}, _From, #state{receivers = Receivers} = State) ->
    Left = queue:filter(fun(Waiter) -> not forgotten(Waiter, Token) end, Receivers),
    {reply, ok, State#state{receivers = Left}};
handle_call({give_back, Value}, _From, #state{receivers = Receivers} = State) ->
    case queue:out(Receivers) of
        {{value, Waiter}, Rest} ->
            ok = answer(Waiter, {ok, Value}),
            {reply, ok, State#state{receivers = Rest}};
        {empty, _} ->
            #state{values = Values, length = Length} = State,
            {reply, ok, State#state{values = queue:in_r(Value, Values), length = Length + 1}}
    end;
handle_call(close, _From, State) ->
    after_receive(ok, closed(State));
handle_call(info, _From, #state{} = State) ->
    Info = #{
        length => State#state.length,
        max => State#state.max,
        closed => State#state.closed,
        receivers => queue:len(State#state.receivers),
        senders => queue:len(State#state.senders)
    },
    {reply, Info, State};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

wait(_From, 0, _Token, #state{closed = false} = State) ->
    {reply, {error, timeout}, State};
wait(From, Timeout, Token, #state{closed = false, receivers = Receivers} = State) ->
    {noreply, State#state{receivers = queue:in(waiter(From, Timeout, Token), Receivers)}};
wait(_From, _Timeout, _Token, State) ->
    {reply, {error, closed}, State}.

%% Closed and empty: there is nothing to come.
after_receive(Reply, #state{closed = true, length = 0} = State) -> {stop, normal, Reply, State};
after_receive(Reply, State) -> {reply, Reply, State}.

%% A value for the first who waits, else for the queue.
arrived(Value, #state{receivers = Receivers, values = Values, length = Length} = State) ->
    case queue:out(Receivers) of
        {{value, Waiter}, Rest} ->
            ok = answer(Waiter, {ok, Value}),
            State#state{receivers = Rest};
        {empty, _} ->
            State#state{values = queue:in(Value, Values), length = Length + 1}
    end.

%% There is room: the first who waits to send goes on.
room(#state{senders = Senders, values = Values, length = Length} = State) ->
    case queue:out(Senders) of
        {{value, {Waiter, Value}}, Rest} ->
            ok = answer(Waiter, ok),
            State#state{senders = Rest, values = queue:in(Value, Values), length = Length + 1};
        {empty, _} ->
            State
    end.

closed(#state{receivers = Receivers, senders = Senders} = State) ->
    Error = {error, closed},
    lists:foreach(fun(Waiter) -> answer(Waiter, Error) end, queue:to_list(Receivers)),
    lists:foreach(fun({Waiter, _}) -> answer(Waiter, Error) end, queue:to_list(Senders)),
    State#state{closed = true, receivers = queue:new(), senders = queue:new()}.

waiter({Pid, _} = From, Timeout, Token) ->
    Timer =
        case Timeout of
            infinity -> undefined;
            _ -> erlang:send_after(Timeout, self(), {expired, From})
        end,
    #waiter{from = From, monitor = monitor(process, Pid), timer = Timer, token = Token}.

answer(#waiter{from = From} = Waiter, Answer) ->
    ok = dismiss(Waiter),
    gen_server:reply(From, Answer).

dismiss(#waiter{monitor = Monitor, timer = Timer}) ->
    true = demonitor(Monitor, [flush]),
    _ = Timer =:= undefined orelse erlang:cancel_timer(Timer),
    ok.

forgotten(#waiter{token = Token} = Waiter, Token) ->
    ok = answer(Waiter, forgotten),
    true;
forgotten(_Waiter, _Token) ->
    false.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, normal, #state{}}.
handle_info({expired, From}, #state{receivers = Receivers} = State) ->
    Keep = fun
        (#waiter{from = F} = Waiter) when F =:= From ->
            ok = answer(Waiter, {error, timeout}),
            false;
        (_) ->
            true
    end,
    {noreply, State#state{receivers = queue:filter(Keep, Receivers)}};
handle_info({'DOWN', Monitor, process, _, _}, #state{receivers = R, senders = S} = State) ->
    Receivers = queue:filter(fun(#waiter{monitor = M}) -> M =/= Monitor end, R),
    Senders = queue:filter(fun({#waiter{monitor = M}, _}) -> M =/= Monitor end, S),
    {noreply, State#state{receivers = Receivers, senders = Senders}};
handle_info({maker_down, _, process, _, _}, State) ->
    %% With what is in it: nobody else may know of it, and it would stay for ever.
    {stop, normal, closed(State)};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, _State) ->
    true = ets:delete(?CHANNELS, self()),
    ok.
