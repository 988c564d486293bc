%% A client for the suites: HTTP/1.1 and WebSocket over `gen_tcp', one request after another.
%%
%% Process: the test's own.
-module(py_http).

-export([connect/1, close/1, get/2, request/5, ask/2, send/4, response/1, head/1, is_closed/1]).
-export([websocket/2, websocket/3, ws_send/2, ws_receive/1, ws_close/2]).

-define(PATIENCE, 60_000).

-type socket() :: gen_tcp:socket().
-type headers() :: [{binary(), binary()}].
-type response() :: {Status :: pos_integer(), headers(), Body :: binary()}.

%% A port of the loopback, or the path of a Unix socket.
-spec connect(inet:port_number() | binary()) -> socket().
connect(Path) when is_binary(Path) -> connected({local, Path}, 0);
connect(Port) -> connected({127, 0, 0, 1}, Port).

connected(Address, Port) ->
    Options = [binary, {active, false}, {packet, raw}, {nodelay, true}],
    {ok, Socket} = gen_tcp:connect(Address, Port, Options, ?PATIENCE),
    Socket.

-spec close(socket()) -> ok.
close(Socket) -> gen_tcp:close(Socket).

%% One request on a connection of its own.
-spec get(inet:port_number() | binary(), iodata()) -> response().
get(Port, Path) -> request(Port, <<"GET">>, Path, [], <<>>).

-spec request(inet:port_number() | binary(), iodata(), iodata(), headers(), iodata()) -> response().
request(Port, Method, Path, Headers, Body) ->
    Socket = connect(Port),
    try
        Length = [{<<"content-length">>, integer_to_binary(iolist_size(Body))} || Body =/= <<>>],
        ok = send(Socket, [Method, " ", Path], Headers ++ Length, Body),
        response(Socket)
    after
        close(Socket)
    end.

%% A GET on a connection that stays.
-spec ask(socket(), iodata()) -> response().
ask(Socket, Path) ->
    ok = send(Socket, ["GET ", Path], [], <<>>),
    response(Socket).

-spec send(socket(), iodata(), headers(), iodata()) -> ok.
send(Socket, MethodAndPath, Headers, Body) ->
    Lines = [[Name, ": ", Value, "\r\n"] || {Name, Value} <- [{<<"host">>, <<"test">>} | Headers]],
    gen_tcp:send(Socket, [MethodAndPath, " HTTP/1.1\r\n", Lines, "\r\n", Body]).

-spec response(socket()) -> response().
response(Socket) ->
    {Status, Headers} = head(Socket),
    {Status, Headers, body(Socket, Headers)}.

-spec head(socket()) -> {pos_integer(), headers()}.
head(Socket) ->
    ok = inet:setopts(Socket, [{packet, http_bin}]),
    {ok, {http_response, _, Status, _}} = gen_tcp:recv(Socket, 0, ?PATIENCE),
    Headers = headers(Socket, []),
    ok = inet:setopts(Socket, [{packet, raw}]),
    {Status, Headers}.

headers(Socket, Done) ->
    case gen_tcp:recv(Socket, 0, ?PATIENCE) of
        {ok, {http_header, _, _, Name, Value}} ->
            headers(Socket, [{string:lowercase(Name), Value} | Done]);
        {ok, http_eoh} ->
            lists:reverse(Done)
    end.

body(Socket, Headers) ->
    case {proplists:get_value(<<"content-length">>, Headers), Headers} of
        {<<"0">>, _} ->
            <<>>;
        {undefined, _} ->
            ok = inet:setopts(Socket, [{packet, line}]),
            Body = chunks(Socket, []),
            ok = inet:setopts(Socket, [{packet, raw}]),
            Body;
        {Length, _} ->
            {ok, Body} = gen_tcp:recv(Socket, binary_to_integer(Length), ?PATIENCE),
            Body
    end.

chunks(Socket, Done) ->
    {ok, Line} = gen_tcp:recv(Socket, 0, ?PATIENCE),
    Size = binary_to_integer(string:trim(Line), 16),
    ok = inet:setopts(Socket, [{packet, raw}]),
    {ok, Bytes} = gen_tcp:recv(Socket, Size + 2, ?PATIENCE),
    ok = inet:setopts(Socket, [{packet, line}]),
    case Size of
        0 -> iolist_to_binary(lists:reverse(Done));
        _ -> chunks(Socket, [binary:part(Bytes, 0, Size) | Done])
    end.

%% Waits for the server to end the connection.
-spec is_closed(socket()) -> boolean().
is_closed(Socket) ->
    case gen_tcp:recv(Socket, 0, ?PATIENCE) of
        {error, Why} -> Why =:= closed orelse Why =:= econnreset;
        {ok, _} -> false
    end.

-spec websocket(inet:port_number(), iodata()) -> socket().
websocket(Port, Path) ->
    {101, _, Socket} = websocket(Port, Path, []),
    Socket.

-spec websocket(inet:port_number(), iodata(), headers()) -> {pos_integer(), headers(), socket()}.
websocket(Port, Path, More) ->
    Socket = connect(Port),
    Headers = [
        {<<"upgrade">>, <<"websocket">>},
        {<<"connection">>, <<"upgrade">>},
        {<<"sec-websocket-version">>, <<"13">>},
        {<<"sec-websocket-key">>, base64:encode(crypto:strong_rand_bytes(16))}
        | More
    ],
    ok = send(Socket, ["GET ", Path], Headers, <<>>),
    {Status, Got} = head(Socket),
    {Status, Got, Socket}.

%% A message of text, short enough for one byte of length; masked with zeros.
-spec ws_send(socket(), binary()) -> ok.
ws_send(Socket, Text) when byte_size(Text) < 126 ->
    gen_tcp:send(Socket, <<16#81, 1:1, (byte_size(Text)):7, 0:32, Text/binary>>).

-spec ws_close(socket(), non_neg_integer()) -> ok.
ws_close(Socket, Code) ->
    gen_tcp:send(Socket, <<16#88, 1:1, 2:7, 0:32, Code:16>>).

%% The text of the next message, or the code of a close.
-spec ws_receive(socket()) -> binary() | {close, non_neg_integer()}.
ws_receive(Socket) ->
    case gen_tcp:recv(Socket, 2, ?PATIENCE) of
        {ok, <<16#81, 126>>} ->
            {ok, <<Size:16>>} = gen_tcp:recv(Socket, 2, ?PATIENCE),
            exactly(Socket, Size);
        {ok, <<16#81, Size>>} ->
            exactly(Socket, Size);
        {ok, <<16#88, Size>>} ->
            <<Code:16, _/binary>> = exactly(Socket, Size),
            {close, Code}
    end.

exactly(_Socket, 0) ->
    <<>>;
exactly(Socket, Size) ->
    {ok, Bytes} = gen_tcp:recv(Socket, Size, ?PATIENCE),
    Bytes.
