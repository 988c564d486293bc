%% Asynchronous calls: the caller's process submits to a loop, and waits or not.
%%
%% Process: the caller's own.
-module(py_async).

-export([call/5, run/5, cast/4, post/5, submit/7, gather/2, collect/5]).
-export([loop/1, deadline/1, left/1]).

-include("py_nif.hrl").

%% Calls of a gather that are handed over by one NIF, which must be short.
-define(AT_ONCE, 64).
%% An answer on its way through `py_courier' comes within so many milliseconds, or not at all.
-define(DETOUR, 5000).

%% `{async_result, Ref, Answer}' will come.
-spec call(py_call:name(), py_call:name(), [term()], py_call:kwargs(), py:timeout_or_opts()) ->
    reference().
call(M, F, A, Kw, Opts) when Opts =:= #{} ->
    case {py_call:payload(M, F, A, Kw), py_event_loop_pool:get_loop()} of
        {{ok, Payload}, {ok, Loop}} -> py_call:spawn(self(), async_result, Loop, ?OP_ASYNC, py_about:flags(), Payload);
        {{ok, _}, Error} -> refused(self(), Error);
        {Error, _} -> refused(self(), Error)
    end;
call(M, F, A, Kw, Opts) ->
    with(M, F, A, Kw, Opts, fun(Payload, Options) ->
        #{pool := Pool, flags := Wishes, reply_to := To, limit := Limit} = Options,
        Flags = Wishes bor py_deadline:flag(Limit),
        Ref =
            case place(Pool) of
                {ok, Loop} -> py_call:spawn(To, async_result, Loop, ?OP_ASYNC, Flags, Payload);
                {pool, Pool} -> py_call:spawn(To, async_result, Pool, ?OP_ASYNC, Flags, Payload);
                {error, _} = Error -> refused(To, Error)
            end,
        ok = py_deadline:set(Ref, To, async_result, Limit),
        Ref
    end).

with(M, F, A, Kw, Opts, Then) ->
    case {py_call:payload(M, F, A, Kw), py_options:read(spawn_call, Opts)} of
        {{ok, Payload}, {ok, Options}} -> Then(Payload, Options);
        {{ok, _}, Error} -> refused(self(), Error);
        {Error, _} -> refused(self(), Error)
    end.

%% The error comes as every answer does.
refused(To, Error) ->
    Ref = make_ref(),
    _ = To ! {async_result, Ref, Error},
    Ref.

%% A context has a loop of its own; a thread of a named pool, or one that is bound, awaits by itself;
%% all else goes to a loop of the node.
-spec place(py_nif:pool() | default) ->
    {ok, py_nif:event_loop()} | {pool, py_nif:pool()} | {error, py_error:reason()}.
place(default) ->
    py_event_loop_pool:get_loop();
place(Pool) ->
    case py_nif:pool_loop(Pool) of
        none -> {pool, Pool};
        Loop -> {ok, Loop}
    end.

%% A loop in the interpreter of the pool: the threads of a pool without one are in the main interpreter,
%% as the loops of the node are.
-spec loop(py_nif:pool() | default) -> {ok, py_nif:event_loop()} | {error, py_error:reason()}.
loop(Pool) ->
    case place(Pool) of
        {pool, _} -> py_event_loop_pool:get_loop();
        Place -> Place
    end.

%% `{async_result, Name, Answer}' will come to `To'. The task ends with the caller.
-spec post(Where, pid(), Name :: term(), py_nif:op(), py_nif:payload()) ->
    ok | {error, py_error:reason()}
when
    Where :: py_nif:event_loop() | default.
post(Where, To, Name, Op, Payload) ->
    case py_nif:submit(py_call:slot(), Where, {named, To, Name}, Op, py_about:flags(), Payload) of
        ok -> ok;
        Refusal -> {error, py_call:refused(Refusal)}
    end.

%% `py_nif:submit_call/6' and `submit_coroutine/6'. A loop that Erlang drives has no Python in it: a
%% worker calls the function, a loop of the node runs the coroutine.
-spec submit(py_nif:op(), Loop, Name :: term(), pid(), py_call:name(), py_call:name(), Given) ->
    ok | {error, py_error:reason()}
when
    Loop :: py_nif:event_loop() | py_nif:raw_loop(),
    Given :: {[term()], py_call:kwargs()}.
submit(Op, Loop, Name, To, M, F, {Args, Kw}) ->
    case {py_call:payload(M, F, Args, Kw), home(Op, Loop)} of
        {{ok, Payload}, {ok, Where}} -> post(Where, To, Name, Op, Payload);
        {{ok, _}, Error} -> Error;
        {Error, _} -> Error
    end.

home(?OP_CALL, Loop) ->
    case py_nif:event_loop_kind(Loop) of
        gone -> {error, not_running};
        _ -> {ok, default}
    end;
home(?OP_ASYNC, Loop) ->
    case py_nif:event_loop_kind(Loop) of
        gone -> {error, not_running};
        raw -> py_event_loop_pool:get_loop();
        python -> {ok, Loop}
    end.

%% Waits for the value.
-spec run(py_call:name(), py_call:name(), [term()], py_call:kwargs(), py:timeout_or_opts()) ->
    py:result().
run(M, F, A, Kw, Opts) ->
    sync(?OP_ASYNC, M, F, A, Kw, Opts).

%% All items of a generator, also of an asynchronous one.
-spec collect(py_call:name(), py_call:name(), [term()], py_call:kwargs(), py:timeout_or_opts()) ->
    {ok, [term()]} | {error, py_error:reason()}.
collect(M, F, A, Kw, Opts) ->
    sync(?OP_ASYNC_COLLECT, M, F, A, Kw, Opts).

sync(Op, M, F, A, Kw, Opts) ->
    case {py_call:payload(M, F, A, Kw), py_options:read(family(Op), Opts)} of
        {{ok, Payload}, {ok, #{flags := Flags} = Options}} ->
            py_request:or_main(Options, fun(Pool, Timeout) ->
                case place(Pool) of
                    {ok, Loop} -> py_call:sync(Loop, Op, Flags, Payload, Timeout);
                    {pool, Pool} -> py_call:sync(Pool, Op, Flags, Payload, Timeout);
                    {error, _} = Error -> Error
                end
            end);
        {{ok, _}, Error} ->
            Error;
        {Error, _} ->
            Error
    end.

family(?OP_ASYNC) -> loop_run;
family(?OP_ASYNC_COLLECT) -> stream.

%% Nobody waits; a failure is logged.
-spec cast(py_call:name(), py_call:name(), [term()], py_call:kwargs()) ->
    ok | {error, py_error:reason()}.
cast(M, F, A, Kw) ->
    case {py_call:payload(M, F, A, Kw), py_event_loop_pool:get_loop()} of
        {{ok, Payload}, {ok, Loop}} -> py_call:cast(Loop, ?OP_ASYNC, py_about:flags(), Payload, infinity);
        {{ok, _}, Error} -> Error;
        {Error, _} -> Error
    end.

%% All calls at once; their values in order, or every failure by the number of its call.
-spec gather([tuple()], py:timeout_or_opts()) -> {ok, [term()]} | {error, py_error:reason()}.
gather(Calls, Opts) when is_list(Calls) ->
    case {payloads(Calls, 1, []), py_options:read(gather, Opts)} of
        {{ok, Payloads}, {ok, #{pool := Pool} = Options}} ->
            Cancel = maps:get(cancel, Options, false),
            case {loop(Pool), Opts} of
                %% A bound thread has names of its own, and awaits one call: that is not together.
                {_, #{context := Bound}} when is_reference(Bound) -> {error, not_supported};
                {{ok, Loop}, _} -> together(Loop, Payloads, Options, Cancel);
                {{error, _} = Error, _} -> Error
            end;
        {{error, _} = Error, _} ->
            Error;
        {_, {error, _} = Error} ->
            Error
    end;
gather(_Calls, _Opts) ->
    {error, {bad_argument, calls}}.

payloads([], _N, Done) -> {ok, lists:reverse(Done)};
payloads([{M, F, A} | Rest], N, Done) -> payloads([{M, F, A, #{}} | Rest], N, Done);
payloads([{M, F, A, Kw} | Rest], N, Done) ->
    case py_call:payload(M, F, A, Kw) of
        {ok, Payload} -> payloads(Rest, N + 1, [Payload | Done]);
        {error, Reason} -> {error, {gather_failed, [{N, Reason}]}}
    end;
payloads(_, _N, _Done) ->
    {error, {bad_argument, calls}}.

together(_Loop, [], _Options, _Cancel) ->
    {ok, []};
together(Loop, Payloads, #{flags := Flags, timeout := Timeout}, Cancel) ->
    Deadline = deadline(Timeout),
    Slot = py_call:slot(),
    %% Made in the function of its receive: the wait skips the rest of the mailbox.
    Key = make_ref(),
    Gather = py_nif:gather_new(Slot, Key, length(Payloads), Cancel),
    ok = submit_all(Gather, Loop, Flags, 0, Payloads),
    receive
        {Key, Answers} -> gathered(Gather, Answers, cancelled)
    after left(Deadline) ->
        %% I4: the message is sent by now, and there is no second one.
        ok = py_nif:gather_close(Gather),
        receive
            {Key, Answers} -> gathered(Gather, Answers, timeout)
        after ?DETOUR -> gathered(Gather, [none || _ <- Payloads], timeout)
        end
    end.

submit_all(_Gather, _Loop, _Flags, _First, []) ->
    ok;
submit_all(Gather, Loop, Flags, First, Payloads) ->
    {Some, Rest} = split(?AT_ONCE, Payloads, []),
    ok = py_nif:gather_submit(Gather, Loop, Flags, First, Some),
    submit_all(Gather, Loop, Flags, First + ?AT_ONCE, Rest).

split(N, [Payload | Rest], Some) when N > 0 -> split(N - 1, Rest, [Payload | Some]);
split(_N, Rest, Some) -> {lists:reverse(Some), Rest}.

%% The values, or what became of the calls that failed. Those that are not over are told to stop.
gathered(Gather, Answers, Why) ->
    ok = stop_all(lists:member(none, Answers), Gather),
    settle(Answers, Why, 1, [], []).

stop_all(true, Gather) -> stop_all(py_nif:gather_cancel(Gather), Gather);
stop_all(false, _Gather) -> ok.

settle([], _Why, _N, Values, []) ->
    {ok, lists:reverse(Values)};
settle([], _Why, _N, _Values, Failed) ->
    {error, {gather_failed, lists:reverse(Failed)}};
settle([none | Rest], Why, N, Values, Failed) ->
    settle(Rest, Why, N + 1, Values, [{N, Why} | Failed]);
settle([Encoded | Rest], Why, N, Values, Failed) ->
    case py_call:decode(Encoded) of
        {ok, Value} -> settle(Rest, Why, N + 1, [Value | Values], Failed);
        {error, Reason} -> settle(Rest, Why, N + 1, Values, [{N, Reason} | Failed])
    end.

-spec deadline(timeout()) -> integer() | infinity.
deadline(infinity) -> infinity;
deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout.

-spec left(integer() | infinity) -> timeout().
left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).
