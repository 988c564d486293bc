%% Every setting has its effect in a node that runs with it: a case bears the name of its setting.
-module(py_settings_SUITE).

-include("py_test.hrl").

-export([all/0, log/2]).
-export([
    every_setting_is_seen_at_work/1,
    call_timeout/1,
    log_stdout/1,
    max_bound/1,
    max_depth/1,
    max_threads/1,
    num_subinterp_workers/1,
    num_workers/1,
    redis_url/1,
    stop_timeout/1,
    switch_interval_us/1
]).

all() ->
    [
        every_setting_is_seen_at_work,
        call_timeout,
        log_stdout,
        max_bound,
        max_depth,
        max_threads,
        num_subinterp_workers,
        num_workers,
        redis_url,
        stop_timeout,
        switch_interval_us
    ].

%% A setting has a case here, or another suite runs a node with it; `py_config_SUITE' only checks them.
every_setting_is_seen_at_work(_Config) ->
    Test = filename:join(py_test:root(), "test"),
    Suites = filelib:wildcard(filename:join(Test, "py_*_SUITE.erl")) -- [
        filename:join(Test, Own) || Own <- ["py_config_SUITE.erl", "py_settings_SUITE.erl"]
    ],
    ?assert(length(Suites) > 30),
    Sources = [Source || Suite <- Suites, {ok, Source} <- [file:read_file(Suite)]],
    Settings = maps:keys(py_config:defaults()),
    ?assertEqual([], [Key || Key <- Settings -- all(), not is_set_in(Key, Sources)]),
    ?assertNot(is_set_in(no_such_setting, Sources)).

%% As `py_test:peer/1' and `application:set_env/3' are given it.
is_set_in(Key, Sources) ->
    Ways = ["{~ts, ", "erlang_python, ~ts, "],
    Patterns = [unicode:characters_to_binary(io_lib:format(Way, [Key])) || Way <- Ways],
    lists:any(fun(Source) -> binary:match(Source, Patterns) =/= nomatch end, Sources).

call_timeout(_Config) ->
    Sleep = fun() -> py:call(time, sleep, [20]) end,
    ?assertReason(timeout, in_node([{call_timeout, 100}], Sleep)).

log_stdout(_Config) ->
    Print = fun() ->
        ok = logger:set_primary_config(level, all),
        ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
        ok = py:exec(<<"import sys; print('said'); print('complained', file=sys.stderr)">>),
        Level = fun(Text) -> receive {logged, Level, Text} -> Level after 20_000 -> none end end,
        {Level("said"), Level("complained")}
    end,
    ?assertEqual({info, warning}, in_node([{log_stdout, true}], Print)).

%% The callback of the handler.
log(#{level := Level} = Event, #{config := Pid}) ->
    Text = unicode:characters_to_list(logger_formatter:format(Event, #{template => [msg]})),
    Pid ! {logged, Level, string:trim(Text)}.

max_bound(_Config) ->
    Bind = fun() ->
        ok = py:bind(),
        Other = fun() -> exit({bound, py:bind()}) end,
        {_, Monitor} = spawn_monitor(Other),
        receive {'DOWN', Monitor, process, _, {bound, Bound}} -> Bound after 20_000 -> never end
    end,
    ?assertEqual(ok, in_node([], Bind)),
    ?assertReason(no_workers_available, in_node([{max_bound, 1}], Bind)).

max_depth(_Config) ->
    Lists = fun() -> [py:eval(<<"[[[1]]]">>), py:eval(<<"[[[[1]]]]">>), py:call(builtins, len, [[[[[[]]]]]])] end,
    [Flat, Out, In] = in_node([{max_depth, 3}], Lists),
    ?assertEqual({ok, [[[1]]]}, Flat),
    ?assertReason({bad_argument, _}, In),
    ?assertMatch({error, _}, Out).

%% Two threads wait in callbacks, and there is no third.
max_threads(_Config) ->
    Fill = fun() ->
        Self = self(),
        Wait = fun([]) ->
            Self ! {waits, self()},
            receive go -> 1 end
        end,
        ok = py:register_function(wait, Wait),
        Refs = [py:spawn_call(erlang, call, [wait]) || _ <- [1, 2]],
        Waiting = [receive {waits, Pid} -> Pid end || _ <- Refs],
        ok = py_test:eventually(fun() -> map_get(waiting, map_get(main, map_get(pools, py:stats()))) =:= 2 end),
        Full = py:call(math, sqrt, [4]),
        [Pid ! go || Pid <- Waiting],
        {Full, [py:await(Ref) || Ref <- Refs], py:call(math, sqrt, [4])}
    end,
    {Full, Went, Again} = in_node([{num_workers, 1}, {max_threads, 2}], Fill),
    ?assertReason(overload, Full),
    ?assertEqual([{ok, 1}, {ok, 1}], Went),
    ?assertEqual({ok, 2.0}, Again).

num_subinterp_workers(_Config) ->
    Parallel = fun() ->
        {ok, _} = py:parallel([{math, sqrt, [N]} || N <- lists:seq(1, 20)]),
        {py:execution_mode(), maps:get(made, maps:get(subinterpreters, py:stats()))}
    end,
    case in_node([{num_subinterp_workers, 2}], Parallel) of
        {subinterp, Made} -> ?assertEqual(2, Made);
        {Other, _} -> {skip, atom_to_list(Other)}
    end.

num_workers(_Config) ->
    Threads = fun() -> maps:get(threads, maps:get(main, maps:get(pools, py:stats()))) end,
    ?assertEqual(3, in_node([{num_workers, 3}], Threads)).

redis_url(_Config) ->
    Ask = fun() ->
        [
            py_dag:run(#{nodes => #{get => #{run => ["GET", "x"]}}}, #{}, Opts)
         || Opts <- [#{}, #{redis => embedded}]
        ]
    end,
    [Nowhere, Embedded] = in_node([{redis_url, "unix:/nowhere/redis.sock"}], Ask),
    ?assertReason({dag, get, {<<"redis">>, _}}, Nowhere),
    ?assertMatch({ok, #{results := #{get := none}}}, Embedded).

%% Python would wait for this thread until it ends.
stop_timeout(_Config) ->
    %% A thread that is waited for: what ends the node sooner is the setting.
    Long = milliseconds_to_stop(6000),
    ?assert(Long >= 6000, Long),
    %% The rest of the stop takes as long as the machine wants: the best of three is compared.
    Short = lists:min([milliseconds_to_stop(100) || _ <- [1, 2, 3]]),
    ?assert(Short < Long - 3000, {Short, Long}).

%% How long a node takes to stop, while a thread of Python sleeps. Its start is not counted.
milliseconds_to_stop(StopTimeout) ->
    Expression = io_lib:format(
        "ok = application:load(erlang_python), ok = application:set_env(erlang_python, stop_timeout, ~b),"
        "{ok, _} = application:ensure_all_started(erlang_python),"
        "ok = py:exec(\"import threading, time\\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=False).start()\"),"
        "io:format(\"stops at ~~b~~n\", [os:system_time(millisecond)]), init:stop().",
        [StopTimeout]
    ),
    {0, Output, _} = py_test:run_node(lists:flatten(Expression), 60_000),
    Ended = os:system_time(millisecond),
    %% Nothing else: nobody had to be killed for taking too long.
    Said = re:run(Output, "^stops at ([0-9]+)\\s*$", [{capture, all_but_first, list}]),
    ?assertMatch({match, [_]}, Said, Output),
    {match, [Begun]} = Said,
    Ended - list_to_integer(Begun).

switch_interval_us(_Config) ->
    Ask = fun() -> py:call(sys, getswitchinterval, []) end,
    ?assertEqual({ok, 0.002}, in_node([{switch_interval_us, 2000}], Ask)),
    ?assertEqual({ok, 0.0005}, in_node([], Ask)).

%% What a function gives in a node with these settings.
in_node(Settings, Function) ->
    Peer = py_test:peer(Settings),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    Given = peer:call(Peer, erlang, apply, [Function, []], 30_000),
    ok = py_test:stop_peer(Peer),
    Given.
