%% Stubs and specs of the native library; behaviour lives in the modules that call it. `submit_call/6' and
%% `submit_coroutine/6' are no stubs: programs know them by these names.
%%
%% Loaded by `init/1' once per node (no -on_load: which library it is depends on the Python found).
-module(py_nif).

%% The native functions: each stands in this list only.
-define(NIFS, [
    start/5, finish/1, built_for/0, has_gil/0, python_version/0, set_process/2,
    slot_new/1, slot_leader/2, slot_about/2, last_error/1, printed/2, logged/0, delivered/1, counts/0,
    nothing/0, nothing_dirty/0, copy_fresh/1,
    pool_new/1, pool_close/1, pool_wipe/1, pool_info/1, pool_busy/1, pool_in_use/1,
    pool_interrupt/1, worker_is_down/1,
    subinterp_new/2, subinterp_counts/0, pool_add_loop/2, pool_loop/1,
    pool_memory/1, pool_interp/1, set_main_pool/1, clear_main_pool/0, worker_start/1, worker_retire/1,
    submit/6, cancel/2, cancel_ref/1, deadline_set/4, stream_ack/2, linger/2,
    loop_new/1, loop_new_beam/1, loop_step/1, loop_close/1, loop_info/1,
    gather_new/4, gather_submit/5, gather_close/1, gather_cancel/1,
    executor_ready/1, executor_leaves/1, executor_evict/0, executor_takes/2, executor_died/1,
    callback_reply/6, callback_refuse/2, is_object_ref/1,
    dag_new/3, dag_new_large/3, dag_run/7, dag_cancel/2, dag_reply/4, dag_more/6, dag_limit/1,
    dag_redis/1, dag_default/1,
    server_options/0,
    event_loop_new/0, event_loop_destroy/1, event_loop_set_router/2, event_loop_step/1,
    add_reader/3, add_writer/3, remove_reader/2, remove_writer/2, call_later/3, cancel_timer/2,
    call_at/3, poll_events/2, get_pending/1, event_loop_wakeup/1, event_loop_kind/1,
    create_test_udp_socket/1, sendto_test_udp/4, recvfrom_test_udp/2, set_udp_broadcast/2,
    close_test_fd/1
]).

-export([init/1, is_loaded/0, submit_call/6, submit_coroutine/6]).
-export(?NIFS).
-nifs(?NIFS).

-export_type([raw_loop/0, event_id/0, event_loop/0]).
-export_type([place/0, reply/0]).
-export_type([slot/0, pool/0, worker/0, job_ref/0, op/0, flags/0, payload/0, refusal/0]).
-export_type([dag_graph/0, dag_run/0, dag_limit/0, dag_opts/0]).
-export_type([server_option/0]).

%% `none' in a node that has never started the application.
-type slot() :: reference() | none.
-type pool() :: reference().
-type event_loop() :: reference().
-type gather() :: reference().
-type pool_opts() :: #{
    size := pos_integer(),
    max_threads := pos_integer(),
    max_queue := pos_integer(),
    own_namespace := boolean()
}.
-type worker() :: reference().
%% What `spawn_call' and `stream_start' give out.
-type job_ref() :: reference().
%% The numbers are those of `py_nif.hrl'.
-type op() :: non_neg_integer().
-type flags() :: non_neg_integer().
%% A loop that Erlang drives itself.
-type raw_loop() :: reference().
-type event_id() :: non_neg_integer().
-type any_loop() :: event_loop() | raw_loop().
-type name() :: py_call:name().
-type given() :: {[term()], py_call:kwargs()}.
-type submitted() :: ok | {error, py_error:reason()}.
-type posix() :: {error, {posix, atom()}}.
-type gone() :: {error, not_running}.
%% A loop gives to its pool what is no coroutine function. `default' is the main pool.
-type place() :: pool() | event_loop() | default.
%% Where the answer goes, and what `submit' gives for it:
-type reply() ::
    %% to the caller, as `{Key, Answer}', and `submit' gives the number of the job; or, from a pool, the answer itself
    (Key :: reference())
    %% `{Tag, Ref, Answer}' to a process; `submit' gives the `Ref'
    | {Tag :: atom(), To :: pid()}
    %% `{async_result, Name, Answer}' to a process; `ok'
    | {named, To :: pid(), Name :: term()}
    %% `{py_stream, Ref, _}' to a process, at most so many ahead of it (0: no bound); `Ref'
    | {stream, To :: pid(), Window :: non_neg_integer()}
    %% to the log, if it is an error; `ok', or a reference if `?FLAG_TIMED' is set
    | none.
%% The bytes, with the terms that they encode: those keep the objects that the bytes name until a job has them.
-type payload() :: binary() | [binary()] | {binary() | [binary()], term()}.
-type refusal() :: overload | not_running | context_died.
-type dag_graph() :: reference().
-type dag_run() :: reference().
-type dag_limit() :: reference().
%% An option of a server in a node; times are milliseconds. With `program' it is one of `erlang.serve.Options', too.
-type server_option() :: #{
    name := atom(),
    kind := atom(),
    program := boolean(),
    default => term(),
    least | most => integer(),
    words => [atom()]
}.
%% `deadline' is in milliseconds, -1 for none; `redis' a URL, empty for the server of those who name none.
-type dag_opts() :: #{
    deadline := integer(),
    partial := boolean(),
    restrict := boolean(),
    wanted := [non_neg_integer()],
    pictures := 0..7,
    flags := flags(),
    redis := binary(),
    event_loop := event_loop() | none
}.

-include("py_nif.hrl").

-define(NOT_LOADED, erlang:nif_error(nif_not_loaded)).
%% What a call asks for, in a node that has never started the application: as where it was stopped.
-define(NOT_LOADED(Answer),
    try
        ?NOT_LOADED
    catch
        error:nif_not_loaded -> Answer
    end
).

%% Loads the library for the Python that was found. A second time is refused: its threads run in
%% the one that is there.
-spec init(file:filename_all()) -> ok | {error, {atom(), string()}}.
init(Path) ->
    erlang:load_nif(unicode:characters_to_list(Path), version()).

%% A library of another version refuses to be loaded. Without an application there is nothing to compare.
version() ->
    case application:get_key(erlang_python, vsn) of
        {ok, Version} -> unicode:characters_to_binary(Version);
        undefined -> none
    end.

-spec is_loaded() -> boolean().
is_loaded() ->
    try built_for() of
        {_, _, _} -> true
    catch
        error:nif_not_loaded -> false
    end.

-spec start(Program, Package, MaxDepth :: N, SwitchUs :: N, GroupLeader :: pid()) ->
    {ok, ok | {}} | {error, binary()}
when
    Program :: binary(), Package :: binary(), N :: pos_integer().
start(_Program, _Package, _MaxDepth, _SwitchUs, _Leader) -> ?NOT_LOADED.

-spec finish(LimitMs :: non_neg_integer()) -> boolean().
finish(_LimitMs) -> ?NOT_LOADED.

-spec built_for() -> {Major :: 3, Minor :: pos_integer(), FreeThreaded :: boolean()}.
built_for() -> ?NOT_LOADED.

%% Whether the main interpreter has a GIL: one of a free-threaded Python takes one up when a module is
%% imported that needs it.
-spec has_gil() -> boolean().
has_gil() -> ?NOT_LOADED.

-spec python_version() -> binary().
python_version() -> ?NOT_LOADED.

-spec set_process(courier | logger | printer | callback, pid() | undefined) -> ok.
set_process(_What, _Pid) -> ?NOT_LOADED.

-spec slot_new(GroupLeader :: pid()) -> slot().
slot_new(_Leader) -> ?NOT_LOADED(none).

%% The process of the slot has another group leader, which is of this node.
-spec slot_leader(slot(), GroupLeader :: pid()) -> ok.
slot_leader(_Slot, _Leader) -> ?NOT_LOADED(ok).

%% A group leader has answered a request that named it so.
-spec printed(Leader :: reference(), Bytes :: non_neg_integer()) -> ok.
printed(_Leader, _Bytes) -> ?NOT_LOADED.

%% A log record was handed over; gives the number of those that were dropped before it.
-spec logged() -> Dropped :: non_neg_integer().
logged() -> ?NOT_LOADED(0).

%% The courier has sent the message of that number.
-spec delivered(non_neg_integer()) -> ok.
delivered(_Number) -> ?NOT_LOADED(ok).

%% What the next job with the flag for it is told.
-spec slot_about(slot(), binary()) -> ok.
slot_about(_Slot, _About) -> ?NOT_LOADED(ok).

-spec last_error(slot()) -> binary() | undefined.
last_error(_Slot) -> ?NOT_LOADED(undefined).

%% `{ThreadsInCallbacks, CoroutinesInCallbacks, Callbacks, ExportedObjects}'
-spec counts() -> {N, N, N, N} when N :: non_neg_integer().
counts() -> ?NOT_LOADED.

-spec nothing() -> ok.
nothing() -> ?NOT_LOADED.

-spec nothing_dirty() -> ok.
nothing_dirty() -> ?NOT_LOADED.

-spec copy_fresh(binary()) -> Nanoseconds :: non_neg_integer().
copy_fresh(_Bytes) -> ?NOT_LOADED.

-spec pool_new(pool_opts()) -> pool().
pool_new(_Opts) -> ?NOT_LOADED.

%% An own-GIL sub-interpreter with its one thread; both belong to the calling process. 0: no bound.
-spec subinterp_new(MaxQueue :: pos_integer(), N) -> {ok, {pool(), worker()}} | {error, binary()} when
    N :: non_neg_integer().
subinterp_new(_MaxQueue, _MaxMemory) -> ?NOT_LOADED.

-spec pool_memory(pool()) -> {UsedBytes :: non_neg_integer(), Limit :: pos_integer()} | none.
pool_memory(_Pool) -> ?NOT_LOADED.

%% The number of its interpreter, as in object references; 0 is the main one.
-spec pool_interp(pool()) -> non_neg_integer().
pool_interp(_Pool) -> ?NOT_LOADED.

-spec subinterp_counts() -> {Made :: N, Ended :: N, Left :: N, KeptBytes :: N} when N :: non_neg_integer().
subinterp_counts() -> ?NOT_LOADED.

-spec pool_close(pool()) -> ok.
pool_close(_Pool) -> ?NOT_LOADED.

-spec pool_wipe(pool()) -> ok.
pool_wipe(_Pool) -> ?NOT_LOADED.

%% `{Queued, Threads, Idle, Waiting}'
-spec pool_info(pool()) -> {N, N, N, N} when N :: non_neg_integer().
pool_info(_Pool) -> ?NOT_LOADED.

-spec pool_busy(pool()) -> boolean().
pool_busy(_Pool) -> ?NOT_LOADED.

%% Busy, or Erlang has references to objects of its interpreter.
-spec pool_in_use(pool()) -> boolean().
pool_in_use(_Pool) -> ?NOT_LOADED.

-spec pool_interrupt(pool()) -> ok | not_running.
pool_interrupt(_Pool) -> ?NOT_LOADED.

-spec set_main_pool(pool()) -> ok.
set_main_pool(_Pool) -> ?NOT_LOADED.

-spec clear_main_pool() -> ok.
clear_main_pool() -> ?NOT_LOADED.

-spec worker_start(pool()) -> worker().
worker_start(_Pool) -> ?NOT_LOADED.

%% Whether its thread has ended, or hangs in C code and ends when that returns.
-spec worker_is_down(worker()) -> boolean().
worker_is_down(_Worker) -> ?NOT_LOADED.

-spec worker_retire(worker()) -> ok.
worker_retire(_Worker) -> ?NOT_LOADED.

%% What comes back says `reply()'; or it is the reason why the job was not taken.
-spec submit(slot(), place(), reply(), op(), flags(), payload()) ->
    (JobId :: pos_integer()) | (Answer :: binary() | tuple()) | job_ref() | ok | refusal().
submit(_Slot, _Place, _Reply, _Op, _Flags, _Payload) -> ?NOT_LOADED(not_running).

%% After it returned nothing is sent for the job. `shut_out', once: for seconds now a thread has kept the
%% lock of an interpreter, so that nothing can run there.
-spec cancel(slot(), JobId :: pos_integer()) -> ok | shut_out.
cancel(_Slot, _Id) -> ?NOT_LOADED.

-spec cancel_ref(job_ref()) -> ok.
cancel_ref(_Reference) -> ?NOT_LOADED.

%% A job that was submitted with the flag for it is cancelled when the time is up, and `{Tag, Ref, {error, timeout}}'
%% goes to the process; for an atom in its place, a line to the log.
-spec deadline_set(job_ref(), Milliseconds :: non_neg_integer(), To :: pid() | none, Tag :: atom()) -> ok.
deadline_set(_Reference, _LimitMs, _To, _Tag) -> ?NOT_LOADED(ok).

-spec stream_ack(job_ref(), pos_integer()) -> ok.
stream_ack(_Reference, _Count) -> ?NOT_LOADED.

%% A loop with its thread; both belong to the calling process.
-spec loop_new(MaxQueue :: pos_integer()) -> event_loop().
loop_new(_MaxQueue) -> ?NOT_LOADED.

%% Gives a context of the calling process a loop.
-spec pool_add_loop(pool(), MaxQueue :: pos_integer()) -> ok.
pool_add_loop(_Pool, _MaxQueue) -> ?NOT_LOADED.

%% The loop of a context; other pools have none.
-spec pool_loop(pool()) -> event_loop() | none.
pool_loop(_Pool) -> ?NOT_LOADED.

%% A loop without a thread, driven by the calling process: `py_event_loop_beam'.
-spec loop_new_beam(MaxQueue :: pos_integer()) -> event_loop().
loop_new_beam(_MaxQueue) -> ?NOT_LOADED.

-spec loop_step(event_loop()) -> ok.
loop_step(_EventLoop) -> ?NOT_LOADED.

-spec loop_close(event_loop()) -> ok.
loop_close(_EventLoop) -> ?NOT_LOADED.

%% `{Queued, Waiting, Started}'
-spec loop_info(event_loop()) -> {N, N, N} when N :: non_neg_integer().
loop_info(_EventLoop) -> ?NOT_LOADED.

%% Called by a worker; `{async_result, Id, Answer}' goes to the process.
-spec submit_call(any_loop(), event_id(), pid(), name(), name(), given()) -> submitted().
submit_call(Loop, Id, Pid, M, F, Given) -> py_request:submit(?OP_CALL, Loop, Id, Pid, M, F, Given).

%% The same for a coroutine function, on the loop.
-spec submit_coroutine(any_loop(), event_id(), pid(), name(), name(), given()) -> submitted().
submit_coroutine(Loop, Id, Pid, M, F, Given) -> py_request:submit(?OP_ASYNC, Loop, Id, Pid, M, F, Given).

%% `{Key, Answers}' will come, in the order of the calls, when all `Count' of them are over; at the first
%% failure if `Hasty', with `none' for those that are not.
-spec gather_new(slot(), Key :: reference(), Count :: pos_integer(), Hasty :: boolean()) -> gather().
gather_new(_Slot, _Key, _Count, _Hasty) -> ?NOT_LOADED.

%% Some of the calls; `First' is the number of the first of them, from 0 on.
-spec gather_submit(gather(), event_loop(), flags(), First :: non_neg_integer(), [payload()]) -> ok.
gather_submit(_Gather, _EventLoop, _Flags, _First, _Payloads) -> ?NOT_LOADED.

%% Sends the answers that are there, unless they were sent.
-spec gather_close(gather()) -> ok.
gather_close(_Gather) -> ?NOT_LOADED.

%% Stops some of the calls. `true': there may be more.
-spec gather_cancel(gather()) -> boolean().
gather_cancel(_Gather) -> ?NOT_LOADED.

%% Looks for the message of a job that was spawned for some microseconds, where it has come that quickly of late.
-spec linger(slot(), job_ref()) -> ok.
linger(_Slot, _Reference) -> ?NOT_LOADED(ok).

%% The calling process is free for its first callback.
-spec executor_ready(slot()) -> ok.
executor_ready(_Slot) -> ?NOT_LOADED.

%% `true': the calling executor gets no more work and may end.
-spec executor_leaves(slot()) -> boolean().
executor_leaves(_Slot) -> ?NOT_LOADED.

%% One that waits for its caller makes room for another; `false': none does.
-spec executor_evict() -> boolean().
executor_evict() -> ?NOT_LOADED.

-spec executor_takes(slot(), CallbackId :: pos_integer()) -> boolean().
executor_takes(_Slot, _Id) -> ?NOT_LOADED.

-spec executor_died(pid()) -> ok.
executor_died(_Pid) -> ?NOT_LOADED.

%% Whether to stay for the next callback; or that one, where it came at once. A process that is not `Clean' gets none.
-spec callback_reply(slot(), CallbackId :: pos_integer(), Ok :: boolean(), binary(), Encoded :: term(), Clean) ->
    Stay :: boolean() | py_executor:request()
when
    Clean :: boolean().
callback_reply(_Slot, _Id, _Ok, _Bytes, _Value, _Clean) -> ?NOT_LOADED.

%% In place of a reply, where nobody runs the callback: `{Kind, Reason, Stacktrace}', encoded.
-spec callback_refuse(CallbackId :: pos_integer(), binary()) -> ok.
callback_refuse(_Id, _Raised) -> ?NOT_LOADED.

-spec is_object_ref(term()) -> boolean().
is_object_ref(_Term) -> ?NOT_LOADED(false).

%% The external form of a list of `{Name, Keys}'; in the keys, a place in the list stands for a limit.
-spec dag_new(Inputs :: [binary()], Nodes :: binary(), [reference()]) ->
    {ok, dag_graph(), Leaves :: [non_neg_integer()]} | {error, binary()}.
dag_new(_Inputs, _Nodes, _Limits) -> ?NOT_LOADED.

-spec dag_new_large(Inputs :: [binary()], Nodes :: binary(), [reference()]) ->
    {ok, dag_graph(), Leaves :: [non_neg_integer()]} | {error, binary()}.
dag_new_large(_Inputs, _Nodes, _Limits) -> ?NOT_LOADED.

%% `{Key, Answer}' comes to the calling process.
-spec dag_run(slot(), Key, dag_graph(), pool() | default, Runner, Inputs, dag_opts()) ->
    {ok, dag_run()} | {error, binary()} | no_client | refusal()
when
    Key :: reference(),
    Runner :: pid() | undefined,
    Inputs :: [{Name :: binary(), Value :: binary()}].
dag_run(_Slot, _Key, _Graph, _Pool, _Runner, _Inputs, _Opts) -> ?NOT_LOADED.

%% `Silent': once it has returned, nothing is sent for the run.
-spec dag_cancel(dag_run(), Silent :: boolean()) -> ok.
dag_cancel(_Run, _Silent) -> ?NOT_LOADED.

-spec dag_reply(dag_run(), CallId :: non_neg_integer(), Ok :: boolean(), binary()) -> ok.
dag_reply(_Run, _Id, _Ok, _Bytes) -> ?NOT_LOADED.

%% In place of a reply: the value of that node of a graph becomes the function's.
-spec dag_more(dag_run(), CallId, dag_graph(), Inputs, Result, event_loop() | none) -> ok when
    CallId :: non_neg_integer(),
    Inputs :: [{Name :: binary(), Value :: binary()}],
    Result :: non_neg_integer().
dag_more(_Run, _Id, _Graph, _Inputs, _Result, _EventLoop) -> ?NOT_LOADED.

-spec dag_limit(AtOnce :: pos_integer()) -> dag_limit().
dag_limit(_AtOnce) -> ?NOT_LOADED.

-spec dag_redis(Url :: binary()) -> {ok, ok} | {error, binary()}.
dag_redis(_Url) -> ?NOT_LOADED.

%% The server of those who name none; <<>> is the embedded store, which starts empty.
-spec dag_default(Url :: binary()) -> ok.
dag_default(_Url) -> ?NOT_LOADED.

%% The table of native/pyloop/src/http/options.rs.
-spec server_options() -> [server_option()].
server_options() -> ?NOT_LOADED.

%% Descriptors and timers without Python: whoever has the loop drives it.
-spec event_loop_new() -> {ok, raw_loop()} | gone() | posix().
event_loop_new() -> ?NOT_LOADED({error, not_running}).

-spec event_loop_destroy(raw_loop()) -> ok.
event_loop_destroy(_Raw) -> ?NOT_LOADED(ok).

%% A message `{select, Loop, undefined, ready_input}' to Router when there is something to do; after
%% it `event_loop_step/1' takes what is ready and asks for the next.
-spec event_loop_set_router(any_loop(), Router :: pid()) -> ok | gone() | {error, not_supported}.
event_loop_set_router(_Raw, _Router) -> ?NOT_LOADED({error, not_running}).

-spec event_loop_step(raw_loop()) -> {ok, New :: non_neg_integer()} | gone() | posix().
event_loop_step(_Raw) -> ?NOT_LOADED({error, not_running}).

-spec add_reader(raw_loop(), Fd :: integer(), event_id()) -> {ok, reference()} | gone() | posix().
add_reader(_Raw, _Fd, _Id) -> ?NOT_LOADED({error, not_running}).

-spec add_writer(raw_loop(), Fd :: integer(), event_id()) -> {ok, reference()} | gone() | posix().
add_writer(_Raw, _Fd, _Id) -> ?NOT_LOADED({error, not_running}).

-spec remove_reader(raw_loop(), FdRef :: reference()) -> ok | gone().
remove_reader(_Raw, _Fd) -> ?NOT_LOADED({error, not_running}).

-spec remove_writer(raw_loop(), FdRef :: reference()) -> ok | gone().
remove_writer(_Raw, _Fd) -> ?NOT_LOADED({error, not_running}).

-spec call_later(raw_loop(), Ms :: non_neg_integer(), event_id()) -> {ok, reference()} | gone().
call_later(_Raw, _Ms, _Id) -> ?NOT_LOADED({error, not_running}).

%% At a nanosecond of the system's monotonic clock.
-spec call_at(raw_loop(), Deadline :: non_neg_integer(), event_id()) -> {ok, reference()} | gone().
call_at(_Raw, _Deadline, _Id) -> ?NOT_LOADED({error, not_running}).

-spec cancel_timer(raw_loop(), TimerRef :: reference()) -> ok | gone().
cancel_timer(_Raw, _Timer) -> ?NOT_LOADED({error, not_running}).

%% Waits for events, at most so long.
-spec poll_events(raw_loop(), Ms :: non_neg_integer()) ->
    {ok, New :: non_neg_integer()} | gone() | posix().
poll_events(_Raw, _Ms) -> ?NOT_LOADED({error, not_running}).

-spec get_pending(raw_loop()) -> [{event_id(), read | write | timer}].
get_pending(_Raw) -> ?NOT_LOADED([]).

%% Ends a wait in `poll_events/2'.
-spec event_loop_wakeup(raw_loop()) -> ok.
event_loop_wakeup(_Raw) -> ?NOT_LOADED(ok).

%% `python': it runs coroutines; `raw': Erlang drives it; `gone': it was destroyed.
-spec event_loop_kind(any_loop()) -> python | raw | gone.
event_loop_kind(_AnyLoop) -> ?NOT_LOADED(gone).

%% Sockets for tests, on 127.0.0.1; 0 for any port.
-spec create_test_udp_socket(inet:port_number()) ->
    {ok, {Fd :: non_neg_integer(), inet:port_number()}} | posix().
create_test_udp_socket(_Port) -> ?NOT_LOADED.

-spec sendto_test_udp(Fd :: integer(), binary(), Address :: binary(), inet:port_number()) ->
    ok | {error, would_block} | posix().
sendto_test_udp(_Fd, _Data, _Host, _Port) -> ?NOT_LOADED.

-spec recvfrom_test_udp(Fd :: integer(), Max :: non_neg_integer()) ->
    {ok, {binary(), {Address :: binary(), inet:port_number()}}} | {error, would_block} | posix().
recvfrom_test_udp(_Fd, _Max) -> ?NOT_LOADED.

-spec set_udp_broadcast(Fd :: integer(), boolean()) -> ok | posix().
set_udp_broadcast(_Fd, _On) -> ?NOT_LOADED.

-spec close_test_fd(Fd :: integer()) -> ok.
close_test_fd(_Fd) -> ?NOT_LOADED.
