%% Which Python the node runs, and which native library belongs to it.
%%
%% Place: application start, between py_config and the loader. The order is `{python, Path}', then
%% `$PYTHON', then detection: the venv in `$VIRTUAL_ENV', pyenv's versions, `python3.X' on the PATH.
%% Process: the one that starts the application.
%% Never: runs an interpreter while another one, whose files tell enough, has its library built.
-module(py_python).

-include_lib("kernel/include/file.hrl").
-include_lib("kernel/include/logger.hrl").

-export([find/2, library/2]).

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
    library := path()
}.

-define(OLDEST, 11).
%% `python3' finds what is newer than these.
-define(NEWEST_BY_NAME, 16).

%% `Config' is the checked configuration; only its key `python' is looked at.
-spec find(#{python => undefined | file:filename_all(), _ => _}, file:filename_all()) ->
    {ok, python()} | {error, binary()}.
find(Config, PrivDir) ->
    Priv = py_text:path(PrivDir),
    case {maps:get(python, Config, undefined), os:getenv("PYTHON", "")} of
        {undefined, ""} -> detect(Priv);
        {undefined, Named} -> chosen(<<"$PYTHON">>, py_text:path(Named), Priv);
        {Named, _} -> chosen(<<"{python, Path}">>, py_text:path(Named), Priv)
    end.

%% The path of the native library for an ABI, built or not.
-spec library(Abi :: binary(), file:filename_all()) -> path().
library(Abi, PrivDir) ->
    filename:join(py_text:path(PrivDir), <<"py_nif-", Abi/binary, ".so">>).

chosen(By, Named, Priv) ->
    case py_interpreter:describe(Named) of
        {ok, #{abi := Abi} = Info} ->
            Library = library(Abi, Priv),
            case is_file(Library) of
                true -> {ok, Info#{library => Library}};
                false -> {error, py_install:not_built([Info], Priv)}
            end;
        {error, Why} ->
            {error, py_text:format("~ts, chosen by ~ts", [Why, By])}
    end.

%%% Detection

detect(Priv) ->
    Venv = active_venv(),
    Rest = pyenv_versions() ++ on_path(),
    {VenvFound, _} = survey(Venv, fun py_interpreter:quick/1),
    {Found, Unclear} = survey(Rest, fun py_interpreter:quick/1),
    case first_built(VenvFound, Priv) of
        {ok, Python} ->
            {ok, Python};
        none ->
            ok = warn_of_unbuilt(VenvFound, Priv),
            case first_built(newest_first(Found), Priv) of
                {ok, Python} -> {ok, Python};
                none -> detect_slowly(VenvFound ++ Found, Unclear, Priv)
            end
    end.

%% Only now is it worth to run the interpreters whose files did not tell enough.
detect_slowly(Found, Unclear, Priv) ->
    {Asked, _} = survey(Unclear, fun py_interpreter:describe/1),
    case {first_built(newest_first(Asked), Priv), Found ++ newest_first(Asked)} of
        {{ok, Python}, _} ->
            {ok, Python};
        {none, []} ->
            {error,
                py_text:format("no CPython 3.11 or newer with a shared library (libpython) was found in "
                    "$VIRTUAL_ENV, pyenv's versions or the PATH. Install python3-dev, or name one "
                    "with {python, Path} or $PYTHON", [])};
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
        true -> {ok, Info#{library => Library}};
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
