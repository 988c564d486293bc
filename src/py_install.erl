%% What is installed beside the Erlang modules: the native libraries in priv/. Sentences for what is wrong with them.
%%
%% Place: application start, when something is missing or can't be loaded; an upgrade of a release.
%% Process: the one that starts the application.
-module(py_install).

-include_lib("kernel/include/file.hrl").
-include_lib("kernel/include/logger.hrl").

-export([check/1, not_built/2, how_to_install/2, not_loaded/3, refuse_upgrade/0]).

-type path() :: binary().
%% As `erlang:load_nif/2' has it.
-type load_error() :: {atom(), string()}.

%% By e_machine of ELF.
-define(MACHINES, #{
    3 => "x86 with 32 bits", 40 => "ARM with 32 bits", 62 => "x86_64", 183 => "aarch64", 243 => "RISC-V", 21 => "ppc64"
}).

%% Before anything is looked for: whether this is a place that can have native libraries, and one version only.
-spec check(file:filename_all()) -> ok | {error, binary()}.
check(PrivDir) ->
    case archive_around(py_text:path(PrivDir)) of
        {ok, Archive} ->
            Text = "erlang_python can't run from inside ~ts: a native library is loaded from a directory only. Make a "
                "release in place of an escript, or start the escript with the application on ERL_LIBS",
            {error, py_text:format(Text, [Archive])};
        none ->
            check_versions(running_ebin(), ebins())
    end.

%% The file that a path leads into, as it does in an escript.
archive_around(Path) ->
    case {file:read_file_info(Path), filename:dirname(Path)} of
        {{ok, #file_info{type = regular}}, _} -> {ok, Path};
        {{error, Code}, Parent} when Parent =/= Path, Code =:= enotdir; Parent =/= Path, Code =:= enoent ->
            archive_around(Parent);
        _ ->
            none
    end.

check_versions(_Running, [_]) ->
    ok;
check_versions(_Running, []) ->
    ok;
check_versions(Running, Ebins) ->
    %% Modules that are not loaded yet come from the first one.
    [First | Others] = lists:uniq([{version(Ebin), Ebin} || Ebin <- Ebins]),
    Mixed = [{version(Running), Running} || Running =/= none, real(Running) =/= real(element(2, First))],
    case {Mixed, [Other || {Vsn, Ebin} = Other <- Others, Vsn =/= element(1, First), Ebin =/= Running]} of
        {[{Vsn, Ebin}], _} ->
            Text = "two copies of erlang_python are in this node: modules of ~ts in ~ts are loaded, and others would come "
                "from ~ts in ~ts. Leave one of them on the code path",
            {error, py_text:format(Text, [Vsn, Ebin, element(1, First), element(2, First)])};
        {[], []} ->
            ok;
        {[], [{Vsn, Ebin} | _]} ->
            ?LOG_WARNING(
                "erlang_python: two versions are on the code path: ~ts in ~ts is used, not ~ts in ~ts",
                [element(1, First), element(2, First), Vsn, Ebin]
            )
    end.

%% Where the modules of this application come from that are loaded.
running_ebin() ->
    case code:is_loaded(?MODULE) of
        {file, File} when is_list(File) -> py_text:path(filename:dirname(py_text:absolute(File)));
        _ -> none
    end.

ebins() ->
    [
        py_text:path(py_text:absolute(Dir))
     || Dir <- code:get_path(), filelib:is_regular(filename:join(Dir, "erlang_python.app"))
    ].

version(Ebin) ->
    case file:consult(filename:join(Ebin, "erlang_python.app")) of
        {ok, [{application, erlang_python, Keys}]} -> py_text:path(proplists:get_value(vsn, Keys, "?"));
        _ -> <<"?">>
    end.

%% The same directory has several names where a build has links.
real(Dir) ->
    case file:read_file_info(Dir) of
        {ok, #file_info{inode = Inode, major_device = Major}} -> {Major, Inode};
        {error, _} -> Dir
    end.

%% No library is there for any of these Pythons, the best of which is the first.
-spec not_built([py_interpreter:info(), ...], file:filename_all()) -> binary().
not_built([#{executable := Exe, abi := Abi} | Others], PrivDir) ->
    More =
        case [Also || #{executable := Also} <- Others] of
            [] -> "";
            Names -> [" (nor one for ", lists:join(", ", Names), ")"]
        end,
    Priv = py_text:path(PrivDir),
    Text = "the native library for ~ts (py_nif-~ts.so) is not installed~ts: ~ts",
    py_text:format(Text, [Exe, Abi, More, how_to_install(Exe, Priv)]).

%% What makes the library for that Python, in words that follow a colon.
-spec how_to_install(Exe :: path(), Priv :: path()) -> binary().
how_to_install(Exe, Priv) ->
    case source(Priv) of
        {ok, Script} ->
            py_text:format("run PYTHON=~ts sh ~ts", [Exe, Script]);
        none ->
            Text = "~tscompile erlang_python again with PYTHON=~ts in the environment (with mix: mix deps.compile --force "
                "erlang_python), and make the release again if this is one",
            py_text:format(Text, [libraries(Priv), Exe])
    end.

%% The script of the source that `Priv' is part of, or a link into.
source(Priv) ->
    Real =
        case file:read_link_all(Priv) of
            {ok, Target} -> filename:absname_join(filename:dirname(Priv), py_text:path(Target));
            {error, _} -> Priv
        end,
    Script = plain(filename:join([filename:dirname(Real), "scripts", "install.sh"])),
    case filelib:is_regular(Script) of
        true -> {ok, Script};
        false -> none
    end.

%% Without "..", which the links of mix have.
plain(Path) ->
    Parts = lists:foldl(
        fun
            (<<"..">>, [_, Before | Rest]) -> [Before | Rest];
            (Part, Done) -> [Part | Done]
        end,
        [],
        filename:split(Path)
    ),
    filename:join(lists:reverse(Parts)).

%% What there is in place of the one that is missing.
libraries(Priv) ->
    case filelib:wildcard("py_nif-*.so", unicode:characters_to_list(Priv)) of
        [] -> <<>>;
        Names -> py_text:format("~ts has only ~ts; name a Python of those, or ", [Priv, lists:join(", ", Names)])
    end.

%% Why `erlang:load_nif/2' refused a library, and what to do.
-spec not_loaded(Library :: path(), load_error(), Priv :: file:filename_all()) -> binary().
not_loaded(Library, Error, PrivDir) ->
    Why = why(Library, Error),
    case source(py_text:path(PrivDir)) of
        {ok, Script} ->
            py_text:format("~ts. Remove ~ts and run sh ~ts", [Why, Library, Script]);
        none ->
            Text = "~ts. Compile erlang_python again on such a machine, and make the release again if this is one",
            py_text:format(Text, [Why])
    end.

why(Library, {Reason, Said}) ->
    case file:read_file(Library) of
        {error, Code} ->
            py_text:format("~ts can't be read: ~ts", [Library, file:format_error(Code)]);
        {ok, Bytes} ->
            {ok, Node} = file:read_file("/proc/self/exe"),
            why(Library, Reason, unicode:characters_to_list(Said), made_for(Bytes), made_for(Node))
    end.

why(Library, _Reason, _Said, {none, _}, _Node) ->
    py_text:format("~ts is no library: its file is damaged", [Library]);
why(Library, _Reason, _Said, {Machine, _}, {Other, _}) when Machine =/= Other ->
    py_text:format("~ts is built for ~ts, and this node runs on ~ts", [Library, machine(Machine), machine(Other)]);
why(Library, _Reason, _Said, {_, Libc}, {_, Other}) when Libc =/= Other, Libc =/= none, Other =/= none ->
    py_text:format("~ts is built for ~ts, and this node uses ~ts", [Library, Libc, Other]);
why(Library, bad_lib, Said, _, _) ->
    case re:run(Said, "Library version \\(([0-9.]+)\\)", [{capture, [1], list}]) of
        {match, [Wanted]} ->
            Text = "~ts is built for another Erlang: it needs NIF version ~ts, and OTP ~ts has ~ts",
            Has = erlang:system_info(nif_version),
            py_text:format(Text, [Library, Wanted, erlang:system_info(otp_release), Has]);
        nomatch ->
            py_text:format("~ts is of another version of erlang_python than the Erlang modules: ~ts", [Library, Said])
    end;
why(Library, load, _Said, _, _) ->
    py_text:format("~ts is of another version of erlang_python than the Erlang modules", [Library]);
why(Library, _Reason, Said, _, _) ->
    case re:run(Said, "GLIBC_([0-9.]+)' not found", [{capture, [1], list}]) of
        {match, [Wanted]} ->
            py_text:format("~ts needs glibc ~ts, and this machine has an older one", [Library, Wanted]);
        nomatch ->
            py_text:format("~ts can't be loaded: ~ts", [Library, Said])
    end.

%% The machine an ELF file is for and the C library it asks for.
made_for(<<127, "ELF", _Class, 1, _:12/binary, Machine:16/little, _/binary>> = Bytes) ->
    {Machine, libc(Bytes)};
made_for(<<127, "ELF", _Class, 2, _:12/binary, Machine:16/big, _/binary>> = Bytes) ->
    {Machine, libc(Bytes)};
made_for(_) ->
    {none, none}.

libc(Bytes) ->
    Names = [{<<0, "libc.so.6", 0>>, "glibc"}, {<<0, "libc.musl-">>, "musl"}, {<<0, "libc.so", 0>>, "musl"}],
    case [Libc || {Name, Libc} <- Names, binary:match(Bytes, Name) =/= nomatch] of
        [Libc | _] -> Libc;
        [] -> none
    end.

machine(Number) ->
    case ?MACHINES of
        #{Number := Name} -> Name;
        _ -> io_lib:format("another processor (ELF machine ~b)", [Number])
    end.

%% What erlang_python.appup has release_handler call, before anything of the upgrade is done.
-spec refuse_upgrade() -> no_return().
refuse_upgrade() ->
    Text = "erlang_python can't be upgraded in a running node: Python and its native library stay loaded until the node "
        "ends, and no second version can be loaded beside them. Install the release and restart the node",
    throw({error, unicode:characters_to_binary(Text)}).
