%% Builds and sends the messages that interpreter threads may not build themselves: large maps; and all that go to
%% other nodes.
%%
%% Before OTP 27.3 a map of more than 128 keys made off a scheduler ends the node; so its bytes come
%% here. What a job sends after such a message comes here too, so that nothing overtakes it.
%%
%% Process: one registered server, and one process for each other node while there is something to send to it: whoever
%% sends to a node that does not read is suspended, which must not hold up the others.
%% Never: takes more than threads may post: each message has a number, and `py_nif:delivered/1' makes room (I8).
-module(py_courier).

-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% The process that sends to a node, and how many messages it has.
-type state() :: #{node() => {pid(), pos_integer()}}.
%% To whom; with what before it, as a term or encoded.
-type parcel() ::
    {relay, Number :: non_neg_integer(), term(), [term()], binary()}
    | {forward, Number :: non_neg_integer(), term(), term()}.

-define(IS_PARCEL(Number), is_integer(Number), Number >= 0).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, state()}.
init([]) ->
    process_flag(message_queue_data, off_heap),
    ok = py_nif:set_process(courier, self()),
    {ok, #{}}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, {error, unknown}, state()}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({relay, Number, To, Head, Bytes} = Parcel, State) when
    ?IS_PARCEL(Number), is_binary(Bytes), Head =:= [] orelse length(Head) =:= 2
->
    {noreply, take(node_of(To), Parcel, State)};
handle_info({forward, Number, To, _Message} = Parcel, State) when ?IS_PARCEL(Number) ->
    {noreply, take(node_of(To), Parcel, State)};
handle_info({sent, Sender, Node, Count}, State) when is_map_key(Node, State), is_integer(Count), Count > 0 ->
    case State of
        #{Node := {Sender, Count}} ->
            _ = Sender ! leave,
            {noreply, maps:remove(Node, State)};
        #{Node := {Sender, More}} when More > Count ->
            {noreply, State#{Node := {Sender, More - Count}}};
        #{} ->
            py_stray:info(?MODULE, {sent, Sender, Node, Count}, State)
    end;
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

node_of({Name, Node}) when is_atom(Name), is_atom(Node) -> Node;
node_of(To) when is_pid(To); is_reference(To); is_port(To) -> node(To);
node_of(_) -> node().

-spec take(node(), parcel(), state()) -> state().
take(Node, Parcel, State) when Node =:= node() ->
    ok = send(Parcel, fun deliver/2),
    State;
take(Node, Parcel, State) ->
    {Sender, Count} =
        case State of
            #{Node := Known} ->
                Known;
            #{} ->
                Courier = self(),
                {proc_lib:spawn_link(fun() -> send_to_node(Courier, Node) end), 0}
        end,
    _ = Sender ! Parcel,
    State#{Node => {Sender, Count + 1}}.

%% Whoever waits for an answer gets the error as one. Nobody waits for a message: it is logged and dropped.
-spec send(parcel(), fun((term(), term()) -> T)) -> T when T :: ok | noconnect.
send({forward, Number, To, Message}, Deliver) ->
    sent(Number, Deliver(To, Message));
send({relay, Number, To, Head, Bytes}, Deliver) ->
    sent(Number, relay(To, Head, py_term:decode(Bytes), Deliver)).

sent(Number, Outcome) ->
    ok = py_nif:delivered(Number),
    Outcome.

relay(To, [], {ok, Message}, Deliver) ->
    Deliver(To, Message);
relay(To, [], {error, Why}, _Deliver) ->
    Text = "a message of Python to ~0tp was dropped. ~ts",
    logger:warning(Text, [To, py_error:format(Why)], #{domain => [python]});
relay(To, [Tag, Ref], {ok, Answer}, Deliver) ->
    Deliver(To, {Tag, Ref, Answer});
relay(To, [Tag, Ref], {error, _} = Error, Deliver) ->
    %% The last message of a stream.
    _ = Tag =:= py_stream andalso py_call:stream_cancel(Ref),
    Deliver(To, {Tag, Ref, Error}).

%% Python names the destination, and one wrong name must not cost the others their messages.
deliver(To, Message) ->
    try To ! Message of
        _ -> ok
    catch
        error:badarg ->
            logger:warning("Python sent a message to ~0tp, which is nobody", [To], #{domain => [python]})
    end.

%% ---- the process of another node

send_to_node(Courier, Node) ->
    _ = process_flag(message_queue_data, off_heap),
    next_to_node(Courier, Node).

next_to_node(Courier, Node) ->
    receive
        leave ->
            ok;
        Parcel ->
            Count =
                case send(Parcel, fun deliver_if_connected/2) of
                    ok -> 1;
                    noconnect -> connect(Node, Parcel)
                end,
            _ = Courier ! {sent, self(), Node, Count},
            next_to_node(Courier, Node)
    end.

deliver_if_connected(To, Message) ->
    erlang:send(To, Message, [noconnect]).

%% What has come for a node that can't be reached is lost at once, as with `!': else each message would wait for an
%% attempt of its own.
connect(Node, Parcel) ->
    case net_kernel:connect_node(Node) of
        true ->
            ok = send(Parcel, fun deliver/2),
            1;
        _ ->
            Count = lost(1),
            Text = "~b messages of Python to the node ~ts were dropped: it can't be reached",
            ok = logger:warning(Text, [Count, Node], #{domain => [python]}),
            Count
    end.

lost(Count) ->
    receive
        Parcel when element(1, Parcel) =:= relay; element(1, Parcel) =:= forward ->
            ok = py_nif:delivered(element(2, Parcel)),
            lost(Count + 1)
    after 0 -> Count
    end.
