%% Groups of processes, and what a handler has of Erlang: calls, messages, its mailbox.
-module(py_pg_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    python_and_erlang_are_in_one_group/1,
    a_process_joins_and_leaves/1,
    a_subscription_ends_with_its_task/1,
    a_closed_subscription_ends_its_iteration/1,
    another_scope_is_used_if_it_runs/1,
    websockets_hear_what_erlang_sends_to_their_group/1,
    erlang_writes_to_a_websocket_by_the_pid_of_its_handler/1,
    handlers_call_erlang/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Data = proplists:get_value(data_dir, Config),
    Asgi = filename:join(filename:dirname(string:trim(Data, trailing, "/")), "py_asgi_SUITE_data"),
    Started = py_test:start(Config),
    ok = py_test:export_python(Asgi),
    Started.

end_per_suite(_Config) -> ok.

python_and_erlang_are_in_one_group(_Config) ->
    ok = py_pg:join(<<"news">>),
    Ref = py:async_call(py_groups, first_two, [<<"news">>, self()]),
    ok = py_test:message(<<"subscribed">>),
    ?assertEqual(2, length(py_pg:members(<<"news">>))),
    ?assertEqual(2, py_pg:broadcast(<<"news">>, #{price => 7})),
    ok = py_test:message(#{price => 7}),
    ?assertEqual({ok, 2}, py:call('erlang.pg', broadcast, [<<"news">>, [1, 2]])),
    ok = py_test:message([1, 2]),
    ?assertEqual({ok, [#{<<"price">> => 7}, [1, 2]]}, py:await(Ref)),
    ok = py_pg:leave(<<"news">>),
    ok = py_test:eventually(fun() -> py_pg:members(<<"news">>) =:= [] end).

a_process_joins_and_leaves(_Config) ->
    %% Plain code joins for the process that has called it.
    {ok, none} = py:call('erlang.pg', join, [{<<"room">>, 1}]),
    ?assertEqual([self()], py_pg:members({<<"room">>, 1})),
    ?assertEqual({ok, [self()]}, py:call('erlang.pg', members, [{<<"room">>, 1}])),
    {ok, true} = py:call('erlang.pg', leave, [{<<"room">>, 1}]),
    {ok, false} = py:call('erlang.pg', leave, [{<<"room">>, 1}]),
    ?assertEqual({ok, 0}, py:call('erlang.pg', broadcast, [{<<"room">>, 1}, hello])).

a_subscription_ends_with_its_task(_Config) ->
    Ref = py:async_call(py_groups, first_two, [<<"gone">>, self()]),
    ok = py_test:message(<<"subscribed">>),
    [Box] = py_pg:members(<<"gone">>),
    Monitor = monitor(process, Box),
    ok = py:cancel(Ref),
    receive
        {'DOWN', Monitor, process, Box, _} -> ok
    end.

a_closed_subscription_ends_its_iteration(_Config) ->
    ?assertEqual({ok, [<<"one">>]}, py_event_loop:run(py_groups, until_closed, [<<"closed">>])).

another_scope_is_used_if_it_runs(_Config) ->
    {ok, Scope} = pg:start_link(py_pg_other),
    ok = pg:join(py_pg_other, <<"there">>, self()),
    Kw = #{scope => <<"py_pg_other">>},
    ?assertEqual({ok, 1}, py:call('erlang.pg', broadcast, [<<"there">>, <<"hello">>], Kw)),
    ok = py_test:message(<<"hello">>),
    ok = gen_server:stop(Scope),
    ?assertReason({_, _}, py:call('erlang.pg', members, [<<"there">>], Kw)).

served(Test) ->
    true = register(py_asgi_test, self()),
    {ok, Server} = py_asgi:serve("py_asgi_apps:app", #{port => 0, lifespan => off}),
    try
        Test(py_asgi:port(Server))
    after
        ok = py_asgi:stop(Server)
    end.

websockets_hear_what_erlang_sends_to_their_group(_Config) ->
    served(fun(Port) ->
        Sockets = [py_http:websocket(Port, "/room") || _ <- [1, 2]],
        [ok = py_test:message(<<"joined">>) || _ <- Sockets],
        2 = py_pg:broadcast(<<"room">>, <<"from Erlang">>),
        [?assertEqual(<<"from Erlang">>, py_http:ws_receive(Socket)) || Socket <- Sockets],
        %% And the other way: Erlang is in the group too.
        ok = py_pg:join(<<"room">>),
        ok = py_http:ws_send(hd(Sockets), <<"from a browser">>),
        [?assertEqual(<<"from a browser">>, py_http:ws_receive(Socket)) || Socket <- Sockets],
        ok = py_test:message(<<"from a browser">>),
        ok = py_pg:leave(<<"room">>),
        %% A client that leaves, or vanishes, is in no group any more.
        [Polite, Rude] = Sockets,
        ok = py_http:ws_close(Polite, 1000),
        ok = py_http:close(Rude),
        [ok = py_test:message(<<"left">>) || _ <- Sockets],
        ok = py_test:eventually(fun() -> py_pg:members(<<"room">>) =:= [] end)
    end).

erlang_writes_to_a_websocket_by_the_pid_of_its_handler(_Config) ->
    served(fun(Port) ->
        Socket = py_http:websocket(Port, "/mailbox"),
        {<<"at">>, Pid} = py_test:message(),
        Pid ! <<"one">>,
        Pid ! <<"two">>,
        ?assertEqual([<<"one">>, <<"two">>], [py_http:ws_receive(Socket) || _ <- [1, 2]]),
        Pid ! <<"enough">>,
        ?assertEqual({close, 1000}, py_http:ws_receive(Socket))
    end).

handlers_call_erlang(_Config) ->
    ok = py:register_function(py_asgi_double, fun([N]) -> 2 * N end),
    served(fun(Port) ->
        ?assertMatch({200, _, <<"42">>}, py_http:get(Port, "/calls/sync/21")),
        ?assertMatch({200, _, <<"42">>}, py_http:get(Port, "/calls/async/21"))
    end),
    ok = py:unregister_function(py_asgi_double).
