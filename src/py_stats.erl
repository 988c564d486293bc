%% Numbers about the application. None of it takes the GIL on a scheduler.
-module(py_stats).

-export([version/0, stats/0, memory/0, execution_mode/0]).

-export_type([mode/0]).

-type mode() :: free_threaded | subinterp | multi_executor.

-spec version() -> {ok, binary()} | {error, not_running}.
version() ->
    case py_nif:is_loaded() of
        true -> {ok, py_nif:python_version()};
        false -> {error, not_running}
    end.

-spec stats() -> map() | {error, not_running}.
stats() ->
    case execution_mode() of
        {error, _} = Error -> Error;
        Mode -> stats(Mode)
    end.

stats(Mode) ->
    {Threads, Coroutines, Callbacks, Exported} = py_nif:counts(),
    Loops = py_event_loop_pool:get_stats(),
    {Made, Ended, Left, Kept} = py_nif:subinterp_counts(),
    #{
        pools => maps:from_list([{Name, pool(Pool)} || {Name, Pool} <- py_registry:pools()]),
        event_loops => Loops,
        %% Who waits for an answer: threads and coroutines that have called Erlang, and callers of Erlang
        %% whose tasks are under way.
        waiters => #{
            threads => Threads,
            coroutines => Coroutines,
            tasks => lists:sum([Waiting || #{waiting := Waiting} <- Loops])
        },
        bound => py_bind:bound(),
        waiting_in_callbacks => Threads + Coroutines,
        callbacks => Callbacks,
        exported_objects => Exported,
        atoms_minted => py_atoms:minted(),
        %% Python does not give back the arenas of an interpreter that has ended: those bytes are kept.
        %% Left behind is one that is not used any more and waits for the end of threads in it.
        subinterpreters => #{
            made => Made, ended => Ended, left_behind => Left, kept_bytes => Kept
        },
        execution_mode => Mode
    }.

pool(Pool) ->
    {Queued, Threads, Idle, Waiting} = py_nif:pool_info(Pool),
    Stats = #{queued => Queued, threads => Threads, idle => Idle, waiting => Waiting},
    maps:merge(Stats, maps:from_list(loop(Pool) ++ memory(Pool))).

%% Only contexts have these.
loop(Pool) ->
    [
        {event_loop, py_event_loop_pool:stats(Loop)}
     || Loop <- [py_nif:pool_loop(Pool)], Loop =/= none
    ].

memory(Pool) ->
    [
        {memory, #{used => Used, limit => Limit}}
     || {Used, Limit} <- [py_nif:pool_memory(Pool)]
    ].

-spec memory() -> map() | {error, py_error:reason()}.
memory() ->
    case py:call('erlang._object', memory_stats, []) of
        {ok, Stats} -> Stats;
        {error, _} = Error -> Error
    end.

%% The best this node can use.
-spec execution_mode() -> mode() | {error, not_running}.
execution_mode() ->
    case py_nif:is_loaded() of
        true -> mode(py_nif:built_for());
        false -> {error, not_running}
    end.

mode({_, _, true}) ->
    case py_nif:has_gil() of
        false -> free_threaded;
        true -> multi_executor
    end;
mode({_, Minor, false}) when Minor >= 12 -> subinterp;
mode({_, _, false}) -> multi_executor.
