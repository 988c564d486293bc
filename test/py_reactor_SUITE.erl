%% Connections that Erlang accepts and Python protocols handle, on both kinds of loops.
-module(py_reactor_SUITE).

-include("py_test.hrl").

-export([all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([
    a_connection_is_handled_in_python/1,
    past_the_most_it_is_full/1,
    a_protocol_that_fails_loses_its_connection_only/1,
    a_protocol_that_can_not_be_made_closes_the_connection/1,
    a_writer_is_told_when_there_is_room/1,
    stopping_tells_every_protocol/1,
    what_is_no_protocol_stops_the_start/1,
    what_is_no_connection_is_an_error/1,
    a_context_that_is_gone_is_an_error/1,
    many_connections_come_and_go/1
]).

all() -> [{group, thread}, {group, beam}].

groups() ->
    Cases = py_test:cases(?MODULE),
    [{Driver, py_test:order(), Cases} || Driver <- [thread, beam]].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_group(Driver, Config) -> [{driver, Driver} | Config].

end_per_group(_Driver, _Config) -> ok.

init_per_testcase(_Case, Config) ->
    true = register(py_reactor_test, self()),
    process_flag(trap_exit, true),
    Config.

end_per_testcase(_Case, _Config) -> ok.

start(Class, Opts, Config) ->
    Driver = proplists:get_value(driver, Config),
    py_reactor_context:start_link(Opts#{protocol => {py_protocols, Class}, driver => Driver}).

%% Both ends of a connection; the server's is handed over and closed here.
connect(Context) ->
    {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listener),
    {ok, Client} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, line}]),
    {ok, Server} = gen_tcp:accept(Listener),
    {ok, Fd} = inet:getfd(Server),
    Handed = py_reactor_context:handoff(Context, Fd),
    ok = gen_tcp:close(Server),
    ok = gen_tcp:close(Listener),
    {Handed, Client}.

line(Client) ->
    {ok, Line} = gen_tcp:recv(Client, 0, 10_000),
    Line.

a_connection_is_handled_in_python(Config) ->
    {ok, Context} = start('Echo', #{}, Config),
    {ok, Client} = connect(Context),
    ?assertEqual([<<"made">>, true], py_test:message()),
    ?assertEqual(<<"hello\n">>, line(Client)),
    ok = gen_tcp:send(Client, <<"one\n">>),
    ?assertEqual(<<"one\n">>, line(Client)),
    ?assertEqual({ok, #{<<"connections">> => 1, <<"total">> => 1}}, py_reactor_context:info(Context)),
    ok = gen_tcp:send(Client, <<"bye\n">>),
    ?assertEqual({error, closed}, gen_tcp:recv(Client, 0, 10_000)),
    ?assertEqual([<<"lost">>, true], py_test:message()),
    ?assertEqual({ok, #{<<"connections">> => 0, <<"total">> => 1}}, py_reactor_context:info(Context)),
    ok = py_reactor_context:stop(Context).

past_the_most_it_is_full(Config) ->
    {ok, Context} = start('Echo', #{max_connections => 1}, Config),
    {ok, First} = connect(Context),
    {{error, full}, Second} = connect(Context),
    ?assertEqual({error, closed}, gen_tcp:recv(Second, 0, 10_000)),
    ?assertEqual(<<"hello\n">>, line(First)),
    ok = gen_tcp:close(First),
    ?assertEqual([<<"made">>, true], py_test:message()),
    ?assertEqual([<<"lost">>, true], py_test:message()),
    {ok, _} = connect(Context),
    ok = py_reactor_context:stop(Context).

a_protocol_that_fails_loses_its_connection_only(Config) ->
    {ok, Context} = start('Echo', #{}, Config),
    {ok, Fails} = connect(Context),
    {ok, Other} = connect(Context),
    ?assertEqual(<<"hello\n">>, line(Fails)),
    ok = gen_tcp:send(Fails, <<"fail\n">>),
    ?assertMatch({error, _}, gen_tcp:recv(Fails, 0, 10_000)),
    ?assertEqual(<<"hello\n">>, line(Other)),
    ok = gen_tcp:send(Other, <<"still here\n">>),
    ?assertEqual(<<"still here\n">>, line(Other)),
    ok = py_reactor_context:stop(Context).

a_protocol_that_can_not_be_made_closes_the_connection(Config) ->
    {ok, Context} = start('Broken', #{}, Config),
    {ok, Client} = connect(Context),
    ?assertMatch({error, _}, gen_tcp:recv(Client, 0, 10_000)),
    ok = py_reactor_context:stop(Context).

a_writer_is_told_when_there_is_room(Config) ->
    {ok, Context} = start('Flood', #{}, Config),
    {ok, Client} = connect(Context),
    ok = inet:setopts(Client, [{packet, raw}]),
    ?assertEqual(40 bsl 20, drain(Client, 0)),
    %% It had to wait, and was told when it need not any more.
    ?assertEqual(true, py_test:message()),
    ok = py_reactor_context:stop(Context).

drain(Client, Count) ->
    case gen_tcp:recv(Client, 0, 10_000) of
        {ok, Bytes} -> drain(Client, Count + byte_size(Bytes));
        {error, closed} -> Count
    end.

stopping_tells_every_protocol(Config) ->
    {ok, Context} = start('Echo', #{}, Config),
    Clients = [element(2, {ok, _} = connect(Context)) || _ <- [1, 2, 3]],
    [?assertEqual([<<"made">>, true], py_test:message()) || _ <- Clients],
    ok = py_reactor_context:stop(Context),
    [?assertEqual([<<"lost">>, true], py_test:message()) || _ <- Clients],
    [?assertMatch({error, _}, drained(Client)) || Client <- Clients].

drained(Client) ->
    case gen_tcp:recv(Client, 0, 10_000) of
        {ok, _} -> drained(Client);
        Closed -> Closed
    end.

what_is_no_protocol_stops_the_start(Config) ->
    ?assertMatch({error, {'AttributeError', _}}, start('Missing', #{}, Config)),
    ?assertMatch({error, {'TypeError', _}}, py_reactor_context:start_link(#{protocol => {builtins, int}})),
    ?assertEqual({error, {bad_argument, protocol}}, py_reactor_context:start_link(#{})),
    [
        ?assertReason({bad_argument, <<"the option max_connections must be a positive integer", _/binary>>}, start('Echo', #{max_connections => Most}, Config))
     || Most <- [0, -1, many, 1.5]
    ].

what_is_no_connection_is_an_error(Config) ->
    {ok, Context} = start('Echo', #{}, Config),
    ?assertReason({'OSError', _}, py_reactor_context:handoff(Context, 999_999)),
    ?assertReason({bad_argument, fd}, py_reactor_context:handoff(Context, -1)),
    ?assertEqual({ok, #{<<"connections">> => 0, <<"total">> => 0}}, py_reactor_context:info(Context)),
    ok = py_reactor_context:stop(Context).

a_context_that_is_gone_is_an_error(Config) ->
    {ok, Context} = start('Echo', #{}, Config),
    ok = py_reactor_context:stop(Context),
    ?assertReason(not_running, py_reactor_context:handoff(Context, 0)),
    ?assertReason(not_running, py_reactor_context:info(Context)),
    ?assertEqual(ok, py_reactor_context:stop(Context)).

many_connections_come_and_go(Config) ->
    {ok, Context} = start('Echo', #{}, Config),
    Fds = fun() -> length(filelib:wildcard("/proc/self/fd/*")) end,
    Before = Fds(),
    [
        begin
            {ok, Client} = connect(Context),
            ok = gen_tcp:send(Client, <<"bye\n">>),
            ?assertEqual(<<"hello\n">>, line(Client)),
            ?assertEqual({error, closed}, gen_tcp:recv(Client, 0, 10_000)),
            ok = gen_tcp:close(Client)
        end
     || _ <- lists:seq(1, 200)
    ],
    ok = py_test:eventually(fun() -> Fds() =< Before end),
    ?assertMatch({ok, #{<<"total">> := 200}}, py_reactor_context:info(Context)),
    ok = py_reactor_context:stop(Context).
