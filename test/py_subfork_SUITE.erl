%% What a process with several interpreters can't do: fork, and look at the frames of all threads. And when the
%% interpreters of `py:parallel' end. Each case in a node of its own.
-module(py_subfork_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    interpreters_that_nobody_uses_end/1,
    interpreters_stay_while_a_call_runs/1,
    an_interpreter_with_an_object_of_erlang_stays/1,
    a_fork_ends_interpreters_that_nobody_uses/1,
    a_fork_is_refused_while_an_interpreter_is_used/1,
    a_call_that_is_stopped_while_it_forks_holds_up_no_interpreter/1,
    frames_of_threads_are_those_of_one_interpreter/1,
    torch_beside_sub_interpreters_is_warned_of_once/1
]).
-export([log/2]).

%% Milliseconds that interpreters stay, for the cases that wait for their end.
-define(IDLE, 50).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    _ = py_test:start(Config),
    case py:execution_mode() of
        subinterp -> Config;
        _ -> {skip, "this Python has no own-GIL sub-interpreters"}
    end.

end_per_suite(_Config) -> ok.

init_per_testcase(Case, Config) ->
    Peer = py_test:peer([{num_subinterp_workers, 2}, {subinterp_idle_ms, idle(Case)}]),
    Started = peer:call(Peer, py_test, start, [Config]),
    [{peer, Peer} | Started].

idle(a_fork_ends_interpreters_that_nobody_uses) -> infinity;
idle(a_fork_is_refused_while_an_interpreter_is_used) -> infinity;
idle(frames_of_threads_are_those_of_one_interpreter) -> infinity;
idle(_) -> ?IDLE.

end_per_testcase(_Case, Config) ->
    py_test:stop_peer(proplists:get_value(peer, Config)).

on(Config, Fun) -> peer:call(proplists:get_value(peer, Config), erlang, apply, [Fun, []], 120_000).

%% How many there are.
interpreters() ->
    #{subinterpreters := #{made := Made, ended := Ended}} = py:stats(),
    Made - Ended.

interpreters_that_nobody_uses_end(Config) ->
    on(Config, fun() ->
        {ok, [1, 2, 3]} = py:parallel([{math, isqrt, [N * N]} || N <- [1, 2, 3]]),
        py_test:eventually(fun() -> interpreters() =:= 0 end),
        %% New ones, as often as it takes.
        {ok, [4]} = py:parallel([{math, isqrt, [16]}]),
        py_test:eventually(fun() -> interpreters() =:= 0 end)
    end).

interpreters_stay_while_a_call_runs(Config) ->
    on(Config, fun() ->
        {ok, [none]} = py:parallel([{time, sleep, [?IDLE * 10 / 1000]}]),
        #{subinterpreters := #{made := 2}} = py:stats()
    end).

an_interpreter_with_an_object_of_erlang_stays(Config) ->
    on(Config, fun() ->
        {ok, [Deque]} = py:parallel([{collections, deque, [[1, 2]]}], #{return => ref}),
        %% The other one has none.
        py_test:eventually(fun() -> interpreters() =:= 1 end),
        {ok, none} = py:call_method(Deque, append, [3]),
        {ok, 3} = py:call_method(Deque, pop, [])
    end).

a_fork_ends_interpreters_that_nobody_uses(Config) ->
    on(Config, fun() ->
        [
            begin
                {ok, [2]} = py:parallel([{math, isqrt, [4]}]),
                ?assertEqual(2, interpreters()),
                ?assertEqual({How, {ok, 3}}, {How, py:call(py_subfork, How, [], #{}, 30_000)})
            end
         || How <- [fork, forkpty, preexec_fn]
        ],
        {ok, [2]} = py:parallel([{math, isqrt, [4]}]),
        ?assertEqual({ok, [1, 4, 9]}, py:call(py_subfork, pool, [<<"fork">>], #{}, 30_000)),
        {ok, [2]} = py:parallel([{math, isqrt, [4]}])
    end).

a_fork_is_refused_while_an_interpreter_is_used(Config) ->
    on(Config, fun() ->
        {ok, Ctx} = py_context:new(#{mode => subinterp}),
        [
            begin
                {'RuntimeError', Text} = py_test:reason(py:call(py_subfork, How, [], #{}, 30_000)),
                [?assertNotEqual(nomatch, string:find(Text, Word), Text) || Word <- ["forkserver", "spawn"]]
            end
         || How <- [fork, forkpty, preexec_fn]
        ],
        {ok, 3} = py:call(py_subfork, plain, [], #{}, 30_000),
        ok = py_context:stop(Ctx),
        ?assertEqual({ok, 3}, py:call(py_subfork, fork, [], #{}, 30_000))
    end).

a_call_that_is_stopped_while_it_forks_holds_up_no_interpreter(Config) ->
    on(Config, fun() ->
        [{error, timeout} = py:call(py_subfork, forks, [], #{}, 20 + N) || N <- lists:seq(1, 60)],
        %% Waits while a thread forks.
        {Pid, Monitor} = spawn_monitor(fun() ->
            {ok, Ctx} = py_context:new(#{mode => subinterp}),
            ok = py_context:stop(Ctx)
        end),
        receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why)
        after 20_000 -> error(no_interpreter)
        end
    end).

frames_of_threads_are_those_of_one_interpreter(Config) ->
    on(Config, fun() ->
        {ok, [true, <<"frames">>, _]} = py:call(py_subfork, frames, [1]),
        Self = self(),
        _ = spawn_link(fun() ->
            {ok, Threads} = py:parallel([{py_subfork, busy, [3.0]} || _ <- [1, 2]], 60_000),
            Self ! {busy, Threads}
        end),
        py_test:eventually(fun() -> interpreters() =:= 2 end),
        {ok, [true, <<"frames">>, Seen]} = py:call(py_subfork, frames, [5000], #{}, 60_000),
        Others = receive {busy, Threads} -> Threads end,
        ?assertEqual([], [Thread || Thread <- Others, lists:member(Thread, Seen)])
    end).

torch_beside_sub_interpreters_is_warned_of_once(Config) ->
    on(Config, fun() ->
        ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => warning}),
        {ok, _} = py:call(py_subfork, load_torch, []),
        {ok, [2]} = py:parallel([{math, isqrt, [4]}]),
        receive {warned, Text} -> ?assertNotEqual(nomatch, string:find(Text, "backward()"), Text) end,
        py_test:eventually(fun() -> interpreters() =:= 0 end),
        {ok, [2]} = py:parallel([{math, isqrt, [4]}]),
        _ = py_logger:info(),
        py_test:nothing_waits()
    end).

log(#{msg := {_, [Text]}}, #{config := To}) -> To ! {warned, Text};
log(_Event, _Config) -> ok.
