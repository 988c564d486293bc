%% The program uv: found, fetched, and asked for a Python.
%%
%% Place: behind py_venv, which fills environments with it, and py_python, for a version that the machine lacks.
%% Process: the caller's.
%% Never: installs anything outside of the cache.
-module(py_uv).

-export([known/0, find/1, install_python/1, pythons_dir/0, cache_dir/0]).

-define(FETCH_TIMEOUT, 300_000).
-define(INSTALL_TIMEOUT, 600_000).

%% On the PATH, or fetched by an earlier call.
-spec known() -> {ok, binary()} | none.
known() ->
    case {os:find_executable("uv"), cached()} of
        {false, {ok, Uv}} -> {ok, Uv};
        {false, none} -> none;
        {Uv, _} -> {ok, py_text:path(Uv)}
    end.

cached() ->
    case cache_dir() of
        {ok, Dir} ->
            Uv = filename:join([Dir, "uv", "uv"]),
            case filelib:is_regular(Uv) of
                true -> {ok, py_text:path(Uv)};
                false -> none
            end;
        none ->
            none
    end.

%% The same, else fetched with one of these Pythons from the package index: `$UV_DEFAULT_INDEX', `$UV_INDEX_URL',
%% `$PIP_INDEX_URL' or PyPI. Proxies and certificates are those of the environment, too.
-spec find(Pythons :: [file:filename_all()]) -> {ok, binary()} | {error, unicode:chardata()}.
find(Pythons) ->
    case {known(), cache_dir()} of
        {{ok, Uv}, _} -> {ok, Uv};
        {none, none} -> {error, "there is no uv on the PATH, and without $HOME or $XDG_CACHE_HOME it is not fetched"};
        {none, {ok, Dir}} -> fetch(Pythons, filename:join(Dir, "uv"))
    end.

fetch([], Dir) ->
    case py_uv_fetch:fetch(Dir) of
        ok -> {ok, py_text:path(filename:join(Dir, "uv"))};
        {error, Why} -> {error, ["uv could not be fetched: ", Why]}
    end;
fetch([Python | _], Dir) ->
    Script = filename:join([py_runtime:priv_dir(), "python", "erlang", "_fetch_uv.py"]),
    Options = #{timeout => ?FETCH_TIMEOUT, kill => fun py_command:kill_group/1},
    case py_command:run(Python, ["-I", "-S", Script, Dir], Options) of
        {ok, _} -> {ok, py_text:path(filename:join(Dir, "uv"))};
        {error, timeout} -> {error, "uv could not be fetched within 5 minutes"};
        {error, {posix, Code}} -> {error, [Python, ": ", file:format_error(Code)]};
        {error, {exit_status, _, Said}} -> {error, ["uv could not be fetched: ", py_command:last_words(Said)]}
    end.

%% A CPython of that version, in the cache; uv knows `$UV_PYTHON_INSTALL_MIRROR' and proxies.
-spec install_python(Version :: binary()) -> {ok, binary()} | {error, unicode:chardata()}.
install_python(Version) ->
    case {find(any_python()), pythons_dir()} of
        {{ok, Uv}, {ok, Dir}} -> install_python(Uv, Version, Dir);
        {{error, Why}, _} -> {error, Why};
        {_, none} -> {error, "neither $HOME nor $XDG_CACHE_HOME says where"}
    end.

install_python(Uv, Version, Dir) ->
    Args = [<<"python">>, <<"install">>, <<"--no-bin">>, <<"--install-dir">>, py_text:path(Dir), Version],
    case py_command:run(Uv, Args, #{timeout => ?INSTALL_TIMEOUT, kill => fun py_command:kill_group/1}) of
        {ok, _} ->
            Pattern = ["cpython-", Version, "*/bin/python", Version],
            case lists:sort(filelib:wildcard(unicode:characters_to_list(Pattern), Dir)) of
                [_ | _] = Found -> {ok, filename:join(py_text:path(Dir), py_text:path(lists:last(Found)))};
                [] -> {error, [Uv, " python install ", Version, " left no Python in ", Dir]}
            end;
        {error, timeout} ->
            {error, [Uv, " python install ", Version, " did not end within 10 minutes"]};
        {error, {posix, Code}} ->
            {error, [Uv, " can't be run: ", file:format_error(Code)]};
        {error, {exit_status, Status, Said}} ->
            Command = lists:join(" ", [Uv | Args]),
            {error, [Command, " ended with status ", integer_to_list(Status), ":\n", py_command:last_words(Said)]}
    end.

%% Any that runs a script; of the system, whatever its version and its library.
any_python() ->
    [py_text:path(Exe) || Name <- ["python3", "python"], Exe <- [os:find_executable(Name)], Exe =/= false].

-spec pythons_dir() -> {ok, file:filename_all()} | none.
pythons_dir() ->
    case cache_dir() of
        {ok, Dir} -> {ok, filename:join(Dir, "uv-pythons")};
        none -> none
    end.

%% Of this user: nobody else may put a program there.
-spec cache_dir() -> {ok, file:filename_all()} | none.
cache_dir() ->
    case {os:getenv("XDG_CACHE_HOME", ""), os:getenv("HOME", "")} of
        {"/" ++ _ = Cache, _} -> {ok, filename:join(Cache, "erlang_python")};
        {_, "/" ++ _ = Home} -> {ok, filename:join([Home, ".cache", "erlang_python"])};
        _ -> none
    end.
