%% Parallel requests: fifty processes ask a slow service through Python's own HTTP client. The
%% requests wait at the same time, on a pool of their own, so other Python calls stay fast.
%%
%% Run: ./dev build, then
%%      ERL_LIBS=_build/default/lib escript examples/parallel_requests/parallel_requests.erl
-module(parallel_requests).

-export([main/1]).

-define(REQUESTS, 50).
-define(AT_ONCE, 25).

main(_Args) ->
    %% Modules beside this file can be imported.
    Here = filename:dirname(filename:absname(escript:script_name())),
    ok = application:set_env(erlang_python, python_path, [Here]),
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = py:register_pool(requests, #{size => ?AT_ONCE}),

    %% Answers every request after a tenth of a second.
    {ok, Port} = py:call(slow_service, start, [0.1]),

    {Time, Answers} = timer:tc(fun() -> all(Port) end),
    Fine = length([ok || {ok, <<"fine">>} <- Answers]),
    io:format("~b of ~b requests fine in ~b ms; one after another would take ~b ms~n", [
        Fine, ?REQUESTS, Time div 1000, ?REQUESTS * 100
    ]),
    {ok, _} = py:call(slow_service, stop, []).

all(Port) ->
    Ask = fun() -> exit(py:call(requests, slow_service, ask, [Port], #{}, 10_000)) end,
    Asking = [spawn_monitor(Ask) || _ <- lists:seq(1, ?REQUESTS)],

    %% Meanwhile the main pool is free.
    {Quick, {ok, 4.0}} = timer:tc(fun() -> py:call(math, sqrt, [16]) end),
    io:format("a call beside them took ~b us~n", [Quick]),

    [receive {'DOWN', Monitor, process, _, Answer} -> Answer end || {_, Monitor} <- Asking].
