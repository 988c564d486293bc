%% From coroutines to Erlang: calls, messages, tasks, who is run for, channels.
-module(py_task_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_coroutine_awaits_erlang/1,
    a_thousand_coroutines_await_erlang_at_once/1,
    an_erlang_exception_is_raised_where_it_is_awaited/1,
    a_cancelled_wait_ignores_the_answer/1,
    erlang_is_awaited_on_any_loop/1,
    a_killed_executor_fails_the_wait/1,
    an_awaited_function_may_call_python/1,
    a_coroutine_sends_messages_and_knows_its_caller/1,
    every_task_knows_its_own_caller/1,
    the_caller_follows_into_threads_and_tasks/1,
    what_the_caller_said_is_told/1,
    sleep_is_awaited_on_a_loop_and_blocks_elsewhere/1,
    tasks_are_spawned_from_coroutines_and_from_plain_code/1,
    values_go_through_a_channel_in_order/1,
    a_full_channel_is_busy_and_holds_python_back/1,
    a_closed_channel_gives_what_it_has_and_ends/1,
    a_receiver_that_gave_up_takes_nothing/1,
    a_cancelled_receiver_takes_nothing/1,
    a_channel_ends_with_its_maker/1,
    a_channel_ends_with_its_maker_whatever_is_in_it/1,
    channels_that_were_killed_leave_nothing_behind/1,
    bad_channels_are_refused/1,
    a_task_reads_its_mailbox/1,
    a_mailbox_ends_with_its_task/1,
    tasks_that_share_a_mailbox_get_each_message_once/1,
    what_waits_in_a_mailbox_comes_in_order/1,
    a_cancelled_task_may_still_call_erlang/1,
    a_cancelled_reader_leaves_the_message_in_the_mailbox/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Started = py_test:start(Config),
    ok = py:register_function(task_add, fun([A, B]) -> A + B end),
    ok = py:register_function(task_slow, fun([Ms, V]) -> timer:sleep(Ms), V end),
    ok = py:register_function(task_boom, fun([]) -> error({boom, 1}) end),
    ok = py:register_function(task_python, fun([X]) -> {ok, V} = py:call(math, sqrt, [X]), V end),
    ok = py:register_function(task_wait, fun([]) -> receive nothing -> ok end end),
    Started.

end_per_suite(_Config) -> ok.

run(F, A) -> py:await(py:async_call(py_task_code, F, A), 20_000).

a_coroutine_awaits_erlang(_Config) ->
    ?assertEqual({ok, 3}, run(ask, [task_add, 1, 2])),
    ?assertEqual({ok, 3}, py:call(py_task_code, ask_by_run, [task_add, 1, 2])).

a_thousand_coroutines_await_erlang_at_once(_Config) ->
    {Ms, Result} = py_test:milliseconds(fun() -> run(ask_many, [1000, task_slow, 100]) end),
    ?assertEqual({ok, lists:seq(0, 999)}, Result),
    %% One after another they would take 100 s.
    ?assert(Ms < 50_000).

an_erlang_exception_is_raised_where_it_is_awaited(_Config) ->
    ?assertEqual({ok, {<<"error">>, {<<"boom">>, 1}}}, run(ask_and_catch, [task_boom])),
    ?assertReason({<<"erlang.ErlangError">>, _}, run(ask, [task_boom])),
    ?assertReason({<<"erlang.ErlangError">>, _}, run(ask, [task_no_such])).

a_cancelled_wait_ignores_the_answer(_Config) ->
    ?assertEqual({ok, <<"timeout">>}, run(ask_with_timeout, [task_slow, 0.05, 200, 1])),
    ?assertEqual({ok, 3}, run(ask, [task_add, 1, 2])).

erlang_is_awaited_on_any_loop(_Config) ->
    ?assertEqual({ok, 3}, py:call(py_task_code, ask_by_selector_loop, [task_add, 1, 2])),
    ?assertReason({'RuntimeError', _}, py:call(erlang, async_call, [task_add, 1, 2])).

a_killed_executor_fails_the_wait(_Config) ->
    Self = self(),
    ok = py:register_function(task_tell, fun([]) ->
        Self ! {executor, self()},
        receive nothing -> ok end
    end),
    Ref = py:async_call(py_task_code, ask, [task_tell]),
    receive
        {executor, Pid} -> exit(Pid, kill)
    end,
    ?assertReason({'RuntimeError', _}, py:await(Ref)).

an_awaited_function_may_call_python(_Config) ->
    ?assertEqual({ok, 4.0}, run(ask, [task_python, 16])).

a_coroutine_sends_messages_and_knows_its_caller(_Config) ->
    ?assertEqual({ok, self()}, run(send_to_caller, [hello])),
    receive
        Message -> ?assertEqual(<<"hello">>, Message)
    end.

every_task_knows_its_own_caller(_Config) ->
    Callers = [
        spawn_monitor(fun() -> {ok, Pid} = run(who, [0.01]), Pid = self() end)
     || _ <- lists:seq(1, 100)
    ],
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why)
        end
     || {Pid, Monitor} <- Callers
    ],
    ok.

the_caller_follows_into_threads_and_tasks(_Config) ->
    Self = self(),
    ?assertEqual({ok, [Self, Self, Self]}, run(who_everywhere, [])).

what_the_caller_said_is_told(_Config) ->
    Self = self(),
    Opts = #{trace_id => <<"00-4bf9">>, reply_to => Self},
    Ref = py:async_call(py_task_code, about, [], #{}, Opts),
    ?assertEqual({ok, [Self, <<"00-4bf9">>, Self]}, py:await(Ref)),
    ?assertEqual(
        {ok, [Self, 7, Self]}, py:call(py_task_code, about_now, [], #{}, #{trace_id => 7})
    ),
    ?assertEqual({ok, [Self, none, Self]}, py:call(py_task_code, about_now, [])),
    Spawned = py:spawn_call(py_task_code, about_now, [], #{}, #{trace_id => 8}),
    ?assertEqual({ok, [Self, 8, Self]}, py:await(Spawned)).

sleep_is_awaited_on_a_loop_and_blocks_elsewhere(_Config) ->
    {Ms, {ok, _}} = py_test:milliseconds(fun() -> run(sleep_together, [200, 0.1]) end),
    ?assert(Ms >= 100),
    %% One after another they would take 20 s.
    ?assert(Ms < 10_000),
    {Blocked, {ok, none}} = py_test:milliseconds(fun() -> py:call(erlang, sleep, [0.05]) end),
    ?assert(Blocked >= 50).

tasks_are_spawned_from_coroutines_and_from_plain_code(_Config) ->
    Self = self(),
    {ok, none} = run(spawn_sender, [Self, 1]),
    {ok, none} = py:call(py_task_code, spawn_sender_now, [Self, 2]),
    [
        receive
            {<<"spawned">>, N} -> ok
        end
     || N <- [1, 2]
    ],
    ok.

values_go_through_a_channel_in_order(_Config) ->
    {ok, Out} = py_channel:new(),
    {ok, Back} = py_channel:new(#{max => 10}),
    Ref = py:async_call(py_task_code, double_all, [Out, Back]),
    Sender = spawn_link(fun() ->
        [ok = py_channel:put(Out, N) || N <- lists:seq(1, 500)],
        py_channel:close(Out)
    end),
    ?assertEqual([2 * N || N <- lists:seq(1, 500)], drain(Back)),
    ?assertEqual({ok, 500}, py:await(Ref)),
    ?assert(is_pid(Sender)),
    {ok, Pipe} = py:call(py_task_code, plain_pipe, [5]),
    ?assertEqual([0, 1, 2, 3, 4], Pipe).

drain(Channel) ->
    case py_channel:recv(Channel, 20_000) of
        {ok, Value} -> [Value | drain(Channel)];
        {error, closed} -> []
    end.

a_full_channel_is_busy_and_holds_python_back(_Config) ->
    {ok, Channel} = py_channel:new(#{max => 2}),
    [ok, ok, busy] = [py_channel:send(Channel, N) || N <- [1, 2, 3]],
    ?assertMatch({ok, false}, py:call(py_task_code, try_send, [Channel, 4])),
    Ref = py:async_call(py_task_code, send_all, [Channel, [3, 4, 5]]),
    ok = py_test:eventually(fun() -> maps:get(senders, py_channel:info(Channel)) =:= 1 end),
    ?assertEqual(2, maps:get(length, py_channel:info(Channel))),
    %% The loop goes on meanwhile.
    ?assertEqual({ok, 3}, run(ask, [task_add, 1, 2])),
    ?assertEqual([{ok, N} || N <- [1, 2, 3, 4, 5]], [py_channel:recv(Channel) || _ <- [1, 2, 3, 4, 5]]),
    ?assertEqual({ok, none}, py:await(Ref)).

a_closed_channel_gives_what_it_has_and_ends(_Config) ->
    {ok, Channel} = py_channel:new(),
    ok = py_channel:send(Channel, 1),
    ok = py_channel:close(Channel),
    ?assertEqual({error, closed}, py_channel:send(Channel, 2)),
    ?assertReason({<<"erlang.ChannelClosed">>, _}, py:call(py_task_code, send, [Channel, 2])),
    ?assertEqual({ok, [1]}, run(all_of, [Channel])),
    ?assertEqual({error, closed}, py_channel:recv(Channel)),
    ?assertEqual({error, closed}, py_channel:info(Channel)),
    ok = py_channel:close(Channel).

a_receiver_that_gave_up_takes_nothing(_Config) ->
    {ok, Channel} = py_channel:new(),
    ?assertEqual({error, timeout}, py_channel:recv(Channel, 10)),
    ?assertEqual({error, timeout}, py_channel:recv(Channel, 0)),
    ?assertReason({'TimeoutError', _}, py:call(py_task_code, receive_for, [Channel, 0.01])),
    Waits = spawn(fun() -> py_channel:recv(Channel) end),
    ok = py_test:eventually(fun() -> maps:get(receivers, py_channel:info(Channel)) =:= 1 end),
    ok = py_test:down(Waits),
    ok = py_test:eventually(fun() -> maps:get(receivers, py_channel:info(Channel)) =:= 0 end),
    ok = py_channel:send(Channel, 1),
    ?assertEqual({ok, 1}, py_channel:recv(Channel, 0)).

a_cancelled_receiver_takes_nothing(_Config) ->
    {ok, Channel} = py_channel:new(),
    ?assertEqual({ok, <<"timeout">>}, run(receive_briefly, [Channel, 0.05])),
    ok = py_test:eventually(fun() -> maps:get(receivers, py_channel:info(Channel)) =:= 0 end),
    ok = py_channel:send(Channel, 1),
    ?assertEqual({ok, 1}, py_channel:recv(Channel, 1000)).

a_channel_ends_with_its_maker_whatever_is_in_it(_Config) ->
    {ok, Channel} = py_test:in_process(fun() ->
        {ok, Made} = py_channel:new(),
        ok = py_channel:send(Made, unread),
        {ok, Made}
    end),
    ok = py_test:eventually(fun() -> py_channel:info(Channel) =:= {error, closed} end),
    ?assertEqual({error, closed}, py_channel:recv(Channel, 0)).

a_channel_ends_with_its_maker(_Config) ->
    Channel = py_test:in_process(fun() ->
        {ok, Channel} = py_channel:new(),
        Channel
    end),
    py_test:eventually(fun() -> py_channel:send(Channel, 1) =:= {error, closed} end).

channels_that_were_killed_leave_nothing_behind(_Config) ->
    Alive = fun() -> [Channel || {Channel} <- ets:tab2list(py_channels), is_process_alive(Channel)] end,
    ok = py_test:eventually(fun() -> Alive() =:= [] end),
    Kill = fun() ->
        {ok, Channel} = py_channel:new(),
        ok = py_test:down(Channel)
    end,
    [Kill() || _ <- lists:seq(1, 100)],
    {ok, Last} = py_channel:new(),
    ?assertEqual([{Last}], ets:tab2list(py_channels)),
    ok = py_channel:close(Last).

bad_channels_are_refused(_Config) ->
    ?assertReason({bad_argument, <<"the option max must be", _/binary>>}, py_channel:new(#{max => 0})),
    ?assertReason({bad_argument, <<"the option size means nothing here", _/binary>>}, py_channel:new(#{size => 1})),
    ?assertReason({bad_argument, opts}, py_channel:new(nonsense)).

a_task_reads_its_mailbox(_Config) ->
    Self = self(),
    Ref = py:async_call(py_task_code, sum_of_mailbox, []),
    receive
        {<<"mine">>, Pid} ->
            ?assertNotEqual(Self, Pid),
            [Pid ! N || N <- [1, 2, 3]],
            Pid ! stop
    end,
    ?assertEqual({ok, 6}, py:await(Ref)),
    ?assertReason({'RuntimeError', _}, py:call(erlang, 'receive', [])).

tasks_that_share_a_mailbox_get_each_message_once(_Config) ->
    {ok, Mailbox} = py_mailbox:start_link(self()),
    Askers = [spawn_monitor(fun() -> exit(py_mailbox:next(Mailbox, Token)) end) || Token <- [1, 2, 3]],
    ok = py_test:eventually(fun() ->
        [] =:= [Pid || {Pid, _} <- Askers, process_info(Pid, status) =/= {status, waiting}]
    end),
    ok = py_mailbox:forget(Mailbox, 2),
    [Mailbox ! Message || Message <- [a, b, c]],
    Answers = [receive {'DOWN', Monitor, _, _, Answer} -> Answer end || {_, Monitor} <- Askers],
    ?assertEqual([forgotten, {ok, a}, {ok, b}], lists:sort(Answers)),
    ?assertEqual({ok, c}, py_mailbox:next(Mailbox, 4)),
    ok = py_mailbox:stop(Mailbox).

what_waits_in_a_mailbox_comes_in_order(_Config) ->
    Numbers = lists:seq(1, 2000),
    ok = py:register_function(task_fill, fun([Pid]) -> [Pid ! N || N <- Numbers], Pid ! stop, ok end),
    ?assertEqual({ok, Numbers}, py:await(py:async_call(py_task_code, backlog, []))),
    ok = py:unregister_function(task_fill).

a_mailbox_ends_with_its_task(_Config) ->
    Ref = py:async_call(py_task_code, sum_of_mailbox, []),
    Monitor =
        receive
            {<<"mine">>, Pid} -> monitor(process, Pid)
        end,
    ok = py:cancel(Ref),
    receive
        {'DOWN', Monitor, process, _, normal} -> ok
    end.

a_cancelled_reader_leaves_the_message_in_the_mailbox(_Config) ->
    Ref = py:async_call(py_task_code, read_twice, [0.05]),
    receive
        {<<"waited">>, Pid} -> Pid ! hello
    end,
    ?assertEqual({ok, <<"hello">>}, py:await(Ref)).

a_cancelled_task_may_still_call_erlang(_Config) ->
    Self = self(),
    ok = py:register_function(task_note, fun([What]) -> Self ! {note, What} end),
    Ref = py:async_call(py_task_code, note_at_the_end, []),
    receive
        {note, <<"begun">>} -> ok
    end,
    ok = py:cancel(Ref),
    receive
        {note, <<"called">>} -> ok
    end,
    receive
        {note, <<"awaited">>} -> ok
    end.
