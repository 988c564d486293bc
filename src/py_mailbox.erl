%% The process a Python task is to others: what is sent to it waits in its mailbox until the task asks.
%%
%% Process: one per task that has asked for it; ends with the task, or with the caller of that.
-module(py_mailbox).

-export([start_link/1, next/2, forget/2, give_back/2, stop/1]).
-export([init/1]).

-spec start_link(pid()) -> {ok, pid()}.
start_link(Caller) ->
    proc_lib:start_link(?MODULE, init, [Caller]).

%% The next message; `forget/2' with the token ends the wait.
-spec next(pid(), term()) -> {ok, term()} | {error, closed} | forgotten.
next(Mailbox, Token) ->
    Monitor = monitor(process, Mailbox),
    _ = Mailbox ! {'$py_mailbox', next, self(), Monitor, Token},
    receive
        {Monitor, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Mailbox, _} ->
            {error, closed}
    end.

-spec forget(pid(), term()) -> ok.
forget(Mailbox, Token) ->
    _ = Mailbox ! {'$py_mailbox', forget, Token},
    ok.

%% A message whose receiver was gone when it came: it is the next one again.
-spec give_back(pid(), term()) -> ok.
give_back(Mailbox, Message) ->
    _ = Mailbox ! {'$py_mailbox', give_back, Message},
    ok.

-spec stop(pid()) -> ok.
stop(Mailbox) ->
    _ = Mailbox ! {'$py_mailbox', stop},
    ok.

-spec init(pid()) -> ok.
init(Caller) ->
    _ = monitor(process, Caller, [{tag, '$py_mailbox_down'}]),
    proc_lib:init_ack({ok, self()}),
    loop(queue:new(), queue:new(), queue:new()).

%% `Back' was given back and comes before `Messages'. If something waits, nobody asks.
loop(Back, Messages, Askers) ->
    receive
        {'$py_mailbox', next, From, Ref, Token} ->
            hand_over(Back, Messages, queue:in({From, Ref, Token}, Askers));
        {'$py_mailbox', give_back, Message} ->
            hand_over(queue:in(Message, Back), Messages, Askers);
        {'$py_mailbox', forget, Token} ->
            loop(Back, Messages, queue:filter(fun(Asker) -> still_asks(Asker, Token) end, Askers));
        {'$py_mailbox', stop} ->
            ok;
        {'$py_mailbox_down', _, process, _, _} ->
            ok;
        Message ->
            hand_over(Back, queue:in(Message, Messages), Askers)
    end.

hand_over(Back, Messages, Askers) ->
    case {queue:out(Askers), queue:out(Back), queue:out(Messages)} of
        {{empty, _}, _, _} -> loop(Back, Messages, Askers);
        {{_, Rest}, {{value, Message}, Left}, _} -> answer(Askers, Message), loop(Left, Messages, Rest);
        {{_, Rest}, _, {{value, Message}, Left}} -> answer(Askers, Message), loop(Back, Left, Rest);
        _ -> loop(Back, Messages, Askers)
    end.

answer(Askers, Message) ->
    {From, Ref, _Token} = queue:get(Askers),
    _ = From ! {Ref, {ok, Message}},
    ok.

still_asks({From, Ref, Token}, Token) ->
    _ = From ! {Ref, forgotten},
    false;
still_asks(_Asker, _Token) ->
    true.
