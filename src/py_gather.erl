%% Several asynchronous calls at once: one NIF hands over many of them, and one message has all their answers.
%%
%% Process: the caller's own.
-module(py_gather).

-export([all/2]).

%% Calls that are handed over by one NIF, which must be short.
-define(AT_ONCE, 64).

%% All calls at once; their values in order, or every failure by the number of its call.
-spec all([tuple()], py:timeout_or_opts()) -> {ok, [term()]} | {error, py_error:reason()}.
all(Calls, Opts) when is_list(Calls) ->
    case {payloads(Calls, 1, []), py_options:read(gather, Opts)} of
        {{ok, Payloads}, {ok, #{pool := Pool} = Options}} ->
            Cancel = maps:get(cancel, Options, false),
            case {py_request:loop(Pool), Opts} of
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
all(_Calls, _Opts) ->
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
    Deadline = py_deadline:at(Timeout),
    Slot = py_call:slot(),
    %% Made in the function of its receive: the wait skips the rest of the mailbox.
    Key = alias(),
    Gather = py_nif:gather_new(Slot, Key, length(Payloads), Cancel),
    ok = submit_all(Gather, Loop, Flags, 0, Payloads),
    receive
        {Key, Answers} ->
            true = unalias(Key),
            gathered(Gather, Answers, cancelled)
    after py_deadline:left(Deadline) ->
        %% I4: the message is sent by now, and there is no second one. One that `py_courier' has still comes to nobody.
        ok = py_nif:gather_close(Gather),
        true = unalias(Key),
        receive
            {Key, Answers} -> gathered(Gather, Answers, timeout)
        after 0 -> gathered(Gather, [none || _ <- Payloads], timeout)
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
