%% Graphs: commands of Redis.
-module(py_dag_redis_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    commands_are_answered_by_the_embedded_store/1,
    commands_take_values_of_inputs/1,
    python_gets_bytes_from_redis/1,
    a_wrong_command_is_told_in_the_words_of_redis/1,
    a_server_that_is_not_there_is_an_error/1
]).

all() -> py_dag_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

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
