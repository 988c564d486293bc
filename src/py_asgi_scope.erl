%% The scope of a request as Python gets it: checked, texts and bytes where ASGI has them.
%%
%% Process: the caller's own. Pure.
-module(py_asgi_scope).

-export([prepare/1]).

-export_type([scope/0]).

%% What is left out has a default: a GET of `/' without headers.
-type scope() :: #{
    type => http,
    http_version => binary(),
    method => atom() | binary(),
    scheme => binary(),
    path => binary(),
    raw_path => binary(),
    query_string => binary(),
    root_path => binary(),
    headers => [{iodata(), iodata()}] | #{iodata() => iodata()},
    server => {inet:ip_address() | binary(), inet:port_number()} | none,
    client => {inet:ip_address() | binary(), inet:port_number()} | none,
    state => map(),
    extensions => map()
}.

-spec prepare(scope()) -> {ok, #{atom() => term()}} | {error, {bad_argument, {scope, atom()}}}.
prepare(Scope) when is_map(Scope) ->
    try
        {ok, with_paths(maps:map(fun part/2, Scope))}
    catch
        throw:Key -> {error, {bad_argument, {scope, Key}}};
        error:badarg -> {error, {bad_argument, {scope, headers}}}
    end;
prepare(_Scope) ->
    {error, {bad_argument, {scope, map}}}.

part(method, Method) when is_atom(Method); is_binary(Method) -> Method;
part(headers, Headers) when is_list(Headers) -> [header(Header) || Header <- Headers];
part(headers, Headers) when is_map(Headers) -> part(headers, maps:to_list(Headers));
part(query_string, Query) when is_binary(Query) -> {bytes, Query};
part(Key, Text) when
    (Key =:= path orelse Key =:= raw_path orelse Key =:= root_path orelse Key =:= scheme orelse
        Key =:= http_version),
    is_binary(Text)
->
    Text;
part(Key, Address) when Key =:= server; Key =:= client -> address(Key, Address);
part(Key, Map) when (Key =:= state orelse Key =:= extensions), is_map(Map) -> Map;
part(type, Type) when Type =:= http; Type =:= <<"http">> -> http;
part(Key, _Value) -> throw(Key).

header({Name, Value}) ->
    {{bytes, lower(iolist_to_binary(Name))}, {bytes, iolist_to_binary(Value)}};
header(_Other) ->
    throw(headers).

%% Names are ASCII.
lower(Name) ->
    case has_upper(Name) of
        true -> <<<<(lower_char(C))>> || <<C>> <= Name>>;
        false -> Name
    end.

has_upper(<<C, _/binary>>) when C >= $A, C =< $Z -> true;
has_upper(<<_, Rest/binary>>) -> has_upper(Rest);
has_upper(<<>>) -> false.

lower_char(C) when C >= $A, C =< $Z -> C + 32;
lower_char(C) -> C.

address(_Key, None) when None =:= none; None =:= undefined -> none;
address(Key, {Ip, Port}) when is_tuple(Ip), is_integer(Port) ->
    case inet:ntoa(Ip) of
        {error, einval} -> throw(Key);
        Text -> {list_to_binary(Text), Port}
    end;
address(_Key, {Host, Port}) when is_binary(Host), is_integer(Port); Port =:= none -> {Host, Port};
address(Key, _Address) -> throw(Key).

%% `path' alone is as it came over the wire; with `raw_path' beside it, it was decoded already.
with_paths(#{raw_path := Raw} = Scope) ->
    Scope#{raw_path := {bytes, Raw}};
with_paths(#{path := Path} = Scope) ->
    Scope#{path := decoded(Path), raw_path => {bytes, Path}};
with_paths(Scope) ->
    Scope.

decoded(Path) ->
    case binary:match(Path, <<"%">>) of
        nomatch -> Path;
        _ -> decode(Path, <<>>)
    end.

%% What is no escape stays as it is.
decode(<<$%, High, Low, Rest/binary>>, Done) ->
    case {digit(High), digit(Low)} of
        {H, L} when is_integer(H), is_integer(L) -> decode(Rest, <<Done/binary, (H * 16 + L)>>);
        _ -> decode(<<High, Low, Rest/binary>>, <<Done/binary, $%>>)
    end;
decode(<<C, Rest/binary>>, Done) ->
    decode(Rest, <<Done/binary, C>>);
decode(<<>>, Done) ->
    Done.

digit(C) when C >= $0, C =< $9 -> C - $0;
digit(C) when C >= $a, C =< $f -> C - $a + 10;
digit(C) when C >= $A, C =< $F -> C - $A + 10;
digit(_) -> error.
