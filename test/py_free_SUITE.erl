%% @doc Python without a GIL, attacked by many processes at once: nothing crashes, hangs, is mixed up or stays.
-module(py_free_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    values_that_change_are_converted/1,
    objects_of_many_processes_are_freed/1,
    everything_at_once_gives_everybody_their_own/1,
    the_application_stops_in_the_middle/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Started = py_test:start(Config),
    case py:execution_mode() of
        free_threaded -> Started;
        _ -> {skip, "with a GIL one thread at a time runs Python"}
    end.

end_per_suite(_Config) -> ok.

values_that_change_are_converted(_Config) ->
    Deep = #{<<"a">> => lists:seq(1, 50), <<"b">> => [#{}, [1.5, none]]},
    Given = at_once(py_test:full(200, 5000), [
        fun() -> {ok, 100} = py:call(py_free, change, [100]) end,
        fun() -> {ok, 100} = py:call(py_free, change, [100]) end,
        fun() -> given(py:call(py_free, give, [])) end,
        fun() -> given(py:call(py_free, give, [])) end,
        fun() -> given(py:await(py:async_call(py_free, give, []))) end,
        fun() -> changed({ok, Deep}, py:call(py_free, keep, [Deep])) end,
        fun() -> {ok, true} = py:call(py_free, define, []) end
    ]),
    ?assertEqual([], Given).

given({ok, [Pairs, Numbers, Members]}) ->
    true = maps:fold(fun(Key, Value, Same) -> Same andalso Key =:= Value end, true, Pairs),
    true = is_list(Numbers) andalso is_list(Members);
given(Answer) ->
    changed(none, Answer).

%% What changed under the conversion is an error that says so.
changed(Expected, Expected) -> ok;
changed(_, {error, {'RuntimeError', Text}}) -> {match, _} = re:run(Text, "changed size during").

objects_of_many_processes_are_freed(_Config) ->
    Things = fun() -> ok = py_test:collect_if_free_threaded(), {ok, Count} = py:call(py_free, things, []), Count end,
    Before = Things(),
    Wrong = shared_objects(),
    ?assertEqual([], Wrong),
    erlang:garbage_collect(),
    py_test:eventually(fun() -> Things() =< Before end).

shared_objects() ->
    Ref = #{return => ref},
    {ok, Shared} = py:call(py_free, thing, [], #{}, Ref),
    Make = fun() ->
        {ok, Object} = py:call(py_free, thing, [], #{}, Ref),
        {ok, _} = py:call(py_free, same, [[Object, Shared, Object]], #{}, Ref),
        _ = spawn(fun() -> py:call_method(Object, grow, []) end)
    end,
    Die = fun() ->
        Pid = spawn(fun() ->
            {ok, Object} = py:call(py_free, thing, [], #{}, Ref),
            py:call_method(Object, grow, []),
            py:call(py_free, spin, [])
        end),
        timer:sleep(2),
        exit(Pid, kill)
    end,
    Grow = fun() -> {ok, true} = py:call_method(Shared, grow, []) end,
    at_once(py_test:full(100, 5000), [Make, Make, Make, Grow, Grow, Die, fun() -> {ok, _} = py:gc() end]).

everything_at_once_gives_everybody_their_own(_Config) ->
    ok = py:register_function(py_free_echo, fun([Value]) -> Value end),
    {ok, _} = py:shared_dict_new(#{name => py_free_dict}),
    Wrong = at_once(py_test:full(30, 1000), everything()),
    ok = py:shared_dict_close(py_free_dict),
    ok = py:unregister_function(py_free_echo),
    ?assertEqual([], Wrong),
    ?assertEqual({ok, true}, py:call(py_free, is_free, [], #{}, 60_000)).

everything() ->
    Own = fun() -> [erlang:unique_integer(), <<"word">>] end,
    [
        fun() -> Mine = Own(), {ok, Mine} = py:call(py_free, ask, [Mine]) end,
        fun() -> Mine = Own(), {ok, Mine} = py:await(py:async_call(py_free, ask_later, [Mine])) end,
        fun() -> {error, timeout} = py:call(py_free, spin, [], #{}, 10) end,
        fun() -> {error, timeout} = py:call(py_free, take_locks, [], #{}, 10) end,
        fun() -> {error, timeout} = py:await(py:async_call(py_free, spin_for_ever, []), 10) end,
        fun() -> Numbers = lists:seq(0, 49), {ok, Numbers} = py:stream(py_free, count_to, [50]) end,
        fun() -> {ok, [1, 2, 3]} = py:parallel([{py_free, same, [N]} || N <- [1, 2, 3]]) end,
        fun() -> ok = py:exec("import py_free\npy_free.made = {n: n for n in range(50)}") end,
        fun() -> {ok, 4} = py:call(py_free, run_threads, [4]) end,
        fun() -> {ok, 2} = py:call(py_free, close_loops, [2]) end,
        fun() -> _ = py:shared_dict_incr(py_free_dict, done, 1) end,
        fun() -> ok = py:exec("import erlang\nerlang.SharedDict('py_free_dict').incr('done')") end,
        fun() -> {ok, _} = py:gc() end,
        fun interrupted/0
    ].

interrupted() ->
    {ok, Ctx} = py_context:new(#{}),
    Self = self(),
    _ = spawn_link(fun() -> Self ! {Ctx, py:call(Ctx, py_free, spin, [])} end),
    ok = py_test:eventually(fun() -> ok =:= py:interrupt(Ctx) end),
    receive {Ctx, Answer} -> {error, interrupted} = Answer end,
    {ok, 1} = py:call(Ctx, py_free, same, [1]),
    ok = py_context:stop(Ctx).

%% Whoever calls meanwhile gets an answer of the closed list.
the_application_stops_in_the_middle(Config) ->
    Call = fun(Answer) ->
        case Answer of
            {ok, 7} -> ok;
            {error, _} -> py_test:reason(Answer), timer:sleep(1)
        end
    end,
    Done = atomics:new(1, []),
    Until = fun Again(Fun) -> case atomics:get(Done, 1) of 0 -> Fun(), Again(Fun); 1 -> ok end end,
    Callers = [
        spawn_monitor(fun() -> Until(Fun) end)
     || Fun <- [
            fun() -> Call(py:call(py_free, same, [7])) end,
            fun() -> Call(py:call(py_free, spin, [], #{}, 20)) end,
            fun() -> Call(py:await(py:async_call(py_free, spin_for_ever, []), 20)) end,
            fun() -> py:call(py_free, give, []) end,
            fun() -> py:call(py_free, thing, [], #{}, #{return => ref}) end
        ]
    ],
    [
        begin
            timer:sleep(200),
            ok = application:stop(erlang_python),
            _ = py_test:start(Config)
        end
     || _ <- lists:seq(1, py_test:full(3, 30))
    ],
    ok = atomics:put(Done, 1, 1),
    [receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end || {Pid, Monitor} <- Callers],
    ?assertEqual({ok, 7}, py:call(py_free, same, [7])).

%% Each function so many times, each in a process of its own: what failed.
at_once(Times, Functions) ->
    Running = [spawn_monitor(fun() -> [Function() || _ <- lists:seq(1, Times)] end) || Function <- Functions],
    [
        Why
     || {Pid, Monitor} <- Running, Why <- [receive {'DOWN', Monitor, process, Pid, Why} -> Why end], Why =/= normal
    ].
