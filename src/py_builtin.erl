%% The functions of ours that the Python package calls, by names no user can register.
-module(py_builtin).

-export([call/3]).

-spec call(Name :: binary(), [term()], Caller :: pid() | undefined) -> term().
call(<<"atom">>, [Name], _Caller) ->
    _Atom = py_atoms:make(Name),
    true;
call(<<"whereis">>, [Name], _Caller) ->
    try whereis(binary_to_existing_atom(Name, utf8)) of
        Pid -> Pid
    catch
        error:badarg -> undefined
    end;
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
    value_or_raise(py_state:state_decr(Key, By)).

ok_or_raise(ok) -> ok;
ok_or_raise({error, Reason}) -> error(Reason).

value_or_raise({error, Reason}) -> error(Reason);
value_or_raise(Value) -> Value.
