%% The options of `py_asgi:serve' that change what a client or an application sees.
-module(py_asgi_options_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    tls_is_served/1,
    a_proxy_that_is_trusted_is_believed/1,
    requests_beyond_the_limit_are_refused/1,
    bodies_beyond_the_limit_are_refused/1,
    pathsend_is_announced_where_it_is_asked_for/1,
    the_server_names_itself/1,
    an_address_may_be_a_tuple_or_ipv6/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) ->
    true = register(py_asgi_options_test, self()),
    Config.

end_per_testcase(_Case, _Config) -> ok.

served(App, Opts, Test) ->
    {ok, Server} = py_asgi:serve(App, Opts#{port => 0, lifespan => off}),
    try
        Test(py_asgi:port(Server))
    after
        ok = py_asgi:stop(Server)
    end.

served(Opts, Test) -> served("py_asgi_scopes:app", Opts, Test).

%% A certificate and its key, in files.
certificate(Config) ->
    Modern = [{key, {namedCurve, secp256r1}}, {digest, sha256}],
    Chain = #{root => Modern, intermediates => [], peer => Modern},
    #{server_config := Made} = public_key:pkix_test_data(#{
        server_chain => Chain, client_chain => Chain
    }),
    {KeyType, Key} = proplists:get_value(key, Made),
    Entries = [
        {"certificate.pem", {'Certificate', proplists:get_value(cert, Made), not_encrypted}},
        {"key.pem", {KeyType, Key, not_encrypted}}
    ],
    [
        begin
            File = filename:join(proplists:get_value(priv_dir, Config), Name),
            ok = file:write_file(File, public_key:pem_encode([Entry])),
            File
        end
     || {Name, Entry} <- Entries
    ].

tls_is_served(Config) ->
    {ok, _} = application:ensure_all_started(ssl),
    [Certificate, Key] = certificate(Config),
    served(#{certificate => Certificate, private_key => Key}, fun(Port) ->
        Opts = [binary, {active, false}, {verify, verify_none}]
            ++ [{alpn_advertised_protocols, [<<"h2">>, <<"http/1.1">>]}],
        {ok, Socket} = ssl:connect("127.0.0.1", Port, Opts, 20_000),
        ?assertEqual({ok, <<"http/1.1">>}, ssl:negotiated_protocol(Socket)),
        ok = ssl:send(Socket, <<"GET /x HTTP/1.1\r\nhost: a\r\n\r\n">>),
        Response = until(<<"['https', '', '/x'">>, Socket, <<>>),
        ?assertMatch(<<"HTTP/1.1 200 OK", _/binary>>, Response),
        ok = ssl:close(Socket)
    end).

%% What comes, up to this part of it.
until(Part, Socket, Got) ->
    case binary:match(Got, Part) of
        nomatch ->
            {ok, Bytes} = ssl:recv(Socket, 0, 20_000),
            until(Part, Socket, <<Got/binary, Bytes/binary>>);
        _ ->
            Got
    end.

a_proxy_that_is_trusted_is_believed(_Config) ->
    Forwarded = [{<<"x-forwarded-for">>, <<"10.1.2.3">>}, {<<"x-forwarded-proto">>, <<"https">>}],
    Ask = fun(Port) -> py_http:request(Port, <<"GET">>, "/x", Forwarded, <<>>) end,
    Trusting = #{trusted_proxies => [<<"127.0.0.0/8">>, "10.9.0.0/16"], root_path => <<"/api">>},
    served(Trusting, fun(Port) ->
        Seen = <<"['https', '/api', '/api/x', ('10.1.2.3', 0)]">>,
        ?assertMatch({200, _, Seen}, Ask(Port))
    end),
    served(#{}, fun(Port) ->
        ?assertMatch({200, _, <<"['http', '', '/x', ('127.0.0.1', ", _/binary>>}, Ask(Port))
    end).

requests_beyond_the_limit_are_refused(_Config) ->
    served("py_asgi_scopes:waits", #{max_in_flight => 1}, fun(Port) ->
        Socket = py_http:connect(Port),
        ok = py_http:send(Socket, "GET /first", [], <<>>),
        Box = py_test:message(),
        ?assertMatch({503, _, _}, py_http:get(Port, "/second")),
        Box ! go,
        ?assertMatch({200, _, _}, py_http:response(Socket))
    end).

bodies_beyond_the_limit_are_refused(_Config) ->
    served(#{max_body_size => 10}, fun(Port) ->
        ?assertMatch({200, _, _}, py_http:request(Port, <<"POST">>, "/", [], <<"0123456789">>)),
        ?assertMatch({413, _, _}, py_http:request(Port, <<"POST">>, "/", [], <<"0123456789a">>))
    end).

pathsend_is_announced_where_it_is_asked_for(_Config) ->
    [
        served("py_asgi_scopes:extensions", Opts, fun(Port) ->
            {200, _, Told} = py_http:get(Port, "/"),
            ?assertEqual(Wanted, nomatch =/= binary:match(Told, <<"http.response.pathsend">>))
        end)
     || {Opts, Wanted} <- [{#{}, false}, {#{pathsend => true}, true}]
    ].

the_server_names_itself(_Config) ->
    served(#{server_header => <<"beam">>}, fun(Port) ->
        {200, Headers, _} = py_http:get(Port, "/"),
        ?assertEqual(<<"beam">>, proplists:get_value(<<"server">>, Headers))
    end).

an_address_may_be_a_tuple_or_ipv6(_Config) ->
    [
        served(#{host => Host}, fun(Port) ->
            {ok, Socket} = gen_tcp:connect(Ip, Port, [binary, {active, false}]),
            ?assertMatch({200, _, _}, py_http:ask(Socket, "/"))
        end)
     || {Host, Ip} <- [
            {{127, 0, 0, 1}, {127, 0, 0, 1}},
            {<<"localhost">>, {127, 0, 0, 1}},
            {"::1", {0, 0, 0, 0, 0, 0, 0, 1}}
        ]
    ],
    ?assertEqual({error, {posix, nxdomain}}, py_asgi:serve("a:b", #{host => "no.such.invalid"})).
