%% Loops that Erlang drives itself: descriptors and timers, by polling and by messages.
-module(py_raw_loop_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_datagram_is_an_event_once/1,
    what_is_not_fetched_does_not_wake_again/1,
    reading_and_writing_have_names_of_their_own/1,
    what_is_removed_has_nothing_more_to_tell/1,
    timers_are_never_early_and_can_be_cancelled/1,
    a_wake_up_ends_a_wait/1,
    a_destroyed_loop_says_so/1,
    what_can_not_be_watched_is_an_error/1,
    a_router_gets_one_message_a_wake/1,
    a_router_tells_whom_it_was_told/1,
    one_router_serves_many_loops/1,
    a_loop_ends_with_its_router/1,
    a_worker_tells_who_asked/1,
    a_worker_forgets_the_dead/1,
    only_own_sockets_can_be_used_by_number/1,
    idle_loops_cost_no_thread/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

loop() ->
    {ok, Loop} = py_nif:event_loop_new(),
    Loop.

%% Two sockets; what the first sends the second can read.
sockets() ->
    {ok, {From, _}} = py_nif:create_test_udp_socket(0),
    {ok, {To, Port}} = py_nif:create_test_udp_socket(0),
    Send = fun(Data) -> ok = py_nif:sendto_test_udp(From, Data, <<"127.0.0.1">>, Port) end,
    {From, To, Send}.

close(Fds) -> [ok = py_nif:close_test_fd(Fd) || Fd <- Fds].

%% ---- by polling

a_datagram_is_an_event_once(_Config) ->
    Loop = loop(),
    {From, To, Send} = sockets(),
    {ok, FdRef} = py_nif:add_reader(Loop, To, 7),
    ?assert(is_reference(FdRef)),
    ?assertEqual({ok, 0}, py_nif:poll_events(Loop, 0)),
    Send(<<"one">>),
    ?assertEqual({ok, 1}, py_nif:poll_events(Loop, 5000)),
    ?assertEqual([{7, read}], py_nif:get_pending(Loop)),
    ?assertEqual([], py_nif:get_pending(Loop)),
    %% Level-triggered: it is still there to be read.
    ?assertEqual({ok, 1}, py_nif:poll_events(Loop, 5000)),
    ?assertEqual([{7, read}], py_nif:get_pending(Loop)),
    ?assertMatch({ok, {<<"one">>, {<<"127.0.0.1">>, _}}}, py_nif:recvfrom_test_udp(To, 100)),
    ?assertEqual({error, would_block}, py_nif:recvfrom_test_udp(To, 100)),
    ?assertEqual({ok, 0}, py_nif:poll_events(Loop, 0)),
    ok = py_nif:event_loop_destroy(Loop),
    close([From, To]).

what_is_not_fetched_does_not_wake_again(_Config) ->
    Loop = loop(),
    {From, To, Send} = sockets(),
    {ok, _} = py_nif:add_reader(Loop, To, 1),
    Send(<<"x">>),
    ?assertEqual({ok, 1}, py_nif:poll_events(Loop, 5000)),
    ?assertEqual([{ok, 0}, {ok, 0}], [py_nif:poll_events(Loop, 0) || _ <- [1, 2]]),
    ?assertEqual([{1, read}], py_nif:get_pending(Loop)),
    ok = py_nif:event_loop_destroy(Loop),
    close([From, To]).

reading_and_writing_have_names_of_their_own(_Config) ->
    Loop = loop(),
    {From, To, Send} = sockets(),
    {ok, _} = py_nif:add_reader(Loop, To, 1),
    {ok, Writer} = py_nif:add_writer(Loop, To, 2),
    ?assertEqual({ok, 1}, py_nif:poll_events(Loop, 5000)),
    %% It can be written; that this was told does not hide what can be read.
    Send(<<"x">>),
    ?assertEqual({ok, 1}, py_nif:poll_events(Loop, 5000)),
    ?assertEqual([{2, write}, {1, read}], py_nif:get_pending(Loop)),
    ok = py_nif:remove_writer(Loop, Writer),
    ?assertEqual({ok, 1}, py_nif:poll_events(Loop, 5000)),
    ?assertEqual([{1, read}], py_nif:get_pending(Loop)),
    ok = py_nif:event_loop_destroy(Loop),
    close([From, To]).

what_is_removed_has_nothing_more_to_tell(_Config) ->
    Loop = loop(),
    {From, To, Send} = sockets(),
    {ok, Ref} = py_nif:add_reader(Loop, To, 1),
    Send(<<"x">>),
    ?assertEqual({ok, 1}, py_nif:poll_events(Loop, 5000)),
    ok = py_nif:remove_reader(Loop, Ref),
    ?assertEqual([], py_nif:get_pending(Loop)),
    ?assertEqual({ok, 0}, py_nif:poll_events(Loop, 0)),
    %% A second time does nothing, and the descriptor can be watched anew.
    ok = py_nif:remove_reader(Loop, Ref),
    {ok, _} = py_nif:add_reader(Loop, To, 2),
    ?assertEqual({ok, 1}, py_nif:poll_events(Loop, 5000)),
    ?assertEqual([{2, read}], py_nif:get_pending(Loop)),
    ok = py_nif:event_loop_destroy(Loop),
    close([From, To]).

timers_are_never_early_and_can_be_cancelled(_Config) ->
    Loop = loop(),
    Start = erlang:monotonic_time(microsecond),
    {ok, _} = py_nif:call_later(Loop, 30, 1),
    {ok, Cancelled} = py_nif:call_later(Loop, 5, 2),
    {ok, _} = py_nif:call_later(Loop, 10, 3),
    ok = py_nif:cancel_timer(Loop, Cancelled),
    ok = py_nif:cancel_timer(Loop, Cancelled),
    ?assertEqual([{3, timer}], next(Loop)),
    ?assert(erlang:monotonic_time(microsecond) - Start >= 10_000),
    ?assertEqual([{1, timer}], next(Loop)),
    ?assert(erlang:monotonic_time(microsecond) - Start >= 30_000),
    ?assertEqual({ok, 0}, py_nif:poll_events(Loop, 0)),
    ok = py_nif:event_loop_destroy(Loop).

%% The next events, however often the wait ends without one.
next(Loop) ->
    {ok, _} = py_nif:poll_events(Loop, 5000),
    case py_nif:get_pending(Loop) of
        [] -> next(Loop);
        Pending -> Pending
    end.

a_wake_up_ends_a_wait(_Config) ->
    Loop = loop(),
    Self = self(),
    spawn_link(fun() -> Self ! {polled, py_nif:poll_events(Loop, 60_000)} end),
    %% Sooner or later one of them comes while it waits.
    ok = py_test:eventually(fun() ->
        ok = py_nif:event_loop_wakeup(Loop),
        receive {polled, Polled} -> Polled =:= {ok, 0} after 10 -> false end
    end),
    ok = py_nif:event_loop_destroy(Loop).

a_destroyed_loop_says_so(_Config) ->
    Loop = loop(),
    {ok, Timer} = py_nif:call_later(Loop, 10, 1),
    ok = py_nif:event_loop_destroy(Loop),
    ok = py_nif:event_loop_destroy(Loop),
    Gone = {error, not_running},
    ?assertEqual(Gone, py_nif:poll_events(Loop, 0)),
    ?assertEqual(Gone, py_nif:event_loop_step(Loop)),
    ?assertEqual(Gone, py_nif:call_later(Loop, 1, 1)),
    ?assertEqual(Gone, py_nif:cancel_timer(Loop, Timer)),
    ?assertEqual(Gone, py_nif:add_reader(Loop, 0, 1)),
    ?assertEqual(Gone, py_nif:event_loop_set_router(Loop, self())),
    ?assertEqual([], py_nif:get_pending(Loop)),
    ?assertEqual(ok, py_nif:event_loop_wakeup(Loop)).

what_can_not_be_watched_is_an_error(_Config) ->
    Loop = loop(),
    ?assertEqual({error, {posix, ebadf}}, py_nif:add_reader(Loop, -1, 1)),
    ?assertEqual({error, {posix, ebadf}}, py_nif:add_reader(Loop, 999_999, 1)),
    ?assertError(badarg, py_nif:add_reader(Loop, 1 bsl 40, 1)),
    ?assertError(badarg, py_nif:add_reader(make_ref(), 0, 1)),
    ?assertError(badarg, py_nif:call_later(Loop, -1, 1)),
    ok = py_nif:event_loop_destroy(Loop).

%% ---- by messages

a_router_gets_one_message_a_wake(_Config) ->
    Loop = loop(),
    {From, To, Send} = sockets(),
    {ok, _} = py_nif:add_reader(Loop, To, 1),
    ok = py_nif:event_loop_set_router(Loop, self()),
    %% As the seeds' examples do it: once more does no harm.
    ok = py_nif:event_loop_set_router(Loop, self()),
    Send(<<"x">>),
    {select, Loop, _, ready_input} = py_test:message(),
    ?assertEqual({ok, 1}, py_nif:event_loop_step(Loop)),
    ?assertEqual([{1, read}], py_nif:get_pending(Loop)),
    {ok, _} = py_nif:recvfrom_test_udp(To, 10),
    {ok, _} = py_nif:call_later(Loop, 1, 2),
    ?assertEqual([{2, timer}], by_message(Loop)),
    ok = py_nif:event_loop_destroy(Loop),
    close([From, To]).

by_message(Loop) ->
    {select, Loop, _, ready_input} = py_test:message(),
    {ok, _} = py_nif:event_loop_step(Loop),
    case py_nif:get_pending(Loop) of
        [] -> by_message(Loop);
        Pending -> Pending
    end.

a_router_tells_whom_it_was_told(_Config) ->
    Loop = loop(),
    {ok, Router} = py_event_router:start_link(Loop, #{notify => self()}),
    {ok, _} = py_nif:call_later(Loop, 1, 5),
    ?assertEqual({py_events, Loop, [{5, timer}]}, py_test:message()),
    ok = py_event_router:stop(Router),
    ok = py_nif:event_loop_destroy(Loop).

one_router_serves_many_loops(_Config) ->
    [First | Rest] = Loops = [loop() || _ <- lists:seq(1, 20)],
    {ok, Router} = py_event_router:start_link(First, #{notify => self()}),
    [ok = py_nif:event_loop_set_router(Loop, Router) || Loop <- Rest],
    [{ok, _} = py_nif:call_later(Loop, 1, 5) || Loop <- Loops],
    Told = [Loop || _ <- Loops, {py_events, Loop, [{5, timer}]} <- [py_test:message()]],
    ?assertEqual(lists:sort(Loops), lists:sort(Told)),
    ok = py_event_router:stop(Router),
    [ok = py_nif:event_loop_destroy(Loop) || Loop <- Loops].

a_loop_ends_with_its_router(_Config) ->
    Loop = loop(),
    {ok, Router} = py_event_router:start_link(Loop),
    ok = py_event_router:stop(Router),
    ok = py_test:eventually(fun() -> py_nif:poll_events(Loop, 0) =:= {error, not_running} end).

a_worker_tells_who_asked(_Config) ->
    {ok, Worker} = py_event_worker:start_link(<<"one">>),
    {From, To, Send} = sockets(),
    {ok, Reader} = py_event_worker:add_reader(Worker, To),
    {ok, Timer} = py_event_worker:call_later(Worker, 1),
    ?assertEqual({py_event, Worker, Timer, timer}, py_test:message()),
    Send(<<"x">>),
    ?assertEqual({py_event, Worker, Reader, read}, py_test:message()),
    %% Asked again, told again: nobody has read it.
    {ok, Again} = py_event_worker:add_reader(Worker, To),
    ?assertEqual({py_event, Worker, Again, read}, py_test:message()),
    {ok, Writer} = py_event_worker:add_writer(Worker, To),
    ?assertEqual({py_event, Worker, Writer, write}, py_test:message()),
    {ok, Late} = py_event_worker:call_later(Worker, 60_000),
    ok = py_event_worker:cancel_timer(Worker, Late),
    {From2, To2, Send2} = sockets(),
    {ok, Removed} = py_event_worker:add_reader(Worker, To2),
    ok = py_event_worker:remove(Worker, Removed),
    Send2(<<"y">>),
    {ok, Last} = py_event_worker:call_later(Worker, 1),
    ?assertEqual({py_event, Worker, Last, timer}, py_test:message()),
    ?assertReason({posix, ebadf}, py_event_worker:add_reader(Worker, 999_999)),
    {ok, Loop} = py_event_worker:loop(Worker),
    ok = py_event_worker:stop(Worker),
    ?assertEqual({error, not_running}, py_nif:poll_events(Loop, 0)),
    close([From, To, From2, To2]).

a_worker_forgets_the_dead(_Config) ->
    {ok, Worker} = py_event_worker:start_link(py_raw_loop_worker),
    {From, To, _Send} = sockets(),
    Asks = fun() ->
        {ok, _} = py_event_worker:add_reader(Worker, To),
        {ok, _} = py_event_worker:call_later(Worker, 60_000)
    end,
    {_, Monitor} = spawn_monitor(Asks),
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    {ok, Loop} = py_event_worker:loop(Worker),
    %% Whoever comes next finds the descriptor free, and only his own name on it.
    {ok, _} = py_nif:add_writer(Loop, To, 99),
    ok = py_test:eventually(fun() ->
        element(4, sys:get_state(Worker)) =:= #{} andalso element(5, sys:get_state(Worker)) =:= #{}
    end),
    ok = py_event_worker:stop(Worker),
    close([From, To]).

only_own_sockets_can_be_used_by_number(_Config) ->
    Bad = {error, {posix, ebadf}},
    ?assertEqual(Bad, py_nif:recvfrom_test_udp(0, 10)),
    ?assertEqual(Bad, py_nif:sendto_test_udp(0, <<>>, <<"127.0.0.1">>, 9)),
    ?assertEqual(Bad, py_nif:set_udp_broadcast(0, true)),
    ?assertEqual(ok, py_nif:close_test_fd(0)),
    {ok, {Fd, _}} = py_nif:create_test_udp_socket(0),
    ?assertEqual(ok, py_nif:set_udp_broadcast(Fd, true)),
    ?assertEqual({error, {posix, einval}}, py_nif:sendto_test_udp(Fd, <<>>, <<"localhost">>, 9)),
    close([Fd]),
    ?assertEqual(Bad, py_nif:set_udp_broadcast(Fd, true)).

idle_loops_cost_no_thread(_Config) ->
    Threads = fun() -> length(filelib:wildcard("/proc/self/task/*")) end,
    Before = Threads(),
    %% Three descriptors a loop; the node may have fewer than five thousand loops need.
    Wanted = 5000,
    Loops = many(Wanted, []),
    Made = length(Loops),
    Made =:= Wanted orelse ct:pal("the limit on descriptors allows ~b of ~b loops", [Made, Wanted]),
    ?assert(Made > 100),
    {ok, Router} = py_event_router:start_link(hd(Loops), #{notify => self()}),
    [ok = py_nif:event_loop_set_router(Loop, Router) || Loop <- Loops],
    ?assert(Threads() =< Before),
    %% Any of them wakes all the same.
    Last = lists:last(Loops),
    {ok, _} = py_nif:call_later(Last, 1, 1),
    ?assertEqual({py_events, Last, [{1, timer}]}, py_test:message()),
    ok = py_event_router:stop(Router),
    [ok = py_nif:event_loop_destroy(Loop) || Loop <- Loops].

many(0, Loops) ->
    Loops;
many(N, Loops) ->
    case py_nif:event_loop_new() of
        {ok, Loop} ->
            many(N - 1, [Loop | Loops]);
        {error, {posix, emfile}} ->
            %% Leave some for the others.
            {Freed, Kept} = lists:split(min(50, length(Loops)), Loops),
            [ok = py_nif:event_loop_destroy(Loop) || Loop <- Freed],
            Kept
    end.
