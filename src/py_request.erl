%% Hop 0 of a call, before `py_call': the options are checked, and say which way it goes.
%%
%% Process: the caller's own.
-module(py_request).

-export([run/3, cast/3, spawn/2, stream/2, in/2, or_main/2]).

-include_lib("kernel/include/logger.hrl").
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
    with(Encoded, py_options:read(family(Op), Opts), fun(Payload, #{flags := Flags} = Options) ->
        or_main(Options, fun(Pool, Timeout) ->
            py_call:sync(Pool, Op, Flags, Payload, Timeout)
        end)
    end).

family(Op) when Op =:= ?OP_COLLECT; Op =:= ?OP_COLLECT_EVAL -> stream;
family(_Op) -> call.

%% Runs it where the options say. With `fallback', a module that refuses to be loaded there is used in the
%% main interpreter, within the same time.
-spec or_main(py_options:options(), fun((py_nif:pool() | default, timeout()) -> Result)) -> Result when
    Result :: ok | {ok, term()} | {error, py_error:reason()}.
or_main(#{flags := Flags, pool := Pool, timeout := Timeout}, Run) when
    Flags band ?FLAG_FALLBACK =/= 0, Pool =/= default
->
    Deadline = py_async:deadline(Timeout),
    case Run(Pool, Timeout) of
        {error, Reason} when ?IS_REFUSAL(Reason) -> Run(default, py_async:left(Deadline));
        Result -> Result
    end;
or_main(#{pool := Pool, timeout := Timeout}, Run) ->
    Run(Pool, Timeout).

%% Nobody waits: the log is told of what is refused, as of what fails in Python.
-spec cast({term(), term()}, encoded(), opts()) -> ok.
cast({M, F}, Encoded, Opts) ->
    Cast = with(Encoded, py_options:read(cast, Opts), fun(Payload, #{pool := Pool, flags := Flags, limit := Limit}) ->
        py_call:cast(Pool, ?OP_CALL, Flags, Payload, Limit)
    end),
    case Cast of
        ok -> ok;
        {error, Why} -> ?LOG_ERROR("py:cast of ~0tp:~0tp failed: ~ts", [M, F, py_error:format(Why)])
    end.

%% `{py_response, Ref, Answer}' will come.
-spec spawn(encoded(), opts()) -> reference().
spawn(Encoded, Opts) ->
    Spawned = with(Encoded, py_options:read(spawn_call, Opts), fun(Payload, Options) ->
        #{pool := Pool, flags := Flags, reply_to := To, limit := Limit} = Options,
        Ref = py_call:spawn(To, py_response, Pool, ?OP_CALL, Flags bor py_deadline:flag(Limit), Payload),
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
    with(Encoded, py_options:read(stream_start, Opts), fun(Payload, Options) ->
        #{pool := Pool, flags := Flags, reply_to := To, limit := Limit} = Options,
        Window = maps:get(window, Options, 0),
        case py_call:stream(To, Window, Pool, ?OP_STREAM, Flags bor py_deadline:flag(Limit), Payload) of
            {ok, Ref} ->
                ok = py_deadline:set(Ref, To, py_stream, Limit),
                {ok, Ref};
            {error, _} = Error ->
                Error
        end
    end).

with({ok, Payload}, {ok, Options}, Then) -> Then(Payload, Options);
with({ok, _Payload}, {error, _} = Error, _Then) -> Error;
with({error, _} = Error, _Checked, _Then) -> Error.

%% The options of a call into a context.
-spec in(py:context(), opts()) -> py_options:given().
in(Ctx, Opts) when is_map(Opts) -> Opts#{context => Ctx};
in(Ctx, Timeout) -> #{context => Ctx, timeout => Timeout}.
