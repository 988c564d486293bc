%% The directories of `python_path': where Python looks for modules before it looks anywhere else.
%%
%% Place: application start. The directories are resolved before the tree is started, and put into Python by `py_boot'.
%% Process: the one that starts the application.
-module(py_path).

-export([resolve/1, export/1]).

-export_type([place/0]).

-include("py_nif.hrl").

%% A directory, or one below the `priv' of an application.
-type place() :: binary() | {priv, App :: atom(), Dir :: binary()}.

%% The configuration with absolute paths under `python_path', each of which exists.
-spec resolve(py_config:config()) -> {ok, py_config:config()} | {error, Sentence :: binary()}.
resolve(#{python_path := Places} = Config) ->
    case each(Places, []) of
        {ok, Dirs} -> {ok, Config#{python_path := Dirs}};
        {error, Why} -> {error, py_text:format("erlang_python: python_path: ~ts", [Why])}
    end.

-spec each([place()], [binary()]) -> {ok, [binary()]} | {error, unicode:chardata()}.
each([], Done) ->
    {ok, lists:reverse(Done)};
each([Place | Rest], Done) ->
    case directory(Place) of
        {ok, Dir} -> each(Rest, [Dir | lists:delete(Dir, Done)]);
        {error, Why} -> {error, Why}
    end.

directory({priv, App, Dir}) ->
    case code:priv_dir(App) of
        {error, bad_name} ->
            {error, io_lib:format("there is no application ~0tp on the code path", [App])};
        Priv ->
            directory(filename:join(py_text:path(Priv), Dir))
    end;
directory(Path) ->
    Dir = py_text:path(py_text:absolute(Path)),
    case {filelib:is_file(Dir), binary:match(Dir, <<":">>)} of
        {false, _} -> {error, [Dir, " does not exist"]};
        %% As in PATH, a colon separates two of them in PYTHONPATH, and nothing escapes it.
        {true, {_, _}} -> {error, [Dir, " has a colon in its name, so child processes can't be told of it"]};
        {true, nomatch} -> {ok, Dir}
    end.

%% Gives them to the main interpreter, for its children too, and to the other interpreters that there are.
-spec export([binary()]) -> ok | {error, py_error:reason()}.
export(Dirs) ->
    case py:call('erlang._path', configure, [Dirs], #{}, infinity) of
        {ok, Path} -> inherit(Path, py_registry:interpreters());
        {error, _} = Error -> Error
    end.

inherit(_Path, []) ->
    ok;
inherit(Path, [Pool | Rest]) ->
    {ok, Payload} = py_call:payload('erlang._boot', inherit, [Path], #{}),
    case py_call:sync(Pool, ?OP_CALL, 0, Payload, infinity) of
        {ok, _} -> inherit(Path, Rest);
        %% It ended meanwhile.
        {error, Reason} when Reason =:= not_running; element(1, Reason) =:= context_died -> inherit(Path, Rest);
        {error, _} = Error -> Error
    end.
