%% What users give in the place of a process of ours, though it is none: the answer is an error, not an endless wait.
-module(py_foreign_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    what_is_no_server_of_ours_is_refused/1,
    one_that_has_ended_is_told_as_before/1,
    a_process_of_another_node_is_refused/1,
    python_hears_that_it_is_no_channel/1,
    a_channel_is_asked_from_another_node/1
]).
-export([deaf/0]).

%% Milliseconds: an answer that comes later is none.
-define(PATIENCE, 20_000).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% Each with what it says of a process that is something else, and of one that has ended.
questions() ->
    Channel = {bad_argument, channel},
    Loop = {bad_argument, loop},
    Context = {bad_argument, context},
    Worker = {bad_argument, worker},
    #{
        channel_send => {fun(Pid) -> py_channel:send(Pid, 1) end, Channel, {error, closed}},
        channel_put => {fun(Pid) -> py_channel:put(Pid, 1) end, Channel, {error, closed}},
        channel_recv => {fun(Pid) -> py_channel:recv(Pid) end, Channel, {error, closed}},
        channel_recv_in_time => {fun(Pid) -> py_channel:recv(Pid, 60_000) end, Channel, {error, closed}},
        channel_close => {fun(Pid) -> py_channel:close(Pid) end, Channel, ok},
        channel_info => {fun(Pid) -> py_channel:info(Pid) end, Channel, {error, closed}},
        loop => {fun(Pid) -> py_event_loop:loop(Pid) end, Loop, {error, not_running}},
        run_async => {fun(Pid) -> py_event_loop:run_async(Pid, sleep()) end, Loop, {error, not_running}},
        context_stop => {fun(Pid) -> py_context:stop(Pid) end, Context, ok},
        asgi_stop => {fun(Pid) -> py_asgi:stop(Pid) end, {bad_argument, server}, {error, not_running}},
        asgi_info => {fun(Pid) -> py_asgi:info(Pid) end, {bad_argument, server}, {error, not_running}},
        reactor_info => {fun(Pid) -> py_reactor_context:info(Pid) end, Context, {error, not_running}},
        reactor_stop => {fun(Pid) -> py_reactor_context:stop(Pid) end, Context, ok},
        worker_loop => {fun(Pid) -> py_event_worker:loop(Pid) end, Worker, {error, not_running}},
        worker_stop => {fun(Pid) -> py_event_worker:stop(Pid) end, Worker, ok},
        router_stop => {fun(Pid) -> py_event_router:stop(Pid) end, {bad_argument, router}, ok}
    }.

sleep() -> #{module => asyncio, func => sleep, args => [0]}.

%% All of them at once, since one that waits for ever takes all the time there is.
answers(Given) ->
    Asking = fun(_, {Ask, _, _}) -> spawn_monitor(fun() -> exit({said, Ask(Given)}) end) end,
    Asked = maps:to_list(maps:map(Asking, questions())),
    maps:from_list([{Name, answer(Pid, Monitor)} || {Name, {Pid, Monitor}} <- Asked]).

answer(Pid, Monitor) ->
    receive
        {'DOWN', Monitor, process, Pid, {said, Answer}} -> Answer;
        {'DOWN', Monitor, process, Pid, Why} -> {exit, Why}
    after ?PATIENCE ->
        true = exit(Pid, kill),
        waits
    end.

refusals() -> maps:map(fun(_, {_, Refusal, _}) -> {error, Refusal} end, questions()).

deaf() -> spawn(fun() -> receive stop -> ok end end).

what_is_no_server_of_ours_is_refused(_Config) ->
    Deaf = deaf(),
    Foreign = [Deaf, whereis(py_registry), whereis(kernel_sup)],
    [?assertEqual({Given, refusals()}, {Given, answers(Given)}) || Given <- Foreign],
    %% It was not asked in vain.
    ?assertEqual({message_queue_len, 0}, process_info(Deaf, message_queue_len)),
    Deaf ! stop,
    ?assert(is_binary(py_error:format({bad_argument, channel}))).

one_that_has_ended_is_told_as_before(_Config) ->
    {Ended, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, Ended, _} -> ok end,
    ?assertEqual(maps:map(fun(_, {_, _, Gone}) -> Gone end, questions()), answers(Ended)).

python_hears_that_it_is_no_channel(_Config) ->
    Deaf = deaf(),
    Uses = ["try_send(1)", "send(1)", "receive()", "close()"],
    Said = [py:eval("__import__('erlang').Channel(deaf)." ++ Use, #{deaf => Deaf}, ?PATIENCE) || Use <- Uses],
    Deaf ! stop,
    [?assertReason({<<"erlang.ErlangError">>, <<"error: ", _/binary>>}, Each) || Each <- Said].

%% ---- another node

with_two_nodes(Fun) ->
    Port = py_test:free_port(),
    Ours = py_test:distributed_peer(Port, true),
    Other = py_test:distributed_peer(Port, false),
    try
        {ok, _} = peer:call(Ours, application, ensure_all_started, [erlang_python]),
        true = peer:call(Other, net_kernel, connect_node, [peer:call(Ours, erlang, node, [])]),
        Fun(Ours, Other)
    after
        ok = py_test:stop_peer(Other),
        ok = py_test:stop_peer(Ours)
    end.

a_process_of_another_node_is_refused(_Config) ->
    with_two_nodes(fun(Ours, Other) ->
        Deaf = peer:call(Other, ?MODULE, deaf, []),
        ?assertEqual(refusals(), peer:call(Ours, erlang, apply, [fun answers/1, [Deaf]], 2 * ?PATIENCE))
    end).

a_channel_is_asked_from_another_node(_Config) ->
    with_two_nodes(fun(Ours, Other) ->
        Made = fun() ->
            {ok, Channel} = py_channel:new(whereis(py_registry), #{max => 10}),
            Channel
        end,
        Channel = peer:call(Ours, erlang, apply, [Made, []]),
        ?assertEqual(ok, peer:call(Other, py_channel, send, [Channel, 1])),
        ?assertEqual({ok, 1}, peer:call(Other, py_channel, recv, [Channel])),
        ok = peer:call(Other, py_channel, close, [Channel]),
        ?assertEqual({error, closed}, peer:call(Other, py_channel, send, [Channel, 1]))
    end).
