%% Fetches the program uv by Erlang's own HTTP client, on a machine without a Python.
%%
%% Place: behind py_uv; with a Python on the machine its `_fetch_uv.py' does the same, without the applications inets
%% and ssl, which a release may not have.
%% Process: one of its own, to which the client is linked.
-module(py_uv_fetch).

-export([fetch/1]).

-define(TIMEOUT, 120_000).
-define(MOST_REDIRECTS, 5).
-define(INDEXES, ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"]).
-define(CERTIFICATES, ["SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"]).

-type why() :: unicode:chardata().

%% Puts uv into the directory. What it is made of is checked by the digest that the index gives.
-spec fetch(file:filename_all()) -> ok | {error, why()}.
fetch(Dir) ->
    Needed = [{inets, httpc}, {ssl, ssl}, {crypto, crypto}],
    case [App || {App, Module} <- Needed, code:ensure_loaded(Module) =/= {module, Module}] of
        [] ->
            with_client(fun(Client) -> wheel(Client, Dir) end);
        Missing ->
            Names = lists:join(", ", [atom_to_list(App) || App <- Missing]),
            Text = "there is no Python to fetch it with, and the node is without ",
            {error, [Text, Names, ": see https://docs.astral.sh/uv"]}
    end.

with_client(Fun) ->
    Caller = self(),
    Tag = make_ref(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        {ok, _} = application:ensure_all_started(ssl),
        {ok, Client} = inets:start(httpc, [{profile, ?MODULE}], stand_alone),
        ok = httpc:set_options(proxies(), Client),
        Caller ! {Tag, Fun(Client)},
        ok = gen_server:stop(Client)
    end),
    receive
        {'DOWN', Monitor, process, Pid, Why} when Why =/= normal ->
            {error, io_lib:format("~0tP", [Why, 12])};
        {'DOWN', Monitor, process, Pid, normal} ->
            receive
                {Tag, Fetched} -> Fetched
            end
    end.

wheel(Client, Dir) ->
    Index = env(?INDEXES, "https://pypi.org/simple"),
    Page = string:trim(Index, trailing, "/") ++ "/uv/",
    case get(Client, Page) of
        {ok, Html, Place} -> newest(Client, Place, links(Html), Dir);
        {error, _} = Error -> Error
    end.

newest(_Client, Page, [], _Dir) ->
    {error, [bare(Page), " has no wheel of uv for ", machine(), " and ", libc()]};
newest(Client, Page, Links, Dir) ->
    {_Version, Link, Digest} = lists:max(Links),
    Url = absolute(Link, Page),
    case get(Client, Url) of
        {ok, Wheel, _} ->
            case string:lowercase(binary:encode_hex(crypto:hash(sha256, Wheel))) of
                Digest -> unpack(Wheel, Dir);
                _ -> {error, [bare(Url), " does not have the digest that the index gives"]}
            end;
        {error, _} = Error ->
            Error
    end.

%% Those for this machine: version, URL, digest.
links(Html) ->
    Link = "<a\\s[^>]*?href=\"([^\"#]+)#sha256=([0-9a-f]{64})\"[^>]*>\\s*uv-([0-9.]+)-py3-none-([^<\\s]+)\\.whl\\s*</a>",
    case re:run(Html, Link, [global, {capture, [1, 2, 3, 4], binary}]) of
        {match, Found} ->
            [
                {[binary_to_integer(Part) || Part <- binary:split(Version, <<".">>, [global])], Url, Digest}
             || [Url, Digest, Version, Tags] <- Found,
                string:find(Tags, libc()) =/= nomatch,
                string:find(Tags, machine()) =/= nomatch
            ];
        nomatch ->
            []
    end.

machine() -> hd(string:lexemes(erlang:system_info(system_architecture), "-")).

libc() ->
    case string:find(erlang:system_info(system_architecture), "musl") of
        nomatch -> "manylinux";
        _ -> "musllinux"
    end.

%% The name and the password of the index are for its own host alone.
absolute(Link, Page) ->
    From = uri_string:parse(Page),
    Url = uri_string:parse(unicode:characters_to_list(uri_string:resolve(Link, maps_without_user(From)))),
    case origin(Url) =:= origin(From) of
        true -> uri_string:recompose(maps:merge(Url, maps:with([userinfo], From)));
        false -> uri_string:recompose(Url)
    end.

origin(Url) -> maps:with([scheme, host, port], Url).

maps_without_user(Url) -> uri_string:recompose(maps:remove(userinfo, Url)).

%% What is there, and where it was in the end.
get(Client, Text) -> get(Client, Text, ?MOST_REDIRECTS).

get(Client, Text, Redirects) ->
    case uri_string:parse(Text) of
        #{scheme := Scheme, host := _} = Url when Scheme =:= "http"; Scheme =:= "https" ->
            Headers = [
                {"authorization", "Basic " ++ base64:encode_to_string(uri_string:percent_decode(User))}
             || #{userinfo := User} <- [Url]
            ],
            %% The client itself would take the password along to any other host.
            Options = [{autoredirect, false}, {timeout, ?TIMEOUT}, {connect_timeout, 30_000} | tls(Scheme)],
            Answer = httpc:request(get, {maps_without_user(Url), Headers}, Options, [{body_format, binary}], Client),
            answer(Client, Text, Redirects, Answer);
        _ ->
            {error, [bare(Text), " is no URL of a package index"]}
    end.

answer(_Client, Text, _Redirects, {ok, {{_, 200, _}, _Headers, Body}}) ->
    {ok, Body, Text};
answer(Client, Text, Redirects, {ok, {{_, Status, Phrase}, Headers, _Body}}) ->
    case {Status div 100, proplists:get_value("location", Headers)} of
        {3, Link} when Link =/= undefined, Redirects > 0 -> redirected(Client, Text, absolute(Link, Text), Redirects - 1);
        _ -> {error, io_lib:format("~ts: ~b ~ts", [bare(Text), Status, Phrase])}
    end;
answer(_Client, Text, _Redirects, {error, Why}) ->
    {error, io_lib:format("~ts: ~0tP", [bare(Text), Why, 12])}.

redirected(_Client, "https:" ++ _ = Text, "http:" ++ _, _Redirects) ->
    {error, [bare(Text), " leads to a place without encryption"]};
redirected(Client, _Text, Url, Redirects) ->
    get(Client, Url, Redirects).

tls("http") ->
    [];
tls("https") ->
    Trusted =
        case env(?CERTIFICATES, "") of
            "" -> [{cacerts, public_key:cacerts_get()}];
            File -> [{cacertfile, File}]
        end,
    Names = public_key:pkix_verify_hostname_match_fun(https),
    [{ssl, [{verify, verify_peer}, {depth, 5}, {customize_hostname_check, [{match_fun, Names}]} | Trusted]}].

proxies() ->
    No = string:lexemes(env(["no_proxy", "NO_PROXY"], ""), ", "),
    [
        {Option, {{Host, maps:get(port, Proxy, 80)}, No}}
     || {Option, Names} <- [
            {proxy, ["http_proxy", "all_proxy", "ALL_PROXY"]},
            {https_proxy, ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]}
        ],
        #{host := Host} = Proxy <- [uri_string:parse(env(Names, ""))]
    ].

env(Names, Default) ->
    case [Value || Name <- Names, Value <- [os:getenv(Name, "")], Value =/= ""] of
        [Value | _] -> Value;
        [] -> Default
    end.

unpack(Wheel, Dir) ->
    IsUv = fun({zip_file, Name, _, _, _, _}) -> lists:suffix(".data/scripts/uv", Name);
        (_) -> false
    end,
    case zip:unzip(Wheel, [memory, {file_filter, IsUv}]) of
        {ok, [{_Name, Uv}]} -> place(Uv, Dir);
        _ -> {error, "the wheel of uv has no program in it"}
    end.

%% In one move: another node may fetch it, too, or run it.
place(Uv, Dir) ->
    New = filename:join(Dir, "uv.new." ++ os:getpid()),
    Steps = [
        fun() -> filelib:ensure_path(Dir) end,
        fun() -> file:write_file(New, Uv) end,
        fun() -> file:change_mode(New, 8#755) end,
        fun() -> file:rename(New, filename:join(Dir, "uv")) end
    ],
    case [Code || Step <- Steps, {error, Code} <- [Step()]] of
        [] -> ok;
        [Code | _] -> {error, [Dir, ": ", file:format_error(Code)]}
    end.

bare(Url) -> re:replace(Url, "://[^/\\s]*@", "://****@", [{return, list}]).
