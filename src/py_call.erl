%% Hop 0 of a call: the caller's process encodes, submits, waits, decodes.
%%
%% Process: the caller's own. Everything that may take long (encoding, decoding) yields here.
-module(py_call).

-export([slot/0, forget_all/0, sync/5, spawn/6, spawn/7, named/6, cast/5, stream/6]).
-export([payload/4, source/2, text/1, pool/1, bind_to/1]).
-export([await/2, answer/1, cancel/1, stream_ack/2, stream_cancel/1, default_timeout/0, decode/1, refused/1]).

-export_type([name/0, kwargs/0, opts/0]).

%% Each call comes by here.
-compile({inline, [own/0, choose/2]}).

-include_lib("kernel/include/logger.hrl").
-include("py_nif.hrl").

-type name() :: atom() | binary() | string().
-type kwargs() :: #{atom() | binary() => term()}.
-type opts() :: py_options:given().
-type answer() :: ok | {ok, term()} | {error, py_error:reason()}.

%% One entry of the process dictionary: whose it is, the slot, and the pool this process is bound to. A
%% dictionary may have been copied from another process: the shell gives that of an evaluator that crashed to
%% the next one. So what another process has put there counts as absent.
-define(KEY, '$py').
%% Over this a binary is referenced instead of copied.
-define(LARGE, 4096).

%% The slot of the calling process, made at its first call.
-spec slot() -> py_nif:slot().
slot() ->
    {_Self, Slot, _Pool} = own(),
    Slot.

own() ->
    Self = self(),
    case get(?KEY) of
        {Self, _Slot, _Pool} = Own -> Own;
        _ -> new_own(Self)
    end.

new_own(Self) ->
    case py_nif:slot_new(py_printer:local(group_leader())) of
        none ->
            %% Not kept: the application may be started yet.
            {Self, none, default};
        Slot ->
            Own = {Self, Slot, default},
            _ = put(?KEY, Own),
            Own
    end.

%% Empties the process dictionary, save for the slot.
-spec forget_all() -> py_nif:slot().
forget_all() ->
    Slot = slot(),
    _ = erase(),
    ok = keep(Slot, default),
    Slot.

-spec bind_to(py_nif:pool() | default) -> ok.
bind_to(Pool) ->
    keep(slot(), Pool).

keep(Slot, Pool) ->
    _ = put(?KEY, {self(), Slot, Pool}),
    ok.

%% Runs a job and waits for its answer.
-spec sync(py_nif:place(), py_nif:op(), py_nif:flags(), py_nif:payload(), timeout()) ->
    answer().
sync(Place, Op, Flags, Payload, Timeout) ->
    {_Self, Slot, Bound} = own(),
    %% Made in the function of its receive: the wait skips the rest of the mailbox.
    Key = make_ref(),
    case py_nif:submit(Slot, choose(Place, Bound), Key, Op, Flags, Payload) of
        Job when is_integer(Job) ->
            receive
                {Key, Answer} -> decode(Answer)
            after Timeout ->
                %% I4: once cancel/2 has returned, no answer for Key can be sent any more.
                ok = tell(py_nif:cancel(Slot, Job)),
                receive
                    {Key, Answer} -> decode(Answer)
                after 0 -> {error, timeout}
                end
            end;
        Refusal when Refusal =:= overload; Refusal =:= not_running; Refusal =:= context_died ->
            {error, refused(Refusal)};
        Answer ->
            %% It was there at once.
            decode(Answer)
    end.

tell(ok) ->
    ok;
tell(shut_out) ->
    ?LOG_ERROR(
        "erlang_python: a thread has kept the lock (the GIL) of its interpreter for over 5 s, so no other "
        "Python code of that interpreter can run and none can be stopped. It is in C code that does not "
        "release it: look for native code that was called last. Calls time out until it comes back; a "
        "node that can't wait must be restarted."
    ).

choose(default, Bound) -> Bound;
choose(Place, _Bound) -> Place.

%% A tuple is the answer itself; a binary is its encoding.
-spec decode(ok | tuple() | binary()) -> answer().
decode(Answer) when is_tuple(Answer) -> Answer;
decode(Answer) when is_binary(Answer) ->
    try
        binary_to_term(Answer, [safe])
    catch
        error:badarg -> {error, py_term:unknown()}
    end;
decode(ok) -> ok.

%% The reason of a refusal.
-spec refused(py_nif:refusal()) -> py_error:reason().
refused(overload) -> overload;
refused(not_running) -> not_running;
refused(context_died) -> {context_died, stopped}.

%% `{Tag, Ref, Answer}' comes to `To', also when the job is refused.
-spec spawn(pid(), atom(), py_nif:place(), py_nif:op(), py_nif:flags(), py_nif:payload()) ->
    py_nif:job_ref().
spawn(To, Tag, Place, Op, Flags, Payload) ->
    {_Self, Slot, Bound} = own(),
    spawn(Slot, To, Tag, choose(Place, Bound), Op, Flags, Payload).

%% The same for another process, which must not submit anything itself meanwhile: a slot lists the jobs
%% in their order.
-spec spawn(Slot, pid(), atom(), py_nif:place(), py_nif:op(), py_nif:flags(), Payload) ->
    py_nif:job_ref()
when
    Slot :: py_nif:slot(), Payload :: py_nif:payload().
spawn(Slot, To, Tag, Place, Op, Flags, Payload) ->
    case py_nif:submit(Slot, Place, {Tag, To}, Op, Flags, Payload) of
        Ref when is_reference(Ref) ->
            Ref;
        Refusal ->
            Ref = make_ref(),
            _ = To ! {Tag, Ref, {error, refused(Refusal)}},
            Ref
    end.

%% `{async_result, Name, Answer}' comes to `To', unless the job is refused.
-spec named(pid(), Name :: term(), py_nif:place(), py_nif:op(), py_nif:flags(), py_nif:payload()) ->
    ok | {error, py_error:reason()}.
named(To, Name, Place, Op, Flags, Payload) ->
    case py_nif:submit(slot(), Place, {named, To, Name}, Op, Flags, Payload) of
        ok -> ok;
        Refusal -> {error, refused(Refusal)}
    end.

-spec cast(py_nif:place(), py_nif:op(), py_nif:flags(), py_nif:payload(), timeout()) ->
    ok | {error, py_error:reason()}.
cast(Place, Op, Flags, Payload, Limit) ->
    {_Self, Slot, Bound} = own(),
    case py_nif:submit(Slot, choose(Place, Bound), none, Op, Flags bor py_deadline:flag(Limit), Payload) of
        ok -> ok;
        Ref when is_reference(Ref) -> py_deadline:set(Ref, Limit);
        Refusal -> {error, refused(Refusal)}
    end.

-spec stream(pid(), non_neg_integer(), py_nif:pool() | default, py_nif:op(), py_nif:flags(), Payload) ->
    {ok, py_nif:job_ref()} | {error, py_error:reason()}
when
    Payload :: py_nif:payload().
stream(To, Window, Pool, Op, Flags, Payload) ->
    {_Self, Slot, Bound} = own(),
    case py_nif:submit(Slot, choose(Pool, Bound), {stream, To, Window}, Op, Flags, Payload) of
        Ref when is_reference(Ref) -> {ok, Ref};
        Refusal -> {error, refused(Refusal)}
    end.

%% Waits for the message of a spawned job; past the time the job is cancelled and no message stays.
-spec await(py_nif:job_ref(), timeout()) -> {ok, term()} | {error, py_error:reason()}.
await(Ref, Timeout) when is_reference(Ref), ?IS_TIMEOUT(Timeout) ->
    ok = py_nif:linger(slot(), Ref),
    receive
        {py_response, Ref, Answer} -> answer(Answer);
        {async_result, Ref, Answer} -> answer(Answer)
    after Timeout ->
        ok = cancel_ref(Ref),
        receive
            {py_response, Ref, Answer} -> answer(Answer);
            {async_result, Ref, Answer} -> answer(Answer)
        after 0 -> {error, timeout}
        end
    end;
await(Ref, _Timeout) when is_reference(Ref) ->
    {error, {bad_argument, timeout}};
await(_Ref, _Timeout) ->
    {error, {bad_argument, ref}}.

%% What came as a message, with the whole story if that was asked for.
-spec answer(answer()) -> {ok, term()} | {error, py_error:reason()}.
answer(ok) -> {ok, none};
answer(Answer) -> Answer.

-spec cancel(py_nif:job_ref()) -> ok | {error, {bad_argument, ref}}.
cancel(Ref) when is_reference(Ref) ->
    ok = cancel_ref(Ref),
    %% What was sent before is of no use to anybody.
    receive
        {py_response, Ref, _} -> ok;
        {async_result, Ref, _} -> ok
    after 0 -> ok
    end;
cancel(_Ref) ->
    {error, {bad_argument, ref}}.

-spec stream_cancel(py_nif:job_ref()) -> ok | {error, {bad_argument, ref}}.
stream_cancel(Ref) when is_reference(Ref) -> cancel_ref(Ref);
stream_cancel(_Ref) -> {error, {bad_argument, ref}}.

%% A job that was refused has an ordinary reference. Without a library there is no job.
cancel_ref(Ref) ->
    try
        py_nif:cancel_ref(Ref)
    catch
        error:Why when Why =:= badarg; Why =:= nif_not_loaded -> ok
    end.

-spec stream_ack(py_nif:job_ref(), pos_integer()) -> ok | {error, {bad_argument, ref | count}}.
stream_ack(Ref, N) when is_integer(N), N > 0, N =< ?MOST_CREDITS ->
    try
        py_nif:stream_ack(Ref, N)
    catch
        error:Why when Why =:= badarg; Why =:= nif_not_loaded -> {error, {bad_argument, ref}}
    end;
stream_ack(_Ref, _N) ->
    {error, {bad_argument, count}}.

%% The bytes of a call, with what they encode; or what is wrong with its arguments.
-spec payload(name(), name(), [term()], kwargs()) ->
    {ok, py_nif:payload()} | {error, {bad_argument, atom() | binary()}}.
payload([_ | _] = Module, Function, Args, Kwargs) ->
    text_payload(Module, Function, Args, Kwargs);
payload(Module, [_ | _] = Function, Args, Kwargs) ->
    text_payload(Module, Function, Args, Kwargs);
payload(Module, [], Args, _Kwargs) when is_atom(Module); is_binary(Module) ->
    {error, {bad_argument, no_map(Args)}};
payload(Module, Function, Args, Kwargs) ->
    case is_name(Module) andalso is_name(Function) andalso is_map(Kwargs) of
        true ->
            case size(Args, small) of
                small -> {ok, {term_to_binary({Module, Function, Args, Kwargs}), [Args | Kwargs]}};
                large -> {ok, {erlang:term_to_iovec({Module, Function, Args, Kwargs}), [Args | Kwargs]}};
                improper -> {error, {bad_argument, args}}
            end;
        false ->
            {error, {bad_argument, wrong_part(Module, Function, Kwargs)}}
    end.

%% Strings are made binaries: the encoding of a list of characters depends on the characters.
text_payload(Module, Function, Args, Kwargs) ->
    case {name(Module), name(Function)} of
        {{ok, _}, {ok, _}} when is_list(Function), not is_list(Args) -> {error, {bad_argument, no_map(Args)}};
        {{ok, M}, {ok, F}} -> payload(M, F, Args, Kwargs);
        {error, _} -> {error, {bad_argument, module}};
        {_, error} -> {error, {bad_argument, no_map(Args)}}
    end.

%% `py:call(M, F, Args, 5000)' reads as a call in the context `M': where a list stands in the place of the
%% function it is the arguments, and what follows was meant to be the keyword arguments.
no_map(Given) ->
    py_text:format("keyword arguments must be a map, got ~0tP; a timeout is the fifth argument", [Given, 10]).

name([_ | _] = Name) ->
    case io_lib:printable_unicode_list(Name) of
        true -> {ok, <<<<Char/utf8>> || Char <- Name>>};
        false -> error
    end;
name(Name) ->
    {ok, Name}.

%% A name as an argument: a string becomes text, which by itself it would not.
-spec text(name()) -> name().
text(Name) ->
    case name(Name) of
        {ok, Text} -> Text;
        error -> Name
    end.

is_name(Name) -> is_atom(Name) orelse is_binary(Name).

wrong_part(Module, Function, Kwargs) ->
    case {is_name(Module), is_name(Function)} of
        {false, _} -> module;
        {true, false} -> function;
        {true, true} -> py_text:format("keyword arguments must be a map, got ~0tP; a timeout follows them", [Kwargs, 10])
    end.

size([], Size) -> Size;
size([Bin | Rest], _) when is_binary(Bin), byte_size(Bin) > ?LARGE -> size(Rest, large);
size([{_, Bin} | Rest], _) when is_binary(Bin), byte_size(Bin) > ?LARGE -> size(Rest, large);
size([{ndarray, _, _, Bin} | Rest], _) when is_binary(Bin), byte_size(Bin) > ?LARGE ->
    size(Rest, large);
size([_ | Rest], Size) -> size(Rest, Size);
size(_, _) -> improper.

%% The bytes of an eval or exec.
-spec source(iodata(), kwargs()) -> {ok, py_nif:payload()} | {error, {bad_argument, atom() | binary()}}.
source(Code, Locals) when is_map(Locals) ->
    try unicode:characters_to_binary(Code) of
        Source when is_binary(Source) -> {ok, {term_to_binary({{bytes, Source}, Locals}), Locals}};
        _ -> {error, {bad_argument, code}}
    catch
        error:badarg -> {error, {bad_argument, code}}
    end;
source(_Code, Locals) ->
    Text = "the names for the code must be a map, got ~0tP; a timeout follows them",
    {error, {bad_argument, py_text:format(Text, [Locals, 10])}}.

%% A term of its own: it is read by every call.
-spec default_timeout() -> timeout().
default_timeout() ->
    persistent_term:get(py_call_timeout, 30000).

%% The pool of a context's process, of a bound handle, or of that name.
-spec pool(pid() | reference() | atom()) ->
    {ok, py_nif:pool()} | {error, not_running | {context_died, noproc} | {bad_argument, term()}}.
pool(Name) ->
    case py_registry:pool(Name) of
        {ok, Pool} -> {ok, Pool};
        error when is_atom(Name) -> {error, no_pool(Name, py_registry:is_running())};
        error -> {error, {context_died, noproc}}
    end.

no_pool(Name, true) -> {bad_argument, {no_such_pool, Name}};
no_pool(_Name, false) -> not_running.
