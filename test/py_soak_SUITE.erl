%% The harness of `./dev soak http', in small, against servers of a node. See also test/python/serve/test_soak.py.
-module(py_soak_SUITE).

-include("py_test.hrl").

-export([all/0]).
-export([nobody_gets_another_clients_answer/1]).

all() -> [nobody_gets_another_clients_answer].

nobody_gets_another_clients_answer(Config) ->
    case os:getenv("PY_TEST_SOAK", "") of
        "" -> {skip, "the clients of the soak are built by ./dev test"};
        Clients -> soak(Clients, proplists:get_value(priv_dir, Config))
    end.

soak(Clients, Scratch) ->
    Bench = filename:join(py_test:root(), "bench"),
    Certificate = filename:join([py_test:root(), "test", "python", "tls", "server.pem"]),
    {ok, soak_node} = compile:file(filename:join(Bench, "soak_node.erl"), [{outdir, Scratch}]),
    Node =
        [os:find_executable("erl"), "-noinput", "-pa", Scratch | py_test:paths()] ++
            ["-eval", "soak_node:main(init:get_plain_arguments())", "-extra", Bench, Certificate],
    {Status, Output, _} = py_test:run_program(Clients, ["--count", "3000", "--" | Node], 300_000),
    io:format("~ts", [Output]),
    ?assertEqual(0, Status),
    ?assertNotEqual(nomatch, string:find(Output, "nobody got another's answer")).
