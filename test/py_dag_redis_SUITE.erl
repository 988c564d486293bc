%% Graphs: commands of Redis.
-module(py_dag_redis_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    commands_are_answered_by_the_embedded_store/1,
    commands_take_values_of_inputs/1,
    python_gets_bytes_from_redis/1,
    a_wrong_command_is_told_in_the_words_of_redis/1,
    a_server_that_is_not_there_is_an_error/1,
    several_connections_share_the_commands/1,
    a_graph_goes_on_though_its_server_is_started_again/1,
    a_server_is_asked_over_tls/1
]).

all() -> py_dag_test:cases(?MODULE).

init_per_suite(Config) ->
    Started = py_test:start(Config),
    Folder = filename:join([py_test:root(), "examples", "ranking"]),
    {ok, none} = py:call(sys, 'path.append', [unicode:characters_to_binary(Folder)]),
    Started.

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) -> py_dag_test:hear_notes(Config).

commands_are_answered_by_the_embedded_store(_Config) ->
    Key = py_dag_test:key(),
    Set = #{set => #{kind => redis, run => [<<"SET">>, Key, 42]}},
    ?assertEqual(#{set => <<"OK">>}, py_dag_test:results(Set, #{})),
    Get = #{
        one => #{kind => redis, run => ["GET", Key]},
        none => #{run => [get, <<Key/binary, ":none">>]},
        many => #{run => [[<<"INCR">>, Key], [<<"RPUSH">>, <<Key/binary, "l">>, a, b], [<<"LRANGE">>, <<Key/binary, "l">>, 0, -1]]}
    },
    #{one := One, none := none, many := Many} = py_dag_test:results(Get, #{}, #{redis => embedded}),
    ?assert(One =:= <<"42">> orelse One =:= <<"43">>),
    ?assertEqual([43, 2, [<<"a">>, <<"b">>]], Many).

commands_take_values_of_inputs(_Config) ->
    Key = py_dag_test:key(),
    [_, _] = [py_dag_test:results(#{s => #{run => ["SET", <<Key/binary, N/binary>>, N]}}, #{}) || N <- [<<"1">>, <<"2">>]],
    Nodes = #{
        joined => #{run => ["GET", {join, [{input, base}, {input, n}]}]},
        keys => #{run => fun([Base, N]) -> [<<Base/binary, "1">>, [Base, integer_to_binary(N)]] end, inputs => [base, n]},
        flat => #{run => fun([[A, B]]) -> [A, iolist_to_binary(B)] end, inputs => [keys]},
        several => #{run => ["MGET", {input, flat}]},
        commands => py_dag_test:python(commands, [base]),
        given => #{kind => redis, run => {input, commands}}
    },
    Results = py_dag_test:results(Nodes, #{base => Key, n => 2}),
    ?assertEqual(
        #{joined => <<"2">>, several => [<<"1">>, <<"2">>], given => [none, none, []]}, Results
    ).

python_gets_bytes_from_redis(_Config) ->
    Key = py_dag_test:key(),
    Nodes = #{
        set => #{run => ["SET", Key, "text"]},
        get => #{run => ["GET", Key], inputs => [set]},
        list => #{run => [["GET", Key]], inputs => [get]},
        kinds => py_dag_test:python(kinds, [set, get, list])
    },
    ?assertEqual(#{kinds => [<<"bytes">>, <<"bytes">>, <<"list">>]}, py_dag_test:results(Nodes, #{})).

a_wrong_command_is_told_in_the_words_of_redis(_Config) ->
    Key = py_dag_test:key(),
    Wrong = #{a => #{run => ["SET", Key, 1]}, b => #{run => ["LRANGE", Key, 0, 1], inputs => [a]}},
    ?assertReason({dag, b, {<<"redis">>, <<"WRONGTYPE", _/binary>>}}, py_dag_test:run(Wrong, #{})),
    Several = #{b => #{run => [["GET", Key], ["LRANGE", Key, 0, 1]]}},
    ?assertMatch(#{b := [<<"1">>, {error, <<"WRONGTYPE", _/binary>>}]}, py_dag_test:results(Several, #{})),
    NoWord = #{a => #{run => ["GET", {input, x}]}},
    ?assertReason({dag, a, {bad_argument, _}}, py_dag_test:run(NoWord, #{x => #{}})).

a_server_that_is_not_there_is_an_error(_Config) ->
    Nodes = #{get => #{run => ["GET", "x"]}},
    Nowhere = py_dag:run(#{nodes => Nodes}, #{}, #{redis => "unix:/nowhere/redis.sock"}),
    ?assertReason({dag, get, {<<"redis">>, <<"connection to Redis lost", _/binary>>}}, Nowhere),
    ?assertReason({bad_argument, _}, py_dag:run(#{nodes => Nodes}, #{}, #{redis => "what:ever"})).

%% A server of the test's own, and the URL of it; `Options' as redis-server takes them.
with_server(Options, Fun) ->
    case py:call(server, start, Options) of
        {ok, none} ->
            {skip, "redis-server is not installed"};
        {ok, Socket} ->
            try
                Fun(<<"unix:", Socket/binary>>)
            after
                {ok, _} = py:call(server, stop, [Socket])
            end
    end.

several_connections_share_the_commands(_Config) ->
    with_server([], fun(Url) ->
        Opts = #{redis => <<Url/binary, "?connections=3">>},
        %% It blocks its own connection; another one ends it.
        Nodes = #{
            pop => #{run => ["BLPOP", "list", 0]},
            push => #{run => ["RPUSH", "list", "x"]},
            info => #{run => ["INFO", "clients"], inputs => [pop]}
        },
        #{info := Info} = py_dag_test:results(Nodes, #{}, Opts),
        ?assertMatch({match, _}, re:run(Info, "connected_clients:3")),
        Wrong = py_dag:run(#{nodes => Nodes}, #{}, #{redis => <<Url/binary, "?connections=none">>}),
        ?assertReason({bad_argument, _}, Wrong)
    end).

a_graph_goes_on_though_its_server_is_started_again(_Config) ->
    with_server([], fun(<<"unix:", Socket/binary>> = Url) ->
        %% A read that the end of the server fails, and that is answered by the next one.
        Again = fun([]) ->
            {ok, _} = py:call(server, restart, [Socket]),
            again
        end,
        Nodes = #{
            waits => #{run => ["BLPOP", "never", 0.5], retries => 20, backoff => 5},
            again => #{run => Again}
        },
        ?assertEqual(#{waits => none, again => again}, py_dag_test:results(Nodes, #{}, #{redis => Url}))
    end).

a_server_is_asked_over_tls(Config) ->
    case os:find_executable("openssl") of
        false -> {skip, "openssl is not installed"};
        Openssl -> over_tls(certified(Openssl, proplists:get_value(priv_dir, Config)))
    end.

%% A certificate that stands for itself, and is good for localhost.
certified(Openssl, Folder) ->
    [Settings, Key, Certificate] = [filename:join(Folder, Name) || Name <- ["cnf", "s.key", "s.pem"]],
    ok = file:write_file(Settings, <<
        "[req]\nprompt=no\ndistinguished_name=name\nx509_extensions=more\n[name]\nCN=localhost\n"
        "[more]\nsubjectAltName=DNS:localhost\nbasicConstraints=critical,CA:FALSE\n"
    >>),
    Request = " req -x509 -newkey rsa:2048 -nodes -days 2 -config ~ts -keyout ~ts -out ~ts 2>&1",
    _ = os:cmd(Openssl ++ io_lib:format(Request, [Settings, Key, Certificate])),
    true = filelib:is_regular(Certificate),
    {Key, Certificate}.

over_tls({Key, Certificate}) ->
    {ok, Port} = py:call(server, free_port, []),
    Options = [
        "--tls-port", integer_to_list(Port), "--tls-cert-file", Certificate,
        "--tls-key-file", Key, "--tls-ca-cert-file", Certificate, "--tls-auth-clients", "no"
    ],
    with_server([unicode:characters_to_binary(Option) || Option <- Options], fun(_Url) ->
        Url = io_lib:format("rediss://localhost:~b?cacert=~ts", [Port, Certificate]),
        Nodes = #{
            set => #{run => ["SET", "colour", "red"]},
            get => #{run => ["GET", "colour"], inputs => [set]}
        },
        Opts = #{redis => unicode:characters_to_binary(Url)},
        ?assertEqual(#{get => <<"red">>}, py_dag_test:results(Nodes, #{}, Opts))
    end).
