%% The application: checks the configuration, starts the tree, and Python in it, then carries out the settings.
-module(erlang_python_app).

-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

%% What stops the start is a sentence, without the supervisors that it came through.
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    Started =
        case py_config:load() of
            {ok, Config} -> resolved(py_path:resolve(Config));
            {error, Sentence} -> {error, Sentence}
        end,
    ok = remember(Started),
    Started.

%% For `py:doctor/0'.
remember({ok, _}) ->
    _ = persistent_term:erase(py_start_failed),
    ok;
remember({error, Sentence}) when is_binary(Sentence) ->
    persistent_term:put(py_start_failed, Sentence);
remember({error, Why}) ->
    persistent_term:put(py_start_failed, py_text:format("~0tP", [Why, 20])).

resolved({ok, #{call_timeout := Timeout} = Config}) ->
    persistent_term:put(py_config, Config),
    persistent_term:put(py_call_timeout, Timeout),
    booted(erlang_python_sup:start_link(Config), Config);
resolved({error, Sentence}) ->
    {error, Sentence}.

booted({ok, Tree}, Config) ->
    case py_boot:run(Config) of
        ok ->
            {ok, Tree};
        {error, Sentence} ->
            ok = end_tree(Tree),
            {error, Sentence}
    end;
booted({error, {shutdown, {failed_to_start_child, _Id, Why}}}, Config) ->
    booted({error, Why}, Config);
booted({error, _} = Error, _Config) ->
    Error.

end_tree(Tree) ->
    ok = py_runtime:refuse(),
    Monitor = monitor(process, Tree),
    true = unlink(Tree),
    true = exit(Tree, shutdown),
    receive
        {'DOWN', Monitor, process, Tree, _} -> ok
    end.

%% New work is refused from here on; what runs is told to stop when the tree ends.
-spec prep_stop(State) -> State.
prep_stop(State) ->
    ok = py_runtime:refuse(),
    State.

-spec stop(term()) -> ok.
stop(_State) ->
    ok.
