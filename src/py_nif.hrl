%% Numbers that both sides know: `native/nif/src/numbers.rs' reads them from here.
-define(OP_CALL, 0).
-define(OP_EVAL, 1).
-define(OP_EXEC, 2).
-define(OP_COLLECT, 3).
-define(OP_COLLECT_EVAL, 4).
-define(OP_STREAM, 5).
-define(OP_STREAM_EVAL, 6).
-define(OP_ASYNC, 7).
-define(OP_ASYNC_COLLECT, 8).

%% What is called may have to be awaited.
-define(IS_ASYNC(Op), (Op =:= ?OP_ASYNC orelse Op =:= ?OP_ASYNC_COLLECT)).

-define(FLAG_RETURN_REF, 1).
-define(FLAG_TRACEBACK, 2).
-define(FLAG_ABOUT, 4).
%% `py_deadline:set' may follow.
-define(FLAG_TIMED, 8).
-define(FLAG_FALLBACK, 16).
-define(FLAG_HIGH, 32).

%% A module refuses the interpreter: known from its import (`?FLAG_FALLBACK'), or by what the import has raised,
%% with or without its story.
-define(IS_REFUSAL(Reason),
    (Reason =:= refused orelse (is_tuple(Reason) andalso element(1, Reason) =:= 'ImportError'))
).

%% The longest wait `receive ... after' takes, in milliseconds.
-define(MAX_TIMEOUT, 16#FFFFFFFF).
-define(IS_TIMEOUT(T), (is_integer(T) andalso T >= 0 andalso T =< ?MAX_TIMEOUT orelse T =:= infinity)).

%% The most credits that a reader of a stream can give at once.
-define(MOST_CREDITS, 16#FFFFFFFE).
