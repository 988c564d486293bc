%% One Python installation or venv: its version, its prefix, its shared library.
%%
%% Place: application start, asked by py_python for each Python it considers.
%% Process: the one that starts the application.
%% Never: runs an interpreter where file names tell the answer (a run costs 20 ms and more, the
%% whole start has 120); starts a shell.
-module(py_interpreter).

-include_lib("kernel/include/file.hrl").

-export([describe/1, quick/1]).

-export_type([info/0]).

-type path() :: binary().

-type info() :: #{
    %% As it was named: the venv's own executable if it is one.
    executable := path(),
    %% Where the installation is (a venv has none of its own: that of its base).
    prefix := path(),
    libpython := path(),
    version := {3, non_neg_integer()},
    free_threaded := boolean(),
    %% `cp313', `cp314t'
    abi := binary(),
    venv := undefined | path()
}.

-type tag() :: {Minor :: non_neg_integer(), FreeThreaded :: boolean()}.

-define(PROBE_TIMEOUT, 10_000).
-define(OLDEST, 11).

%% From its path (or the directory of a venv or an installation, or a name on the PATH): all that
%% must be known to load it. Runs it only if the files around it do not tell.
-spec describe(file:filename_all()) -> {ok, info()} | {error, binary()}.
describe(Named) ->
    case locate(py_text:path(Named)) of
        {ok, Exe} ->
            case quick(Exe) of
                {ok, Info} -> {ok, Info};
                {error, unclear} -> ask(Exe);
                {error, Why} -> {error, Why}
            end;
        {error, Why} ->
            {error, Why}
    end.

-spec locate(path()) -> {ok, path()} | {error, binary()}.
locate(Named) ->
    Path =
        case {filename:basename(Named), os:find_executable(unicode:characters_to_list(Named))} of
            {Named, Found} when is_list(Found) -> py_text:path(Found);
            _ -> py_text:absolute(Named)
        end,
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = directory}} -> locate_in(Path);
        {ok, #file_info{type = regular, mode = Mode}} when Mode band 8#111 =/= 0 -> {ok, Path};
        {ok, #file_info{}} -> {error, py_text:format("~ts is not an executable", [Path])};
        {error, enoent} -> {error, py_text:format("~ts does not exist", [Path])};
        {error, Code} -> {error, py_text:format("~ts: ~ts", [Path, file:format_error(Code)])}
    end.

locate_in(Dir) ->
    Exe = filename:join([Dir, "bin", "python"]),
    case [E || E <- [Exe, <<Exe/binary, "3">>], is_file(E)] of
        [First | _] -> {ok, First};
        [] -> {error, py_text:format("~ts is a directory without bin/python", [Dir])}
    end.

%% By the names of files alone.
-spec quick(path()) -> {ok, info()} | {error, unclear | binary()}.
quick(Exe) ->
    case venv_of(Exe) of
        {ok, Venv, Settings} ->
            case installed(base_of(Exe, Venv, Settings)) of
                {ok, Info} -> check_venv(Info#{executable := Exe, venv := Venv}, Settings);
                {error, unclear} -> {error, unclear};
                {error, Why} -> {error, Why}
            end;
        none ->
            case installed(Exe) of
                {ok, Info} -> {ok, Info#{executable := Exe}};
                {error, Why} -> {error, Why}
            end
    end.

-spec installed(path()) -> {ok, info()} | {error, unclear | binary()}.
installed(Exe) ->
    Real = follow(Exe, 40),
    Prefix = filename:dirname(filename:dirname(Real)),
    case tag(filename:basename(Real), Prefix) of
        {ok, Tag} ->
            case supported(Exe, Tag) of
                ok ->
                    case libpython(Prefix, Tag) of
                        {ok, Lib} -> {ok, info(Exe, Prefix, Lib, Tag, undefined)};
                        none -> {error, unclear}
                    end;
                {error, Why} ->
                    {error, Why}
            end;
        none ->
            {error, unclear}
    end.

info(Exe, Prefix, Lib, {Minor, Free} = Tag, Venv) ->
    #{
        executable => Exe,
        prefix => Prefix,
        libpython => Lib,
        version => {3, Minor},
        free_threaded => Free,
        abi => abi(Tag),
        venv => Venv
    }.

abi({Minor, false}) -> py_text:format("cp3~b", [Minor]);
abi({Minor, true}) -> py_text:format("cp3~bt", [Minor]).

-spec supported(path(), tag()) -> ok | {error, binary()}.
supported(Exe, {Minor, _}) when Minor < ?OLDEST ->
    {error, py_text:format("~ts is Python 3.~b; 3.11 or newer is needed", [Exe, Minor])};
supported(Exe, {13, true}) ->
    {error,
        py_text:format("~ts is the free-threaded build of Python 3.13, which is not supported; "
            "use 3.14t, or the normal build of 3.13", [Exe])};
supported(_, _) ->
    ok.

%% From the name of the executable; if that is only python or python3, from the one library
%% directory beside it. python3.14 may be a free-threaded build under its second name: then only
%% lib/python3.14t is there.
-spec tag(binary(), path()) -> {ok, tag()} | none.
tag(Name, Prefix) when Name =:= <<"python">>; Name =:= <<"python3">> ->
    case lib_tags(Prefix) of
        [Tag] -> {ok, Tag};
        _ -> none
    end;
tag(Name, Prefix) ->
    case parse_tag(Name) of
        {ok, {Minor, false} = Tag} ->
            case {has_stdlib(Prefix, Name), has_stdlib(Prefix, <<Name/binary, "t">>)} of
                {false, true} -> {ok, {Minor, true}};
                _ -> {ok, Tag}
            end;
        Parsed ->
            Parsed
    end.

has_stdlib(Prefix, Name) ->
    lists:any(fun is_file/1, [filename:join([Prefix, Lib, Name, "os.py"]) || Lib <- ["lib", "lib64"]]).

lib_tags(Prefix) ->
    lists:usort([
        Tag
     || Lib <- ["lib", "lib64"],
        Dir <- [filename:join(Prefix, Lib)],
        {ok, Names} <- [file:list_dir(Dir)],
        Name <- Names,
        is_list(Name),
        {ok, Tag} <- [parse_tag(Name)],
        is_file(filename:join([Dir, Name, "os.py"]))
    ]).

parse_tag(Name) ->
    case re:run(Name, "^python3\\.(\\d{1,3})(t?)$", [unicode, {capture, [1, 2], list}]) of
        {match, [Minor, Flag]} -> {ok, {list_to_integer(Minor), Flag =:= "t"}};
        nomatch -> none
    end.

%% Debian keeps the library in the multiarch directory, Fedora in lib64.
-spec libpython(path(), tag()) -> {ok, path()} | none.
libpython(Prefix, {Minor, Free}) ->
    Flag = [$t || Free],
    Name = py_text:format("libpython3.~b~ts.so", [Minor, Flag]),
    Dirs = ["lib", filename:join("lib", multiarch()), "lib64"],
    Files = [
        filename:join([Prefix, Dir, <<Name/binary, Suffix/binary>>])
     || Dir <- Dirs, Suffix <- [<<".1.0">>, <<>>]
    ],
    case lists:search(fun is_file/1, Files) of
        {value, File} -> {ok, File};
        false -> none
    end.

multiarch() ->
    [Cpu | _] = string:lexemes(erlang:system_info(system_architecture), "-"),
    Cpu ++ "-linux-gnu".

follow(Path, 0) ->
    Path;
follow(Path, Left) ->
    case file:read_link_all(Path) of
        {ok, Target} -> follow(filename:join(filename:dirname(Path), Target), Left - 1);
        {error, _} -> Path
    end.

%%% venv

venv_of(Exe) ->
    Venv = filename:dirname(filename:dirname(Exe)),
    case file:read_file(filename:join(Venv, "pyvenv.cfg")) of
        {ok, Text} -> {ok, Venv, settings(Text)};
        {error, _} -> none
    end.

settings(Text) ->
    maps:from_list([
        {string:lowercase(string:trim(Key)), string:trim(Value)}
     || Line <- binary:split(Text, [<<"\n">>, <<"\r">>], [global, trim_all]),
        [Key, Value] <- [binary:split(Line, <<"=">>)]
    ]).

%% The link leads to the base (unless the venv was made of copies: then the file says where it is).
base_of(Exe, Venv, Settings) ->
    Real = follow(Exe, 40),
    case filename:dirname(filename:dirname(Real)) of
        Venv ->
            case Settings of
                #{<<"executable">> := Base} -> Base;
                #{<<"base-executable">> := Base} -> Base;
                #{<<"home">> := Home} -> filename:join(Home, filename:basename(Real));
                #{} -> Real
            end;
        _ ->
            Real
    end.

check_venv(#{version := {3, Minor}, venv := Venv} = Info, Settings) ->
    Version = maps:get(<<"version">>, Settings, maps:get(<<"version_info">>, Settings, <<>>)),
    case binary:split(Version, <<".">>, [global]) of
        [<<"3">>, Made | _] ->
            case integer_to_binary(Minor) of
                Made ->
                    {ok, Info};
                Now ->
                    {error,
                        py_text:format("the virtual environment ~ts was made by Python 3.~ts and its base is "
                            "3.~ts now; make it again", [Venv, Made, Now])}
            end;
        _ ->
            {ok, Info}
    end.

%%% Asking the interpreter itself

-define(PROBE,
    "import os, sys, sysconfig as s\n"
    "v = s.get_config_var\n"
    "sys.stdout.buffer.write(b'\\0'.join(os.fsencode(str(x)) for x in ('', 'python-says',"
    " sys.implementation.name, sys.version_info[0], sys.version_info[1],"
    " int(bool(v('Py_GIL_DISABLED'))), sys.executable, sys.base_prefix,"
    " v('LIBDIR') or '', v('INSTSONAME') or '', '')))"
).

%% A wrapper script, a shim, an unusual layout: it knows best itself.
-spec ask(path()) -> {ok, info()} | {error, binary()}.
ask(Exe) ->
    Env = [{"PYTHONHOME", false}, {"PYTHONPATH", false}],
    Options = #{timeout => ?PROBE_TIMEOUT, env => Env},
    case py_command:run(Exe, ["-I", "-S", "-c", ?PROBE], Options) of
        {ok, Output} -> answer(Exe, binary:split(Output, <<0>>, [global]));
        {error, timeout} -> {error, py_text:format("~ts did not tell its version within 10 s", [Exe])};
        {error, {posix, Code}} ->
            {error, py_text:format("~ts cannot be run: ~ts", [Exe, file:format_error(Code)])};
        {error, {exit_status, _, Output}} ->
            {error,
                py_text:format("~ts is not CPython 3.11 or newer: ~ts", [Exe, string:trim(printable(Output))])}
    end.

answer(Exe, [_, <<"python-says">>, <<"cpython">>, <<"3">>, Minor, Free, Real, Prefix, Dir, So | _]) ->
    Tag = {binary_to_integer(Minor), Free =:= <<"1">>},
    File = filename:join(Dir, So),
    Venv =
        case venv_of(Real) of
            {ok, Path, _} -> Path;
            none -> undefined
        end,
    case {supported(Exe, Tag), libpython(Prefix, Tag), is_file(File)} of
        {{error, Why}, _, _} -> {error, Why};
        {ok, {ok, Lib}, _} -> {ok, info(Real, Prefix, Lib, Tag, Venv)};
        {ok, none, true} when So =/= <<>> -> {ok, info(Real, Prefix, File, Tag, Venv)};
        {ok, none, _} -> {error, no_shared_library(Exe, Tag)}
    end;
answer(Exe, [_, <<"python-says">>, Implementation | _]) ->
    {error, py_text:format("~ts is ~ts; CPython 3.11 or newer is needed", [Exe, printable(Implementation)])};
answer(Exe, _) ->
    {error, py_text:format("~ts is not a Python interpreter", [Exe])}.

no_shared_library(Exe, {Minor, Free}) ->
    Version = io_lib:format("3.~b~ts", [Minor, [$t || Free]]),
    py_text:format("~ts has no shared library libpython~ts.so: apt-get install libpython~ts (Debian's own Python), "
        "PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install --force ~ts (pyenv's), or build that Python with "
        "--enable-shared", [Exe, Version, Version, Version]).

%%% Small things

is_file(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = regular}} -> true;
        _ -> false
    end.

printable(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        Text when is_binary(Text) -> Text;
        _ -> py_text:format("~tp", [Bytes])
    end.
