%% What `py_asgi:serve' can be told, checked before anything is started. Which options there are stands in one table,
%% native/pyloop/src/http/options.rs.
%%
%% Process: the caller's own.
-module(py_asgi_options).

-export([check/2, for_python/1, new_secrets/0, shutdown/1]).

-export_type([app/0, given/0, options/0]).

%% `<<"main:app">>'; a function that makes the application; a WSGI application.
-type app() :: name() | {factory, name()} | {wsgi, name()}.
-type name() :: binary() | string().
%% The keys are those of `py_nif:server_options/0'; times are milliseconds.
-type given() :: #{atom() => term()}.
-type options() :: #{
    app := {asgi | factory | wsgi, binary()},
    mounts => [{Prefix :: binary(), {asgi | factory | wsgi, binary()}}],
    workers := pos_integer(),
    mode := loop | subinterp,
    stop_timeout := non_neg_integer(),
    start_timeout := timeout(),
    _ => _
}.

-include("py_nif.hrl").

%% Passwords by references, which stand for them in the options: those are in reports of supervisors, and so in logs.
-define(SECRETS, py_asgi_secrets).

%% Milliseconds beyond its `stop_timeout' that a server has to end.
-define(MORE, 10_000).

-spec check(app(), given()) -> {ok, options()} | {error, {bad_argument, binary()} | not_running}.
check(App, Opts) when is_map(Opts) ->
    case {app(App), py_nif:is_loaded() andalso ets:whereis(?SECRETS) =/= undefined} of
        {{ok, Checked}, true} -> check(Checked, Opts, rows());
        {{ok, _}, false} -> {error, not_running};
        {error, _} ->
            refused("the application must be <<\"module:attribute\">>, {factory, Name} or "
                "{wsgi, Name}, and is ~tp", [App])
    end;
check(_App, Opts) ->
    refused("the options must be a map, and are ~tp", [Opts]).

check(App, Opts, Rows) ->
    Defaults = maps:filtermap(fun default/2, Rows),
    Options = fun(Key, Value, So) -> option(Key, Value, Rows, So) end,
    together(maps:fold(Options, {ok, Defaults#{app => App}}, Opts), Opts).

%% Milliseconds that a server with these options has to end: beyond its `stop_timeout' so many more.
-spec shutdown(#{stop_timeout => timeout(), _ => _}) -> timeout().
shutdown(#{stop_timeout := Stop}) when is_integer(Stop) ->
    Stop + ?MORE;
shutdown(_Options) ->
    case py_nif:is_loaded() of
        true ->
            #{stop_timeout := #{default := Stop}} = rows(),
            Stop + ?MORE;
        false ->
            infinity
    end.

%% By name.
-spec rows() -> #{atom() => py_nif:server_option()}.
rows() ->
    maps:from_list([{Name, Row} || #{name := Name} = Row <- py_nif:server_options()]).

default(_Key, #{default := Default}) -> {true, Default};
default(_Key, _Row) -> false.

option(_Key, _Value, _Rows, {error, _} = Error) ->
    Error;
option(Key, Value, Rows, {ok, Options}) ->
    case Rows of
        #{Key := #{kind := Kind} = Row} ->
            case value(Kind, Row, Value) of
                {ok, Checked} -> {ok, Options#{Key => Checked}};
                error when Kind =:= secret -> refused("~ts must ~ts", [Key, wanted(Kind, Row)]);
                error -> refused("~ts must ~ts, and is ~tp", [Key, wanted(Kind, Row), Value])
            end;
        #{} ->
            refused("there is no option ~tp; the options are ~ts", [Key, names(Rows)])
    end.

names(Rows) ->
    lists:join(", ", [atom_to_list(Key) || Key <- lists:sort(maps:keys(Rows))]).

%% What fits by itself, but not with the rest.
together({ok, #{uds := _}}, #{host := _}) ->
    refused("uds is given in place of host and port", []);
together({ok, #{uds := _}}, #{port := _}) ->
    refused("uds is given in place of host and port", []);
together({ok, #{private_key := _} = Options}, _) when not is_map_key(certificate, Options) ->
    refused("private_key needs a certificate", []);
together(Checked, _) ->
    Checked.

value(Kind, #{least := Least, most := Most}, N) when Kind =:= integer; Kind =:= permissions ->
    number(N, Least, Most);
value(time_or_infinity, _Row, infinity) -> {ok, infinity};
value(Kind, #{least := Least}, N) when Kind =:= time; Kind =:= time_or_infinity ->
    number(N, Least, ?MAX_TIMEOUT);
value(boolean, _Row, Flag) when is_boolean(Flag) -> {ok, Flag};
value(one_of, #{words := Words}, Word) -> found(lists:member(Word, Words), Word);
value(Kind, #{words := Words}, Word) when is_atom(Word), Kind =:= text_or orelse Kind =:= path_or ->
    found(lists:member(Word, Words), atom_to_binary(Word));
value(name, _Row, Name) when is_atom(Name), Name =/= undefined -> {ok, Name};
value(text, _Row, Text) -> text(Text);
%% Where a supervisor of a user's has the options, their reports are its business.
value(secret, Row, Fun) when is_function(Fun, 0) -> value(secret, Row, Fun());
value(secret, _Row, Text) -> hidden(text(Text));
value(prefix, _Row, Prefix) -> prefix(text(Prefix));
value(Kind, _Row, Text) when Kind =:= path; Kind =:= path_or; Kind =:= text_or -> py_text:one(Text);
value(address, _Row, Ip) when is_tuple(Ip) ->
    case inet:ntoa(Ip) of
        {error, einval} -> error;
        Text -> {ok, list_to_binary(Text)}
    end;
value(address, _Row, Host) -> py_text:one(Host);
value(proxies, _Row, [First | _] = Proxies) when not is_integer(First) ->
    case py_text:all(Proxies) of
        {ok, Texts} -> {ok, iolist_to_binary(lists:join(",", Texts))};
        error -> error
    end;
value(proxies, _Row, Proxies) -> text(Proxies);
value(mounts, _Row, Mounts) when is_map(Mounts) ->
    Checked = [mount(Mount) || Mount <- maps:to_list(Mounts)],
    found(not lists:member(error, Checked), Checked);
value(_Kind, _Row, _Value) -> error.

number(N, Least, Most) -> found(is_integer(N) andalso N >= Least andalso N =< Most, N).

found(true, Value) -> {ok, Value};
found(false, _Value) -> error.

prefix({ok, <<>>} = Ok) ->
    Ok;
prefix({ok, Prefix} = Ok) ->
    case binary:first(Prefix) =:= $/ andalso binary:last(Prefix) =/= $/ of
        true -> Ok;
        false -> error
    end;
prefix(error) ->
    error.

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

%% Makes the table of secrets; its owner is the calling process.
-spec new_secrets() -> ok.
new_secrets() ->
    ?SECRETS = ets:new(?SECRETS, [named_table, public]),
    ok.

%% One that was given before has its place: there are as many as files they are for.
hidden({ok, Secret}) ->
    case ets:match(?SECRETS, {'$1', Secret}) of
        [[Ref] | _] ->
            {ok, Ref};
        [] ->
            Ref = make_ref(),
            true = ets:insert(?SECRETS, {Ref, Secret}),
            {ok, Ref}
    end;
hidden(error) ->
    error.

wanted(prefix, _Row) -> "begin with a slash and not end with one";
wanted(Kind, Row) -> ["be ", noun(Kind, Row)].

noun(Kind, #{least := Least, most := Most}) when Kind =:= integer; Kind =:= permissions ->
    io_lib:format("an integer from ~b to ~b", [Least, Most]);
noun(time, #{least := Least}) -> io_lib:format("milliseconds from ~b to ~b", [Least, ?MAX_TIMEOUT]);
noun(time_or_infinity, _Row) -> "milliseconds or infinity";
noun(boolean, _Row) -> "true or false";
noun(one_of, #{words := Words}) -> words(Words);
noun(text_or, #{words := Words}) -> ["a text, ", words(Words)];
noun(path_or, #{words := Words}) -> ["the path of a file, ", words(Words)];
noun(name, _Row) -> "an atom";
noun(path, _Row) -> "the path of a file";
noun(address, _Row) -> "an address or the name of a host";
noun(proxies, _Row) -> "addresses and networks, as a text or a list of texts";
noun(mounts, _Row) -> "a map of prefixes that begin with a slash to applications";
noun(Kind, _Row) when Kind =:= text; Kind =:= secret -> "a text".

words(Words) -> lists:join(" or ", [atom_to_list(Word) || Word <- Words]).

refused(Format, Args) ->
    {error, {bad_argument, py_text:format(Format, Args)}}.

%% Keyword arguments for `erlang.serve.Options', which wants seconds.
-spec for_python(options()) -> #{atom() => term()}.
for_python(Options) ->
    Rows = maps:filter(fun(_Key, #{program := IsOfPython}) -> IsOfPython end, rows()),
    maps:map(fun(Key, Value) -> as_python(maps:get(Key, Rows), Value) end, maps:with(maps:keys(Rows), Options)).

as_python(#{kind := time}, Milliseconds) -> Milliseconds / 1000;
as_python(#{kind := secret}, Ref) -> ets:lookup_element(?SECRETS, Ref, 2);
as_python(_Row, Value) -> Value.
