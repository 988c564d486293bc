%% numpy stats: a million floats go to numpy as one binary, without a copy, and their statistics
%% come back. Says so and ends if there is no numpy.
%%
%% Run: ./dev build, then
%%      ERL_LIBS=_build/default/lib escript examples/numpy_stats/numpy_stats.erl [VENV]
-module(numpy_stats).

-export([main/1]).

-define(COUNT, 1_000_000).

main(Args) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    [ok = py:activate_venv(Venv) || Venv <- Args],
    case py:call('importlib.util', find_spec, [numpy]) of
        {ok, none} -> io:format("numpy is not installed for this Python: nothing to show~n");
        _ -> stats()
    end.

stats() ->
    %% Bytes as they would come from a file or a socket.
    Bytes = <<<<(N * 0.5):64/float-little>> || N <- lists:seq(1, ?COUNT)>>,
    Array = {ndarray, <<"<f8">>, [?COUNT], Bytes},
    {Time, Results} = timer:tc(fun() ->
        [{Name, py:call(numpy, Name, [Array])} || Name <- [min, max, mean, std]]
    end),
    [io:format("~-5ts~.3f~n", [Name, Value]) || {Name, {ok, Value}} <- Results],
    io:format("four passes over ~b values in ~.1f ms~n", [?COUNT, Time / 1000]),

    %% And an array back: its memory is the binary.
    {ok, {ndarray, <<"<f8">>, [5], Back}} = py:call(numpy, linspace, [0, 1, 5]),
    io:format("linspace: ~w~n", [[X || <<X:64/float-little>> <= Back]]).
