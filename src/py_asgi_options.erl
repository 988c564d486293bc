%% What `py_asgi:serve' can be told, checked before anything is started.
%%
%% Process: the caller's own. Pure.
-module(py_asgi_options).

-export([check/2, for_python/1]).

-export_type([app/0, given/0, options/0]).

%% `<<"main:app">>'; a function that makes the application; a WSGI application.
-type app() :: name() | {factory, name()} | {wsgi, name()}.
-type name() :: binary() | string().
%% The keys are those of `defaults/0' and `kinds/0'; times are milliseconds.
-type given() :: #{atom() => term()}.
-type options() :: #{
    app := {asgi | factory | wsgi, binary()},
    mounts := [{Prefix :: binary(), {asgi | factory | wsgi, binary()}}],
    workers := pos_integer(),
    mode := loop | subinterp,
    stop_timeout := non_neg_integer(),
    start_timeout := timeout(),
    _ => _
}.

-type kind() ::
    {integer, non_neg_integer(), pos_integer()}
    | timeout
    | boolean
    | text
    | path
    | name
    | mounts
    | proxies
    | address
    | {one_of, [atom()]}
    | {text_or, [atom()]}.

-define(MOST, 16#FFFFFFFF).

-spec check(app(), given()) -> {ok, options()} | {error, {bad_argument, binary()}}.
check(App, Opts) when is_map(Opts) ->
    case app(App) of
        {ok, Checked} ->
            Start = {ok, (defaults())#{app => Checked}},
            together(maps:fold(fun option/3, Start, Opts), Opts);
        error ->
            refused("the application must be <<\"module:attribute\">>, {factory, Name} or "
                "{wsgi, Name}, and is ~tp", [App])
    end;
check(_App, Opts) ->
    refused("the options must be a map, and are ~tp", [Opts]).

defaults() ->
    #{
        host => <<"127.0.0.1">>,
        port => 8000,
        backlog => 2048,
        reuse_port => false,
        uds_mode => 8#666,
        workers => 1,
        mode => loop,
        mounts => [],
        stop_timeout => 30_000,
        start_timeout => 60_000
    }.

-spec kinds() -> #{atom() => kind()}.
kinds() ->
    #{
        name => name,
        host => address,
        port => {integer, 0, 65535},
        uds => path,
        uds_mode => {integer, 0, 8#777},
        backlog => {integer, 1, 65535},
        reuse_port => boolean,
        workers => {integer, 1, 256},
        mode => {one_of, [loop, subinterp]},
        mounts => mounts,
        app_dir => path,
        root_path => text,
        lifespan => {one_of, [auto, on, off]},
        access_log => boolean,
        access_log_format => {text_or, [common, json]},
        access_log_file => {text_or, [stdout, stderr]},
        pathsend => boolean,
        server_header => text,
        max_header_size => {integer, 1, ?MOST},
        max_headers => {integer, 1, 256},
        max_body_size => {integer, 0, ?MOST},
        max_connections => {integer, 0, ?MOST},
        max_in_flight => {integer, 0, ?MOST},
        header_timeout => {integer, 1, ?MOST},
        idle_timeout => {integer, 1, ?MOST},
        stop_timeout => {integer, 0, ?MOST},
        start_timeout => timeout,
        trusted_proxies => proxies,
        ws_max_size => {integer, 1, ?MOST},
        ws_deflate => boolean,
        ws_ping_interval => {integer, 0, ?MOST},
        ws_ping_timeout => {integer, 1, ?MOST},
        certificate => path,
        private_key => path,
        private_key_password => text
    }.

option(_Key, _Value, {error, _} = Error) ->
    Error;
option(Key, Value, {ok, Options}) ->
    case kinds() of
        #{Key := Kind} ->
            case value(Kind, Value) of
                {ok, Checked} -> {ok, Options#{Key => Checked}};
                error -> refused("~ts must be ~ts, and is ~tp", [Key, wanted(Kind), Value])
            end;
        #{} ->
            refused("there is no option ~tp; the options are ~ts", [Key, names()])
    end.

names() ->
    lists:join(", ", [atom_to_list(Key) || Key <- lists:sort(maps:keys(kinds()))]).

%% What fits by itself, but not with the rest.
together({ok, #{uds := _}}, #{host := _}) ->
    refused("uds is given in place of host and port", []);
together({ok, #{uds := _}}, #{port := _}) ->
    refused("uds is given in place of host and port", []);
together({ok, #{private_key := _} = Options}, _) when not is_map_key(certificate, Options) ->
    refused("private_key needs a certificate", []);
together({ok, #{root_path := <<>>}} = Ok, _) ->
    Ok;
together({ok, #{root_path := Root}} = Ok, _) ->
    case binary:first(Root) =:= $/ andalso binary:last(Root) =/= $/ of
        true -> Ok;
        false -> refused("root_path must begin with a slash and not end with one", [])
    end;
together(Checked, _) ->
    Checked.

value({integer, Least, Most}, N) when is_integer(N), N >= Least, N =< Most -> {ok, N};
value(timeout, infinity) -> {ok, infinity};
value(timeout, N) when is_integer(N), N >= 0, N =< ?MOST -> {ok, N};
value(boolean, Flag) when is_boolean(Flag) -> {ok, Flag};
value({one_of, Values}, Value) -> found(lists:member(Value, Values), Value);
value({text_or, Words}, Word) when is_atom(Word) -> found(lists:member(Word, Words), atom_to_binary(Word));
value({text_or, _Words}, Text) -> py_text:one(Text);
value(name, Name) when is_atom(Name), Name =/= undefined -> {ok, Name};
value(text, Text) -> text(Text);
value(path, Path) -> py_text:one(Path);
value(address, Ip) when is_tuple(Ip) ->
    case inet:ntoa(Ip) of
        {error, einval} -> error;
        Text -> {ok, list_to_binary(Text)}
    end;
value(address, Host) -> py_text:one(Host);
value(proxies, [First | _] = Proxies) when not is_integer(First) ->
    case py_text:all(Proxies) of
        {ok, Texts} -> {ok, iolist_to_binary(lists:join(",", Texts))};
        error -> error
    end;
value(proxies, Proxies) -> text(Proxies);
value(mounts, Mounts) when is_map(Mounts) ->
    Checked = [mount(Mount) || Mount <- maps:to_list(Mounts)],
    found(not lists:member(error, Checked), Checked);
value(_Kind, _Value) -> error.

found(true, Value) -> {ok, Value};
found(false, _Value) -> error.

mount({Prefix, App}) ->
    case {py_text:one(Prefix), app(App)} of
        {{ok, <<"/", _/binary>> = Text}, {ok, Checked}} -> {Text, Checked};
        _ -> error
    end.

app({Kind, Name}) when Kind =:= factory; Kind =:= wsgi -> named(Kind, py_text:one(Name));
app(Name) -> named(asgi, py_text:one(Name)).

named(Kind, {ok, Name}) ->
    case binary:split(Name, <<":">>) of
        [<<_, _/binary>>, <<_, _/binary>>] -> {ok, {Kind, Name}};
        _ -> error
    end;
named(_Kind, error) ->
    error.

%% May be empty.
text(Empty) when Empty =:= <<>>; Empty =:= [] -> {ok, <<>>};
text(Text) -> py_text:one(Text).

wanted({integer, Least, Most}) -> io_lib:format("an integer from ~b to ~b", [Least, Most]);
wanted(timeout) -> "milliseconds or infinity";
wanted(boolean) -> "true or false";
wanted({one_of, Values}) -> lists:join(" or ", [atom_to_list(Value) || Value <- Values]);
wanted({text_or, Words}) -> ["a text, ", wanted({one_of, Words})];
wanted(name) -> "an atom";
wanted(text) -> "a text";
wanted(path) -> "the path of a file";
wanted(address) -> "an address or the name of a host";
wanted(proxies) -> "addresses and networks, as a text or a list of texts";
wanted(mounts) -> "a map of prefixes that begin with a slash to applications".

refused(Format, Args) ->
    {error, {bad_argument, py_text:format(Format, Args)}}.

%% Keyword arguments for `erlang.serve.Options', which wants seconds.
-spec for_python(options()) -> #{atom() => term()}.
for_python(Options) ->
    Own = [
        starter, name, app, mounts, app_dir, workers, mode, start_timeout, host, port, uds, uds_mode,
        reuse_port
    ],
    maps:map(fun seconds/2, maps:without(Own, Options)).

seconds(Key, Milliseconds) when
    Key =:= header_timeout;
    Key =:= idle_timeout;
    Key =:= stop_timeout;
    Key =:= ws_ping_interval;
    Key =:= ws_ping_timeout
->
    Milliseconds / 1000;
seconds(_Key, Value) ->
    Value.
