%% Objects that stay in Python: each call goes to the interpreter that has the object.
%%
%% Process: the caller's own.
-module(py_object).

-export([call_method/4, getattr/2, to_term/1, is_ref/1, repr/2]).

-include("py_nif.hrl").

-spec call_method(py:object(), py_call:name(), [term()], py_call:kwargs()) -> py:result().
call_method(Object, Name, Args, Kw) ->
    ask(Object, 'erlang._object', call_method, [Object, py_call:text(Name), Args, Kw]).

-spec getattr(py:object(), py_call:name()) -> py:result().
getattr(Object, Name) ->
    ask(Object, builtins, getattr, [Object, py_call:text(Name)]).

-spec to_term(py:object()) -> py:result().
to_term(Object) ->
    ask(Object, 'erlang._object', identity, [Object]).

%% What Python shows for it, for one who does not want to wait.
-spec repr(py:object(), timeout()) -> py:result().
repr(Object, Timeout) ->
    ask(Object, builtins, repr, [Object], Timeout).

-spec is_ref(term()) -> boolean().
is_ref({'$py_ref', _, _, _, Ref}) when is_reference(Ref) -> py_nif:is_object_ref(Ref);
is_ref(_) -> false.

ask(Object, M, F, Args) ->
    ask(Object, M, F, Args, py_call:default_timeout()).

%% What is no reference is Python's to refuse.
ask({'$py_ref', Interp, _, _, _}, M, F, Args, Timeout) when is_integer(Interp), Interp > 0 ->
    case {py_call:payload(M, F, Args, #{}), py_registry:interpreter(Interp)} of
        {{ok, Payload}, {ok, Pool}} ->
            py_call:sync(Pool, ?OP_CALL, py_about:flags(), Payload, Timeout);
        {{ok, _}, error} ->
            {error, {context_died, noproc}};
        {{error, _} = Error, _} ->
            Error
    end;
ask(_Object, M, F, Args, Timeout) ->
    py:call(M, F, Args, #{}, Timeout).
