%% What this machine and this installation have, what is missing, and the command that mends it.
%%
%% Place: `py:doctor/0' and `./dev doctor'; needs nothing of the application but its modules.
%% Process: the caller's.
%% Never: starts the application, loads a library, changes anything.
-module(py_doctor).

-include_lib("kernel/include/file.hrl").

-export([print/0, report/0, report/1]).

-export_type([finding/0, level/0]).

-type level() :: ok | note | wrong.
-type finding() :: #{about := binary(), level := level(), text := binary(), mend := binary() | none}.

%% Where it looks: tests have made-up machines.
-type where() :: #{
    settings := [{atom(), term()}],
    priv := file:filename_all(),
    %% What is before `/proc', `/sys' and the like.
    root := binary(),
    code_path := [file:filename_all()]
}.

%% Descriptors: connections and files of Erlang and Python together.
-define(FEW_FILES, 4096).
%% Each thread has its stack reserved, and Python itself wants some.
-define(STACK, 16_777_216).
-define(LITTLE_MEMORY, 134_217_728).

%% In the terminal of the caller.
-spec print() -> ok | {wrong, pos_integer()}.
print() ->
    Findings = report(),
    io:put_chars([line(Each) || Each <- Findings]),
    case length([Each || #{level := wrong} = Each <- Findings]) of
        0 -> io:put_chars("nothing is wrong\n");
        Wrong -> {wrong, Wrong}
    end.

line(#{about := About, level := Level, text := Text, mend := Mend}) ->
    Command =
        case Mend of
            none -> [];
            _ -> io_lib:format("~26ts~ts~n", ["-> ", Mend])
        end,
    [io_lib:format("  ~-6ts ~-14ts ~ts~n", [Level, About, Text]), Command].

-spec report() -> [finding(), ...].
report() ->
    report(#{
        settings => application:get_all_env(erlang_python),
        priv => py_runtime:priv_dir(),
        root => <<>>,
        code_path => code:get_path()
    }).

-spec report(where()) -> [finding(), ...].
report(Where) ->
    {Config, Settings} = settings(Where),
    {Python, Chosen} = python(Config, Where),
    lists:append([
        erlang(),
        copies(Where),
        Settings,
        last_start(),
        package(Where),
        Chosen,
        files(Python, Where),
        venv(Python, Where),
        selinux(Where),
        noexec(Where),
        limits(Config, Where),
        cgroup(Where),
        installer()
    ]).

%%% Erlang and the application

erlang() ->
    Release = erlang:system_info(otp_release),
    Text = py_text:format("OTP ~ts, NIF ~ts, ~ts", [
        Release, erlang:system_info(nif_version), erlang:system_info(system_architecture)
    ]),
    case list_to_integer(Release) >= 25 of
        true -> [finding(<<"Erlang">>, ok, Text)];
        false -> [finding(<<"Erlang">>, wrong, [Text, ": OTP 25 or newer is needed"], "apt-get install erlang")]
    end.

%% Whichever comes first on the path is used, with its own `priv'.
copies(#{code_path := Path}) ->
    Dirs = [py_text:path(Dir) || Dir <- Path, filelib:is_regular(filename:join(Dir, "py_nif.beam"))],
    case lists:usort([py_text:absolute(Dir) || Dir <- Dirs]) of
        [_, _ | _] = Several ->
            Text = ["several copies are on the code path: ", lists:join(", ", Several), "; ", hd(Dirs), " is used"],
            [finding(<<"application">>, wrong, Text, "take all but one off ERL_LIBS and the -pa of erl")];
        _ ->
            []
    end.

settings(#{settings := Given}) ->
    case py_config:check(Given) of
        {ok, Config} ->
            case py_path:resolve(Config) of
                {ok, Resolved} -> {Resolved, [finding(<<"settings">>, ok, given(Given))]};
                {error, Sentence} -> {Config, [finding(<<"settings">>, wrong, Sentence)]}
            end;
        {error, Sentence} ->
            {py_config:defaults(), [finding(<<"settings">>, wrong, Sentence)]}
    end.

given(Given) ->
    case [atom_to_list(Name) || {Name, _} <- Given, Name =/= included_applications] of
        [] -> "none given, the defaults hold";
        Names -> ["given: ", lists:join(", ", lists:sort(Names))]
    end.

last_start() ->
    case {py_nif:is_loaded(), persistent_term:get(py_start_failed, none)} of
        {_, Sentence} when is_binary(Sentence) -> [finding(<<"last start">>, wrong, Sentence)];
        {true, none} -> [finding(<<"last start">>, ok, "Python runs in this node")];
        {false, none} -> [finding(<<"last start">>, note, "the application was not started in this node")]
    end.

package(#{priv := Priv}) ->
    Package = filename:join([Priv, "python", "erlang", "__init__.py"]),
    case filelib:is_regular(Package) of
        true -> [];
        false -> [finding(<<"package">>, wrong, [Package, " is missing"], install(<<"python3">>, Priv))]
    end.

%%% Python

python(Config, #{priv := PrivDir}) ->
    Priv = py_text:path(PrivDir),
    Others = others(Priv),
    case py_python:find(Config#{install => false}, Priv) of
        {ok, #{executable := Exe, version := {3, Minor}, chosen := Why} = Python} ->
            Text = py_text:format("~ts (3.~b), ~ts", [Exe, Minor, Why]),
            Same = same_file(Exe),
            {Python, [finding(<<"Python">>, ok, Text) | [Each || {Other, Each} <- Others, Other =/= Same]]};
        {error, Sentence} ->
            {none, [finding(<<"Python">>, wrong, Sentence) | [Each || {_, Each} <- Others]]}
    end.

%% One finding for a program that several links lead to: `/bin' is `/usr/bin', and `python3' is `python3.13'.
others(Priv) ->
    All = [{same_file(Exe), Exe, Found} || {Exe, Found} <- py_python:candidates()],
    [{Same, other(Exe, Found, Priv)} || {Same, Exe, Found} <- lists:uniq(fun({Same, _, _}) -> Same end, All)].

same_file(Exe) ->
    case file:read_file_info(Exe) of
        {ok, #file_info{major_device = Device, inode = Inode}} -> {Device, Inode};
        {error, _} -> Exe
    end.

other(Exe, {ok, #{abi := Abi}}, Priv) ->
    case filelib:is_regular(py_python:library(Abi, Priv)) of
        true ->
            finding(<<"also found">>, note, [Exe, " (", Abi, ")"]);
        false ->
            Text = [Exe, " (", Abi, ") has no native library here"],
            finding(<<"also found">>, note, Text, install(Exe, Priv))
    end;
other(_Exe, {error, Sentence}, _Priv) ->
    finding(<<"not used">>, note, Sentence).

%% The files that are loaded into this emulator must be made for such a machine and such a C library.
files(Python, #{priv := Priv} = Where) ->
    Loader = filename:join(Priv, "py_loader.so"),
    Files =
        [{<<"loader">>, Loader, install(<<"python3">>, Priv)}] ++
            case Python of
                none ->
                    [];
                #{library := Library, libpython := LibPython, executable := Exe} ->
                    [
                        {<<"native library">>, Library, install(Exe, Priv)},
                        {<<"libpython">>, LibPython, "install a Python of this machine's own architecture and C library"}
                    ]
            end,
    Node = node_built(Where),
    [file_finding(Each, Node) || Each <- Files].

file_finding({About, File, Mend}, Node) ->
    case py_elf:read(File) of
        {ok, Built} ->
            case misfits(Built, Node) of
                [] -> finding(About, ok, File);
                Why -> finding(About, wrong, [File, " ", lists:join(", and ", Why)], Mend)
            end;
        {error, Why} ->
            finding(About, wrong, [File, " can't be used: ", Why], Mend)
    end.

%% What the emulator itself was built for, and what it has.
node_built(#{root := Root}) ->
    Libc = [Path || Path <- mapped(Root), is_libc(Path)],
    case {py_elf:read(<<Root/binary, "/proc/self/exe">>), Libc} of
        {{ok, #{libc := none} = Built}, _} -> Built#{has => none};
        {{ok, #{libc := glibc} = Built}, [Path | _]} -> Built#{has => py_elf:glibc(<<Root/binary, Path/binary>>)};
        {{ok, Built}, _} -> Built#{has => none};
        {{error, _}, _} -> unknown
    end.

is_libc(Path) ->
    Name = filename:basename(Path),
    Name =:= <<"libc.so.6">> orelse string:prefix(Name, <<"libc-2.">>) =/= nomatch.

mapped(Root) ->
    case file:read_file(<<Root/binary, "/proc/self/maps">>) of
        {ok, Text} ->
            Lines = binary:split(Text, <<"\n">>, [global]),
            lists:usort([Path || Line <- Lines, [_, Rest] <- [binary:split(Line, <<"/">>)], Path <- [<<"/", Rest/binary>>]]);
        {error, _} ->
            []
    end.

misfits(_Built, unknown) ->
    [];
misfits(#{machine := Machine, libc := Libc, glibc := Wanted}, #{machine := Own, libc := OwnLibc, has := Has}) ->
    [io_lib:format("is for ~ts, and this Erlang is for ~ts", [Machine, Own]) || Machine =/= Own] ++
        [
            io_lib:format("is for ~ts, and this Erlang runs on ~ts", [Libc, OwnLibc])
         || Libc =/= OwnLibc, Libc =/= none, OwnLibc =/= none
        ] ++
        [
            io_lib:format("needs glibc 2.~b, and this machine has 2.~b", [Minor, Less])
         || {2, Minor} <- [Wanted], {2, Less} <- [Has], Minor > Less, Libc =:= OwnLibc
        ].

venv(#{venv := Venv, prefix := Prefix}, _Where) when is_binary(Venv) ->
    [finding(<<"venv">>, ok, [Venv, ", of the Python in ", Prefix])];
venv(_, Where) ->
    case os:getenv("VIRTUAL_ENV", "") of
        "" -> [];
        Dir -> active_venv(Dir, Where)
    end.

active_venv(Dir, #{priv := Priv}) ->
    case py_interpreter:describe(Dir) of
        {ok, #{abi := Abi}} ->
            Text = ["$VIRTUAL_ENV, ", Dir, " (", Abi, "), is not used"],
            [finding(<<"venv">>, note, Text, install(py_text:path(Dir), Priv))];
        {error, Why} ->
            [finding(<<"venv">>, wrong, ["$VIRTUAL_ENV: ", Why], ["python3 -m venv --clear ", Dir])]
    end.

%%% The machine

selinux(#{root := Root, priv := Priv}) ->
    case file:read_file(<<Root/binary, "/sys/fs/selinux/enforce">>) of
        {ok, <<"1", _/binary>>} ->
            Text = "is enforcing: if a library can't be loaded, look with ausearch -m avc -ts recent",
            [finding(<<"SELinux">>, note, Text, ["restorecon -RF ", Priv])];
        _ ->
            []
    end.

%% A library on a file system that is mounted with `noexec' can't be loaded.
noexec(#{root := Root, priv := Priv}) ->
    case file:read_file(<<Root/binary, "/proc/self/mountinfo">>) of
        {ok, Text} ->
            Mounts = [mount(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim_all])],
            Dir = py_text:path(py_text:absolute(Priv)),
            Above = [{byte_size(Point), Point, Options} || {Point, Options} <- Mounts, is_below(Dir, Point)],
            [
                finding(<<"mount">>, wrong, [Point, " is mounted noexec: no library can be loaded from ", Dir],
                    ["mount -o remount,exec ", Point])
             || Above =/= [],
                {_, Point, Options} <- [lists:max(Above)],
                lists:member(<<"noexec">>, binary:split(Options, <<",">>, [global]))
            ];
        {error, _} ->
            []
    end.

mount(Line) ->
    case binary:split(Line, <<" ">>, [global]) of
        [_Id, _Parent, _Device, _Root, Point, Options | _] -> {Point, Options};
        _ -> {<<"?">>, <<>>}
    end.

is_below(_Dir, <<"/">>) -> true;
is_below(Dir, Point) -> Dir =:= Point orelse string:prefix(Dir, <<Point/binary, "/">>) =/= nomatch.

limits(Config, #{root := Root}) ->
    case file:read_file(<<Root/binary, "/proc/self/limits">>) of
        {ok, Text} -> lists:append([limit(Name, soft(Row, Text), Config) || {Name, Row} <- limit_rows()]);
        {error, _} -> []
    end.

limit_rows() -> [{files, "Max open files"}, {threads, "Max processes"}, {memory, "Max address space"}].

soft(Row, Text) ->
    case re:run(Text, ["^", Row, " +(\\d+)"], [multiline, {capture, [1], binary}]) of
        {match, [Number]} -> binary_to_integer(Number);
        nomatch -> unlimited
    end.

limit(files, Files, _Config) when is_integer(Files), Files < ?FEW_FILES ->
    Text = io_lib:format("~b files and connections may be open at the same time", [Files]),
    [finding(<<"limits">>, note, Text, "ulimit -n 65536, or LimitNOFILE=65536 in the unit of systemd")];
limit(threads, Threads, Config) when is_integer(Threads) ->
    case threads(Config) of
        Most when Most > Threads ->
            Words = "~b threads and processes of this user, and the settings allow ~b threads",
            Text = io_lib:format(Words, [Threads, Most]),
            [finding(<<"limits">>, wrong, Text, io_lib:format("ulimit -u ~b, or LimitNPROC=", [2 * Most]))];
        _ ->
            []
    end;
limit(memory, Bytes, Config) when is_integer(Bytes) ->
    case threads(Config) * ?STACK of
        Stacks when Stacks > Bytes ->
            Words = "~b MiB of address space, and the stacks of the threads that the settings allow reserve ~b",
            Text = io_lib:format(Words, [Bytes bsr 20, Stacks bsr 20]),
            [finding(<<"limits">>, wrong, Text, "ulimit -v unlimited, or a smaller max_threads")];
        _ ->
            []
    end;
limit(_Name, _Enough, _Config) ->
    [].

%% Those of the main pool and of bound processes, the loops, and a handful of our own.
threads(#{max_threads := Workers, max_bound := Bound, num_loops := Loops}) -> Workers + Bound + Loops + 8.

cgroup(#{root := Root}) ->
    case file:read_file(<<Root/binary, "/sys/fs/cgroup/memory.max">>) of
        {ok, Text} ->
            case string:to_integer(Text) of
                {Bytes, _} when is_integer(Bytes), Bytes < ?LITTLE_MEMORY ->
                    Has = io_lib:format("the container may have ~b MiB", [Bytes bsr 20]),
                    [finding(<<"memory">>, note, Has, "give the container 128 MiB or more")];
                _ ->
                    []
            end;
        {error, _} ->
            []
    end.

installer() ->
    case py_uv:known() of
        {ok, Uv} -> [finding(<<"installer">>, ok, ["uv, ", Uv])];
        none -> [finding(<<"installer">>, note, "no uv yet: py:ensure_venv fetches it, or takes pip")]
    end.

%%% Findings

install(Exe, Priv) -> py_install:how_to_install(Exe, py_text:path(Priv)).

finding(About, Level, Text) -> finding(About, Level, Text, none).

finding(About, Level, Text, Mend) ->
    #{about => About, level => Level, text => py_text:format("~ts", [Text]), mend => mend(Mend)}.

mend(none) -> none;
mend(Text) -> py_text:format("~ts", [Text]).
