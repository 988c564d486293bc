%% Builds and sends the messages that interpreter threads may not build themselves: large maps.
%%
%% Before OTP 27.3 a map of more than 128 keys made off a scheduler ends the node; so its bytes come
%% here. What a job sends after such a message comes here too, so that nothing overtakes it.
-module(py_courier).

-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, []}.
init([]) ->
    process_flag(message_queue_data, off_heap),
    ok = py_nif:set_process(courier, self()),
    {ok, []}.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), State) -> {noreply, State}.
handle_info({relay, To, Head, Bytes}, State) when is_binary(Bytes), Head =:= [] orelse length(Head) =:= 2 ->
    {noreply, relay(To, Head, py_term:decode(Bytes), State)};
handle_info({forward, To, Message}, State) ->
    {noreply, deliver(To, Message, State)};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

%% Whoever waits for an answer gets the error as one. Nobody waits for a message: it is logged and dropped.
relay(To, [], {ok, Message}, State) ->
    deliver(To, Message, State);
relay(To, [], {error, Why}, State) ->
    Text = "a message of Python to ~0tp was dropped. ~ts",
    ok = logger:warning(Text, [To, py_error:format(Why)], #{domain => [python]}),
    State;
relay(To, [Tag, Ref], {ok, Answer}, State) ->
    deliver(To, {Tag, Ref, Answer}, State);
relay(To, [Tag, Ref], {error, _} = Error, State) ->
    %% The last message of a stream.
    _ = Tag =:= py_stream andalso py_call:stream_cancel(Ref),
    deliver(To, {Tag, Ref, Error}, State).

%% Python names the destination, and one wrong name must not cost the others their messages.
deliver(To, Message, State) ->
    try To ! Message of
        _ -> State
    catch
        error:badarg ->
            ok = logger:warning("Python sent a message to ~0tp, which is nobody", [To], #{domain => [python]}),
            State
    end.
