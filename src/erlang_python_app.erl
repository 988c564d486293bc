%% The application: checks the configuration, starts Python, then the tree.
-module(erlang_python_app).

-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case py_config:load() of
        {ok, #{call_timeout := Timeout} = Config} ->
            persistent_term:put(py_config, Config),
            persistent_term:put(py_call_timeout, Timeout),
            erlang_python_sup:start_link(Config);
        {error, Sentence} ->
            {error, Sentence}
    end.

%% New work is refused from here on; what runs is told to stop when the tree ends.
-spec prep_stop(State) -> State.
prep_stop(State) ->
    ok = py_runtime:refuse(),
    State.

-spec stop(term()) -> ok.
stop(_State) ->
    ok.
