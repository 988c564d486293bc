%% One request for an application, from Erlang: its body may come piece by piece, and its response
%% may go so.
%%
%% Process: the caller's own, or for `run_async' one of its own, linked to nobody: it ends with its
%% caller.
-module(py_asgi_run).

-export([run/5, start/5, await/2, ack/2, ask/3, new_requests/0]).

-export_type([body/0, piece/0, response/0, opts/0]).

-include("py_nif.hrl").

-type piece() :: {more | done, iodata()}.
%% A fun gives the next piece; a process is asked for it: `{asgi_body, From, Ref}', to be answered with
%% `From ! {Ref, Piece}'.
-type body() :: iodata() | fun(() -> piece()) | pid().
-type response() :: {Status :: pos_integer(), [{Name :: binary(), Value :: binary()}], binary()}.
-type opts() :: py_options:given().

-define(PYTHON, 'erlang.serve._run').
%% The processes of requests that run beside their callers, by reference.
-define(REQUESTS, py_asgi_requests).

-record(run, {
    ref :: reference(),
    slot :: py_nif:slot(),
    job :: integer(),
    body :: body() | {feeder, pid()},
    caller :: reference() | none,
    to = none :: {pid(), Monitor :: reference()} | none,
    %% Pieces that may still be sent, and who waits to send the next one.
    room = 0 :: non_neg_integer(),
    waits = none :: none | {pid(), reference(), term()}
}).

-spec run(py_call:name(), py_call:name(), py_asgi_scope:scope(), body(), timeout() | opts()) ->
    {ok, response()} | {error, py_error:reason()}.
run(Mod, Callable, Scope, Body, #{stream_to := _} = Opts) ->
    Ref = alias(),
    try
        run(Ref, Mod, Callable, Scope, Body, Opts, none)
    after
        unalias(Ref)
    end;
run(Mod, Callable, Scope, Body, Opts) ->
    run(make_ref(), Mod, Callable, Scope, Body, Opts, none).

%% `Caller': the monitor of the process that can cancel it.
run(Ref, Mod, Callable, Scope, Body, Opts, Caller) ->
    Checked = [py_asgi_scope:prepare(Scope), options(Opts), whole(Body)],
    case Checked of
        [{ok, Prepared}, {ok, Options}, {ok, Whole}] ->
            Source = source(Ref, Whole, is_map_key(stream_to, Options)),
            Args = [py_call:text(Mod), py_call:text(Callable), Prepared, Whole | Source],
            case {py_call:payload(?PYTHON, run, Args, #{}), Source, Caller} of
                {{ok, Payload}, [], none} -> at_once(Payload, Options);
                {{ok, Payload}, _, _} -> submit(Ref, Payload, Body, Caller, Options);
                {{error, _} = Error, _, _} -> Error
            end;
        _ ->
            {error, hd([Reason || {error, Reason} <- Checked])}
    end.

options(Opts) ->
    case py_options:read(asgi, Opts) of
        {ok, #{stream_to := Pid}} when Pid =:= self() ->
            {error, {bad_argument, <<"stream_to must be another process: this one waits for the answer">>}};
        {ok, #{window := _} = Options} when not is_map_key(stream_to, Options) ->
            {error, {bad_argument, <<"the option window needs stream_to">>}};
        Checked ->
            Checked
    end.

whole(Body) when is_function(Body, 0); is_pid(Body) -> {ok, none};
whole({feeder, _}) ->
    {ok, none};
whole(Body) ->
    try
        {ok, {bytes, iolist_to_binary(Body)}}
    catch
        error:badarg -> {error, {bad_argument, body}}
    end.

%% Python needs to know us only where it has to ask.
source(_Ref, Whole, false) when Whole =/= none -> [];
source(Ref, _Whole, Streams) -> [self(), Ref, Streams].

%% Nothing to be asked for on the way.
at_once(Payload, #{pool := Pool, flags := Flags, timeout := Timeout}) ->
    case py_request:loop(Pool) of
        {ok, Loop} -> result(py_call:sync(Loop, ?OP_ASYNC, Flags, Payload, Timeout));
        {error, _} = Error -> Error
    end.

submit(Ref, Payload, Body, Caller, #{pool := Pool, flags := Flags, timeout := Timeout} = Options) ->
    Slot = py_call:slot(),
    case py_request:loop(Pool) of
        {ok, Loop} ->
            case py_nif:submit(Slot, Loop, Ref, ?OP_ASYNC, Flags, Payload) of
                Job when is_integer(Job) ->
                    Run = #run{ref = Ref, slot = Slot, job = Job, body = Body, caller = Caller},
                    serve(streams(Options, Run), Timeout);
                Refusal ->
                    {error, py_call:refused(Refusal)}
            end;
        {error, _} = Error ->
            Error
    end.

streams(#{stream_to := Pid} = Options, Run) ->
    #{window := Room} = maps:merge(py_options:defaults(asgi), Options),
    Run#run{to = {Pid, monitor(process, Pid)}, room = Room};
streams(_Options, Run) ->
    Run.

serve(Run, Timeout) ->
    Deadline = py_deadline:at(Timeout),
    Result = loop(Run, Deadline),
    ok = tell_reader(Run, ended(Result)),
    Result.

tell_reader(#run{to = {Pid, Monitor}, ref = Ref}, End) ->
    true = demonitor(Monitor, [flush]),
    Pid ! {asgi_stream, Ref, End},
    ok;
tell_reader(_Run, _End) ->
    ok.

ended({ok, _}) -> done;
ended({error, _} = Error) -> Error.

loop(#run{ref = Ref, slot = Slot, job = Job, to = To, caller = Caller} = Run, Deadline) ->
    receive
        {Ref, cancel} ->
            stopped(Ref, Slot, Job, cancelled);
        {Ref, Answer} ->
            result(py_call:decode(Answer));
        {Ref, ask, From, Tag, <<"body">>} ->
            loop(next_piece(From, Tag, Run), Deadline);
        {Ref, ask, From, Tag, Event} ->
            loop(forward(Run#run{waits = {From, Tag, Event}}), Deadline);
        {Ref, ack, Count} ->
            loop(forward(Run#run{room = Run#run.room + Count}), Deadline);
        {Ref, no_body, Reason} ->
            stopped(Ref, Slot, Job, {bad_argument, {body, Reason}});
        {'EXIT', Feeder, Reason} when Run#run.body =:= {feeder, Feeder} ->
            stopped(Ref, Slot, Job, {bad_argument, {body, Reason}});
        {'DOWN', Caller, process, _, _} ->
            stopped(Ref, Slot, Job, cancelled);
        {'DOWN', Monitor, process, Pid, _} when To =:= {Pid, Monitor} ->
            stopped(Ref, Slot, Job, cancelled)
    after py_deadline:left(Deadline) ->
        stopped(Ref, Slot, Job, timeout)
    end.

%% I4: once cancel/2 has returned, no answer can be sent any more.
stopped(Ref, Slot, Job, Why) ->
    ok = py_nif:cancel(Slot, Job),
    receive
        {Ref, Answer} -> result(py_call:decode(Answer))
    after 0 -> {error, Why}
    end.

next_piece(From, Tag, #run{body = {feeder, Pid}} = Run) ->
    %% We are linked to it. Were whoever asked to watch it, too, and hear of its end first, the
    %% application would be told of a disconnect.
    From ! {Tag, {ask_feeder, Pid}},
    Run;
next_piece(From, Tag, #run{body = Pid} = Run) when is_pid(Pid) ->
    %% It answers for itself; whoever asked watches it.
    From ! {Tag, {ask, Pid}},
    Run;
next_piece(From, Tag, #run{body = Next, slot = Slot, job = Job} = Run) ->
    try Next() of
        Piece ->
            From ! {Tag, {piece, Piece}},
            Run
    catch
        Class:Reason:Trace ->
            ok = py_nif:cancel(Slot, Job),
            erlang:raise(Class, Reason, Trace)
    end.

forward(#run{waits = {From, Tag, Event}, room = Room, to = {Pid, _}, ref = Ref} = Run) when Room > 0 ->
    Pid ! {asgi_stream, Ref, event(Event)},
    From ! {Tag, sent},
    Run#run{waits = none, room = Room - 1};
forward(Run) ->
    Run.

event({Status, Headers}) -> {start, Status, Headers};
event(Body) when is_binary(Body) -> {data, Body}.

%% What the application did wrong is told as a value by Python.
result({ok, {<<"broken">>, Text}}) -> {error, {asgi, Text}};
result(Result) -> Result.

%% Called for Python, by an executor: the next piece of the body, or room for one of the response.
-spec ask(pid(), reference(), term()) -> {more | done, {bytes, binary()}} | sent | gone.
ask(Runner, Ref, Question) ->
    Tag = monitor(process, Runner),
    Runner ! {Ref, ask, self(), Tag, Question},
    Answer =
        receive
            {Tag, Given} -> Given;
            {'DOWN', Tag, process, Runner, _} -> gone
        end,
    true = demonitor(Tag, [flush]),
    case Answer of
        {ask, Pid} -> piece(asked(Pid, monitor(process, Pid), Runner));
        {ask_feeder, Pid} -> piece(asked(Pid, make_ref(), Runner));
        {piece, Piece} -> piece(Piece);
        _ -> Answer
    end.

%% Who has the body may never answer: the end of the request ends the wait, too. `Tag' is a monitor where
%% the end of that process is to be heard.
asked(Pid, Tag, Runner) ->
    Request = monitor(process, Runner),
    Pid ! {asgi_body, self(), Tag},
    Piece =
        receive
            {Tag, Given} -> Given;
            {'DOWN', Tag, process, Pid, _} -> gone;
            {'DOWN', Request, process, Runner, _} -> gone
        end,
    [true = demonitor(Monitor, [flush]) || Monitor <- [Tag, Request]],
    Piece.

piece({What, Data}) when What =:= more; What =:= done -> {What, {bytes, iolist_to_binary(Data)}};
piece(_) -> gone.

%% The same in a process of its own, with the caller's metadata.
-spec start(py_call:name(), py_call:name(), py_asgi_scope:scope(), body(), timeout() | opts()) ->
    {ok, reference()}.
start(Mod, Callable, Scope, Body, Opts) ->
    Caller = self(),
    Metadata = logger:get_process_metadata(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        ok = adopt(Metadata),
        Ref = alias(),
        Watch = monitor(process, Caller),
        Feeder = feeder(Ref, Body),
        Request = fun() -> run(Ref, Mod, Callable, Scope, Feeder, Opts, Watch) end,
        ok = beside(Caller, Ref, Request),
        ok = dismiss(Feeder)
    end),
    receive
        {Pid, Ref} ->
            true = demonitor(Monitor, [flush]),
            {ok, Ref};
        {'DOWN', Monitor, process, Pid, Why} ->
            exit(Why)
    end.

adopt(undefined) -> ok;
adopt(Metadata) -> logger:set_process_metadata(Metadata).

%% Who finds no request under its reference has the answer in its mailbox, or had it.
beside(Caller, Ref, Request) ->
    case add_request(Ref) of
        true ->
            Caller ! {self(), Ref},
            Caller ! {asgi_response, Ref, Request()},
            remove_request(Ref);
        false ->
            Caller ! {asgi_response, Ref, {error, not_running}},
            Caller ! {self(), Ref},
            ok
    end.

%% A fun may take its time: it has a process of its own, and the request still hears of everything.
feeder(Ref, Next) when is_function(Next, 0) ->
    _ = process_flag(trap_exit, true),
    Runner = self(),
    {feeder, spawn_link(fun() -> feed(Runner, Ref, Next) end)};
feeder(_Ref, Body) ->
    Body.

feed(Runner, Ref, Next) ->
    receive
        {asgi_body, From, Tag} ->
            try Next() of
                Piece ->
                    From ! {Tag, Piece},
                    feed(Runner, Ref, Next)
            catch
                _:Reason ->
                    Runner ! {Ref, no_body, Reason},
                    %% Were it to end, the application would be told of a disconnect.
                    receive
                        {Ref, never} -> ok
                    end
            end
    end.

dismiss({feeder, Pid}) ->
    true = unlink(Pid),
    true = exit(Pid, kill),
    ok;
dismiss(_Body) ->
    ok.

%% Makes the table of requests; its owner is the calling process.
-spec new_requests() -> ok.
new_requests() ->
    ?REQUESTS = ets:new(?REQUESTS, [named_table, public, {write_concurrency, true}]),
    ok.

add_request(Ref) ->
    try
        ets:insert(?REQUESTS, {Ref, self()})
    catch
        %% The application is not running.
        error:badarg -> false
    end.

remove_request(Ref) ->
    try ets:delete(?REQUESTS, Ref) of
        true -> ok
    catch
        error:badarg -> ok
    end.

request(Ref) ->
    try ets:lookup(?REQUESTS, Ref) of
        [{Ref, Runner}] -> {ok, Runner};
        [] -> error
    catch
        error:badarg -> error
    end.

-spec await(reference(), timeout()) -> {ok, response()} | {error, py_error:reason()}.
await(Ref, Timeout) when ?IS_TIMEOUT(Timeout) ->
    case request(Ref) of
        {ok, Runner} ->
            Monitor = monitor(process, Runner),
            Result = await(Ref, Monitor, Timeout),
            true = demonitor(Monitor, [flush]),
            Result;
        error ->
            receive
                {asgi_response, Ref, Result} -> Result
            after 0 -> {error, {bad_argument, no_such_request}}
            end
    end;
await(_Ref, _Timeout) ->
    {error, {bad_argument, timeout}}.

%% The answer comes before the end of its process, so one of both comes.
await(Ref, Monitor, Timeout) ->
    receive
        {asgi_response, Ref, Result} -> Result;
        {'DOWN', Monitor, process, _, Why} -> died(Ref, Why)
    after Timeout ->
        Ref ! {Ref, cancel},
        receive
            {asgi_response, Ref, {error, cancelled}} -> {error, timeout};
            {asgi_response, Ref, Result} -> Result;
            {'DOWN', Monitor, process, _, Why} -> died(Ref, Why)
        end
    end.

%% A request that ends by itself takes itself out before: what is still there was ended from outside.
died(Ref, Why) ->
    case request(Ref) of
        {ok, _} ->
            ok = remove_request(Ref),
            {error, {context_died, Why}};
        error ->
            {error, {bad_argument, no_such_request}}
    end.

%% So many more pieces of a streamed response may come.
-spec ack(reference(), pos_integer()) -> ok | {error, {bad_argument, count}}.
ack(Ref, Count) when is_integer(Count), Count > 0 ->
    _ = Ref ! {Ref, ack, Count},
    ok;
ack(_Ref, _Count) ->
    {error, {bad_argument, count}}.
