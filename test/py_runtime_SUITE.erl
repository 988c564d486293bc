%% What an asynchronous runtime must guarantee, each under its own name: ASYNC-01 a coroutine that blocks
%% delays the others, and is told; ASYNC-02 moved to a worker it does not; ASYNC-03 cancellation and timeouts
%% take the same way every time; ASYNC-04 asyncio, AnyIO and Trio pass one set of tests. And calls that would
%% wait for themselves are refused.
-module(py_runtime_SUITE).

-include("py_test.hrl").

-export([all/0, groups/0, init_per_suite/1, end_per_suite/1]).
-export([init_per_group/2, end_per_group/2, init_per_testcase/2, end_per_testcase/2]).
-export([log/2]).
-export([
    async_01_a_coroutine_that_blocks_delays_others_and_is_logged/1,
    async_01_a_task_that_blocks_later_is_logged_too/1,
    async_01_a_call_into_erlang_that_blocks_the_loop_is_logged/1,
    async_01_the_loop_of_a_context_is_watched/1,
    async_01_the_setting_says_what_is_slow/1,
    async_02_moved_to_a_thread_it_delays_nobody/1,
    async_02_a_plain_function_delays_nobody/1,
    async_03_a_timeout_of_erlang_cancels_from_the_inside_out/1,
    async_03_the_death_of_the_caller_cancels_from_the_inside_out/1,
    async_03_the_shorter_limit_is_reached/1,
    async_03_a_race_of_answer_and_timeout_has_one_winner/1,
    async_04_calls/1,
    async_04_sleeps/1,
    async_04_channels/1,
    async_04_channels_shared_with_erlang/1,
    async_04_who_gives_up_takes_nothing/1,
    async_04_a_mailbox_of_its_own/1,
    async_04_a_call_that_times_out_cancels_its_tasks/1,
    async_04_a_call_that_was_given_up_waits_no_more/1,
    async_04_curio_talks_by_a_queue/1,
    a_call_that_waits_for_its_own_loop_is_refused/1,
    a_call_of_a_worker_does_not_wait_for_its_own_loop/1,
    a_call_that_does_not_wait_for_its_loop_is_answered/1
]).

all() ->
    [{group, thread}, {group, beam}, {group, models}].

groups() ->
    Loops = [Name || {Name, 1} <- ?MODULE:module_info(exports), group(Name) =:= loops],
    Models = [Name || {Name, 1} <- ?MODULE:module_info(exports), group(Name) =:= models],
    [{Name, py_test:order(), Cases} || {Name, Cases} <- [{thread, Loops}, {beam, Loops}, {models, Models}]].

%% The models run loops of their own: the node's driver makes no difference to them.
group(Name) ->
    case atom_to_list(Name) of
        "async_04" ++ _ -> models;
        "async" ++ _ -> loops;
        "a_call" ++ _ -> loops;
        _ -> none
    end.

init_per_suite(Config) -> Config.

end_per_suite(_Config) -> ok.

init_per_group(models, Config) ->
    ok = start(Config, []),
    Config;
init_per_group(Driver, Config) ->
    Settings = [{driver, Driver}],
    ok = start(Config, Settings),
    [{settings, Settings} | Config].

end_per_group(_Group, _Config) ->
    ok = py_test:leave_venv(),
    stop().

start(Config, Settings) ->
    _ = application:stop(erlang_python),
    [ok = application:set_env(erlang_python, Key, Value) || {Key, Value} <- Settings],
    _ = py_test:start(Config),
    ok = py_test:use_venv(),
    Functions = #{
        runtime_add => fun([A, B]) -> A + B end,
        runtime_boom => fun([]) -> error({boom, 1}) end,
        runtime_slow => fun([Ms]) -> timer:sleep(Ms) end,
        runtime_wait => fun([]) -> receive never -> ok after 20_000 -> ok end end
    },
    maps:foreach(fun(Name, Fun) -> ok = py:register_function(Name, Fun) end, Functions).

stop() ->
    _ = application:stop(erlang_python),
    [ok = application:unset_env(erlang_python, Key) || Key <- [driver, slow_callback_ms]],
    ok.

init_per_testcase(_Case, Config) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{
        config => #{to => self()},
        filters => [{python, {fun logger_filters:domain/2, {stop, not_equal, [python]}}}]
    }),
    Config.

end_per_testcase(_Case, _Config) -> logger:remove_handler(?MODULE).

%% The callback of the handler: what was told of slow callbacks.
log(#{msg := {Format, Args}, meta := #{logger_name := <<"asyncio">>} = Meta}, #{config := #{to := Pid}}) ->
    Pid ! {slow, unicode:characters_to_binary(io_lib:format(Format, Args)), Meta};
log(_Event, _Config) ->
    ok.

%% ---- ASYNC-01

async_01_a_coroutine_that_blocks_delays_others_and_is_logged(_Config) ->
    Blocking = block(blocks),
    Other = py:async_call(py_models, one, []),
    %% Longer than what is slow.
    ?assertEqual(nothing, receive Early -> Early after 200 -> nothing end),
    ok = open(Blocking),
    ?assertEqual({ok, 1}, py:await(Other)),
    {Text, Meta} = told(),
    ?assertMatch({match, _}, re:run(Text, "^Executing <.*blocks\\(\\) done.* took [0-9]+\\.[0-9]+ seconds"), Text),
    ?assertEqual(self(), maps:get(pid, Meta)).

async_01_a_task_that_blocks_later_is_logged_too(_Config) ->
    Ref = py:async_call(py_models, blocks_later, [0.15]),
    ?assertEqual({ok, none}, py:await(Ref)),
    {Text, Meta} = told(),
    ?assertMatch({match, _}, re:run(Text, "^Executing <Task .*blocks_later\\(\\).* took [0-9]+\\.[0-9]+ seconds"), Text),
    ?assertEqual(self(), maps:get(pid, Meta)).

async_01_the_loop_of_a_context_is_watched(_Config) ->
    %% Own interpreters are there from Python 3.12 on.
    Contexts = [Ctx || Mode <- [worker, subinterp], {ok, Ctx} <- [py_context:new(#{mode => Mode})]],
    ?assertMatch([_ | _], Contexts),
    lists:foreach(
        fun(Ctx) ->
            ok = py:exec(Ctx, <<"import time\nasync def slow(): time.sleep(0.15)\n">>),
            ?assertEqual({ok, none}, py:await(py:async_call(Ctx, '__main__', slow, []))),
            {Text, _} = told(),
            ?assertMatch({match, _}, re:run(Text, "^Executing <.*slow\\(\\).* took [0-9]+\\.[0-9]+ seconds"), Text),
            ok = py_context:stop(Ctx)
        end,
        Contexts
    ).

async_01_a_call_into_erlang_that_blocks_the_loop_is_logged(_Config) ->
    ?assertEqual({ok, <<"ok">>}, py:await(py:async_call(py_models, calls_without_await, [150]))),
    {Text, _} = told(),
    ?assertMatch({match, _}, re:run(Text, "^Executing <.*calls_without_await\\(\\).* took [0-9]+\\.[0-9]+ seconds"), Text).

async_01_the_setting_says_what_is_slow(Config) ->
    Settings = proplists:get_value(settings, Config),
    try
        ok = start(Config, [{slow_callback_ms, infinity} | Settings]),
        ?assertEqual({ok, none}, py:await(py:async_call(py_models, blocks_later, [0.15]))),
        ?assertEqual(nothing, told_so_far()),
        ok = start(Config, [{slow_callback_ms, 20} | Settings]),
        ?assertEqual({ok, none}, py:await(py:async_call(py_models, blocks_later, [0.05]))),
        {_, _} = told()
    after
        ok = application:unset_env(erlang_python, slow_callback_ms),
        ok = start(Config, Settings)
    end.

%% ---- ASYNC-02

async_02_moved_to_a_thread_it_delays_nobody(_Config) ->
    delays_nobody(block(moved_to_a_thread)).

async_02_a_plain_function_delays_nobody(_Config) ->
    Gate = gate(),
    Ref = py:async_call(py_tools, wait_at, [Gate, self()]),
    ok = py_test:message({<<"at">>, Gate}),
    delays_nobody({Gate, Ref}).

delays_nobody({_, Ref} = Blocking) ->
    [?assertEqual({ok, 1}, py:await(py:async_call(py_models, one, []))) || _ <- lists:seq(1, 100)],
    ?assertEqual(nothing, told_so_far()),
    ok = open(Blocking),
    ?assertEqual({ok, <<"through">>}, py:await(Ref)).

%% ---- ASYNC-03

async_03_a_timeout_of_erlang_cancels_from_the_inside_out(_Config) ->
    Ways = [
        begin
            Ref = py:async_call(py_models, outer, [self()]),
            ok = py_test:message(<<"waits">>),
            ?assertReason(timeout, py:await(Ref, 5)),
            notes(6)
        end
     || _ <- lists:seq(1, 20)
    ],
    ?assertEqual([way()], lists:usort(Ways)),
    nobody_waits().

async_03_the_death_of_the_caller_cancels_from_the_inside_out(_Config) ->
    Self = self(),
    Caller = spawn(fun() -> py:await(py:async_call(py_models, outer, [Self]), infinity) end),
    ok = py_test:message(<<"waits">>),
    ok = py_test:down(Caller),
    ?assertEqual(way(), notes(6)),
    nobody_waits().

%% Each hears of it once, the innermost first, and ends before who waits for it goes on.
way() ->
    [{What, Who} || Who <- [<<"inner">>, <<"middle">>, <<"outer">>], What <- [<<"cancelled">>, <<"over">>]].

async_03_the_shorter_limit_is_reached(_Config) ->
    Reached = fun(Outer, Inner) ->
        Answer = py:await(py:async_call(py_models, limits, [self(), Outer, Inner])),
        ok = py_test:message(<<"waits">>),
        ?assertEqual([{<<"cancelled">>, <<"inner">>}, {<<"over">>, <<"inner">>}], notes(2)),
        Answer
    end,
    ?assertEqual({ok, <<"the inner one">>}, Reached(10, 0.01)),
    ?assertEqual({ok, <<"the outer one">>}, Reached(0.01, 10)),
    nobody_waits().

async_03_a_race_of_answer_and_timeout_has_one_winner(_Config) ->
    Answers = [py:await(py:async_call(py_models, races, [0.003]), 3) || _ <- lists:seq(1, 300)],
    ?assertEqual([], [A || A <- Answers, A =/= {ok, <<"slept">>}, A =/= {error, timeout}]),
    py_test:nothing_waits(),
    nobody_waits().

nobody_waits() ->
    py_test:eventually(fun() ->
        #{event_loops := Loops} = py:stats(),
        lists:all(fun(#{waiting := Waiting}) -> Waiting =:= 0 end, Loops)
    end).

notes(0) -> [];
notes(Count) -> [py_test:message() | notes(Count - 1)].

%% ---- ASYNC-04

async_04_calls(_Config) ->
    each(fun(Start) -> ?assertEqual({ok, [9900, <<"error">>, {<<"boom">>, 1}]}, py:await(Start(calls, []))) end).

async_04_sleeps(_Config) ->
    each(fun(Start) -> ?assertEqual({ok, true}, py:await(Start(sleeps, []))) end).

async_04_channels(_Config) ->
    each(fun(Start) -> ?assertEqual({ok, lists:seq(0, 49)}, py:await(Start(pipe, [50]))) end).

async_04_channels_shared_with_erlang(_Config) ->
    each(fun(Start) ->
        {ok, Source} = py_channel:new(#{max => 2}),
        {ok, Target} = py_channel:new(#{max => 2}),
        Sender = fun() -> [ok = py_channel:put(Source, N) || N <- lists:seq(1, 20)], py_channel:close(Source) end,
        _ = spawn_link(Sender),
        Self = self(),
        _ = spawn_link(fun() -> Self ! {received, receive_all(Target)} end),
        ?assertEqual({ok, none}, py:await(Start(doubles, [Source, Target]))),
        ok = py_test:message({received, [2 * N || N <- lists:seq(1, 20)]})
    end).

receive_all(Channel) ->
    case py_channel:recv(Channel) of
        {ok, Value} -> [Value | receive_all(Channel)];
        {error, closed} -> []
    end.

async_04_who_gives_up_takes_nothing(_Config) ->
    each(fun(Start) ->
        {ok, Channel} = py_channel:new(),
        ?assertEqual({ok, <<"kept">>}, py:await(Start(gives_up, [Channel])))
    end).

async_04_a_mailbox_of_its_own(_Config) ->
    each(fun(Start) ->
        Ref = Start(mailbox, []),
        {<<"mine">>, Mailbox} = py_test:message(),
        Monitor = monitor(process, Mailbox),
        %% Read in vain for a moment: what comes later is not lost.
        ok = py_test:message(<<"waited">>),
        [Mailbox ! Message || Message <- [1, 2, 3, <<"stop">>]],
        ?assertEqual({ok, 6}, py:await(Ref)),
        receive
            {'DOWN', Monitor, process, Mailbox, _} -> ok
        end
    end).

async_04_a_call_that_times_out_cancels_its_tasks(_Config) ->
    %% The others sleep in their own way: nobody can wake them there.
    each([<<"Asyncio">>, <<"AnyIO">>, <<"AnyIOOnTrio">>, <<"Trio">>], fun(Start) ->
        Ref = Start(hangs, [self()]),
        ok = py_test:message(<<"waits">>),
        ?assertReason(timeout, py:await(Ref, 10)),
        ok = py_test:message(<<"over">>)
    end).

async_04_a_call_that_was_given_up_waits_no_more(_Config) ->
    Waiting = fun() -> maps:get(coroutines, maps:get(waiters, py:stats())) end,
    Before = Waiting(),
    Self = self(),
    ok = py:register_function(runtime_hold, fun([]) ->
        Monitor = monitor(process, Self),
        receive
            {'DOWN', Monitor, process, Self, _} -> gone
        end
    end),
    %% In the others a thread waits.
    each([<<"Asyncio">>, <<"AnyIO">>, <<"AnyIOOnTrio">>, <<"Trio">>], fun(Start) ->
        ?assertEqual({ok, <<"left">>}, py:await(Start(leaves, []))),
        ok = py_test:eventually(fun() -> Waiting() =:= Before end)
    end).

%% Runs a test under each model: it starts coroutines of the set by a fun.
each(Test) ->
    {ok, Kits} = py:call(py_models, kits, []),
    each(Kits, Test).

each(Kits, Test) ->
    lists:foreach(
        fun(Kit) ->
            ct:log("~ts", [Kit]),
            Test(fun(Name, Args) -> py:spawn_call(py_models, run, [Kit, Name | Args]) end)
        end,
        Kits
    ).

async_04_curio_talks_by_a_queue(_Config) ->
    case py:exec(<<"import curio">>) of
        ok ->
            ?assertEqual({ok, [2, 4, 6]}, py:call(py_curio, from_plain_code, [[1, 2, 3]])),
            ?assertEqual({ok, [2, 4, 6]}, py:await(py:async_call(py_curio, from_a_coroutine, [[1, 2, 3]])));
        {error, Why} ->
            {ok, Version} = py:eval(<<"list(__import__('sys').version_info[:2])">>),
            ?assert(Version >= [3, 12], Why),
            {skip, "curio 1.6, the last one, needs multiprocessing.connection.CHALLENGE, gone since Python 3.12"}
    end.

%% ---- calls that wait for themselves

%% One of a function that is known to be none of coroutines.
a_call_of_a_worker_does_not_wait_for_its_own_loop(_Config) ->
    Ways = [
        {fun() -> py_event_loop:run(math, sqrt, [16]) end, {ok, 4.0}},
        {fun() -> py:async_gather([{math, sqrt, [16]}, {math, sqrt, [4]}]) end, {ok, [4.0, 2.0]}}
    ],
    lists:foreach(
        fun({Run, Value}) ->
            [?assertEqual(Value, Run()) || _ <- [1, 2]],
            ok = py:register_function(runtime_loops, fun([]) -> element(1, Run()) end),
            Answer = py:await(py:async_call(py_models, calls_blocking, [runtime_loops])),
            ?assertEqual({ok, <<"ok">>}, Answer)
        end,
        Ways
    ).

a_call_that_waits_for_its_own_loop_is_refused(_Config) ->
    Self = self(),
    Ways = [
        {fun() -> py:await(py:async_call(py_models, one, [])) end, {ok, 1}},
        {fun() -> py_event_loop:run(py_models, one, []) end, {ok, 1}},
        {fun() -> py:async_gather([{py_models, one, []}, {py_models, one, []}]) end, {ok, [1, 1]}},
        {fun() -> py:async_stream(py_models, three, []) end, {ok, [0, 1, 2]}}
    ],
    lists:foreach(
        fun({Wait, Value}) ->
            ok = py:register_function(runtime_loops, fun([]) ->
                Answer = Wait(),
                %% Python runs no longer on the thread that it ran on, and is called all the same.
                Self ! {answer, Answer, py:call(math, sqrt, [16])},
                element(1, Answer)
            end),
            Refused = py:await(py:async_call(py_models, calls_blocking, [runtime_loops])),
            ?assertReason({'RuntimeError', <<"erlang.call() blocks this event loop", _/binary>>}, Refused),
            {error, {_, Sentence}} = Refused,
            ?assertMatch({match, _}, re:run(Sentence, "use `await erlang.async_call")),
            %% Whom it was to be for has it all the same.
            ok = py_test:message({answer, Value, {ok, 4.0}}),
            [
                begin
                    ?assertEqual({ok, <<"ok">>}, py:await(py:async_call(py_models, Way, [runtime_loops]))),
                    ok = py_test:message({answer, Value, {ok, 4.0}})
                end
             || Way <- [awaits, calls_in_a_thread]
            ]
        end,
        Ways
    ).

a_call_that_does_not_wait_for_its_loop_is_answered(_Config) ->
    Self = self(),
    ok = py:register_function(runtime_starts, fun([]) ->
        Self ! {ref, py:async_call(py_models, one, [], #{}, #{reply_to => Self})},
        {ok, Root} = py:call(math, sqrt, [16]),
        {ok, 3} = py:await(py:spawn_call(operator, add, [1, 2])),
        Root
    end),
    ?assertEqual({ok, 4.0}, py:await(py:async_call(py_models, calls_blocking, [runtime_starts]))),
    receive
        {ref, Ref} -> ?assertEqual({ok, 1}, py:await(Ref))
    end.

%% ---- shared

%% A coroutine that waits at a gate, and has begun to.
block(Function) ->
    Gate = gate(),
    Ref = py:async_call(py_models, Function, [Gate, self()]),
    ok = py_test:message({<<"at">>, Gate}),
    {Gate, Ref}.

gate() -> integer_to_binary(erlang:unique_integer([positive])).

open({Gate, _Ref}) ->
    {ok, none} = py:call(py_tools, open_gate, [Gate]),
    ok.

%% What was told of a slow callback.
told() ->
    receive
        {slow, Text, Meta} ->
            %% What is told while it runs, too, on a machine that is slow enough.
            case string:find(Text, "without awaiting anything") of
                nomatch -> {Text, Meta};
                _ -> told()
            end
    after 60_000 -> error(nothing_was_told)
    end.

told_so_far() ->
    %% Comes after all records.
    _ = py_logger:info(),
    receive
        {slow, Text, _} -> Text
    after 0 -> nothing
    end.
