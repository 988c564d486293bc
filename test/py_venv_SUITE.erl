%% Virtual environments, with real ones: made, filled, activated and left.
%% The package that is installed is made by the suite itself, so no network is needed but for numpy.
-module(py_venv_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([log/2]).
-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    an_activated_venv_gives_its_packages/1,
    leaving_it_gives_back_what_was_there/1,
    a_path_that_the_user_added_meanwhile_stays/1,
    activating_another_one_leaves_the_first/1,
    the_applications_own_package_stays_in_front/1,
    a_wheel_of_it_in_the_venv_is_told/1,
    activation_without_interpreters_warns_of_nothing/1,
    what_is_no_venv_is_refused/1,
    a_venv_of_another_python_is_refused_with_advice/1,
    a_failed_activation_leaves_the_active_one/1,
    leaving_without_an_active_one_is_fine/1,
    ensure_makes_fills_and_activates/1,
    ensure_again_starts_no_program/1,
    ensure_sees_a_change_of_the_requirements/1,
    ensure_sees_a_change_of_an_included_file/1,
    ensure_takes_a_file_of_requirements/1,
    ensure_without_requirements_makes_an_empty_one/1,
    ensure_repairs_a_creation_that_was_interrupted/1,
    ensure_does_not_touch_a_directory_that_is_something_else/1,
    ensure_gives_the_installers_words_when_it_fails/1,
    ensure_stops_the_installer_at_its_deadline/1,
    ensure_at_once_from_many_processes_installs_once/1,
    a_requirement_cannot_be_an_option/1,
    bad_arguments_are_refused/1,
    numpy_from_the_package_index_imports_and_works/1
]).

all() ->
    [
        an_activated_venv_gives_its_packages,
        leaving_it_gives_back_what_was_there,
        a_path_that_the_user_added_meanwhile_stays,
        activating_another_one_leaves_the_first,
        the_applications_own_package_stays_in_front,
        a_wheel_of_it_in_the_venv_is_told,
        activation_without_interpreters_warns_of_nothing,
        what_is_no_venv_is_refused,
        a_venv_of_another_python_is_refused_with_advice,
        a_failed_activation_leaves_the_active_one,
        leaving_without_an_active_one_is_fine,
        ensure_makes_fills_and_activates,
        ensure_again_starts_no_program,
        ensure_sees_a_change_of_the_requirements,
        ensure_sees_a_change_of_an_included_file,
        ensure_takes_a_file_of_requirements,
        ensure_without_requirements_makes_an_empty_one,
        ensure_repairs_a_creation_that_was_interrupted,
        ensure_does_not_touch_a_directory_that_is_something_else,
        ensure_gives_the_installers_words_when_it_fails,
        ensure_stops_the_installer_at_its_deadline,
        ensure_at_once_from_many_processes_installs_once,
        a_requirement_cannot_be_an_option,
        bad_arguments_are_refused,
        numpy_from_the_package_index_imports_and_works
    ].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(erlang_python),
    Dir = proplists:get_value(priv_dir, Config),
    {ok, #{<<"executable">> := Python, <<"version">> := Version}} =
        py:call(<<"erlang._venv">>, <<"running">>, []),
    Wheels = filename:join(Dir, "wheels"),
    ok = filelib:ensure_path(Wheels),
    ok = py:exec(wheel_maker()),
    %% One wheel per call: the names of exec and of '__main__' are this process's own.
    [
        {ok, _} = py:call('__main__', make_wheel, [bin(Wheels), Name, <<"1.0">>, Value])
     || {Name, Value} <- [{<<"tinypkg">>, 42}, {<<"otherpkg">>, 7}]
    ],
    One = plain_venv(Python, Dir, "one", [{"venv_probe", "one"}]),
    Two = plain_venv(Python, Dir, "two", [{"venv_probe", "two"}]),
    [{started, Started}, {python, Python}, {version, Version}, {wheels, Wheels}, {one, One}, {two, Two}
        | Config].

end_per_suite(Config) ->
    _ = [application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))],
    ok.

init_per_testcase(Case, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)),
    ok = filelib:ensure_path(Dir),
    {ok, Path} = sys_path(),
    [{dir, Dir}, {path_before, Path} | Config].

end_per_testcase(_Case, Config) ->
    ok = py_venv:deactivate_venv(),
    _ = py:call(sys, 'modules.pop', [<<"venv_probe">>, none]),
    _ = py:call(sys, 'modules.pop', [<<"tinypkg">>, none]),
    _ = py:call(sys, 'modules.pop', [<<"otherpkg">>, none]),
    ?assertEqual({ok, proplists:get_value(path_before, Config)}, sys_path()).

%%% Activation

an_activated_venv_gives_its_packages(Config) ->
    One = proplists:get_value(one, Config),
    ?assertMatch({error, {'ModuleNotFoundError', _}}, probe()),
    ok = py_venv:activate_venv(One),
    ?assertEqual({ok, <<"one">>}, probe()),
    {ok, Info} = py_venv:venv_info(),
    ?assertMatch(#{active := true, activated := true}, Info),
    ?assertEqual(bin(One), maps:get(path, Info)),
    ?assertEqual(bin(filename:join(One, "bin/python")), maps:get(python, Info)),
    ?assertEqual(site_packages(Config, One), maps:get(site_packages, Info)),
    ?assertEqual({ok, bin(One)}, py:call(os, 'environ.get', [<<"VIRTUAL_ENV">>])).

leaving_it_gives_back_what_was_there(Config) ->
    {ok, Before} = py_venv:venv_info(),
    ok = py_venv:activate_venv(bin(proplists:get_value(one, Config))),
    ok = py_venv:deactivate_venv(),
    ?assertEqual({ok, Before}, py_venv:venv_info()),
    ?assertMatch({error, {'ModuleNotFoundError', _}}, probe()),
    ?assertEqual({ok, proplists:get_value(path_before, Config)}, sys_path()).

a_path_that_the_user_added_meanwhile_stays(Config) ->
    ok = py_venv:activate_venv(proplists:get_value(one, Config)),
    {ok, _} = py:call(sys, 'path.append', [<<"/added/by/user">>]),
    ok = py_venv:deactivate_venv(),
    {ok, Path} = sys_path(),
    ?assertEqual(<<"/added/by/user">>, lists:last(Path)),
    {ok, _} = py:call(sys, 'path.remove', [<<"/added/by/user">>]).

activating_another_one_leaves_the_first(Config) ->
    ok = py_venv:activate_venv(proplists:get_value(one, Config)),
    ok = py_venv:activate_venv(proplists:get_value(two, Config)),
    ?assertEqual({ok, <<"two">>}, probe()),
    {ok, Path} = sys_path(),
    ?assertNot(lists:member(site_packages(Config, proplists:get_value(one, Config)), Path)).

the_applications_own_package_stays_in_front(Config) ->
    {ok, #{<<"file">> := File}} = own_file(),
    Own = filename:dirname(filename:dirname(File)),
    ok = py_venv:activate_venv(proplists:get_value(one, Config)),
    {ok, Path} = sys_path(),
    Site = site_packages(Config, proplists:get_value(one, Config)),
    ?assert(lists:member(Site, Path)),
    %% The wheel may be installed instead, in the tests' own environment.
    case Path of
        [Own | _] -> ok;
        _ -> ?assertNot(lists:member(Own, Path))
    end.

a_wheel_of_it_in_the_venv_is_told(Config) ->
    One = proplists:get_value(one, Config),
    Wheel = filename:join(site_packages(Config, One), "erlang/__init__.py"),
    ok = filelib:ensure_dir(Wheel),
    ok = file:write_file(Wheel, "raise ImportError('the wheel')\n"),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    ok = py_venv:activate_venv(One),
    Text = receive {warned, Warning} -> Warning after 20_000 -> "" end,
    ok = logger:remove_handler(?MODULE),
    ok = file:del_dir_r(filename:dirname(Wheel)),
    ?assertNotEqual(nomatch, string:find(Text, "site-packages/erlang/__init__.py is not used")).

%% No interpreter of `py:parallel' has been started in this node.
activation_without_interpreters_warns_of_nothing(Config) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    ok = py_venv:activate_venv(proplists:get_value(one, Config)),
    %% It has read what the activation sent to it.
    _ = sys:get_state(py_subinterp_pool),
    ok = logger:remove_handler(?MODULE),
    ?assertEqual(none, receive {warned, Warning} -> Warning after 0 -> none end).

%% The handler of the logger.
log(#{level := warning} = Event, #{config := Test}) ->
    Test ! {warned, logger_formatter:format(Event, #{})};
log(_Event, _Config) ->
    ok.

what_is_no_venv_is_refused(Config) ->
    refused("it has no pyvenv.cfg", py_venv:activate_venv(proplists:get_value(dir, Config))),
    refused("it has no pyvenv.cfg", py_venv:activate_venv("/no/such/venv")).

a_venv_of_another_python_is_refused_with_advice(Config) ->
    Dir = proplists:get_value(dir, Config),
    ok = file:write_file(filename:join(Dir, "pyvenv.cfg"), "home = /usr/bin\nversion = 3.4.10\n"),
    refused("is a virtual environment of Python 3.4.10", py_venv:activate_venv(Dir)),
    refused("make it again with this Python", py_venv:activate_venv(Dir)).

a_failed_activation_leaves_the_active_one(Config) ->
    ok = py_venv:activate_venv(proplists:get_value(one, Config)),
    {error, _} = py_venv:activate_venv("/no/such/venv"),
    ?assertEqual({ok, <<"one">>}, probe()).

leaving_without_an_active_one_is_fine(_Config) ->
    ?assertEqual(ok, py_venv:deactivate_venv()),
    ?assertEqual(ok, py_venv:deactivate_venv()),
    ?assertMatch({ok, #{activated := false}}, py_venv:venv_info()).

%%% ensure

ensure_makes_fills_and_activates(Config) ->
    Venv = venv(Config),
    ?assertEqual(ok, py_venv:ensure_venv(Venv, [<<"tinypkg==1.0">>, "otherpkg"], options(Config))),
    ?assertEqual({ok, 42}, py:call(tinypkg, value, [])),
    ?assertEqual({ok, 7}, py:call(otherpkg, value, [])),
    {ok, #{path := Path}} = py_venv:venv_info(),
    ?assertEqual(bin(Venv), Path).

ensure_again_starts_no_program(Config) ->
    Venv = venv(Config),
    Options = options(Config),
    ok = py_venv:ensure_venv(Venv, [<<"tinypkg">>], Options),
    %% With this it could start neither Python nor an installer.
    Exe = filename:join(Venv, "bin/python"),
    ok = file:delete(Exe),
    ok = file:write_file(Exe, "#!/bin/sh\nexit 99\n"),
    ok = file:change_mode(Exe, 8#755),
    ?assertEqual(ok, py_venv:ensure_venv(Venv, [<<"tinypkg">>], Options)).

ensure_sees_a_change_of_the_requirements(Config) ->
    Venv = venv(Config),
    ok = py_venv:ensure_venv(Venv, [<<"tinypkg">>], options(Config)),
    ?assertMatch({error, {'ModuleNotFoundError', _}}, py:call(otherpkg, value, [])),
    ok = py_venv:ensure_venv(Venv, [<<"tinypkg">>, <<"otherpkg">>], options(Config)),
    ?assertEqual({ok, 7}, py:call(otherpkg, value, [])).

ensure_sees_a_change_of_an_included_file(Config) ->
    Venv = venv(Config),
    File = in(Config, "requirements.txt"),
    Base = in(Config, "base.txt"),
    ok = file:write_file(File, "# all\n-r base.txt\n"),
    ok = file:write_file(Base, "tinypkg\n"),
    ok = py_venv:ensure_venv(Venv, File, options(Config)),
    ok = file:write_file(Base, "tinypkg\notherpkg\n"),
    ok = py_venv:ensure_venv(Venv, File, options(Config)),
    ?assertEqual({ok, 7}, py:call(otherpkg, value, [])).

ensure_takes_a_file_of_requirements(Config) ->
    File = in(Config, "requirements.txt"),
    ok = file:write_file(File, "tinypkg == 1.0  # tiny\n"),
    ?assertEqual(ok, py_venv:ensure_venv(venv(Config), bin(File), options(Config))),
    ?assertEqual({ok, 42}, py:call(tinypkg, value, [])),
    refused("cannot be read", py_venv:ensure_venv(venv(Config), in(Config, "missing.txt"), options(Config))).

ensure_without_requirements_makes_an_empty_one(Config) ->
    ?assertEqual(ok, py_venv:ensure_venv(venv(Config), [])),
    ?assertMatch({ok, #{activated := true}}, py_venv:venv_info()).

ensure_repairs_a_creation_that_was_interrupted(Config) ->
    Venv = venv(Config),
    ok = filelib:ensure_path(Venv),
    ok = file:write_file(filename:join(Venv, "pyvenv.cfg"), ""),
    ?assertEqual(ok, py_venv:ensure_venv(Venv, [<<"tinypkg">>], options(Config))),
    ?assertEqual({ok, 42}, py:call(tinypkg, value, [])).

ensure_does_not_touch_a_directory_that_is_something_else(Config) ->
    Dir = in(Config, "home"),
    ok = filelib:ensure_path(Dir),
    ok = file:write_file(filename:join(Dir, "letter.txt"), "dear"),
    refused("is not a virtual environment", py_venv:ensure_venv(Dir, [], options(Config))),
    ?assertEqual({ok, ["letter.txt"]}, file:list_dir(Dir)).

ensure_gives_the_installers_words_when_it_fails(Config) ->
    Venv = venv(Config),
    #{extra_args := Extra} = options(Config),
    Secret = ["--extra-index-url", "https://me:s3cret@index.invalid/simple"],
    Result = py_venv:ensure_venv(Venv, [<<"no-such-package-anywhere">>], #{extra_args => Extra ++ Secret}),
    {error, {bad_argument, Words}} = Result,
    ?assertEqual(nomatch, string:find(Words, "s3cret")),
    refused("no-such-package-anywhere", Result),
    refused("ended with status", Result),
    %% Nothing says that it is filled, and the next call tries again.
    ?assertEqual(ok, py_venv:ensure_venv(Venv, [<<"tinypkg">>], options(Config))).

ensure_stops_the_installer_at_its_deadline(Config) ->
    Options = (options(Config))#{timeout => 1},
    ?assertEqual({error, timeout}, py_venv:ensure_venv(venv(Config), [<<"tinypkg">>], Options)),
    ?assertEqual({messages, []}, process_info(self(), messages)).

ensure_at_once_from_many_processes_installs_once(Config) ->
    Venv = venv(Config),
    Options = options(Config),
    Self = self(),
    Pids = [
        spawn_link(fun() -> Self ! {self(), py_venv:ensure_venv(Venv, [<<"tinypkg">>], Options)} end)
     || _ <- lists:seq(1, 5)
    ],
    [
        receive
            {Pid, Result} -> ?assertEqual(ok, Result)
        end
     || Pid <- Pids
    ],
    ?assertEqual({ok, 42}, py:call(tinypkg, value, [])).

a_requirement_cannot_be_an_option(Config) ->
    [
        refused("is refused", py_venv:ensure_venv(venv(Config), [Requirement], options(Config)))
     || Requirement <- [
            <<"--index-url=http://evil">>,
            "-r /etc/passwd",
            <<" -e .">>,
            <<"tinypkg\n-e .">>,
            <<"tinypkg --global-option=x">>,
            <<"tinypkg \\">>,
            <<"  ">>
        ] ++ several_lines()
    ],
    ?assertNot(filelib:is_file(venv(Config))),
    %% A tab and a hash are no danger.
    ?assertMatch({ok, _}, py_requirements:read([<<"a\t>= 1">>, <<"a --hash=sha256:00">>])).

%% At each of these `str.splitlines' of Python ends a line.
several_lines() ->
    Ends = [$\n, $\r, $\v, $\f, 16#1c, 16#1d, 16#1e, 16#85, 16#2028, 16#2029],
    [<<"tinypkg", End/utf8, "--index-url=http://evil">> || End <- Ends].

bad_arguments_are_refused(Config) ->
    Venv = venv(Config),
    refused("the option pip means nothing here", py_venv:ensure_venv(Venv, [], #{pip => true})),
    refused("installer must be", py_venv:ensure_venv(Venv, [], #{installer => conda})),
    refused("timeout must be", py_venv:ensure_venv(Venv, [], #{timeout => soon})),
    refused("extra_args must be", py_venv:ensure_venv(Venv, [], #{extra_args => [1]})),
    refused("must be a map", py_venv:ensure_venv(Venv, [], [])),
    refused("must be", py_venv:ensure_venv(Venv, [1.5])),
    refused("must be", py_venv:ensure_venv(Venv, [<<"a">>, 7])),
    refused("must be a string or binary", py_venv:activate_venv(7)),
    refused("must be a string or binary", py_venv:ensure_venv("", [])).

numpy_from_the_package_index_imports_and_works(Config) ->
    case gen_tcp:connect("pypi.org", 443, [], 5000) of
        {ok, Socket} ->
            ok = gen_tcp:close(Socket),
            ok = py_venv:ensure_venv(venv(Config), [<<"numpy">>]),
            %% Modules stay imported, and numpy cannot be loaded twice in one process.
            ?assertEqual({ok, 6.0}, py:eval(<<"float(__import__('numpy').array([1.0, 2.0, 3.0]).sum())">>));
        {error, Why} ->
            {skip, io_lib:format("pypi.org cannot be reached: ~p", [Why])}
    end.

%%% What the tests need

venv(Config) -> in(Config, "venv").

in(Config, Name) -> filename:join(proplists:get_value(dir, Config), Name).

%% The packages come from the suite's own directory, never from the network.
options(Config) ->
    #{extra_args => ["--no-index", "--find-links", proplists:get_value(wheels, Config)]}.

probe() -> py:call(venv_probe, name, []).

sys_path() -> py:eval(<<"list(__import__('sys').path)">>).

own_file() ->
    py:eval(<<"{'file': __import__('erlang._venv')._venv.__file__}">>).

site_packages(Config, Venv) ->
    Version = proplists:get_value(version, Config),
    #{free_threaded := Free} = py_runtime:python(),
    Flag = << <<"t">> || true <- [Free] >>,
    filename:join([bin(Venv), "lib", <<"python", Version/binary, Flag/binary>>, "site-packages"]).

%% Without pip, which takes seconds.
plain_venv(Python, Dir, Name, Modules) ->
    Venv = filename:join(Dir, Name),
    {ok, _} = py_command:run(Python, ["-m", "venv", "--without-pip", Venv], #{timeout => 60_000}),
    [Site] = filelib:wildcard(filename:join(Venv, "lib/python3*/site-packages")),
    [
        ok = file:write_file(filename:join(Site, Module ++ ".py"), [
            "def name():\n    return '", Text, "'\n"
        ])
     || {Module, Text} <- Modules
    ],
    Venv.

wheel_maker() ->
    <<
        "def make_wheel(folder, name, version, value):\n"
        "    import zipfile\n"
        "    info = f'{name}-{version}.dist-info'\n"
        "    files = {\n"
        "        f'{name}.py': f'def value():\\n    return {value}\\n',\n"
        "        f'{info}/METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n',\n"
        "        f'{info}/WHEEL': 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',\n"
        "    }\n"
        "    record = ''.join(f'{f},,\\n' for f in files) + f'{info}/RECORD,,\\n'\n"
        "    path = f'{folder}/{name}-{version}-py3-none-any.whl'\n"
        "    with zipfile.ZipFile(path, 'w') as wheel:\n"
        "        for file, text in files.items():\n"
        "            wheel.writestr(file, text)\n"
        "        wheel.writestr(f'{info}/RECORD', record)\n"
        "    return path\n"
    >>.

refused(Part, {error, {bad_argument, Sentence} = Reason}) ->
    ?assert(py_error:is_reason(Reason)),
    ?assertNotEqual(nomatch, string:find(Sentence, Part), Sentence);
refused(_Part, Other) ->
    ct:fail("not refused: ~tp", [Other]).

bin(Text) -> unicode:characters_to_binary(Text).
