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
    idle([]).

%% Nobody asks: only what is meant for this module is taken out.
idle(Back) ->
    receive
        {'$py_mailbox', next, From, Ref, Token} -> asked(From, Ref, Token, Back);
        {'$py_mailbox', give_back, Message} -> idle(Back ++ [Message]);
        {'$py_mailbox', forget, _} -> idle(Back);
        {'$py_mailbox', stop} -> ok;
        {'$py_mailbox_down', _, process, _, _} -> ok
    end.

asked(From, Ref, _Token, [Message | Back]) ->
    From ! {Ref, {ok, Message}},
    idle(Back);
asked(From, Ref, Token, []) ->
    receive
        {'$py_mailbox', forget, Token} ->
            From ! {Ref, forgotten},
            idle([]);
        {'$py_mailbox', forget, _} ->
            asked(From, Ref, Token, []);
        {'$py_mailbox', give_back, Message} ->
            asked(From, Ref, Token, [Message]);
        {'$py_mailbox', stop} ->
            ok;
        {'$py_mailbox_down', _, process, _, _} ->
            ok;
        Message ->
            From ! {Ref, {ok, Message}},
            idle([])
    end.
