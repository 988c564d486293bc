%% Which Python the node runs, and which native library belongs to it.
%%
%% Place: application start, between py_config and the loader. The order is `{python, Path}' or
%% `{python, "3.13"}', then `$PYTHON', then detection: the venv in `$VIRTUAL_ENV', pyenv's versions,
%% `python3.X' on the PATH.
%% Process: the one that starts the application.
%% Never: runs an interpreter while another one, whose files tell enough, has its library built.
-module(py_python).

-include_lib("kernel/include/file.hrl").
-include_lib("kernel/include/logger.hrl").

-export([find/2, library/2, candidates/0, warn_if_newer/1]).

-export_type([python/0]).

-type path() :: binary().

-type python() :: #{
    executable := path(),
    prefix := path(),
    libpython := path(),
    version := {3, non_neg_integer()},
    free_threaded := boolean(),
    abi := binary(),
    venv := undefined | path(),
    %% `priv/py_nif-<abi>.so'
    library := path(),
    %% By whom or why, in words that follow a comma.
    chosen := binary(),
    %% Whether this was our own choice.
    detected := boolean()
}.

%% X.Y, as users write it.
-type wanted() :: {Version :: binary(), Abi :: binary()}.

-define(OLDEST, 11).
%% The newest that the tests were run on: the table of docs/versions.md has the runs.
-define(NEWEST_TESTED, 15).
%% `python3' finds what is newer than these.
-define(NEWEST_BY_NAME, 16).

%% `Config' is the checked configuration; of its keys `python' is looked at, and whether a version that is
%% missing may be installed (`install', true unless given).
-spec find(#{python => auto | undefined | file:filename_all(), install => boolean(), _ => _}, file:filename_all()) ->
    {ok, python()} | {error, binary()}.
find(Config, PrivDir) ->
    Priv = py_text:path(PrivDir),
    Install = maps:get(install, Config, true),
    case {maps:get(python, Config, auto), os:getenv("PYTHON", "")} of
        {Auto, ""} when Auto =:= auto; Auto =:= undefined -> detect(Priv);
        {Auto, Named} when Auto =:= auto; Auto =:= undefined -> named(<<"$PYTHON">>, py_text:path(Named), Install, Priv);
        {Named, _} -> named(<<"{python, Path}">>, py_text:path(Named), Install, Priv)
    end.

%% The path of the native library for an ABI, built or not.
-spec library(Abi :: binary(), file:filename_all()) -> path().
library(Abi, PrivDir) ->
    filename:join(py_text:path(PrivDir), <<"py_nif-", Abi/binary, ".so">>).

%% Every interpreter that detection looks at, by the names of files alone.
-spec candidates() -> [{path(), {ok, py_interpreter:info()} | {error, binary()}}].
candidates() ->
    Found = [{Exe, py_interpreter:quick(Exe)} || Exe <- unique(active_venv() ++ pyenv_versions() ++ managed() ++ on_path())],
    [{Exe, Result} || {Exe, Result} <- Found, Result =/= {error, unclear}].

unique(Names) ->
    lists:reverse(lists:foldl(fun(Name, Seen) -> [Name | lists:delete(Name, Seen)] end, [], Names)).

%% A path, or a version such as "3.13" or "3.14t".
named(By, Named, Install, Priv) ->
    case version(Named) of
        {ok, Wanted} -> of_version(Wanted, Install, Priv);
        none -> chosen(By, Named, Priv)
    end.

-spec version(path()) -> {ok, wanted()} | none.
version(Named) ->
    case re:run(Named, "^3\\.(\\d{1,3}t?)$", [{capture, [1], binary}]) of
        {match, [Minor]} -> {ok, {Named, <<"cp3", Minor/binary>>}};
        nomatch -> none
    end.

%% A library that could be built for a newer Python most likely runs in it, so that one is not refused.
-spec warn_if_newer(python()) -> ok.
warn_if_newer(#{version := {3, Minor}, executable := Exe}) when Minor > ?NEWEST_TESTED ->
    ?LOG_WARNING("erlang_python: ~ts is Python 3.~b, newer than 3.~b, the newest that this version was tested with", [
        Exe, Minor, ?NEWEST_TESTED
    ]);
warn_if_newer(_Python) ->
    ok.

chosen(By, Named, Priv) ->
    case py_interpreter:describe(Named) of
        {ok, #{abi := Abi} = Info} ->
            Library = library(Abi, Priv),
            case is_file(Library) of
                true -> {ok, found(Info, Library, <<"chosen by ", By/binary>>, false)};
                false -> {error, py_install:not_built([Info], Priv)}
            end;
        {error, Why} ->
            {error, py_text:format("~ts, chosen by ~ts", [Why, By])}
    end.

found(Info, Library, Why, Detected) -> Info#{library => Library, chosen => Why, detected => Detected}.

%% The version alone is wanted: any Python of it will do, and if there is none, one is installed.
of_version({Version, Abi}, Install, Priv) ->
    Library = library(Abi, Priv),
    {Found, _} = survey(unique(active_venv() ++ managed() ++ pyenv_versions() ++ on_path()), fun py_interpreter:quick/1),
    case {[Info || #{abi := Each} = Info <- Found, Each =:= Abi], is_file(Library)} of
        {[Info | _], true} ->
            {ok, found(Info, Library, py_text:format("chosen by {python, \"~ts\"}", [Version]), false)};
        {[Info | _], false} ->
            {error, py_install:not_built([Info], Priv)};
        {[], false} ->
            Text = "{python, \"~ts\"}: no such Python was found, and its native library (py_nif-~ts.so) is not installed: "
                "~ts",
            {error, py_text:format(Text, [Version, Abi, py_install:how_to_install(<<"python", Version/binary>>, Priv)])};
        {[], true} when Install ->
            install(Version, Priv);
        {[], true} ->
            {error, py_text:format("no Python ~ts was found; the start of the application installs it with uv", [Version])}
    end.

install(Version, Priv) ->
    ?LOG_NOTICE("erlang_python: no Python ~ts was found: uv installs it", [Version]),
    case py_uv:install_python(Version) of
        {ok, Exe} -> chosen(py_text:format("{python, \"~ts\"}, installed by uv", [Version]), Exe, Priv);
        {error, Why} -> {error, py_text:format("no Python ~ts was found, and it can't be installed: ~ts", [Version, Why])}
    end.

%%% Detection

detect(Priv) ->
    Venv = active_venv(),
    Rest = pyenv_versions() ++ on_path(),
    {VenvFound, _} = survey(Venv, fun py_interpreter:quick/1),
    {Found, Unclear} = survey(Rest, fun py_interpreter:quick/1),
    case first_built(VenvFound, Priv) of
        {ok, Info, Library} ->
            {ok, found(Info, Library, <<"the virtual environment in $VIRTUAL_ENV">>, true)};
        none ->
            ok = warn_of_unbuilt(VenvFound, Priv),
            case first_built(newest_first(Found), Priv) of
                {ok, Info, Library} -> {ok, found(Info, Library, newest(Found, Priv), true)};
                none -> detect_slowly(VenvFound ++ Found, Unclear, Priv)
            end
    end.

%% Of how many, and how many others there are.
newest(Found, Priv) ->
    Abis = lists:usort([Abi || #{abi := Abi} <- Found]),
    {Built, Unbuilt} = lists:partition(fun(Abi) -> is_file(library(Abi, Priv)) end, Abis),
    Others =
        case Unbuilt of
            [] -> "";
            _ -> ["; no native library for ", lists:join(", ", Unbuilt)]
        end,
    case length(Built) of
        1 -> py_text:format("the only one found with a native library~ts", [Others]);
        Several -> py_text:format("the newest of ~b found with a native library~ts", [Several, Others])
    end.

%% Only now is it worth to run the interpreters whose files did not tell enough.
detect_slowly(Found, Unclear, Priv) ->
    {Asked, _} = survey(Unclear, fun py_interpreter:describe/1),
    case {first_built(newest_first(Asked), Priv), Found ++ newest_first(Asked)} of
        {{ok, Info, Library}, _} ->
            {ok, found(Info, Library, newest(Asked, Priv), true)};
        {none, []} ->
            {error,
                py_text:format("no CPython 3.11 or newer with a shared library (libpython) was found in "
                    "$VIRTUAL_ENV, pyenv's versions or the PATH. Install python3-dev, name one "
                    "with {python, Path} or $PYTHON, or let {python, \"3.13\"} install it", [])};
        {none, All} ->
            {error, py_install:not_built(newest_first(All), Priv)}
    end.

%% Stable: among equals the order of detection stays.
newest_first(Infos) ->
    lists:sort(
        fun(#{version := A, free_threaded := FreeA}, #{version := B, free_threaded := FreeB}) ->
            {A, not FreeA} >= {B, not FreeB}
        end,
        Infos
    ).

first_built([], _Priv) ->
    none;
first_built([#{abi := Abi} = Info | Rest], Priv) ->
    Library = library(Abi, Priv),
    case is_file(Library) of
        true -> {ok, Info, Library};
        false -> first_built(Rest, Priv)
    end.

survey(Executables, Describe) ->
    Results = [{Exe, Describe(Exe)} || Exe <- Executables],
    {[Info || {_, {ok, Info}} <- Results], [Exe || {Exe, {error, unclear}} <- Results]}.

warn_of_unbuilt([], _Priv) ->
    ok;
warn_of_unbuilt(Infos, Priv) ->
    ?LOG_WARNING("erlang_python: $VIRTUAL_ENV is not used: ~ts", [py_install:not_built(Infos, Priv)]).

active_venv() ->
    case os:getenv("VIRTUAL_ENV", "") of
        "" -> [];
        Dir -> [Exe || Exe <- [filename:join([py_text:path(Dir), "bin", "python"])], is_file(Exe)]
    end.

pyenv_versions() ->
    Root =
        case os:getenv("PYENV_ROOT", "") of
            "" -> filename:join(py_text:path(os:getenv("HOME", "/")), ".pyenv");
            Dir -> py_text:path(Dir)
        end,
    Versions = filename:join(Root, "versions"),
    case file:list_dir(Versions) of
        {ok, Names} ->
            Known = lists:sort([{release(Name), Name} || Name <- Names, release(Name) =/= none]),
            [filename:join([Versions, Name, "bin", "python"]) || {_, Name} <- lists:reverse(Known)];
        {error, _} ->
            []
    end.

%% "3.13.2" is after "3.13.2rc1" and "3.13.0". Names that are no plain versions are left out.
release(Name) ->
    case re:run(Name, "^3\\.(\\d+)\\.(\\d+)(t?)((?:a|b|rc)\\d+)?$", [unicode, {capture, [1, 2, 4], list}]) of
        {match, [Minor, Patch, Pre]} when Pre =:= "" ->
            {list_to_integer(Minor), list_to_integer(Patch), 1};
        {match, [Minor, Patch, _Pre]} ->
            {list_to_integer(Minor), list_to_integer(Patch), 0};
        nomatch ->
            none
    end.

%% Those that were installed for a node that asked for a version.
managed() ->
    case py_uv:pythons_dir() of
        {ok, Dir} ->
            Names = filelib:wildcard("cpython-3.*/bin/python3", Dir),
            [py_text:path(filename:join(Dir, Name)) || Name <- lists:reverse(lists:sort(Names))];
        none ->
            []
    end.

on_path() ->
    Names =
        [
            io_lib:format("python3.~b~ts", [Minor, Flag])
         || Minor <- lists:seq(?NEWEST_BY_NAME, ?OLDEST, -1), Flag <- ["", "t"]
        ] ++ ["python3"],
    [
        Exe
     || Dir <- string:lexemes(os:getenv("PATH", ""), ":"),
        %% pyenv's shims are shell scripts for the versions that were listed already.
        filename:basename(Dir) =/= "shims",
        Name <- Names,
        Exe <- [filename:join(py_text:path(Dir), py_text:path(Name))],
        is_file(Exe)
    ].

%%% Small things

is_file(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = regular}} -> true;
        _ -> false
    end.
