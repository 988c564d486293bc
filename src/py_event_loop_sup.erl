%% The loops of the pool: each is replaced by itself.
-module(py_event_loop_sup).

-behaviour(supervisor).

-export([start_link/0, start_loop/1, loop_started/1]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec start_loop(pos_integer()) -> {ok, py_nif:event_loop()} | {error, term()}.
start_loop(N) ->
    Spec = #{id => {py_event_loop, N}, start => {?MODULE, loop_started, [N]}},
    case supervisor:start_child(?MODULE, Spec) of
        {ok, _Pid, Loop} -> {ok, Loop};
        {error, {already_started, Pid}} -> {ok, py_event_loop:loop(Pid)};
        {error, Reason} -> {error, Reason}
    end.

%% The N-th loop, again and again; the pool hears of each.
-spec loop_started(pos_integer()) -> {ok, pid(), py_nif:event_loop()} | {error, term()}.
loop_started(N) ->
    case py_event_loop:start_link() of
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
