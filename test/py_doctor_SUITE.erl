%% The doctor on made-up machines with broken installations: each finding with its command.
-module(py_doctor_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_sound_installation_has_nothing_wrong/1,
    it_works_in_a_node_that_has_not_started_the_application/1,
    it_says_why_the_last_start_failed/1,
    a_bad_setting_is_told/1,
    a_directory_of_python_path_that_is_missing_is_told/1,
    no_python_is_told/1,
    a_python_without_a_native_library_is_told_with_the_command/1,
    a_python_with_several_names_is_told_once/1,
    a_python_without_a_shared_library_is_told/1,
    a_venv_of_another_version_is_told/1,
    a_library_for_another_machine_is_told/1,
    a_library_for_musl_is_told/1,
    a_library_for_a_newer_glibc_is_told/1,
    a_library_that_is_cut_off_is_told/1,
    a_missing_package_is_told/1,
    two_copies_on_the_code_path_are_told/1,
    selinux_is_told/1,
    a_mount_without_execution_is_told/1,
    limits_that_are_too_low_are_told/1,
    little_memory_is_told/1
]).

all() -> [Name || {Name, 1} <- ?MODULE:module_info(exports), Name =/= module_info].

-define(VARIABLES, ["PYTHON", "VIRTUAL_ENV", "PYENV_ROOT", "HOME", "XDG_CACHE_HOME", "PATH"]).

init_per_testcase(Case, Config) ->
    Root = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)),
    Saved = [{Name, os:getenv(Name)} || Name <- ?VARIABLES],
    [os:unsetenv(Name) || Name <- ["PYTHON", "VIRTUAL_ENV", "XDG_CACHE_HOME"]],
    os:putenv("PYENV_ROOT", filename:join(Root, "pyenv")),
    os:putenv("HOME", Root),
    os:putenv("PATH", filename:join(Root, "empty")),
    [{root, Root}, {saved, Saved} | Config].

end_per_testcase(_Case, Config) ->
    persistent_term:erase(py_start_failed),
    [
        case Value of
            false -> os:unsetenv(Name);
            _ -> os:putenv(Name, Value)
        end
     || {Name, Value} <- proplists:get_value(saved, Config)
    ].

a_sound_installation_has_nothing_wrong(Config) ->
    Exe = installation(Config, "pyenv/versions/3.13.1", "3.13"),
    Findings = report(Config, #{}),
    ?assertEqual([], [Each || #{level := wrong} = Each <- Findings]),
    told(Findings, <<"Python">>, ok, Exe, none),
    told(Findings, <<"native library">>, ok, "py_nif-cp313.so", none).

%% The real one, where a Python is found.
it_works_in_a_node_that_has_not_started_the_application(Config) ->
    [os:putenv(Name, Value) || {Name, Value} <- proplists:get_value(saved, Config), Value =/= false],
    {ok, Peer, Node} = peer:start(#{name => peer:random_name(), connection => standard_io, args => ["-pa" | ebin()]}),
    try
        ?assertEqual(ok, peer:call(Peer, py, doctor, [])),
        Findings = peer:call(Peer, py_doctor, report, []),
        told(Findings, <<"last start">>, note, "was not started", none),
        ?assertEqual(false, peer:call(Peer, py_nif, is_loaded, [])),
        ok = peer:call(Peer, application, set_env, [erlang_python, num_workers, none]),
        {error, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
        ?assertMatch({wrong, 2}, peer:call(Peer, py, doctor, [])),
        told(peer:call(Peer, py_doctor, report, []), <<"last start">>, wrong, "num_workers must be", none)
    after
        peer:stop(Peer)
    end,
    ?assert(is_atom(Node)).

it_says_why_the_last_start_failed(Config) ->
    persistent_term:put(py_start_failed, <<"libpython3.13.so can't be opened">>),
    told(report(Config, #{}), <<"last start">>, wrong, "libpython3.13.so can't be opened", none).

a_bad_setting_is_told(Config) ->
    told(report(Config, #{settings => [{num_wrokers, 3}]}), <<"settings">>, wrong, "did you mean num_workers", none).

a_directory_of_python_path_that_is_missing_is_told(Config) ->
    Findings = report(Config, #{settings => [{python_path, ["/no/such/dir"]}]}),
    told(Findings, <<"settings">>, wrong, "/no/such/dir does not exist", none).

no_python_is_told(Config) ->
    told(report(Config, #{}), <<"Python">>, wrong, "Install python3-dev", none).

a_python_without_a_native_library_is_told_with_the_command(Config) ->
    installation(Config, "pyenv/versions/3.13.1", "3.13"),
    Exe = installation(Config, "pyenv/versions/3.12.1", "3.12"),
    ok = file:delete(in(Config, "priv/py_nif-cp312.so")),
    told(report(Config, #{}), <<"also found">>, note, "has no native library", "PYTHON=" ++ Exe),
    Findings = report(Config, #{settings => [{python, Exe}]}),
    told(Findings, <<"Python">>, wrong, "PYTHON=" ++ Exe, none).

a_python_with_several_names_is_told_once(Config) ->
    installation(Config, "pyenv/versions/3.13.1", "3.13"),
    Exe = installation(Config, "pyenv/versions/3.12.1", "3.12"),
    Path = in(Config, "path"),
    ok = filelib:ensure_path(Path),
    [ok = file:make_symlink(Exe, filename:join(Path, Name)) || Name <- ["python3.12", "python3"]],
    os:putenv("PATH", Path),
    ?assertMatch([_], [Each || #{about := <<"also found">>} = Each <- report(Config, #{})]).

a_python_without_a_shared_library_is_told(Config) ->
    Exe = installation(Config, "static", "3.13"),
    [ok = file:delete(File) || File <- filelib:wildcard(in(Config, "static/lib/libpython*"))],
    Answer = lists:join("\\000", ["", "python-says", "cpython", "3", "13", "0", Exe, in(Config, "static"), "", "", ""]),
    executable(Exe, ["#!/bin/sh\nprintf '", Answer, "'\n"]),
    Findings = report(Config, #{settings => [{python, Exe}]}),
    told(Findings, <<"Python">>, wrong, "no shared library libpython3.13.so: apt-get install libpython3.13", none).

a_venv_of_another_version_is_told(Config) ->
    Base = installation(Config, "opt", "3.13"),
    Venv = in(Config, "venv"),
    ok = filelib:ensure_path(filename:join(Venv, "bin")),
    ok = file:make_symlink(Base, filename:join(Venv, "bin/python")),
    ok = file:write_file(filename:join(Venv, "pyvenv.cfg"), "version = 3.12.4\n"),
    os:putenv("VIRTUAL_ENV", Venv),
    Findings = report(Config, #{}),
    told(Findings, <<"venv">>, wrong, "was made by Python 3.12 and its base is 3.13 now", "python3 -m venv --clear " ++ Venv).

a_library_for_another_machine_is_told(Config) ->
    installation(Config, "pyenv/versions/3.13.1", "3.13"),
    elf(Config, "priv/py_nif-cp313.so", #{machine => 183}),
    told(report(Config, #{}), <<"native library">>, wrong, "is for aarch64, and this Erlang is for x86_64", "compile erlang_python again").

a_library_for_musl_is_told(Config) ->
    installation(Config, "pyenv/versions/3.13.1", "3.13"),
    elf(Config, "priv/py_nif-cp313.so", #{needed => "libc.musl-x86_64.so.1"}),
    elf(Config, "pyenv/versions/3.13.1/lib/libpython3.13.so.1.0", #{needed => "libc.musl-x86_64.so.1"}),
    Findings = report(Config, #{}),
    told(Findings, <<"native library">>, wrong, "is for musl, and this Erlang runs on glibc", "compile erlang_python again"),
    told(Findings, <<"libpython">>, wrong, "is for musl, and this Erlang runs on glibc", "install a Python").

a_library_for_a_newer_glibc_is_told(Config) ->
    installation(Config, "pyenv/versions/3.13.1", "3.13"),
    elf(Config, "priv/py_nif-cp313.so", #{more => "GLIBC_2.17\0GLIBC_2.38\0"}),
    told(report(Config, #{}), <<"native library">>, wrong, "needs glibc 2.38, and this machine has 2.36", "compile erlang_python again").

a_library_that_is_cut_off_is_told(Config) ->
    installation(Config, "pyenv/versions/3.13.1", "3.13"),
    {ok, Whole} = file:read_file(in(Config, "priv/py_nif-cp313.so")),
    ok = file:write_file(in(Config, "priv/py_nif-cp313.so"), binary:part(Whole, 0, 100)),
    ok = file:write_file(in(Config, "priv/py_loader.so"), "text"),
    Findings = report(Config, #{}),
    told(Findings, <<"native library">>, wrong, "it is cut off", "compile erlang_python again"),
    told(Findings, <<"loader">>, wrong, "is no ELF file", "compile erlang_python again").

a_missing_package_is_told(Config) ->
    machine(Config),
    ok = file:delete(in(Config, "priv/python/erlang/__init__.py")),
    told(py_doctor:report(where(Config)), <<"package">>, wrong, "is missing", "compile erlang_python again").

two_copies_on_the_code_path_are_told(Config) ->
    Dirs = [in(Config, Name) || Name <- ["one/ebin", "two/ebin"]],
    [ok = filelib:ensure_path(Dir) || Dir <- Dirs],
    [ok = file:write_file(filename:join(Dir, "py_nif.beam"), "") || Dir <- Dirs],
    Findings = report(Config, #{code_path => Dirs}),
    told(Findings, <<"application">>, wrong, hd(Dirs) ++ " is used", "take all but one off ERL_LIBS").

selinux_is_told(Config) ->
    told(report(Config, #{"sys/fs/selinux/enforce" => "1"}), <<"SELinux">>, note, "is enforcing", "restorecon -RF ").

a_mount_without_execution_is_told(Config) ->
    Mounts = [
        "21 1 0:19 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "22 21 0:20 / ", in(Config, "priv"), " rw,nosuid,noexec - tmpfs tmpfs rw\n"
    ],
    Findings = report(Config, #{"proc/self/mountinfo" => Mounts}),
    told(Findings, <<"mount">>, wrong, "is mounted noexec", "mount -o remount,exec " ++ in(Config, "priv")).

limits_that_are_too_low_are_told(Config) ->
    Limits = fun(Files, Threads, Memory) ->
        io_lib:format(
            "Limit                     Soft Limit           Hard Limit           Units\n"
            "Max processes             ~-20ts unlimited            processes\n"
            "Max open files            ~-20ts 1048576              files\n"
            "Max address space         ~-20ts unlimited            bytes\n",
            [Threads, Files, Memory]
        )
    end,
    Low = report(Config, #{"proc/self/limits" => Limits("1024", "100", "1073741824")}),
    told(Low, <<"limits">>, note, "1024 files", "ulimit -n 65536"),
    told(Low, <<"limits">>, wrong, "100 threads and processes", "ulimit -u"),
    told(Low, <<"limits">>, wrong, "1024 MiB of address space", "ulimit -v unlimited"),
    High = report(Config, #{"proc/self/limits" => Limits("65536", "unlimited", "unlimited")}),
    ?assertEqual([], [Each || #{about := <<"limits">>} = Each <- High]).

little_memory_is_told(Config) ->
    told(report(Config, #{"sys/fs/cgroup/memory.max" => "33554432\n"}), <<"memory">>, note, "32 MiB", "give the container 128 MiB").

%%% Made-up machines

%% The report of the machine of the case; keys that are strings are files of it.
report(Config, Changes) ->
    machine(Config),
    [write(Config, Name, Text) || {Name, Text} <- maps:to_list(Changes), is_list(Name)],
    py_doctor:report(maps:merge(where(Config), maps:filter(fun(Key, _) -> is_atom(Key) end, Changes))).

where(Config) ->
    #{settings => [], priv => in(Config, "priv"), root => bin(proplists:get_value(root, Config)), code_path => []}.

%% An emulator for x86_64 and glibc 2.36, and the loader for it. What a case has made stays.
machine(Config) ->
    elf(Config, "proc/self/exe", #{}),
    write(Config, "lib/libc.so.6", "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n"),
    write(Config, "proc/self/maps", "7f00-7f01 r-xp 00000000 08:01 77    /lib/libc.so.6\n7f02-7f03 rw-p 00000000 00:00 0\n"),
    [elf(Config, "priv/py_loader.so", #{}) || not filelib:is_file(in(Config, "priv/py_loader.so"))],
    write(Config, "priv/python/erlang/__init__.py", "").

installation(Config, Dir, Version) ->
    Prefix = in(Config, Dir),
    Exe = filename:join([Prefix, "bin", "python" ++ Version]),
    executable(Exe, ""),
    ok = file:make_symlink("python" ++ Version, filename:join([Prefix, "bin", "python"])),
    write(Config, Dir ++ "/lib/python" ++ Version ++ "/os.py", ""),
    elf(Config, Dir ++ "/lib/libpython" ++ Version ++ ".so.1.0", #{}),
    [Major, Minor] = string:lexemes(Version, "."),
    elf(Config, "priv/py_nif-cp" ++ Major ++ Minor ++ ".so", #{}),
    filename:join([Prefix, "bin", "python"]).

%% A shared library with no more than its dynamic section: what it is for and what it needs.
elf(Config, Name, Changes) ->
    #{machine := Machine, needed := Needed, more := More} =
        maps:merge(#{machine => 62, needed => "libc.so.6", more => "GLIBC_2.28\0"}, Changes),
    Strings = list_to_binary([0, Needed, 0, More]),
    Headers = 64 + 2 * 56,
    Dynamic = <<1:64/little, 1:64/little, 5:64/little, (Headers + 48):64/little, 0:64, 0:64>>,
    Size = Headers + byte_size(Dynamic) + byte_size(Strings),
    Segment = fun(Type, At, Length) ->
        <<Type:32/little, 4:32/little, At:64/little, At:64/little, At:64/little, Length:64/little, Length:64/little, 8:64/little>>
    end,
    write(Config, Name, [
        <<16#7f, "ELF", 2, 1, 1, 0, 0:64, 3:16/little, Machine:16/little, 1:32/little, 0:64, 64:64/little, 0:64, 0:32>>,
        <<64:16/little, 56:16/little, 2:16/little, 0:16, 0:16, 0:16>>,
        Segment(1, 0, Size),
        Segment(2, Headers, byte_size(Dynamic)),
        Dynamic,
        Strings
    ]).

executable(File, Text) ->
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text),
    ok = file:change_mode(File, 8#755).

write(Config, Name, Text) ->
    File = in(Config, Name),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text).

%% One of the findings is about it, with these words in it and these in the command.
told(Findings, About, Level, Words, Command) ->
    Fits = fun(#{about := A, level := L, text := Text, mend := Mend}) ->
        A =:= About andalso L =:= Level andalso string:find(Text, Words) =/= nomatch andalso
            (Mend =:= Command orelse (Command =/= none andalso string:find(Mend, Command) =/= nomatch))
    end,
    lists:any(Fits, Findings) orelse ct:fail("not told: ~ts~n~tp", [Words, Findings]).

ebin() -> [filename:dirname(code:which(py))].

in(Config, Path) -> filename:join(proplists:get_value(root, Config), Path).

bin(Text) -> unicode:characters_to_binary(Text).
