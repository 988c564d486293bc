%% What Python prints to a group leader that does not keep up: threads wait for it, loops drop, and a line says so.
-module(py_print_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([log/2, far/1]).
-export([
    every_line_comes_in_order_to_a_leader_that_is_slow/1,
    a_leader_that_does_not_read_gets_few_messages_and_later_hears_what_was_dropped/1,
    bytes_are_bounded_as_lines_are/1,
    a_thread_that_waits_holds_no_gil/1,
    a_call_that_waits_is_stopped_by_its_timeout/1,
    a_loop_does_not_wait/1,
    a_leader_that_dies_keeps_nobody_waiting/1,
    a_leader_that_is_dead_already_costs_nothing/1,
    an_answer_that_nobody_asked_for_is_ignored/1,
    what_is_printed_for_a_callback_goes_to_its_caller/1,
    a_group_leader_may_be_on_another_node/1,
    a_group_leader_of_a_lost_node_costs_nothing/1,
    log_records_wait_in_a_bounded_number/1,
    long_names_of_loggers_count_as_what_waits/1
]).

%% Of native/nif/src/leader.rs and log.rs.
-define(WAIT, 1_000).
-define(DROP, 10_000).
-define(RECORDS, 10_000).
-define(PATIENCE, 60_000).

all() -> py_test:cases(?MODULE) -- [far].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

every_line_comes_in_order_to_a_leader_that_is_slow(_Config) ->
    Leader = leader(),
    Job = printing(Leader, lines, [20_000]),
    %% It reads when its mailbox is as full as it may get.
    ok = fills(Leader, ?WAIT),
    read(Leader, 20_000),
    ?assertEqual({ok, 20_000}, answer(Job)),
    {Text, Most} = all_read(Leader, 20_000),
    ?assertEqual(numbers(0, 20_000), Text),
    ?assert(Most =< ?WAIT, Most).

a_leader_that_does_not_read_gets_few_messages_and_later_hears_what_was_dropped(_Config) ->
    Leader = leader(),
    {_, Warnings} = warned(fun() ->
        ?assertEqual({ok, 200_000}, answer(printing(Leader, lines, [200_000])))
    end),
    ?assert(waiting(Leader) =< ?WAIT, waiting(Leader)),
    ?assertMatch([_], [Text || Text <- Warnings, string:find(Text, pid_to_list(Leader)) =/= nomatch]),
    read(Leader, ?WAIT + 1),
    {Text, _} = all_read(Leader, ?WAIT + 1),
    Whole = numbers(0, ?WAIT),
    {Whole, Rest} = split_binary(Text, byte_size(Whole)),
    ?assertMatch({match, _}, re:run(Rest, "^\\[199000 lines of Python's output, [0-9]+ bytes, were dropped here")),
    %% Nobody printed meanwhile, and now it goes on.
    Again = printing(Leader, lines, [3]),
    read(Leader, 3),
    ?assertEqual({ok, 3}, answer(Again)),
    ?assertMatch({<<"0\n1\n2\n">>, _}, all_read(Leader, 3)).

bytes_are_bounded_as_lines_are(_Config) ->
    Leader = leader(),
    Job = printing(Leader, long_lines, [100, 50_000]),
    %% 1 MiB, which the last of them may pass.
    ok = fills(Leader, 21),
    read(Leader, 100),
    ?assertEqual({ok, 100}, answer(Job)),
    {Text, Most} = all_read(Leader, 100),
    ?assertEqual(100 * 50_001, byte_size(Text)),
    ?assert(Most =< 21, Most).

a_thread_that_waits_holds_no_gil(_Config) ->
    Leader = leader(),
    Job = printing(Leader, lines, [2_000]),
    ok = fills(Leader, ?WAIT),
    ?assertEqual({ok, 3}, py:eval(<<"1 + 2">>)),
    ?assertEqual(?WAIT, waiting(Leader)),
    read(Leader, 2_000),
    ?assertEqual({ok, 2_000}, answer(Job)).

a_call_that_waits_is_stopped_by_its_timeout(_Config) ->
    Leader = leader(),
    {_, Monitor} = spawn_monitor(fun() ->
        true = group_leader(Leader, self()),
        exit(py:call(py_prints, lines, [1 bsl 40], #{}, 500))
    end),
    ?assertEqual({error, timeout}, answer(Monitor)),
    ?assert(waiting(Leader) =< ?WAIT).

a_loop_does_not_wait(_Config) ->
    Leader = leader(),
    {_, Monitor} = spawn_monitor(fun() ->
        true = group_leader(Leader, self()),
        exit(py:await(py:async_call(py_prints, lines_beside, [50_000]), ?PATIENCE))
    end),
    {ok, Turns} = answer(Monitor),
    ?assert(Turns >= 40, Turns),
    ?assertEqual(?DROP, waiting(Leader)),
    read(Leader, ?DROP + 1),
    {Text, _} = all_read(Leader, ?DROP + 1),
    Whole = numbers(0, ?DROP),
    {Whole, Rest} = split_binary(Text, byte_size(Whole)),
    ?assertMatch({match, _}, re:run(Rest, "^\\[40000 lines ")).

a_leader_that_dies_keeps_nobody_waiting(_Config) ->
    Leader = leader(),
    {_, Warnings} = warned(fun() ->
        Jobs = [printing(Leader, lines, [2_000]) || _ <- [1, 2]],
        ok = fills(Leader, ?WAIT),
        exit(Leader, kill),
        ?assertMatch([{ok, _}, {ok, _}], [answer(Job) || Job <- Jobs])
    end),
    %% They did not wait until it counted as silent.
    ?assertEqual([], [Text || Text <- Warnings, string:find(Text, pid_to_list(Leader)) =/= nomatch]).

a_leader_that_is_dead_already_costs_nothing(_Config) ->
    Leader = leader(),
    Monitor = monitor(process, Leader),
    exit(Leader, kill),
    killed = answer(Monitor),
    ?assertEqual({ok, 20_000}, answer(printing(Leader, lines, [20_000]))).

an_answer_that_nobody_asked_for_is_ignored(_Config) ->
    Printer = whereis(py_printer),
    [Printer ! {io_reply, As, ok} || As <- [py_log, {py_printed, make_ref(), 1}, {py_printed, make_ref(), -1}, {py_printed, 1, 1}]],
    Printer ! nonsense,
    Leader = leader(),
    Job = printing(Leader, lines, [1]),
    read(Leader, 1),
    ?assertEqual({ok, 1}, answer(Job)),
    ?assertEqual(Printer, whereis(py_printer)).

what_is_printed_for_a_callback_goes_to_its_caller(_Config) ->
    ok = py:register_function(print_nested, fun([]) ->
        ok = io:put_chars("from Erlang\n"),
        ok = py:exec(<<"print('from Python')">>)
    end),
    try
        [nested(Leader) || Leader <- [leader(), leader(), leader()]],
        %% A thread of Python runs for no process: its output is nobody's who called before.
        Own = leader(),
        Job = printing(Own, nested_for_nobody, []),
        ?assertEqual({ok, none}, answer(Job)),
        ?assertEqual(0, waiting(Own))
    after
        py:unregister_function(print_nested)
    end.

nested(Leader) ->
    Job = printing(Leader, nested, []),
    read(Leader, 2),
    ?assertEqual({ok, none}, answer(Job)),
    ?assertMatch({<<"from Erlang\nfrom Python\n">>, _}, all_read(Leader, 2)).

a_group_leader_may_be_on_another_node(_Config) ->
    Port = py_test:free_port(),
    [Near, Far] = Peers = [py_test:distributed_peer(Port, Listens) || Listens <- [true, false]],
    try
        {ok, _} = peer:call(Near, application, ensure_all_started, [erlang_python]),
        Node = peer:call(Near, erlang, node, []),
        ?assertEqual({ok, <<"from afar\nagain\n">>}, peer:call(Far, ?MODULE, far, [Node], ?PATIENCE)),
        %% The node is gone, and with it who stood for its leaders.
        ok = peer:stop(Far),
        ok = py_test:eventually(fun() -> map_size(peer:call(Near, sys, get_state, [py_printer])) =:= 0 end)
    after
        [ok = peer:stop(Peer) || Peer <- Peers, is_process_alive(Peer)]
    end.

%% On a node without the application: what code on `Node' prints comes here.
far(Node) ->
    Leader = leader(),
    {_, Monitor} = spawn_monitor(fun() ->
        true = group_leader(Leader, self()),
        exit([erpc:call(Node, py, exec, [Code]) || Code <- [<<"print('from afar')">>, <<"print('again')">>]])
    end),
    read(Leader, 2),
    [ok, ok] = answer(Monitor),
    {Text, _} = all_read(Leader, 2),
    {ok, Text}.

a_group_leader_of_a_lost_node_costs_nothing(_Config) ->
    %% A pid of a node that was never there.
    Lost = binary_to_term(<<131, 88, 119, 9, "lost@lost", 7:32, 0:32, 1:32>>),
    ?assertEqual({ok, 5_000}, answer(printing(Lost, lines, [5_000]))).

log_records_wait_in_a_bounded_number(_Config) ->
    Count = 3 * ?RECORDS,
    #{logged := Logged, dropped := Dropped} = py_logger:info(),
    true = erlang:suspend_process(whereis(py_logger)),
    ?assertEqual({ok, Count}, py:call(py_prints, records, [Count])),
    Waiting = waiting(whereis(py_logger)),
    {_, Warnings} = warned(fun() -> erlang:resume_process(whereis(py_logger)) end),
    ?assert(Waiting =< ?RECORDS, Waiting),
    #{logged := LoggedNow, dropped := DroppedNow} = py_logger:info(),
    ?assertEqual(Count, LoggedNow - Logged + DroppedNow - Dropped),
    ?assert(DroppedNow - Dropped >= 2 * ?RECORDS),
    ?assertMatch([_ | _], [Text || Text <- Warnings, string:find(Text, "log records of Python were dropped") =/= nomatch]).

long_names_of_loggers_count_as_what_waits(_Config) ->
    #{dropped := Dropped} = py_logger:info(),
    true = erlang:suspend_process(whereis(py_logger)),
    %% 100 MiB of names, each with a short message.
    ?assertEqual({ok, 100}, py:call(py_prints, named_records, [100, 1 bsl 20])),
    {_, _} = warned(fun() -> erlang:resume_process(whereis(py_logger)) end),
    #{dropped := DroppedNow} = py_logger:info(),
    ?assert(DroppedNow - Dropped >= 50, DroppedNow - Dropped),
    %% All that was counted is taken off again.
    ?assertEqual({ok, 20}, py:call(py_prints, named_records, [20, 1 bsl 20])),
    ?assertMatch(#{dropped := DroppedNow}, py_logger:info()).

%% ---- a group leader that reads when it is told to

leader() -> spawn(fun() -> leads([], 0) end).

leads(Texts, Most) ->
    receive
        {read, Count} ->
            {More, Peak} = reads(Count, [], Most),
            leads([Texts | More], Peak);
        {give, From, Count} ->
            From ! {self(), {iolist_to_binary(Texts), Most, Count}},
            leads([], 0)
    end.

reads(0, Texts, Most) ->
    {lists:reverse(Texts), Most};
reads(Count, Texts, Most) ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    receive
        {io_request, From, As, {put_chars, unicode, Text}} ->
            From ! {io_reply, As, ok},
            reads(Count - 1, [Text | Texts], max(Most, Waiting))
    end.

%% It reads so many requests from now on, whenever they come.
read(Leader, Count) -> Leader ! {read, Count}.

%% All that it has read, and the longest its mailbox was.
all_read(Leader, Count) ->
    Leader ! {give, self(), Count},
    receive
        {Leader, {Text, Most, Count}} -> {Text, Most}
    after ?PATIENCE -> error({waits, process_info(Leader, message_queue_len)})
    end.

waiting(Pid) ->
    {message_queue_len, Waiting} = process_info(Pid, message_queue_len),
    Waiting.

fills(Leader, Count) -> py_test:eventually(fun() -> waiting(Leader) =:= Count end).

%% ---- others

printing(Leader, Function, Args) ->
    {_, Monitor} = spawn_monitor(fun() ->
        true = group_leader(Leader, self()),
        exit(py:call(py_prints, Function, Args, #{}, ?PATIENCE))
    end),
    Monitor.

answer(Job) ->
    receive
        {'DOWN', Job, process, _, Answer} -> Answer
    after 2 * ?PATIENCE -> error(no_answer)
    end.

numbers(From, To) ->
    iolist_to_binary([[integer_to_binary(Number), $\n] || Number <- lists:seq(From, To - 1)]).

log(#{level := warning, msg := {Format, Args}}, #{config := #{to := Pid}}) ->
    Pid ! {warning, lists:flatten(io_lib:format(Format, Args))};
log(_Event, _Config) ->
    ok.

%% What a fun gives, and the warnings that were logged until all of it was.
warned(Fun) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        Value = Fun(),
        _ = py_logger:info(),
        {Value, warnings()}
    after
        logger:remove_handler(?MODULE)
    end.

warnings() ->
    receive
        {warning, Text} -> [Text | warnings()]
    after 0 -> []
    end.
