%% The loops of the pool: each is replaced by itself.
-module(py_event_loop_sup).

-behaviour(supervisor).

-export([start_link/0, start_loop/1, loop_started/1, can_begin/0]).
-export([init/1]).

-include("py_nif.hrl").

%% Milliseconds to find out whether a loop can run.
-define(PROBE, 1000).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec start_loop(pos_integer()) -> {ok, py_nif:event_loop()} | {error, term()}.
start_loop(N) ->
    Spec = #{id => {py_event_loop, N}, start => {?MODULE, loop_started, [N]}},
    case supervisor:start_child(?MODULE, Spec) of
        {ok, _Pid, Loop} -> {ok, Loop};
        {ok, undefined} -> {error, stopped};
        {error, {already_started, Pid}} -> {ok, py_event_loop:loop(Pid)};
        {error, already_present} -> start_again(N);
        {error, Reason} -> {error, Reason}
    end.

start_again(N) ->
    ok = supervisor:delete_child(?MODULE, {py_event_loop, N}),
    start_loop(N).

%% The N-th loop, again and again; the pool hears of each. One that can't run is not started: to fail at once is no
%% reason to try again, and the end of this supervisor would be that of the application.
-spec loop_started(pos_integer()) -> {ok, pid(), py_nif:event_loop()} | ignore | {error, term()}.
loop_started(N) ->
    case can_begin() of
        ok ->
            begin_loop(N);
        {error, Reason} ->
            Text = "the event loop ~b is not started again. ~ts",
            ok = logger:error(Text, [N, py_error:format(Reason)], #{domain => [python]}),
            ok = py_event_loop_pool:is_down(N),
            ignore
    end.

%% Whether a loop could run: what Python refuses to one it refuses to all, again and again. On a thread of its own:
%% those of the main pool may all be busy, and a first coroutine would wait for them.
-spec can_begin() -> ok | {error, py_error:reason()}.
can_begin() ->
    {ok, Payload} = py_call:payload('erlang._tasks', can_begin, [], #{}),
    Pool = py_nif:pool_new(#{size => 1, max_threads => 1, max_queue => 1, own_namespace => true}),
    _Thread = py_nif:worker_start(Pool),
    Answer = py_call:sync(Pool, ?OP_CALL, 0, Payload, ?PROBE),
    ok = py_nif:pool_close(Pool),
    case Answer of
        {error, {Exception, Text}} = Error when is_atom(Exception), is_binary(Text) -> Error;
        _ -> ok
    end.

begin_loop(N) ->
    case py_event_loop:begin_link() of
        {ok, Pid} ->
            Loop = py_event_loop:loop(Pid),
            ok = py_event_loop_pool:is_up(N, Loop),
            {ok, Pid, Loop};
        {error, _} = Error ->
            Error
    end.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 100, period => 10}, []}}.
