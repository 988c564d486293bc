%% Hop 0 of a call, before `py_call': the options are checked, and say which way it goes.
%%
%% Process: the caller's own.
-module(py_request).

-export([run/3, cast/3, spawn/4, stream/2, in/2, loop/1, submit/7]).

%% Each call comes by here.
-compile({inline, [place/2]}).

-include_lib("kernel/include/logger.hrl").
-include("py_nif.hrl").

%% What `py_call:payload/4' and `py_call:source/2' give.
-type encoded() :: {ok, py_nif:payload()} | {error, py_error:reason()}.
-type opts() :: py:timeout_or_opts().

%% Waits for the answer. The two plain forms, most of all calls, need no map of options.
-spec run(py_nif:op(), encoded(), opts()) -> ok | {ok, term()} | {error, py_error:reason()}.
run(Op, {ok, Payload}, Opts) when Opts =:= #{}, not ?IS_ASYNC(Op) ->
    py_call:sync(default, Op, py_about:flags(), Payload, py_call:default_timeout());
run(Op, {ok, Payload}, Timeout) when ?IS_TIMEOUT(Timeout), not ?IS_ASYNC(Op) ->
    py_call:sync(default, Op, py_about:flags(), Payload, Timeout);
run(Op, Encoded, Opts) ->
    with(Encoded, py_options:read(family(Op), Opts), fun(Payload, #{flags := Flags} = Options) ->
        or_main(Options, fun(Pool, Timeout) ->
            case place(Op, Pool) of
                {error, _} = Error -> Error;
                Place -> py_call:sync(Place, Op, Flags, Payload, Timeout)
            end
        end)
    end).

family(Op) when Op =:= ?OP_COLLECT; Op =:= ?OP_COLLECT_EVAL; Op =:= ?OP_ASYNC_COLLECT -> stream;
family(?OP_ASYNC) -> loop_run;
family(_Op) -> call.

%% Where a job goes whose caller has named that pool. What may have to be awaited goes to the loop of a context, a
%% thread of a named pool or one that is bound awaits by itself, and all else goes to a loop of the node.
-spec place(py_nif:op(), py_nif:pool() | default) -> py_nif:place() | {error, py_error:reason()}.
place(Op, default) when ?IS_ASYNC(Op) ->
    case py_event_loop_pool:get_loop() of
        {ok, Loop} -> Loop;
        {error, _} = Error -> Error
    end;
place(Op, Pool) when ?IS_ASYNC(Op) ->
    case py_nif:pool_loop(Pool) of
        none -> Pool;
        Loop -> Loop
    end;
place(_Op, Pool) ->
    Pool.

%% A loop in the interpreter of the pool: the threads of a pool without one are in the main interpreter,
%% as the loops of the node are.
-spec loop(py_nif:pool() | default) -> {ok, py_nif:event_loop()} | {error, py_error:reason()}.
loop(Pool) ->
    case place(?OP_ASYNC, Pool) of
        {error, _} = Error -> Error;
        Pool -> py_event_loop_pool:get_loop();
        Loop -> {ok, Loop}
    end.

%% Runs it where the options say. With `fallback', a module that refuses to be loaded there is used in the
%% main interpreter, within the same time.
-spec or_main(py_options:options(), fun((py_nif:pool() | default, timeout()) -> Result)) -> Result when
    Result :: ok | {ok, term()} | {error, py_error:reason()}.
or_main(#{flags := Flags, pool := Pool, timeout := Timeout}, Run) when
    Flags band ?FLAG_FALLBACK =/= 0, Pool =/= default
->
    Deadline = py_deadline:at(Timeout),
    case Run(Pool, Timeout) of
        {error, Reason} when ?IS_REFUSAL(Reason) -> Run(default, py_deadline:left(Deadline));
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

%% `{Tag, Ref, Answer}' will come.
-spec spawn(async_result | py_response, py_nif:op(), encoded(), opts()) -> reference().
spawn(Tag, Op, {ok, Payload}, Opts) when Opts =:= #{} ->
    spawn(self(), Tag, Op, default, py_about:flags(), Payload);
spawn(Tag, Op, Encoded, Opts) ->
    Spawned = with(Encoded, py_options:read(spawn_call, Opts), fun(Payload, Options) ->
        #{pool := Pool, flags := Flags, reply_to := To, limit := Limit} = Options,
        Ref = spawn(To, Tag, Op, Pool, Flags bor py_deadline:flag(Limit), Payload),
        ok = py_deadline:set(Ref, To, Tag, Limit),
        Ref
    end),
    case Spawned of
        {error, _} = Error -> refused(self(), Tag, Error);
        Ref -> Ref
    end.

spawn(To, Tag, Op, Pool, Flags, Payload) ->
    case place(Op, Pool) of
        {error, _} = Error -> refused(To, Tag, Error);
        Place -> py_call:spawn(To, Tag, Place, Op, Flags, Payload)
    end.

%% The error comes as every answer does.
refused(To, Tag, Error) ->
    Ref = make_ref(),
    _ = To ! {Tag, Ref, Error},
    Ref.

%% `py_nif:submit_call/6' and `submit_coroutine/6'. A loop that Erlang drives has no Python in it: a
%% worker calls the function, a loop of the node runs the coroutine.
-spec submit(py_nif:op(), Loop, Name :: term(), pid(), py_call:name(), py_call:name(), Given) ->
    ok | {error, py_error:reason()}
when
    Loop :: py_nif:event_loop() | py_nif:raw_loop(),
    Given :: {[term()], py_call:kwargs()}.
submit(Op, Loop, Name, To, M, F, {Args, Kw}) ->
    case {py_call:payload(M, F, Args, Kw), home(Op, py_nif:event_loop_kind(Loop), Loop)} of
        {{ok, Payload}, {ok, Place}} -> py_call:named(To, Name, Place, Op, py_about:flags(), Payload);
        {{ok, _}, Error} -> Error;
        {Error, _} -> Error
    end.

home(_Op, gone, _Loop) -> {error, not_running};
home(?OP_CALL, _Kind, _Loop) -> {ok, default};
home(?OP_ASYNC, raw, _Loop) -> py_event_loop_pool:get_loop();
home(?OP_ASYNC, python, Loop) -> {ok, Loop}.

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
