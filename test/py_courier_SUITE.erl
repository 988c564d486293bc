%% The courier between Python's threads and processes: what waits in it is bounded, a node that does not read
%% holds up nobody else, and its death leaves nobody waiting.
-module(py_courier_SUITE).

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_node_that_does_not_read_holds_up_nobody_else/1,
    a_node_that_cannot_be_reached_costs_one_line/1,
    a_courier_that_is_behind_is_waited_for/1,
    a_courier_that_does_nothing_is_an_error/1,
    a_sender_that_waits_can_be_stopped/1,
    answers_and_items_wait_for_the_courier/1,
    a_gather_whose_courier_is_late_leaves_no_message/1,
    whoever_waits_for_an_answer_hears_of_the_courier_s_death/1
]).
%% Called in another node.
-export([start/0, echo/1, flood/2, log/2]).

-include_lib("stdlib/include/assert.hrl").

%% As in native/nif/src/lanes.rs.
-define(MOST, 10_000).

all() -> py_test:cases(?MODULE) -- [echo].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> py_test:stop().

a_node_that_does_not_read_holds_up_nobody_else(_Config) ->
    Port = py_test:free_port(),
    Ours = py_test:distributed_peer(Port, true),
    [Stuck, Good] = [py_test:distributed_peer(Port, false) || _ <- [1, 2]],
    try
        ok = peer:call(Ours, ?MODULE, start, [], 60_000),
        Node = peer:call(Ours, erlang, node, []),
        [true = peer:call(Peer, net_kernel, connect_node, [Node]) || Peer <- [Stuck, Good]],
        [Silent, Echo] = [echo_in(Peer) || Peer <- [Stuck, Good]],
        Os = peer:call(Stuck, os, getpid, []),
        "" = os:cmd("kill -STOP " ++ Os),
        try
            %% A thread waits, and hears of it in the end.
            {ok, {Sent, Text}} = peer:call(Ours, ?MODULE, flood, [flood, Silent], 60_000),
            ?assert(Sent < 50_000),
            ?assertMatch({match, _}, re:run(Text, "^[0-9]+ messages, [0-9]+ bytes, wait for the node .*@")),
            %% An event loop never waits.
            {ok, {_, Again}} = peer:call(Ours, ?MODULE, flood, [flood_from_loop, Silent], 60_000),
            ?assertMatch({match, _}, re:run(Again, "^[0-9]+ messages, [0-9]+ bytes, wait for the node")),
            %% Others are served.
            ?assertEqual(hello, peer:call(Ours, ?MODULE, flood, [hello, Echo], 20_000)),
            Courier = peer:call(Ours, erlang, whereis, [py_courier]),
            {message_queue_len, Waiting} = peer:call(Ours, erlang, process_info, [Courier, message_queue_len]),
            ?assert(Waiting < 100)
        after
            "" = os:cmd("kill -CONT " ++ Os)
        end,
        %% It reads again: what was sent has come, in order, and new messages come. Until it has taken the first,
        %% messages for it are refused at once.
        Takes = fun() -> peer:call(Ours, ?MODULE, flood, [hello, Silent], 20_000) =:= hello end,
        ok = py_test:eventually(Takes)
    after
        [peer:stop(Peer) || Peer <- [Ours, Stuck, Good]]
    end.

a_node_that_cannot_be_reached_costs_one_line(_Config) ->
    Ours = py_test:distributed_peer(py_test:free_port(), true),
    try
        ok = peer:call(Ours, ?MODULE, start, [], 60_000),
        Lines = peer:call(Ours, ?MODULE, flood, [nowhere, 'nowhere@127.0.0.1'], 60_000),
        ?assertMatch([_ | _], Lines),
        ?assert(length(Lines) < 100),
        Count = fun(Line) ->
            {match, [N]} = re:run(Line, "^([0-9]+) messages? of Python", [{capture, [1], list}]),
            list_to_integer(N)
        end,
        ?assertEqual(1000, lists:sum([Count(Line) || Line <- Lines]))
    after
        peer:stop(Ours)
    end.

a_courier_that_is_behind_is_waited_for(_Config) ->
    Self = self(),
    Courier = whereis(py_courier),
    true = erlang:suspend_process(Courier),
    {Pid, Ended} = spawn_monitor(fun() -> exit(py:call(py_couriers, flood_wide, [Self, 3 * ?MOST], #{}, 60_000)) end),
    %% It goes on while the courier does.
    ok = py_test:eventually(fun() -> queued(Courier) >= ?MOST end),
    true = erlang:resume_process(Courier),
    receive
        {'DOWN', Ended, process, Pid, Outcome} -> ?assertEqual({ok, {3 * ?MOST, none}}, Outcome)
    end,
    [{N, #{39 := 39}} = py_test:message() || N <- lists:seq(0, 3 * ?MOST - 1)],
    ok = py_test:nothing_waits().

a_courier_that_does_nothing_is_an_error(_Config) ->
    Self = self(),
    Courier = whereis(py_courier),
    true = erlang:suspend_process(Courier),
    {Pid, Ended} = spawn_monitor(fun() -> exit(py:call(py_couriers, flood_wide, [Self, 3 * ?MOST], #{}, 60_000)) end),
    %% Its answer goes the same way: it is told here that there is one.
    ok = py_test:eventually(fun() -> py:state_fetch(refused) =:= {ok, ?MOST} end),
    ok = py_test:eventually(fun() -> queued(Courier) =:= ?MOST + 1 end),
    true = erlang:resume_process(Courier),
    receive
        {'DOWN', Ended, process, Pid, {ok, {Sent, Text}}} ->
            ?assertEqual(?MOST, Sent),
            ?assertMatch({match, _}, re:run(Text, "^10000 messages, [0-9]+ bytes, wait for processes of this node"))
    end,
    [{N, #{}} = py_test:message() || N <- lists:seq(0, ?MOST - 1)],
    ok = py_test:nothing_waits().

a_sender_that_waits_can_be_stopped(_Config) ->
    Courier = whereis(py_courier),
    Nobody = spawn(fun() -> receive stop -> ok end end),
    true = erlang:suspend_process(Courier),
    try
        ?assertEqual({error, timeout}, py:call(py_couriers, flood_wide, [Nobody, 3 * ?MOST], #{}, 1000)),
        %% Its thread is free again.
        ?assertEqual({ok, 4.0}, py:call(math, sqrt, [16]))
    after
        true = erlang:resume_process(Courier),
        Nobody ! stop
    end.

answers_and_items_wait_for_the_courier(_Config) ->
    Courier = whereis(py_courier),
    true = erlang:suspend_process(Courier),
    {ok, Stream} = py:stream_start(py_couriers, wide_items, [3 * ?MOST]),
    ok = py_test:eventually(fun() -> queued(Courier) >= ?MOST end),
    Refs = [py:spawn_call(py_couriers, wide, []) || _ <- lists:seq(1, 10)],
    ?assert(queued(Courier) < ?MOST + 100),
    true = erlang:resume_process(Courier),
    [{ok, #{0 := 0}} = py:await(Ref) || Ref <- Refs],
    [ok = py_test:message({py_stream, Stream, {data, {N, wide()}}}) || N <- lists:seq(0, 3 * ?MOST - 1)],
    ok = py_test:message({py_stream, Stream, done}).

a_gather_whose_courier_is_late_leaves_no_message(_Config) ->
    Courier = whereis(py_courier),
    Nobody = spawn(fun() -> receive stop -> ok end end),
    Calls = [{py_couriers, sends_wide_then, [Nobody, 1]}, {math, sqrt, [16]}],
    Gather = fun(Limit) -> py:async_gather(Calls, Limit) end,
    ?assertEqual({ok, [1, 4.0]}, Gather(infinity)),
    true = erlang:suspend_process(Courier),
    Late = [{1, timeout}, {2, timeout}],
    try
        ?assertEqual({error, {gather_failed, Late}}, Gather(1000)),
        ok = py_test:eventually(fun() -> queued(Courier) >= 2 end)
    after
        true = erlang:resume_process(Courier)
    end,
    ok = py_test:eventually(fun() -> queued(Courier) =:= 0 end),
    ?assertEqual({ok, [1, 4.0]}, Gather(infinity)),
    ok = py_test:nothing_waits(),
    true = erlang:suspend_process(Courier),
    ?assertEqual({error, {gather_failed, Late}}, Gather(1000)),
    ok = py_test:eventually(fun() -> queued(Courier) >= 2 end),
    ok = py_test:down(Courier),
    %% What is replaced with the courier may not be there yet, which is an answer and no silence.
    ?assertEqual({ok, [1, 4.0]}, answered(fun() -> Gather(30_000) end)),
    Nobody ! stop,
    ok = py_test:nothing_waits().

answered(Ask) ->
    case Ask() of
        {error, not_running} -> again(Ask);
        {error, {gather_failed, [{_, {context_died, _}} | _]}} -> again(Ask);
        Answer -> Answer
    end.

again(Ask) ->
    timer:sleep(10),
    answered(Ask).

whoever_waits_for_an_answer_hears_of_the_courier_s_death(_Config) ->
    Courier = whereis(py_courier),
    Nobody = spawn(fun() -> receive stop -> ok end end),
    true = erlang:suspend_process(Courier),
    Calls = [
        fun() -> py:call(py_couriers, sends_wide_then, [Nobody, 1], #{}, infinity) end,
        fun() -> py:await(py:spawn_call(py_couriers, wide, []), infinity) end,
        fun() -> py:await(py:async_call(py_couriers, wide, []), infinity) end,
        fun() ->
            {ok, Ref} = py:stream_start(py_couriers, wide_items, [1]),
            last(Ref)
        end,
        fun() ->
            Failed = py:async_gather([{py_couriers, sends_wide_then, [Nobody, 1]}], infinity),
            {error, {gather_failed, [{1, Reason}]}} = Failed,
            {error, Reason}
        end
    ],
    Waiting = [spawn_monitor(fun() -> exit(Call()) end) || Call <- Calls],
    %% Six messages and answers, two items.
    ok = py_test:eventually(fun() -> queued(Courier) >= 8 end),
    true = exit(Courier, kill),
    [
        receive
            {'DOWN', Monitor, process, Pid, Outcome} -> ?assertMatch({error, {context_died, _}}, Outcome)
        after 20_000 -> error({still_waits, Pid})
        end
     || {Pid, Monitor} <- Waiting
    ],
    Nobody ! stop,
    ok = py_test:eventually(fun() -> {ok, 4.0} =:= py:call(math, sqrt, [16]) end).

%% ---- what runs in other nodes

start() ->
    {ok, _} = application:ensure_all_started(erlang_python),
    Data = filename:join([py_test:root(), "test", "py_courier_SUITE_data"]),
    py_test:add_path(Data).

%% Answers `{ping, From, Term}', and checks that numbered messages come in order.
echo(Next) ->
    receive
        {<<"ping">>, From, Term} ->
            _ = From ! Term,
            echo(Next);
        {0, _} ->
            echo(1);
        {Next, _} ->
            echo(Next + 1)
    end.

flood(hello, Echo) ->
    case py:call(py_couriers, send, [Echo, {ping, self(), hello}], #{}, 10_000) of
        {ok, none} ->
            receive
                <<"hello">> -> hello
            after 15_000 -> nothing
            end;
        {error, {'OverflowError', _}} ->
            refused
    end;
flood(flood_from_loop, Silent) ->
    py:await(py:async_call(py_couriers, flood_from_loop, [Silent, 50_000, 1000]), 30_000);
flood(nowhere, Node) ->
    Handler = #{config => #{to => self()}},
    ok = logger:add_handler(?MODULE, ?MODULE, Handler),
    {ok, {1000, none}} = py:call(py_couriers, flood_name, [name, Node, 1000, 10], #{}, 60_000),
    lines(1000);
flood(flood, Silent) ->
    py:call(py_couriers, flood, [Silent, 50_000, 1000], #{}, 50_000).

lines(Left) when Left =< 0 -> [];
lines(Left) ->
    receive
        {line, Line} -> [Line | lines(Left - list_to_integer(hd(string:lexemes(Line, " "))))]
    after 30_000 -> []
    end.

log(#{msg := {Format, Args}, meta := #{domain := [python]}}, #{config := #{to := Pid}}) ->
    _ = Pid ! {line, lists:flatten(io_lib:format(Format, Args))},
    ok;
log(_Event, _Config) ->
    ok.

%% ---- helpers

echo_in(Peer) -> peer:call(Peer, erlang, spawn, [?MODULE, echo, [0]]).

queued(Pid) ->
    {message_queue_len, Length} = process_info(Pid, message_queue_len),
    Length.

wide() -> maps:from_list([{N, N} || N <- lists:seq(0, 39)]).

last(Ref) ->
    receive
        {py_stream, Ref, {data, _}} -> last(Ref);
        {py_stream, Ref, Last} -> Last
    end.
