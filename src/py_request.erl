%% Hop 0 of a call, before `py_call': the options are checked, and say which way it goes.
%%
%% Process: the caller's own.
-module(py_request).

-export([run/3, cast/2, spawn/2, stream/2, in/2]).

-include("py_nif.hrl").

%% What `py_call:payload/4' and `py_call:source/2' give.
-type encoded() :: {ok, py_nif:payload()} | {error, py_error:reason()}.
-type opts() :: py:timeout_or_opts().

%% Waits for the answer. The two plain forms, most of all calls, need no map of options.
-spec run(py_nif:op(), encoded(), opts()) -> ok | {ok, term()} | {error, py_error:reason()}.
run(Op, {ok, Payload}, Opts) when Opts =:= #{} ->
    py_call:sync(default, Op, py_about:flags(), Payload, py_call:default_timeout());
run(Op, {ok, Payload}, Timeout) when ?IS_TIMEOUT(Timeout) ->
    py_call:sync(default, Op, py_about:flags(), Payload, Timeout);
run(Op, Encoded, Opts) ->
    with(Encoded, Opts, fun(Payload, #{pool := Pool, flags := Flags, timeout := Timeout} = Options) ->
        Result = py_call:sync(Pool, Op, Flags, Payload, Timeout),
        case {Result, Options} of
            {{error, Reason}, #{fallback := true}} when Pool =/= default, ?IS_IMPORT_ERROR(Reason) ->
                py_call:sync(default, Op, Flags, Payload, Timeout);
            _ ->
                Result
        end
    end).

%% Nobody waits.
-spec cast(encoded(), opts()) -> ok | {error, py_error:reason()}.
cast(Encoded, Opts) ->
    with(Encoded, Opts, fun(Payload, #{pool := Pool, flags := Flags, limit := Limit}) ->
        py_call:cast(Pool, ?OP_CALL, Flags, Payload, Limit)
    end).

%% `{py_response, Ref, Answer}' will come.
-spec spawn(encoded(), opts()) -> reference().
spawn(Encoded, Opts) ->
    Spawned = with(Encoded, Opts, fun(Payload, Options) ->
        #{pool := Pool, flags := Flags, reply_to := To, limit := Limit} = Options,
        Ref = py_call:spawn(To, py_response, Pool, ?OP_CALL, Flags, Payload),
        ok = py_deadline:set(Ref, To, py_response, Limit),
        Ref
    end),
    case Spawned of
        {error, _} = Error ->
            %% The error comes as every answer does.
            Refused = make_ref(),
            _ = self() ! {py_response, Refused, Error},
            Refused;
        Ref ->
            Ref
    end.

%% `{py_stream, Ref, _}' will come.
-spec stream(encoded(), opts()) -> {ok, reference()} | {error, py_error:reason()}.
stream(Encoded, Opts) ->
    with(Encoded, Opts, fun(Payload, Options) ->
        #{pool := Pool, flags := Flags, reply_to := To, window := Window, limit := Limit} = Options,
        case py_call:stream(To, Window, Pool, ?OP_STREAM, Flags, Payload) of
            {ok, Ref} ->
                ok = py_deadline:set(Ref, To, py_stream, Limit),
                {ok, Ref};
            {error, _} = Error ->
                Error
        end
    end).

with({ok, Payload}, Opts, Then) ->
    case py_call:options(Opts) of
        {ok, Options} -> Then(Payload, Options);
        {error, _} = Error -> Error
    end;
with({error, _} = Error, _Opts, _Then) ->
    Error.

%% The options of a call into a context.
-spec in(py:context(), opts()) -> py_call:opts().
in(Ctx, Opts) when is_map(Opts) -> Opts#{context => Ctx};
in(Ctx, Timeout) -> #{context => Ctx, timeout => Timeout}.
