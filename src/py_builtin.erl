%% The functions of ours that the Python package calls, by names no user can register.
-module(py_builtin).

-export([call/3]).

-spec call(Name :: binary(), [term()], Caller :: pid() | undefined) -> term().
call(<<"atom">>, [Name], _Caller) ->
    _Atom = py_atoms:make(Name),
    true;
call(<<"mailbox_new">>, [], Caller) ->
    ok_value(py_channel_sup:start_mailbox(somebody(Caller)));
call(<<"mailbox_await">>, [Mailbox, Token], _Caller) ->
    received(py_mailbox:next(Mailbox, Token));
call(<<"mailbox_forget">>, [Mailbox, Token], _Caller) ->
    py_mailbox:forget(Mailbox, Token);
call(<<"mailbox_give_back">>, [Mailbox, Message], _Caller) ->
    py_mailbox:give_back(Mailbox, Message);
call(<<"mailbox_stop">>, [Mailbox], _Caller) ->
    py_mailbox:stop(Mailbox);
call(<<"channel_new">>, [Max], Caller) ->
    ok_value(py_channel:new(somebody(Caller), maps:from_list([{max, Max} || Max =/= none])));
call(<<"channel_try_send">>, [Channel, Value], _Caller) ->
    case py_channel:send(Channel, Value) of
        ok -> true;
        busy -> false;
        {error, closed} -> closed;
        {error, Why} -> error(Why)
    end;
call(<<"channel_send">>, [Channel, Value], _Caller) ->
    case py_channel:put(Channel, Value) of
        ok -> true;
        {error, closed} -> closed;
        {error, Why} -> error(Why)
    end;
call(<<"channel_receive">>, [Channel, Timeout], _Caller) ->
    received(py_channel:recv(Channel, or_infinity(Timeout)));
call(<<"channel_await">>, [Channel, Token], _Caller) ->
    received(py_channel:await_value(Channel, Token));
call(<<"channel_forget">>, [Channel, Token], _Caller) ->
    _ = py_channel:forget(Channel, Token),
    true;
call(<<"channel_give_back">>, [Channel, Value], _Caller) ->
    _ = py_channel:give_back(Channel, Value),
    true;
call(<<"channel_close">>, [Channel], _Caller) ->
    ok_or_raise(py_channel:close(Channel));
call(<<"start_loops">>, [], _Caller) ->
    {ok, _Loop} = py_event_loop_pool:get_loop(),
    true;
call(<<"loop">>, [], Caller) ->
    ok_value(py_event_loop_pool:loop_of(somebody(Caller)));
call(<<"signal_open">>, [], _Caller) ->
    py_signal:open();
call(<<"signal_add">>, [Token, Signal], _Caller) ->
    ok_or_raise(py_signal:add(Token, binary_to_existing_atom(Signal)));
call(<<"signal_remove">>, [Token, Signal], _Caller) ->
    py_signal:remove(Token, binary_to_existing_atom(Signal));
call(<<"signal_close">>, [Token], _Caller) ->
    py_signal:close(Token);
call(<<"signal_await">>, [Token], _Caller) ->
    py_signal:await(Token);
call(<<"end_idle_interpreters">>, [], _Caller) ->
    py_subinterp_pool:end_idle();
call(<<"whereis">>, [Name], _Caller) ->
    try whereis(binary_to_existing_atom(Name, utf8)) of
        Pid -> Pid
    catch
        error:badarg -> undefined
    end;
%% An empty one, if there is Elixir.
call(<<"map_set">>, [], _Caller) ->
    apply(list_to_existing_atom("Elixir.MapSet"), new, []);
call(<<"state_get">>, [Key], _Caller) ->
    case py_state:state_fetch(Key) of
        {ok, Value} -> {true, Value};
        {error, not_found} -> {false, none}
    end;
call(<<"state_set">>, [Key, Value], _Caller) ->
    ok_or_raise(py_state:state_store(Key, Value));
call(<<"state_delete">>, [Key], _Caller) ->
    py_state:state_remove(Key);
call(<<"state_keys">>, [], _Caller) ->
    py_state:state_keys();
call(<<"state_clear">>, [], _Caller) ->
    py_state:state_clear();
call(<<"state_incr">>, [Key, By], _Caller) ->
    value_or_raise(py_state:state_incr(Key, By));
call(<<"state_decr">>, [Key, By], _Caller) ->
    value_or_raise(py_state:state_decr(Key, By));
call(<<"dict_", Operation/binary>>, Args, _Caller) ->
    dict(Operation, Args);
call(<<"asgi">>, [Runner, Ref, Question], _Caller) ->
    py_asgi_run:ask(Runner, Ref, Question);
call(<<"access_log">>, [Lines, Missing], _Caller) ->
    py_logger:access(Lines, Missing);
call(<<"pg_", Operation/binary>>, [Scope | Args], _Caller) ->
    group(Operation, [py_pg:scope(Scope) | Args]).

group(<<"join">>, [Scope, Group, Pid]) -> ok_or_raise(py_pg:join(Scope, Group, Pid));
group(<<"leave">>, [Scope, Group, Pid]) -> ok =:= py_pg:leave(Scope, Group, Pid);
group(<<"members">>, [Scope, Group]) -> py_pg:members(Scope, Group);
group(<<"broadcast">>, [Scope, Group, Message]) -> py_pg:broadcast(Scope, Group, Message).

%% Python turns the errors of these into exceptions of its own.
dict(<<"open">>, [Name]) ->
    dict_answer(py_shared_dict:size(Name));
dict(<<"new">>, [Name, Max]) ->
    case py_shared_dict:new(maps:from_list([{name, Name} | [{max_entries, Max} || Max =/= none]])) of
        {error, exists} -> {ok, Name};
        Answer -> Answer
    end;
dict(<<"close">>, [Name]) ->
    dict_answer(py_shared_dict:close(Name));
dict(<<"get">>, [Name, Key]) ->
    py_shared_dict:get(Name, Key);
dict(<<"versioned">>, [Name, Key]) ->
    py_shared_dict:versioned(Name, Key);
dict(<<"put">>, [Name, Key, Value]) ->
    dict_answer(py_shared_dict:put(Name, Key, Value));
dict(<<"put_new">>, [Name, Key, Value]) ->
    dict_answer(py_shared_dict:put_new(Name, Key, Value));
dict(<<"swap">>, [Name, Key, Old, New]) ->
    dict_answer(py_shared_dict:swap(Name, Key, Old, New));
dict(<<"replace">>, [Name, Key, Version, New]) ->
    dict_answer(py_shared_dict:replace(Name, Key, Version, New));
dict(<<"incr">>, [Name, Key, By]) ->
    dict_answer(py_shared_dict:incr(Name, Key, By));
dict(<<"take">>, [Name, Key]) ->
    py_shared_dict:take(Name, Key);
dict(<<"keys">>, [Name]) ->
    dict_answer(py_shared_dict:keys(Name));
dict(<<"items">>, [Name]) ->
    dict_answer(py_shared_dict:to_list(Name));
dict(<<"clear">>, [Name]) ->
    dict_answer(py_shared_dict:clear(Name)).

dict_answer({error, {Reason, _}}) -> {error, Reason};
dict_answer({error, _} = Error) -> Error;
dict_answer(Value) -> {ok, Value}.

ok_or_raise(ok) -> ok;
ok_or_raise({error, Reason}) -> error(Reason).

value_or_raise({error, Reason}) -> error(Reason);
value_or_raise(Value) -> Value.

ok_value({ok, Value}) -> Value;
ok_value({error, Reason}) -> error(Reason).

%% `{ok, Value}', or a word.
received({ok, Value}) -> {ok, Value};
received({error, {bad_argument, _} = Why}) -> error(Why);
received({error, Why}) -> {Why, none};
received(forgotten) -> {forgotten, none}.

or_infinity(none) -> infinity;
or_infinity(Milliseconds) -> Milliseconds.

%% Code that runs for nobody has what it makes as long as the application runs.
somebody(undefined) -> whereis(py_runtime);
somebody(Caller) -> Caller.
