%% Call back: Python code uses a store that lives in Erlang, and reports its progress by messages.
%%
%% Run: ./dev build, then
%%      ERL_LIBS=_build/default/lib escript examples/call_back/call_back.erl
-module(call_back).

-export([main/1]).

main(_Args) ->
    %% Modules beside this file can be imported.
    Here = filename:dirname(filename:absname(escript:script_name())),
    ok = application:set_env(erlang_python, python_path, [Here]),
    {ok, _} = application:ensure_all_started(erlang_python),

    %% The functions run in a process of erlang_python, so the table must be public.
    Prices = ets:new(prices, [public]),
    true = ets:insert(Prices, [{<<"lamp">>, 1250}, {<<"chair">>, 4900}]),
    ok = py:register_function(price, fun([Item]) -> ets:lookup_element(Prices, Item, 2) end),

    {ok, Total} = py:call(checkout, total, [[<<"lamp">>, <<"chair">>, <<"lamp">>]]),
    progress(),
    io:format("total: ~b~n", [Total]),

    %% What the Erlang function raises, Python can catch.
    {ok, Text} = py:call(checkout, describe, [<<"ghost">>]),
    io:format("~ts~n", [Text]).

%% The messages of a call come before its answer.
progress() ->
    receive
        {<<"counted">>, Done, All} ->
            io:format("~b of ~b~n", [Done, All]),
            progress()
    after 0 -> ok
    end.
