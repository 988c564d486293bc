%% Many calls at once, each given to the next free interpreter; results in the order of the calls.
%%
%% Process: one of its own for each `py:parallel' or `py:map': when the caller dies, when the time
%% is up or when a call fails it ends, and with it everything it had asked for is cancelled.
-module(py_parallel).

-export([calls/2, map/3]).
-export([init/3]).

-include("py_nif.hrl").

-type call() ::
    {py_call:name(), py_call:name(), [term()]}
    | {py_call:name(), py_call:name(), [term()], py_call:kwargs()}.

-type map_opts() :: #{
    timeout => timeout(),
    fallback => main,
    chunk => pos_integer(),
    progress => pid()
}.

-record(run, {
    left :: [{pos_integer(), py_nif:payload()}],
    running = #{} :: #{reference() => {pos_integer(), py_nif:payload(), py_subinterp_pool:worker()}},
    done = #{} :: #{pos_integer() => term()},
    flags :: py_nif:flags(),
    fallback :: boolean(),
    progress :: fun((pos_integer()) -> ok)
}).

-spec calls([call()], timeout() | py_call:opts()) -> {ok, [term()]} | {error, py_error:reason()}.
calls(Calls, Opts) when is_list(Calls) ->
    case payloads(Calls, []) of
        {ok, Payloads} -> start(Payloads, Opts, fun(_Done) -> ok end);
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

payload({M, F, A}) -> py_call:payload(M, F, A, #{});
payload({M, F, A, Kw}) -> py_call:payload(M, F, A, Kw);
payload(_) -> {error, {bad_argument, calls}}.

%% `F' of each item, several items a call.
-spec map({py_call:name(), py_call:name()}, [term()], map_opts()) ->
    {ok, [term()]} | {error, py_error:reason()}.
map({M, F}, List, Opts) when is_list(List), is_map(Opts) ->
    Total = length(List),
    case {maps:get(chunk, Opts, chunk(Total)), maps:get(progress, Opts, undefined)} of
        {Chunk, Progress} when
            is_integer(Chunk), Chunk > 0, (is_pid(Progress) orelse Progress =:= undefined)
        ->
            Chunks = chunks(List, Chunk),
            Names = [py_call:text(M), py_call:text(F)],
            Calls = [{'erlang._object', map_chunk, Names ++ [Items]} || Items <- Chunks],
            Tell = fun(Done) -> tell(Progress, min(Done * Chunk, Total), Total) end,
            flatten(mapped(Calls, maps:without([chunk, progress], Opts), Tell));
        _ ->
            {error, {bad_argument, {option, chunk}}}
    end;
map(_Function, _List, _Opts) ->
    {error, {bad_argument, list}}.

mapped(Calls, Opts, Tell) ->
    case payloads(Calls, []) of
        {ok, Payloads} -> start(Payloads, Opts, Tell);
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

start([], _Opts, _Progress) ->
    {ok, []};
start(Payloads, Opts, Progress) ->
    case {py_call:options(Opts), py_subinterp_pool:workers()} of
        {{ok, #{timeout := Timeout, flags := Flags}}, {ok, Workers}} ->
            Run = #run{
                left = lists:zip(lists:seq(1, length(Payloads)), Payloads),
                flags = Flags,
                fallback = is_map(Opts) andalso maps:get(fallback, Opts, none) =:= main,
                progress = Progress
            },
            watch(Run, Workers, Timeout);
        {{error, _} = Error, _} ->
            Error;
        {_, {error, _} = Error} ->
            Error
    end.

watch(Run, Workers, Timeout) ->
    {Pid, Monitor} = spawn_monitor(?MODULE, init, [self(), Workers, Run]),
    receive
        {'DOWN', Monitor, process, Pid, {py_parallel, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, Why} -> {error, {context_died, Why}}
    after Timeout ->
        true = demonitor(Monitor, [flush]),
        exit(Pid, kill),
        {error, timeout}
    end.

%% The result is the reason of its end: one message to the caller, and it can't come late.
-spec init(pid(), [py_subinterp_pool:worker()], #run{}) -> no_return().
init(Caller, Workers, Run) ->
    _ = monitor(process, Caller),
    exit({py_parallel, work(Workers, Run)}).

%% Every free worker gets the next call.
work([Worker | Free], #run{left = [{Index, Payload} | Left]} = Run) ->
    work(Free, submit(Worker, Index, Payload, Run#run{left = Left}));
work(_Free, #run{left = [], running = Running, done = Done}) when map_size(Running) =:= 0 ->
    {ok, [Value || {_Index, Value} <- lists:sort(maps:to_list(Done))]};
work(Free, #run{running = Running} = Run) ->
    receive
        {py_response, Ref, Answer} ->
            {{Index, Payload, Worker}, Rest} = maps:take(Ref, Running),
            answered(Answer, {Index, Payload, Worker}, Free, Run#run{running = Rest});
        {'DOWN', _Monitor, process, _Caller, _Why} ->
            {error, cancelled}
    end.

submit(Worker, Index, Payload, #run{running = Running, flags = Flags} = Run) ->
    Ref = py_call:spawn(self(), py_response, Worker, ?OP_CALL, Flags, Payload),
    Run#run{running = Running#{Ref => {Index, Payload, Worker}}}.

answered({ok, Value}, {Index, _Payload, Worker}, Free, #run{done = Done} = Run) ->
    Now = Done#{Index => Value},
    ok = (Run#run.progress)(map_size(Now)),
    work([Worker | Free], Run#run{done = Now});
answered({error, {'ImportError', _}}, {Index, Payload, Worker}, Free, #run{fallback = true} = Run) when
    Worker =/= default
->
    %% The main interpreter does it; this worker is free for the next.
    work([Worker | Free], submit(default, Index, Payload, Run));
answered({error, {context_died, stopped}}, {Index, Payload, _Gone}, Free, Run) ->
    %% It never ran: its interpreter was replaced while it waited. Another one does it.
    again(Free, Run#run{left = [{Index, Payload} | Run#run.left]});
answered({error, _} = Error, _Call, _Free, _Run) ->
    Error.

again([], #run{running = Running} = Run) when map_size(Running) =:= 0 ->
    case py_subinterp_pool:workers() of
        {ok, Workers} -> work(Workers, Run);
        {error, _} = Error -> Error
    end;
again(Free, Run) ->
    work(Free, Run).
