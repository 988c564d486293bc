%% Real applications in the node, what servers of ASGI get wrong, and a blocked loop.
-module(py_asgi_web_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    fastapi_serves_pages_forms_and_uploads/1,
    fastapi_streams_and_works_in_the_background/1,
    fastapi_keeps_sessions_and_cookies/1,
    fastapi_failing_is_a_500/1,
    fastapi_in_a_sub_interpreter_is_refused_with_the_reason/1,
    a_chat_between_a_websocket_and_erlang/1,
    starlette_routes_and_mounts/1,
    django_serves/1,
    a_client_that_leaves_is_heard/1,
    every_cookie_is_sent/1,
    paths_are_decoded_headers_are_bytes_and_methods_differ/1,
    a_websocket_is_accepted_by_the_application_only/1,
    sending_waits_for_the_client/1,
    smuggled_requests_are_refused/1,
    too_many_headers_are_refused/1,
    slow_clients_are_left/1,
    a_handler_that_blocks_its_loop_delays_others/1,
    a_handler_that_blocks_a_thread_delays_nobody/1,
    the_access_log_is_in_the_logger/1
]).
-export([log/2]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Started = py_test:start(Config),
    ok = py:register_function(py_asgi_web_double, fun([N]) -> 2 * N end),
    case os:getenv("PY_TEST_VENV", "") of
        "" -> Started;
        Venv -> ok = py:activate_venv(Venv), [{venv, Venv} | Started]
    end.

end_per_suite(Config) ->
    ok = py:unregister_function(py_asgi_web_double),
    case proplists:is_defined(venv, Config) of
        true -> py:deactivate_venv();
        false -> ok
    end.

init_per_testcase(_Case, Config) ->
    true = register(py_asgi_web_test, self()),
    Config.

end_per_testcase(_Case, _Config) -> ok.

%% Runs the test on the port of a server; skipped where the package is not installed.
served(App, Test) -> served(App, #{}, Test).

served(App, Opts, Test) ->
    case py_asgi:serve(App, Opts#{port => 0}) of
        {ok, Server} ->
            try
                Test(py_asgi:port(Server))
            after
                ok = py_asgi:stop(Server)
            end;
        {error, {'ModuleNotFoundError', Why, _}} ->
            {skip, Why}
    end.

json(Text) ->
    {ok, Value} = py:call(json, loads, [Text]),
    Value.

post(Port, Path, Type, Body) ->
    py_http:request(Port, <<"POST">>, Path, [{<<"content-type">>, Type}], Body).

fastapi_serves_pages_forms_and_uploads(_Config) ->
    served("py_asgi_fastapi:app", fun(Port) ->
        {200, _, Item} = py_http:get(Port, "/items/7?q=x"),
        Expected = #{<<"number">> => 7, <<"q">> => <<"x">>, <<"greeting">> => <<"hello">>},
        ?assertEqual(Expected, json(Item)),
        ?assertMatch({422, _, _}, py_http:get(Port, "/items/seven")),
        ?assertMatch({404, _, _}, py_http:get(Port, "/nothing")),
        Form = <<"application/x-www-form-urlencoded">>,
        {200, _, Person} = post(Port, "/form", Form, <<"name=Ada&age=36">>),
        ?assertEqual(#{<<"name">> => <<"Ada">>, <<"age">> => 36}, json(Person)),
        Part = <<"content-disposition: form-data; name=\"file\"; filename=\"f.bin\"\r\n\r\n">>,
        Upload = [<<"--b\r\n">>, Part, binary:copy(<<0>>, 300_000), <<"\r\n--b--\r\n">>],
        {200, _, File} = post(Port, "/upload", <<"multipart/form-data; boundary=b">>, Upload),
        ?assertEqual(#{<<"name">> => <<"f.bin">>, <<"size">> => 300_000}, json(File)),
        ?assertMatch({200, _, <<"42">>}, py_http:get(Port, "/sync"))
    end).

fastapi_streams_and_works_in_the_background(_Config) ->
    Ran = served("py_asgi_fastapi:app", fun(Port) ->
        Events = <<"data: 0\n\ndata: 2\n\ndata: 4\n\ndata: 6\n\ndata: 8\n\n">>,
        ?assertMatch({200, _, Events}, py_http:get(Port, "/stream")),
        ?assertMatch({200, _, <<"\"accepted\"">>}, py_http:get(Port, "/background")),
        ok = py_test:message(<<"in the background">>)
    end),
    Ran =:= ok andalso py_test:message(<<"stopped">>),
    Ran.

cookies(Headers) -> [hd(binary:split(Value, <<";">>)) || {<<"set-cookie">>, Value} <- Headers].

fastapi_keeps_sessions_and_cookies(_Config) ->
    served("py_asgi_fastapi:app", fun(Port) ->
        {200, First, <<"1">>} = py_http:get(Port, "/session"),
        [Session] = cookies(First),
        Cookie = [{<<"cookie">>, Session}],
        ?assertMatch({200, _, <<"2">>}, py_http:request(Port, <<"GET">>, "/session", Cookie, <<>>)),
        {200, Both, _} = py_http:get(Port, "/cookies"),
        ?assertEqual([<<"a=1">>, <<"b=2">>], cookies(Both))
    end).

fastapi_failing_is_a_500(_Config) ->
    served("py_asgi_fastapi:app", fun(Port) ->
        ?assertMatch({500, _, _}, py_http:get(Port, "/fails")),
        ?assertMatch({200, _, _}, py_http:get(Port, "/items/1"))
    end).

%% An extension module of pydantic does not allow it.
fastapi_in_a_sub_interpreter_is_refused_with_the_reason(_Config) ->
    case py_asgi:serve("py_asgi_fastapi:app", #{port => 0, mode => subinterp}) of
        {error, not_supported} -> ?assertEqual(multi_executor, py:execution_mode());
        {error, {'ModuleNotFoundError', Why, _}} -> {skip, Why};
        Refused -> ?assertReason({'ImportError', _, _}, Refused)
    end.

a_chat_between_a_websocket_and_erlang(_Config) ->
    served("py_asgi_fastapi:app", fun(Port) ->
        Socket = py_http:websocket(Port, "/chat"),
        ok = py_test:message(<<"in the chat">>),
        [
            begin
                1 = py_pg:broadcast(<<"py_asgi_web">>, #{text => Text}),
                ?assertEqual(#{<<"text">> => Text}, json(py_http:ws_receive(Socket))),
                ok = py_http:ws_send(Socket, <<"got ", Text/binary>>),
                ok = py_test:message(<<"got ", Text/binary>>)
            end
         || Text <- [<<"one">>, <<"two">>]
        ],
        ok = py_http:close(Socket),
        %% It waits for messages only, and hears with the next one that nobody reads.
        1 = py_pg:broadcast(<<"py_asgi_web">>, #{text => <<"three">>})
    end).

starlette_routes_and_mounts(_Config) ->
    served("py_asgi_starlette:app", fun(Port) ->
        ?assertMatch({200, _, <<"/ 127.0.0.1">>}, py_http:get(Port, "/")),
        {200, _, Echoed} = post(Port, "/inner/echo", <<"application/json">>, <<"{\"a\": [1]}">>),
        ?assertEqual(#{<<"a">> => [1]}, json(Echoed)),
        ?assertMatch({405, _, _}, py_http:get(Port, "/inner/echo"))
    end).

django_serves(_Config) ->
    served("py_asgi_django:app", fun(Port) ->
        ?assertMatch({200, _, <<"Hello, Ada">>}, py_http:get(Port, "/hello/Ada")),
        Form = <<"application/x-www-form-urlencoded">>,
        {200, _, Posted} = post(Port, "/form", Form, <<"a=1">>),
        ?assertEqual(#{<<"method">> => <<"POST">>, <<"a">> => <<"1">>}, json(Posted)),
        ?assertMatch({200, _, <<"42">>}, py_http:get(Port, "/double/21")),
        ?assertMatch({200, _, <<"0;1;2;">>}, py_http:get(Port, "/stream")),
        {200, Headers, _} = py_http:get(Port, "/cookies"),
        ?assertEqual([<<"a=1">>, <<"b=2">>], cookies(Headers)),
        ?assertMatch({404, _, _}, py_http:get(Port, "/none"))
    end).

%% ---- what servers of ASGI get wrong

pitfall(Test) -> pitfall(#{}, Test).

pitfall(Opts, Test) ->
    ok = served("py_asgi_pitfalls:app", Opts#{lifespan => off}, fun(Port) -> Test(Port), ok end).

a_client_that_leaves_is_heard(_Config) ->
    pitfall(fun(Port) ->
        Socket = py_http:connect(Port),
        ok = py_http:send(Socket, "GET /listens", [], <<>>),
        ok = py_test:message(<<"listens">>),
        %% It waits meanwhile.
        {200, _, _} = py_http:get(Port, "/cookies"),
        ok = py_test:nothing_waits(),
        ok = py_http:close(Socket),
        ok = py_test:message(<<"http.disconnect">>)
    end).

every_cookie_is_sent(_Config) ->
    pitfall(fun(Port) ->
        {200, Headers, _} = py_http:get(Port, "/cookies"),
        ?assertEqual([<<"a=1">>, <<"b=2">>], cookies(Headers))
    end).

paths_are_decoded_headers_are_bytes_and_methods_differ(_Config) ->
    pitfall(fun(Port) ->
        Socket = py_http:connect(Port),
        [
            begin
                ok = py_http:send(Socket, [Method, " /show/caf%C3%A9"], [{<<"X-A">>, <<"1">>}], <<>>),
                Text = <<Method/binary, " /show/café [(b'host', b'test'), (b'x-a', b'1')]"/utf8>>,
                ?assertMatch({200, _, Text}, py_http:response(Socket))
            end
         || Method <- [<<"GET">>, <<"DELETE">>, <<"GET">>]
        ]
    end).

a_websocket_is_accepted_by_the_application_only(_Config) ->
    pitfall(fun(Port) ->
        [
            begin
                Test = self(),
                Asker = spawn_link(fun() ->
                    {Status, _, _} = py_http:websocket(Port, "/late", []),
                    Test ! {self(), Status}
                end),
                {<<"asked">>, Box} = py_test:message(),
                ok = py_test:nothing_waits(),
                Box ! Word,
                ok = py_test:message({Asker, Status})
            end
         || {Word, Status} <- [{<<"accept">>, 101}, {<<"deny">>, 403}]
        ]
    end).

sending_waits_for_the_client(_Config) ->
    pitfall(fun(Port) ->
        Socket = py_http:connect(Port),
        ok = py_http:send(Socket, "GET /flood", [], <<>>),
        ok = py_test:message(<<"floods">>),
        %% Others are served: who can't send waits, and does not block.
        ?assertMatch({200, _, <<"pong">>}, py_http:get(Port, "/ping")),
        ok = py:state_store(<<"py_asgi_reads">>, true),
        {200, _, Body} = py_http:response(Socket),
        ?assertEqual(64 bsl 20, byte_size(Body)),
        ok = py_test:message({<<"flooded">>, true}),
        ok = py:state_remove(<<"py_asgi_reads">>)
    end).

smuggled_requests_are_refused(_Config) ->
    pitfall(fun(Port) ->
        Post = <<"POST /show HTTP/1.1\r\nhost: a\r\n">>,
        [
            begin
                Socket = py_http:connect(Port),
                ok = gen_tcp:send(Socket, Request),
                ?assertMatch({400, _, _}, py_http:response(Socket))
            end
         || Request <- [
                [Post, "content-length: 1\r\ncontent-length: 2\r\n\r\nab"],
                [Post, "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
                <<"GET /show HTTP/1.1\nhost: a\n\n">>
            ]
        ],
        ?assertMatch({200, _, <<"pong">>}, py_http:get(Port, "/ping"))
    end).

too_many_headers_are_refused(_Config) ->
    pitfall(#{max_headers => 10, max_header_size => 1000}, fun(Port) ->
        Many = [{<<"a">>, <<"b">>} || _ <- lists:seq(1, 11)],
        ?assertMatch({431, _, _}, py_http:request(Port, <<"GET">>, "/ping", Many, <<>>)),
        Large = [{<<"a">>, binary:copy(<<"b">>, 2000)}],
        ?assertMatch({431, _, _}, py_http:request(Port, <<"GET">>, "/ping", Large, <<>>))
    end).

slow_clients_are_left(_Config) ->
    pitfall(#{header_timeout => 50}, fun(Port) ->
        Socket = py_http:connect(Port),
        ok = gen_tcp:send(Socket, <<"GET /ping HTTP/1.1\r\nhos">>),
        ?assertMatch({408, _, _}, py_http:response(Socket))
    end).

%% ---- a loop that is blocked, by the order of events

%% Asks for `/ping' while `/block' runs, then lets that end: what happened, in order.
while_blocked(Port, Path, Ping) ->
    {ok, _} = py:call(py_asgi_pitfalls, take_order, []),
    Gate = integer_to_binary(erlang:unique_integer([positive])),
    Blocked = py_http:connect(Port),
    ok = py_http:send(Blocked, ["GET ", Path, "/", Gate], [], <<>>),
    ok = py_test:message({<<"at">>, Gate}),
    Pinging = py_http:connect(Port),
    ok = py_http:send(Pinging, "GET /ping", [], <<>>),
    Ping(Pinging),
    {ok, _} = py:call(py_tools, open_gate, [Gate]),
    ?assertMatch({200, _, <<"blocked">>}, py_http:response(Blocked)),
    Pinging.

a_handler_that_blocks_its_loop_delays_others(_Config) ->
    pitfall(fun(Port) ->
        Pinging = while_blocked(Port, "/block", fun(_) -> ok end),
        ?assertMatch({200, _, <<"pong">>}, py_http:response(Pinging)),
        {ok, Order} = py:call(py_asgi_pitfalls, take_order, []),
        ?assertEqual([<<"begins">>, <<"ends">>, <<"ping">>], Order)
    end).

a_handler_that_blocks_a_thread_delays_nobody(_Config) ->
    pitfall(fun(Port) ->
        Answered = fun(Socket) -> {200, _, <<"pong">>} = py_http:response(Socket) end,
        _ = while_blocked(Port, "/block_worker", Answered),
        {ok, Order} = py:call(py_asgi_pitfalls, take_order, []),
        ?assertEqual([<<"begins">>, <<"ping">>, <<"ends">>], Order)
    end).

%% ---- the log

log(#{msg := {Format, Args}, meta := #{logger_name := Name}, level := Level}, #{config := Pid}) ->
    Pid ! {Name, Level, unicode:characters_to_binary(io_lib:format(Format, Args))};
log(_Event, _Config) ->
    ok.

the_access_log_is_in_the_logger(_Config) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, info),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    try
        pitfall(fun(Port) ->
            {200, _, _} = py_http:get(Port, "/ping?a=1"),
            receive
                {<<"erlang.serve.access">>, info, Line} ->
                    ?assertMatch([_, _], binary:split(Line, <<"\"GET /ping?a=1 HTTP/1.1\" 200">>))
            after 20_000 -> error(no_line)
            end
        end)
    after
        ok = logger:remove_handler(?MODULE),
        ok = logger:set_primary_config(level, Level)
    end.
