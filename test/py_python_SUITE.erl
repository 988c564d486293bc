%% Which Python is chosen: by configuration, by $PYTHON, by detection; told from files alone.
%% The installations are made by the tests: empty files with the right names.
-module(py_python_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([log/2]).
-export([
    an_installation_is_told_from_its_files_without_running_it/1,
    a_library_in_the_multiarch_directory_is_found/1,
    a_venv_leads_to_its_base/1,
    a_venv_made_of_copies_leads_to_its_base_by_its_file/1,
    a_venv_of_uv_is_read_too/1,
    a_venv_whose_base_became_another_version_is_refused/1,
    a_directory_stands_for_its_python/1,
    a_free_threaded_build_is_recognised_under_both_names/1,
    the_free_threaded_3_13_is_refused/1,
    an_old_version_is_refused/1,
    a_path_that_leads_nowhere_is_refused/1,
    the_configuration_comes_before_the_variable/1,
    an_explicit_choice_without_its_library_says_what_to_run/1,
    without_its_source_it_says_what_there_is/1,
    the_newest_python_with_a_library_is_detected/1,
    an_active_venv_is_preferred/1,
    an_active_venv_without_library_is_passed_over/1,
    a_python_on_the_path_is_detected/1,
    a_version_finds_a_python_of_it/1,
    a_version_without_its_library_says_what_to_run/1,
    a_version_that_is_missing_is_not_installed_without_leave/1,
    what_was_detected_is_explained/1,
    pyenvs_shims_are_not_asked/1,
    a_python_newer_than_those_that_were_tested_is_taken_with_one_warning/1,
    without_any_library_the_newest_is_proposed/1,
    without_any_python_it_says_so/1,
    a_script_that_hides_the_interpreter_is_asked/1,
    a_program_that_is_no_python_is_refused/1,
    a_python_without_a_shared_library_is_refused/1,
    a_program_that_never_answers_is_given_up/1,
    a_program_that_does_not_read_its_input_is_an_error/1,
    detection_takes_a_few_milliseconds/1
]).

all() ->
    [Name || {Name, 1} <- ?MODULE:module_info(exports), Name =/= module_info].

-define(VARIABLES, ["PYTHON", "VIRTUAL_ENV", "PYENV_ROOT", "HOME", "XDG_CACHE_HOME", "PATH", "UV_DEFAULT_INDEX"]).

init_per_testcase(Case, Config) ->
    Root = filename:join([proplists:get_value(priv_dir, Config), atom_to_list(Case)]),
    Priv = filename:join(Root, "priv"),
    ok = filelib:ensure_path(Priv),
    Saved = [{Name, os:getenv(Name)} || Name <- ?VARIABLES],
    [os:unsetenv(Name) || Name <- ["PYTHON", "VIRTUAL_ENV"]],
    os:putenv("XDG_CACHE_HOME", filename:join(Root, "cache")),
    os:putenv("PYENV_ROOT", filename:join(Root, "pyenv")),
    os:putenv("PATH", filename:join(Root, "empty")),
    [{root, Root}, {priv, Priv}, {saved, Saved} | Config].

end_per_testcase(_Case, Config) ->
    [
        case Value of
            false -> os:unsetenv(Name);
            _ -> os:putenv(Name, Value)
        end
     || {Name, Value} <- proplists:get_value(saved, Config)
    ].

an_installation_is_told_from_its_files_without_running_it(Config) ->
    Exe = installation(Config, "opt", "3.13"),
    Prefix = bin(filename:dirname(filename:dirname(Exe))),
    ?assertEqual(
        {ok, #{
            executable => bin(Exe),
            prefix => Prefix,
            libpython => filename:join(Prefix, "lib/libpython3.13.so.1.0"),
            version => {3, 13},
            free_threaded => false,
            abi => <<"cp313">>,
            venv => undefined
        }},
        py_interpreter:describe(Exe)
    ).

a_library_in_the_multiarch_directory_is_found(Config) ->
    Exe = installation(Config, "usr", "3.11"),
    Lib = in(Config, "usr/lib/libpython3.11.so.1.0"),
    [Cpu | _] = string:lexemes(erlang:system_info(system_architecture), "-"),
    Multiarch = in(Config, "usr/lib/" ++ Cpu ++ "-linux-gnu/libpython3.11.so.1.0"),
    ok = filelib:ensure_dir(Multiarch),
    ok = file:rename(Lib, Multiarch),
    {ok, #{libpython := Found}} = py_interpreter:describe(Exe),
    ?assertEqual(bin(Multiarch), Found).

a_venv_leads_to_its_base(Config) ->
    Base = installation(Config, "opt", "3.12"),
    Exe = venv(Config, "venv", Base, "version = 3.12.1"),
    {ok, Info} = py_interpreter:describe(Exe),
    ?assertMatch(#{version := {3, 12}, abi := <<"cp312">>}, Info),
    ?assertEqual(bin(Exe), maps:get(executable, Info)),
    ?assertEqual(bin(in(Config, "venv")), maps:get(venv, Info)),
    ?assertEqual(bin(in(Config, "opt")), maps:get(prefix, Info)).

a_venv_made_of_copies_leads_to_its_base_by_its_file(Config) ->
    Base = installation(Config, "opt", "3.12"),
    Exe = venv(Config, "venv", Base, "version = 3.12.1"),
    ok = file:delete(Exe),
    executable(Exe, <<>>),
    {ok, Info} = py_interpreter:describe(Exe),
    ?assertEqual(bin(in(Config, "opt")), maps:get(prefix, Info)).

a_venv_of_uv_is_read_too(Config) ->
    Base = installation(Config, "opt", "3.13"),
    Exe = venv(Config, "venv", Base, "uv = 0.9\nversion_info = 3.13.0"),
    ?assertMatch({ok, #{version := {3, 13}}}, py_interpreter:describe(Exe)).

a_venv_whose_base_became_another_version_is_refused(Config) ->
    Base = installation(Config, "opt", "3.13"),
    Exe = venv(Config, "venv", Base, "version = 3.12.4"),
    {error, Sentence} = py_interpreter:describe(Exe),
    contains("was made by Python 3.12 and its base is 3.13 now", Sentence).

a_directory_stands_for_its_python(Config) ->
    Base = installation(Config, "opt", "3.13"),
    Exe = venv(Config, "venv", Base, "version = 3.13.0"),
    {ok, #{executable := Found}} = py_interpreter:describe(in(Config, "venv")),
    ?assertEqual(bin(Exe), Found),
    {error, Sentence} = py_interpreter:describe(in(Config, "priv")),
    contains("directory without bin/python", Sentence).

a_free_threaded_build_is_recognised_under_both_names(Config) ->
    Exe = installation(Config, "opt", "3.14t"),
    ?assertMatch(
        {ok, #{version := {3, 14}, free_threaded := true, abi := <<"cp314t">>}},
        py_interpreter:describe(Exe)
    ),
    %% `make install' gives it a hard link without the t.
    Second = in(Config, "opt/bin/python3.14"),
    executable(Second, <<>>),
    ?assertMatch({ok, #{free_threaded := true}}, py_interpreter:describe(Second)).

the_free_threaded_3_13_is_refused(Config) ->
    {error, Sentence} = py_interpreter:describe(installation(Config, "opt", "3.13t")),
    contains("use 3.14t", Sentence).

an_old_version_is_refused(Config) ->
    {error, Sentence} = py_interpreter:describe(installation(Config, "opt", "3.10")),
    contains("is Python 3.10; 3.11 or newer is needed", Sentence).

a_path_that_leads_nowhere_is_refused(Config) ->
    {error, Missing} = find(Config, #{python => <<"/no/such/python">>}),
    contains("/no/such/python does not exist", Missing),
    contains("{python, Path}", Missing),
    Plain = in(Config, "plain"),
    ok = file:write_file(Plain, "text"),
    {error, NotExecutable} = find(Config, #{python => bin(Plain)}),
    contains("is not an executable", NotExecutable).

the_configuration_comes_before_the_variable(Config) ->
    First = installation(Config, "first", "3.12"),
    Second = installation(Config, "second", "3.13"),
    [built(Config, Abi) || Abi <- ["cp312", "cp313"]],
    os:putenv("PYTHON", Second),
    ?assertMatch({ok, #{version := {3, 12}}}, find(Config, #{python => bin(First)})),
    ?assertMatch({ok, #{version := {3, 13}}}, find(Config, #{python => undefined})),
    {ok, #{library := Library}} = find(Config, #{}),
    ?assertEqual(bin(in(Config, "priv/py_nif-cp313.so")), Library).

an_explicit_choice_without_its_library_says_what_to_run(Config) ->
    Exe = installation(Config, "opt", "3.12"),
    built(Config, "cp313"),
    Script = source(Config),
    {error, Sentence} = find(Config, #{python => bin(Exe)}),
    contains("run PYTHON=" ++ Exe ++ " sh " ++ Script, Sentence),
    os:putenv("PYTHON", Exe),
    {error, Sentence} = find(Config, #{}).

%% As in a release, which has no source.
without_its_source_it_says_what_there_is(Config) ->
    Exe = installation(Config, "opt", "3.12"),
    [built(Config, Abi) || Abi <- ["cp311", "cp313"]],
    {error, Sentence} = find(Config, #{python => bin(Exe)}),
    contains("has only py_nif-cp311.so, py_nif-cp313.so", Sentence),
    contains("compile erlang_python again with PYTHON=" ++ Exe, Sentence),
    nomatch = string:find(Sentence, "./dev").

the_newest_python_with_a_library_is_detected(Config) ->
    [
        installation(Config, "pyenv/versions/" ++ Name, Version)
     || {Name, Version} <- [
            {"3.9.18", "3.9"},
            {"3.11.7", "3.11"},
            {"3.12.1", "3.12"},
            {"3.12.10", "3.12"},
            {"3.12.10rc1", "3.12"},
            {"3.13.0", "3.13"}
        ]
    ],
    %% A virtual environment of pyenv may have any name.
    Names = ["miniconda3-latest"] ++ [[1087, 1088] || file:native_name_encoding() =:= utf8],
    [ok = filelib:ensure_path(in(Config, "pyenv/versions/" ++ Name)) || Name <- Names],
    [built(Config, Abi) || Abi <- ["cp39", "cp311", "cp312"]],
    {ok, #{executable := Exe}} = find(Config, #{}),
    ?assertEqual(bin(in(Config, "pyenv/versions/3.12.10/bin/python")), Exe).

an_active_venv_is_preferred(Config) ->
    installation(Config, "pyenv/versions/3.13.0", "3.13"),
    Base = installation(Config, "opt", "3.11"),
    Exe = venv(Config, "venv", Base, "version = 3.11.7"),
    [built(Config, Abi) || Abi <- ["cp311", "cp313"]],
    os:putenv("VIRTUAL_ENV", in(Config, "venv")),
    {ok, #{executable := Found}} = find(Config, #{}),
    ?assertEqual(bin(Exe), Found).

an_active_venv_without_library_is_passed_over(Config) ->
    installation(Config, "pyenv/versions/3.13.0", "3.13"),
    Base = installation(Config, "opt", "3.11"),
    venv(Config, "venv", Base, "version = 3.11.7"),
    built(Config, "cp313"),
    os:putenv("VIRTUAL_ENV", in(Config, "venv")),
    ?assertMatch({ok, #{version := {3, 13}, venv := undefined}}, find(Config, #{})).

a_python_on_the_path_is_detected(Config) ->
    installation(Config, "pyenv/versions/3.11.7", "3.11"),
    Exe = installation(Config, "usr", "3.12"),
    [built(Config, Abi) || Abi <- ["cp311", "cp312"]],
    os:putenv("PATH", in(Config, "nowhere") ++ ":" ++ in(Config, "usr/bin")),
    {ok, #{executable := Found}} = find(Config, #{}),
    ?assertEqual(bin(Exe), Found),
    %% By its name alone, too.
    ?assertMatch({ok, #{version := {3, 12}}}, find(Config, #{python => <<"python3.12">>})).

a_version_finds_a_python_of_it(Config) ->
    installation(Config, "pyenv/versions/3.13.0", "3.13"),
    installation(Config, "pyenv/versions/3.12.1", "3.12"),
    installation(Config, "cache/erlang_python/uv-pythons/cpython-3.11.9-linux-x86_64-gnu", "3.11"),
    [built(Config, Abi) || Abi <- ["cp311", "cp312", "cp313"]],
    {ok, #{executable := Exe, chosen := Why, detected := false}} = find(Config, #{python => <<"3.12">>}),
    ?assertEqual(bin(in(Config, "pyenv/versions/3.12.1/bin/python")), Exe),
    contains("{python, \"3.12\"}", Why),
    %% One that an earlier start has installed.
    ?assertMatch({ok, #{version := {3, 11}}}, find(Config, #{python => <<"3.11">>})),
    os:putenv("PYTHON", "3.12"),
    ?assertMatch({ok, #{version := {3, 12}}}, find(Config, #{python => auto})).

a_version_without_its_library_says_what_to_run(Config) ->
    Exe = installation(Config, "pyenv/versions/3.12.1", "3.12"),
    {error, Built} = find(Config, #{python => <<"3.12">>}),
    contains("PYTHON=" ++ filename:join(filename:dirname(Exe), "python"), Built),
    %% Nothing is installed that could not be used.
    {error, Missing} = find(Config, #{python => <<"3.14t">>}),
    contains("no such Python was found, and its native library (py_nif-cp314t.so) is not installed", Missing).

a_version_that_is_missing_is_not_installed_without_leave(Config) ->
    built(Config, "cp312"),
    {error, Told} = find(Config, #{python => <<"3.12">>, install => false}),
    contains("no Python 3.12 was found", Told),
    %% Nothing listens there.
    os:putenv("UV_DEFAULT_INDEX", "http://127.0.0.1:1/simple"),
    {error, Tried} = find(Config, #{python => <<"3.12">>}),
    contains("it can't be installed: uv could not be fetched: http://127.0.0.1:1/simple/uv/: ", Tried).

what_was_detected_is_explained(Config) ->
    [installation(Config, "pyenv/versions/3." ++ Minor ++ ".1", "3." ++ Minor) || Minor <- ["11", "12", "13"]],
    built(Config, "cp311"),
    {ok, #{chosen := Only}} = find(Config, #{}),
    ?assertEqual(<<"the only one found with a native library; no native library for cp312, cp313">>, Only),
    built(Config, "cp312"),
    {ok, #{chosen := Why, detected := true}} = find(Config, #{}),
    ?assertEqual(<<"the newest of 2 found with a native library; no native library for cp313">>, Why).

a_python_newer_than_those_that_were_tested_is_taken_with_one_warning(Config) ->
    installation(Config, "pyenv/versions/3.99.0", "3.99"),
    built(Config, "cp399"),
    {ok, #{version := {3, 99}, executable := Exe} = Python} = find(Config, #{}),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        ok = py_python:warn_if_newer(Python),
        ok = py_python:warn_if_newer(Python#{version := {3, 11}}),
        ok = py_python:warn_if_newer(Python#{version := {3, 98}}),
        Lines = [
            receive
                {logged, Line} -> Line
            after 0 -> none
            end
         || _ <- [1, 2, 3]
        ],
        ?assertMatch([<<_/binary>>, <<_/binary>>, none], Lines),
        contains(<<Exe/binary, " is Python 3.99, newer than 3.">>, hd(Lines))
    after
        ok = logger:remove_handler(?MODULE)
    end.

%% The handler.
log(#{level := warning, msg := {Format, Args}}, #{config := #{to := Test}}) ->
    Test ! {logged, unicode:characters_to_binary(io_lib:format(Format, Args))};
log(_Event, _Config) ->
    ok.

pyenvs_shims_are_not_asked(Config) ->
    Asked = in(Config, "asked"),
    executable(in(Config, "pyenv/shims/python3"), ["#!/bin/sh\n: > ", Asked, "\n"]),
    os:putenv("PATH", in(Config, "pyenv/shims") ++ ":/usr/bin:/bin"),
    built(Config, "cp399"),
    {error, _} = find(Config, #{}),
    ?assertNot(filelib:is_file(Asked)).

without_any_library_the_newest_is_proposed(Config) ->
    installation(Config, "pyenv/versions/3.11.7", "3.11"),
    installation(Config, "pyenv/versions/3.13.0", "3.13"),
    Script = source(Config),
    {error, Sentence} = find(Config, #{}),
    contains("run PYTHON=" ++ in(Config, "pyenv/versions/3.13.0/bin/python") ++ " sh " ++ Script, Sentence).

without_any_python_it_says_so(Config) ->
    {error, Sentence} = find(Config, #{}),
    contains("no CPython 3.11 or newer", Sentence),
    contains("$PYTHON", Sentence).

a_script_that_hides_the_interpreter_is_asked(Config) ->
    Prefix = in(Config, "hidden"),
    installation(Config, "hidden", "3.13"),
    Answer = lists:join("\\000", [
        "", "python-says", "cpython", "3", "13", "0", Prefix ++ "/bin/python3.13", Prefix, "", "", ""
    ]),
    Exe = in(Config, "wrapper"),
    executable(Exe, ["#!/bin/sh\necho a warning >&2\nprintf '", Answer, "'\n"]),
    ?assertMatch({ok, #{version := {3, 13}, abi := <<"cp313">>}}, py_interpreter:describe(Exe)).

a_program_that_is_no_python_is_refused(Config) ->
    Silent = in(Config, "python3"),
    executable(Silent, "#!/bin/sh\nexit 0\n"),
    {error, First} = py_interpreter:describe(Silent),
    contains("is not a Python interpreter", First),
    executable(Silent, "#!/bin/sh\necho 'unknown option -I'\nexit 2\n"),
    {error, Second} = py_interpreter:describe(Silent),
    contains("unknown option -I", Second),
    executable(Silent, "#!/bin/sh\nprintf '\\000python-says\\000pypy\\0003\\00011'\n"),
    {error, Third} = py_interpreter:describe(Silent),
    contains("is pypy; CPython 3.11 or newer is needed", Third).

a_python_without_a_shared_library_is_refused(Config) ->
    Prefix = in(Config, "static"),
    Answer = lists:join("\\000", [
        "", "python-says", "cpython", "3", "13", "0", Prefix ++ "/bin/python3.13", Prefix, "", "", ""
    ]),
    Exe = in(Config, "static/bin/python3.13"),
    executable(Exe, ["#!/bin/sh\nprintf '", Answer, "'\n"]),
    {error, Sentence} = py_interpreter:describe(Exe),
    contains("libpython3.13.so", Sentence),
    contains("--enable-shared", Sentence).

a_program_that_never_answers_is_given_up(Config) ->
    Sleeps = in(Config, "sleeps"),
    executable(Sleeps, "#!/bin/sh\nexec sleep 600\n"),
    os:putenv("PATH", "/usr/bin:/bin"),
    Self = self(),
    Kill = fun(OsPid) ->
        Self ! {kill, OsPid},
        os:cmd("kill -9 " ++ integer_to_list(OsPid))
    end,
    ?assertEqual({error, timeout}, py_command:run(Sleeps, [], #{timeout => 500, kill => Kill})),
    receive
        {kill, OsPid} when is_integer(OsPid) -> ok
    end,
    ?assertEqual({messages, []}, process_info(self(), messages)).

%% More than a pipe holds.
a_program_that_does_not_read_its_input_is_an_error(Config) ->
    Ends = in(Config, "ends"),
    executable(Ends, "#!/bin/sh\nexit 3\n"),
    Options = #{timeout => 60_000, input => binary:copy(<<"x">>, 1_000_000)},
    ?assertEqual({error, {posix, epipe}}, py_command:run(Ends, [], Options)),
    ?assertEqual({messages, []}, process_info(self(), messages)).

detection_takes_a_few_milliseconds(Config) ->
    [installation(Config, "pyenv/versions/3.13." ++ integer_to_list(N), "3.13") || N <- lists:seq(0, 9)],
    built(Config, "cp313"),
    os:putenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
    {ok, _} = find(Config, #{}),
    %% On a busy machine most tries take longer; that it starts a program of each would show in every one.
    py_test:eventually(fun() -> element(1, timer:tc(fun() -> find(Config, #{}) end)) < 30_000 end).

%%% Made-up installations

find(Config, Settings) -> py_python:find(Settings, proplists:get_value(priv, Config)).

in(Config, Path) -> filename:join(proplists:get_value(root, Config), Path).

%% As pyenv and `make install' leave it: bin/python3.X with its links, the library, the modules.
installation(Config, Dir, Version) ->
    Prefix = in(Config, Dir),
    Name = "python" ++ Version,
    Exe = filename:join([Prefix, "bin", Name]),
    %% To run it would be an error.
    executable(Exe, "#!/bin/sh\nexit 77\n"),
    ok = file:make_symlink(Name, filename:join([Prefix, "bin", "python3"])),
    ok = file:make_symlink("python3", filename:join([Prefix, "bin", "python"])),
    [
        begin
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, "")
        end
     || File <- [
            filename:join([Prefix, "lib", Name, "os.py"]),
            filename:join([Prefix, "lib", "lib" ++ Name ++ ".so.1.0"])
        ]
    ],
    Exe.

venv(Config, Dir, Base, Line) ->
    Exe = filename:join([in(Config, Dir), "bin", "python"]),
    ok = filelib:ensure_dir(Exe),
    ok = file:make_symlink(Base, Exe),
    ok = file:write_file(filename:join(in(Config, Dir), "pyvenv.cfg"), [
        "home = ", filename:dirname(Base), "\n", "executable = ", Base, "\n", Line, "\n"
    ]),
    Exe.

executable(File, Text) ->
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text),
    ok = file:change_mode(File, 8#755).

built(Config, Abi) -> ok = file:write_file(in(Config, "priv/py_nif-" ++ Abi ++ ".so"), "").

%% The tree around priv/, as far as it is looked at.
source(Config) ->
    Script = in(Config, "scripts/install.sh"),
    ok = filelib:ensure_dir(Script),
    ok = file:write_file(Script, ""),
    Script.

bin(Text) -> unicode:characters_to_binary(Text).

contains(Part, Text) -> ?assertNotEqual(nomatch, string:find(Text, Part), Text).
