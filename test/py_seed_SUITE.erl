%% The examples of the guides to the event loop (`test/seed_examples'), run in the node in every way that
%% Python code can run in it.
-module(py_seed_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    every_example_runs_in_a_call/1,
    every_script_runs_by_exec/1,
    every_example_runs_in_a_thread_of_python/1,
    every_example_runs_in_several_contexts_at_once/1,
    a_server_answers_until_its_call_is_cancelled/1,
    an_application_is_served/1,
    the_functions_for_raw_loops_are_as_shown/1,
    the_test_sockets_are_as_shown/1,
    the_router_is_as_shown/1,
    the_configuration_is_as_shown/1
]).

all() ->
    [
        every_example_runs_in_a_call,
        every_script_runs_by_exec,
        every_example_runs_in_a_thread_of_python,
        every_example_runs_in_several_contexts_at_once,
        a_server_answers_until_its_call_is_cancelled,
        an_application_is_served,
        the_functions_for_raw_loops_are_as_shown,
        the_test_sockets_are_as_shown,
        the_router_is_as_shown,
        the_configuration_is_as_shown
    ].

init_per_suite(Config) ->
    Started = py_test:start(Config),
    ok = py_test:add_path(filename:join([py_test:root(), "test", "seed_examples"])),
    ok = py_test:use_venv(),
    Started.

end_per_suite(_Config) -> py_test:leave_venv().

every_example_runs_in_a_call(_Config) ->
    ?assertEqual([], failed(names(), fun(Name) -> py:call(scenarios, run, [Name]) end)).

every_example_runs_in_a_thread_of_python(_Config) ->
    ?assertEqual([], failed(names(), fun(Name) -> py:call(scenarios, run_in_thread, [Name]) end)).

every_script_runs_by_exec(_Config) ->
    {ok, Scripts} = py:call(scenarios, scripts, []),
    ?assert(length(Scripts) > 15),
    %% Each in a process of its own: the names of one are not seen by the next.
    Run = fun([_Name, Code]) -> py_test:in_process(fun() -> ok(py:exec(Code)) end) end,
    ?assertEqual([], failed(Scripts, Run)).

ok(ok) -> {ok, <<"ran">>};
ok(Error) -> Error.

every_example_runs_in_several_contexts_at_once(_Config) ->
    Names = names(),
    Contexts = [element(2, py_context:new(#{})) || _ <- [1, 2, 3]],
    Run = fun(Ctx) -> failed(Names, fun(Name) -> py:call(Ctx, scenarios, run, [Name]) end) end,
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), Run(Ctx)} end) || Ctx <- Contexts],
    Failed = [
        receive
            {Pid, List} -> List
        end
     || Pid <- Pids
    ],
    ?assertEqual([[], [], []], Failed),
    lists:foreach(fun py_context:stop/1, Contexts).

a_server_answers_until_its_call_is_cancelled(_Config) ->
    [served(Name) || Name <- [<<"udp_echo_server">>, <<"udp_echo_server_erlang_loop">>]].

served(Name) ->
    {ok, Host} = py:call(scenarios, new_host, []),
    {ok, Address} = inet:parse_address(binary_to_list(Host)),
    {ok, Port} = py:eval(<<"__import__('scenarios').free_port(host, 2)">>, #{host => Host}),
    Ref = py:spawn_call(scenarios, serve, [Name, Host, Port]),
    {ok, Socket} = gen_udp:open(0, [binary, {active, false}]),
    py_test:eventually(fun() ->
        %% Until it is up, what is sent is refused or lost.
        _ = gen_udp:send(Socket, Address, Port, <<"hello">>),
        {ok, {Address, Port, <<"hello">>}} =:= gen_udp:recv(Socket, 0, 100)
    end),
    ok = py:cancel(Ref),
    %% Its socket is closed: another may have the address.
    py_test:eventually(fun() ->
        case gen_udp:open(Port, [{ip, Address}]) of
            {ok, Other} -> gen_udp:close(Other), true;
            {error, eaddrinuse} -> false
        end
    end),
    ok = gen_udp:close(Socket).

an_application_is_served(_Config) ->
    {ok, _} = application:ensure_all_started(inets),
    [
        begin
            {ok, Server} = py_asgi:serve({factory, App}, #{port => 0}),
            Url = lists:concat(["http://127.0.0.1:", py_asgi:port(Server), "/delay?ms=5"]),
            ?assertMatch({ok, {{_, 200, _}, _, "{\"slept_ms\":5}"}}, httpc:request(Url)),
            ok = py_asgi:stop(Server)
        end
     || App <- [<<"scenarios:fastapi_app">>, <<"scenarios:erlang_asyncio_fastapi_app">>]
    ].

%% ---- Erlang

the_functions_for_raw_loops_are_as_shown(_Config) ->
    Names = evaluate(<<"loop_nifs">>),
    ?assertMatch(#{'Pending' := [], 'NumEvents' := {ok, 0}}, Names),
    ok = py_nif:close_test_fd(maps:get('Fd', Names)).

the_test_sockets_are_as_shown(_Config) ->
    ?assertMatch(#{'Data' := <<"hello">>}, evaluate(<<"udp_nifs">>)).

the_router_is_as_shown(_Config) ->
    #{'RouterPid' := Router, 'LoopRef' := Loop} = evaluate(<<"router">>),
    ?assert(is_process_alive(Router)),
    ok = py_event_router:stop(Router),
    ok = py_nif:event_loop_destroy(Loop).

the_configuration_is_as_shown(_Config) ->
    {ok, Tokens, _} = erl_scan:string(text(<<"configuration">>) ++ "."),
    {ok, {erlang_python, Settings}} = erl_parse:parse_term(Tokens),
    ?assertMatch({ok, #{num_workers := 4, num_subinterp_workers := 4}}, py_config:check(Settings)).

%% The names that are bound after the expressions of an example.
evaluate(Name) ->
    {ok, Tokens, _} = erl_scan:string(text(Name)),
    Bound = lists:foldl(fun evaluate_one/2, erl_eval:new_bindings(), expressions(Tokens, [])),
    maps:from_list(erl_eval:bindings(Bound)).

evaluate_one(Expression, Bound) ->
    {value, _, After} = erl_eval:exprs(Expression, Bound),
    After.

expressions([], []) ->
    [];
expressions([{dot, _} = Dot | Rest], Expression) ->
    {ok, Parsed} = erl_parse:parse_exprs(lists:reverse([Dot | Expression])),
    [Parsed | expressions(Rest, [])];
expressions([Token | Rest], Expression) ->
    expressions(Rest, [Token | Expression]).

text(Name) ->
    {ok, Text} = py:call(seed_examples, expressions, [Name]),
    unicode:characters_to_list(Text).

%% ---- shared

names() ->
    {ok, Names} = py:call(scenarios, names, []),
    ?assert(length(Names) > 30),
    Names.

failed(List, Run) ->
    [{One, Answer} || One <- List, Answer <- [Run(One)], Answer =/= {ok, <<"ran">>}].
