%% Many calls at once, each given to the next free interpreter; results in the order of the calls.
%%
%% Process: one of its own for each `py:parallel' or `py:map', so that no answer is ever left in the
%% caller's mailbox. It submits for its caller, who waits: Python runs for that one, who hears of its
%% errors. When the caller dies, when the time is up or when a call fails, it cancels what runs.
-module(py_parallel).

-export([calls/2, map/3]).
-export([init/3, ask_for_workers/1, with/2]).

-include("py_nif.hrl").

-type call() ::
    {py_call:name(), py_call:name(), [term()]}
    | {py_call:name(), py_call:name(), [term()], py_call:kwargs()}.

%% Milliseconds that it has to cancel what runs.
-define(STOP, 5000).

-record(run, {
    %% The caller's.
    slot :: py_nif:slot(),
    left :: [{pos_integer(), py_nif:payload()}],
    running = #{} :: #{reference() => {pos_integer(), py_nif:payload(), py_subinterp_pool:worker()}},
    done = #{} :: #{pos_integer() => term()},
    %% The message that says so, or the monitor of the caller.
    ends :: {reference(), reference()} | undefined,
    flags :: py_nif:flags(),
    fallback :: boolean(),
    progress :: fun((pos_integer()) -> ok)
}).

-spec calls([call()], py:timeout_or_opts()) -> {ok, [term()]} | {error, py_error:reason()}.
calls(Calls, Opts) when is_list(Calls) ->
    case payloads(Calls, []) of
        {ok, Payloads} -> ?MODULE:with(Calls, start(Payloads, py_options:read(parallel, Opts), fun(_Done) -> ok end));
        {error, _} = Error -> Error
    end;
calls(_Calls, _Opts) ->
    {error, {bad_argument, calls}}.

payloads([], Payloads) ->
    {ok, lists:reverse(Payloads)};
payloads([Call | Rest], Payloads) ->
    case payload(Call) of
        {ok, Payload} -> payloads(Rest, [Payload | Payloads]);
        {error, _} = Error -> Error
    end;
payloads(_Improper, _Payloads) ->
    {error, {bad_argument, calls}}.

%% The caller has the arguments until there is a result: the bytes of those that wait may name objects of Python, which
%% live as long as their references. Exported, so that no compiler sees that they are not used.
-spec with([call()], Result) -> Result.
with(_Calls, Result) -> Result.

payload({M, F, A}) -> payload({M, F, A, #{}});
payload({M, F, A, Kw}) ->
    case py_call:payload(M, F, A, Kw) of
        %% Without the terms, which the caller keeps: the bytes go to another process.
        {ok, {Bytes, _Encoded}} -> {ok, Bytes};
        {error, _} = Error -> Error
    end;
payload(_) ->
    {error, {bad_argument, calls}}.

%% `F' of each item, several items a call.
-spec map({py_call:name(), py_call:name()}, [term()], py:timeout_or_opts()) ->
    {ok, [term()]} | {error, py_error:reason()}.
map({M, F}, List, Opts) when length(List) >= 0, is_map(Opts) orelse ?IS_TIMEOUT(Opts) ->
    case py_options:read(map, Opts) of
        {ok, Options} -> mapped([py_call:text(M), py_call:text(F)], List, Options);
        {error, _} = Error -> Error
    end;
map({_M, _F}, List, _Opts) when length(List) >= 0 ->
    {error, {bad_argument, opts}};
map({_M, _F}, _List, _Opts) ->
    {error, {bad_argument, list}};
map(_Function, _List, _Opts) ->
    {error, {bad_argument, function}}.

mapped(Names, List, Options) ->
    Total = length(List),
    Chunk = maps:get(chunk, Options, chunk(Total)),
    Progress = maps:get(progress, Options, undefined),
    Calls = [{'erlang._object', map_chunk, Names ++ [Items]} || Items <- chunks(List, Chunk)],
    Tell = fun(Done) -> tell(Progress, min(Done * Chunk, Total), Total) end,
    case payloads(Calls, []) of
        {ok, Payloads} -> flatten(?MODULE:with(Calls, start(Payloads, {ok, Options}, Tell)));
        {error, _} = Error -> Error
    end.

flatten({ok, Lists}) -> {ok, lists:append(Lists)};
flatten({error, _} = Error) -> Error.

%% Four for each of four interpreters: few enough to be cheap, many enough to be fair.
chunk(Total) -> max(1, Total div 16).

chunks([], _Size) ->
    [];
chunks(List, Size) when length(List) =< Size ->
    [List];
chunks(List, Size) ->
    {Chunk, Rest} = lists:split(Size, List),
    [Chunk | chunks(Rest, Size)].

tell(undefined, _Done, _Total) ->
    ok;
tell(Pid, Done, Total) ->
    _ = Pid ! {py_progress, Done, Total},
    ok.

start(_Payloads, {error, _} = Error, _Progress) ->
    Error;
start([], {ok, _Options}, _Progress) ->
    {ok, []};
start(Payloads, {ok, #{timeout := Timeout, flags := Flags}}, Progress) ->
    Run = #run{
        slot = py_call:slot(),
        left = lists:zip(lists:seq(1, length(Payloads)), Payloads),
        flags = Flags,
        fallback = Flags band ?FLAG_FALLBACK =/= 0,
        progress = Progress
    },
    watch(Run, Timeout).

watch(Run, Timeout) ->
    Stop = make_ref(),
    {Pid, Monitor} = spawn_monitor(?MODULE, init, [self(), Stop, Run]),
    receive
        {'DOWN', Monitor, process, Pid, {py_parallel, Result}} -> py_call:answer(Result);
        {'DOWN', Monitor, process, Pid, Why} -> {error, {context_died, Why}}
    after Timeout ->
        Pid ! Stop,
        receive
            {'DOWN', Monitor, process, Pid, _} -> ok
        after ?STOP ->
            exit(Pid, kill),
            receive
                {'DOWN', Monitor, process, Pid, _} -> ok
            end
        end,
        {error, timeout}
    end.

%% The result is the reason of its end: one message to the caller, and it can't come late.
-spec init(pid(), reference(), #run{}) -> no_return().
init(Caller, Stop, Run) ->
    Monitor = monitor(process, Caller),
    exit({py_parallel, begin_work(Run#run{ends = {Stop, Monitor}})}).

%% Interpreters may have to be made first, which takes as long as it takes: another process waits for them, so
%% that this one hears when its time is up.
begin_work(#run{ends = {Stop, Monitor}} = Run) ->
    {_, Asked} = spawn_monitor(?MODULE, ask_for_workers, [self()]),
    receive
        {'DOWN', Asked, process, _, {workers, {ok, Workers}}} -> work(Workers, Run);
        {'DOWN', Asked, process, _, {workers, {error, _} = Error}} -> Error;
        {'DOWN', Asked, process, _, Why} -> {error, {context_died, Why}};
        Stop -> {error, timeout};
        {'DOWN', Monitor, process, _Caller, _Why} -> {error, cancelled}
    end.

-spec ask_for_workers(pid()) -> no_return().
ask_for_workers(User) -> exit({workers, py_subinterp_pool:workers(User)}).

%% Every free worker gets the next call.
work([Worker | Free], #run{left = [{Index, Payload} | Left]} = Run) ->
    work(Free, submit(Worker, Index, Payload, Run#run{left = Left}));
work(_Free, #run{left = [], running = Running, done = Done}) when map_size(Running) =:= 0 ->
    {ok, [Value || {_Index, Value} <- lists:sort(maps:to_list(Done))]};
work(Free, #run{running = Running, ends = {Stop, Monitor}} = Run) ->
    receive
        {py_response, Ref, Answer} ->
            {{Index, Payload, Worker}, Rest} = maps:take(Ref, Running),
            answered(Answer, {Index, Payload, Worker}, Free, Run#run{running = Rest});
        Stop ->
            cancel({error, timeout}, Run);
        {'DOWN', Monitor, process, _Caller, _Why} ->
            cancel({error, cancelled}, Run)
    end.

cancel(Result, #run{running = Running}) ->
    ok = lists:foreach(fun py_nif:cancel_ref/1, maps:keys(Running)),
    Result.

submit(Worker, Index, Payload, #run{slot = Slot, running = Running, flags = Flags} = Run) ->
    Ref = py_call:spawn(Slot, self(), py_response, Worker, ?OP_CALL, Flags, Payload),
    Run#run{running = Running#{Ref => {Index, Payload, Worker}}}.

answered({ok, Value}, {Index, _Payload, Worker}, Free, #run{done = Done} = Run) ->
    Now = Done#{Index => Value},
    ok = (Run#run.progress)(map_size(Now)),
    work([Worker | Free], Run#run{done = Now});
answered({error, Reason}, {Index, Payload, Worker}, Free, #run{fallback = true} = Run) when
    Worker =/= default, ?IS_REFUSAL(Reason)
->
    %% The main interpreter does it; this worker is free for the next.
    work([Worker | Free], submit(default, Index, Payload, Run));
answered({error, {context_died, stopped}}, {Index, Payload, _Gone}, Free, Run) ->
    %% It never ran: its interpreter was replaced while it waited. Another one does it.
    again(Free, Run#run{left = [{Index, Payload} | Run#run.left]});
answered({error, _} = Error, _Call, _Free, Run) ->
    cancel(Error, Run).

again([], #run{running = Running} = Run) when map_size(Running) =:= 0 ->
    begin_work(Run);
again(Free, Run) ->
    work(Free, Run).
