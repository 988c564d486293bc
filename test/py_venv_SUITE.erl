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
    ensure_takes_a_tagged_file/1,
    ensure_takes_what_is_locked_for_a_project/1,
    ensure_takes_a_pylock/1,
    ensure_takes_the_dependencies_of_a_project_without_a_lock/1,
    ensure_on_several_nodes_at_once_is_one_after_another/1,
    ensure_that_is_interrupted_leaves_no_process_and_is_made_again/1,
    ensure_reads_a_private_index_by_the_environment/1,
    uv_is_fetched_from_an_index/1,
    a_password_does_not_follow_where_an_index_leads/1,
    a_wheel_of_uv_with_another_digest_is_refused/1,
    ensure_ends_with_a_node_that_is_killed/1,
    a_python_that_is_missing_is_installed_from_a_mirror/1,
    a_python_with_packages_is_bundled_for_a_release/1,
    a_requirement_cannot_be_an_option/1,
    bad_arguments_are_refused/1,
    numpy_from_the_package_index_imports_and_works/1
]).

-define(VARIABLES, [
    "PATH", "XDG_CACHE_HOME", "UV_DEFAULT_INDEX", "UV_OFFLINE", "PIP_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS",
    "UV_PYTHON_INSTALL_MIRROR", "UV_PYTHON_DOWNLOADS_JSON_URL", "PYENV_ROOT"
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
        ensure_takes_a_tagged_file,
        ensure_takes_what_is_locked_for_a_project,
        ensure_takes_a_pylock,
        ensure_takes_the_dependencies_of_a_project_without_a_lock,
        ensure_on_several_nodes_at_once_is_one_after_another,
        ensure_that_is_interrupted_leaves_no_process_and_is_made_again,
        ensure_reads_a_private_index_by_the_environment,
        uv_is_fetched_from_an_index,
        a_password_does_not_follow_where_an_index_leads,
        a_wheel_of_uv_with_another_digest_is_refused,
        ensure_ends_with_a_node_that_is_killed,
        a_python_that_is_missing_is_installed_from_a_mirror,
        a_python_with_packages_is_bundled_for_a_release,
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
    Saved = [{Name, os:getenv(Name)} || Name <- ?VARIABLES],
    os:putenv("XDG_CACHE_HOME", filename:join(proplists:get_value(priv_dir, Config), "cache")),
    [{dir, Dir}, {path_before, Path}, {saved, Saved} | Config].

end_per_testcase(_Case, Config) ->
    [
        case Value of
            false -> os:unsetenv(Name);
            _ -> os:putenv(Name, Value)
        end
     || {Name, Value} <- proplists:get_value(saved, Config)
    ],
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
    ?assertMatch({ok, #{activated := true}}, py_venv:venv_info()),
    %% With uv there is no pip in it, which not every Python can give.
    fake_uv(Config, []),
    Other = in(Config, "other"),
    ?assertEqual(ok, py_venv:ensure_venv(Other, [])),
    ?assertEqual([], filelib:wildcard(filename:join(Other, "lib/python3*/site-packages/pip"))).

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

ensure_takes_a_tagged_file(Config) ->
    File = in(Config, "requirements.txt"),
    ok = file:write_file(File, "tinypkg\n"),
    ?assertEqual(ok, py_venv:ensure_venv(venv(Config), {requirements, File}, options(Config))),
    ?assertEqual({ok, 42}, py:call(tinypkg, value, [])),
    refused("cannot be read", py_venv:ensure_venv(venv(Config), {requirements, <<"/no/such/file">>}, #{})),
    refused("must be", py_venv:ensure_venv(venv(Config), {requirements, [<<"a">>]}, #{})).

%% The lock names 1.0 of a package of which the index has 2.0 by now.
ensure_takes_what_is_locked_for_a_project(Config) ->
    with_uv(fun(Uv) ->
        Url = index(Config, "", #{<<"tinypkg">> => [{<<"1.0">>, 42}]}),
        Project = project(Config),
        os:putenv("UV_DEFAULT_INDEX", Url),
        {ok, _} = py_command:run(Uv, ["lock", "--project", filename:dirname(Project)], #{timeout => 60_000}),
        Url = index(Config, "", #{<<"tinypkg">> => [{<<"1.0">>, 42}, {<<"2.0">>, 43}]}),
        ?assertEqual(ok, py_venv:ensure_venv(venv(Config), {pyproject, Project}, #{installer => uv})),
        ?assertEqual({ok, 42}, py:call(tinypkg, value, [])),
        %% Nothing has changed, so nothing is asked.
        os:putenv("PATH", ""),
        os:putenv("UV_DEFAULT_INDEX", "http://127.0.0.1:1/simple"),
        ?assertEqual(ok, py_venv:ensure_venv(venv(Config), {pyproject, Project}, #{installer => uv})),
        refused("is read by uv", py_venv:ensure_venv(in(Config, "other"), {pyproject, Project}, #{installer => pip}))
    end).

ensure_takes_a_pylock(Config) ->
    with_uv(fun(Uv) ->
        os:putenv("UV_DEFAULT_INDEX", index(Config, "", #{<<"tinypkg">> => [{<<"1.0">>, 42}]})),
        Project = project(Config),
        Lock = filename:join(filename:dirname(Project), "pylock.toml"),
        {ok, _} = py_command:run(Uv, ["pip", "compile", "--format", "pylock.toml", "-o", Lock, Project], #{timeout => 60_000}),
        ?assertEqual(ok, py_venv:ensure_venv(venv(Config), {pyproject, Project}, #{installer => uv})),
        ?assertEqual({ok, 42}, py:call(tinypkg, value, []))
    end).

ensure_takes_the_dependencies_of_a_project_without_a_lock(Config) ->
    Project = project(Config),
    Pip = (options(Config))#{installer => pip},
    ?assertEqual(ok, py_venv:ensure_venv(venv(Config), {pyproject, Project}, Pip)),
    ?assertEqual({ok, 42}, py:call(tinypkg, value, [])),
    refused("is not named pyproject.toml", py_venv:ensure_venv(venv(Config), {pyproject, in(Config, "x.toml")}, Pip)),
    refused("cannot be read", py_venv:ensure_venv(venv(Config), {pyproject, in(Config, "pyproject.toml")}, Pip)),
    ok = file:write_file(Project, "[project\n"),
    refused("TOMLDecodeError", py_venv:ensure_venv(venv(Config), {pyproject, Project}, Pip)).

ensure_on_several_nodes_at_once_is_one_after_another(Config) ->
    Venv = venv(Config),
    Log = in(Config, "log"),
    fake_uv(Config, ["echo begin >> ", Log, "\nsleep 0.3\necho end >> ", Log, "\n"]),
    Peers = [py_test:peer([]) || _ <- [1, 2]],
    [{ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python], 60_000) || Peer <- Peers],
    Self = self(),
    Ensure = fun(Run) -> spawn_link(fun() -> Self ! {self(), Run(py, ensure_venv, [Venv, [<<"tinypkg">>], #{}])} end) end,
    Runs = [fun(M, F, A) -> peer:call(Peer, M, F, A, 60_000) end || Peer <- Peers] ++ [fun erlang:apply/3],
    [?assertEqual({Pid, ok}, receive {Pid, _} = Answer -> Answer end) || Pid <- [Ensure(Run) || Run <- Runs]],
    [ok = peer:stop(Peer) || Peer <- Peers],
    ?assertEqual({ok, <<"begin\nend\n">>}, file:read_file(Log)).

ensure_that_is_interrupted_leaves_no_process_and_is_made_again(Config) ->
    Venv = venv(Config),
    Begun = in(Config, "begun"),
    %% A descendant in a session of its own.
    fake_uv(Config, ["setsid sleep 600 &\necho $! > ", Begun, ".new\nmv ", Begun, ".new ", Begun, "\nwait\n"]),
    {Pid, Monitor} = spawn_monitor(fun() -> py_venv:ensure_venv(Venv, [<<"tinypkg">>]) end),
    py_test:eventually(fun() -> filelib:is_file(Begun) end),
    {ok, Number} = file:read_file(Begun),
    Proc = "/proc/" ++ string:trim(binary_to_list(Number)),
    ?assert(filelib:is_file(Proc)),
    ok = file:write_file(filename:join(Venv, "lib/half.txt"), ""),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, killed} -> ok end,
    py_test:eventually(fun() -> not filelib:is_file(Proc) end),
    ok = file:delete(Begun),
    fake_uv(Config, ["touch ", Begun, "\n"]),
    ?assertEqual(ok, py_venv:ensure_venv(Venv, [<<"tinypkg">>])),
    ?assert(filelib:is_file(Begun)),
    %% Made anew, and not filled up.
    ?assertNot(filelib:is_file(filename:join(Venv, "lib/half.txt"))).

ensure_reads_a_private_index_by_the_environment(Config) ->
    "http://" ++ Rest = index(Config, "me:s3cret", #{<<"tinypkg">> => [{<<"1.0">>, 42}]}),
    Pip = #{installer => pip},
    os:unsetenv("PIP_FIND_LINKS"),
    os:putenv("PIP_INDEX_URL", "http://" ++ Rest),
    {error, {bad_argument, _}} = py_venv:ensure_venv(venv(Config), [<<"tinypkg">>], Pip),
    os:putenv("PIP_INDEX_URL", "http://me:s3cret@" ++ Rest),
    ?assertEqual(ok, py_venv:ensure_venv(venv(Config), [<<"tinypkg">>], Pip)),
    ?assertEqual({ok, 42}, py:call(tinypkg, value, [])).

%% With a Python, and by Erlang alone.
uv_is_fetched_from_an_index(Config) ->
    "http://" ++ Rest = index(Config, "me:s3cret", #{}),
    ok = uv_wheel(Config, good),
    [
        begin
            without_uv(Config, "cache" ++ integer_to_list(length(Pythons))),
            os:putenv("UV_DEFAULT_INDEX", "http://" ++ Rest),
            {error, Refused} = py_uv:find(Pythons),
            ?assertNotEqual(nomatch, string:find(Refused, "401")),
            os:putenv("UV_DEFAULT_INDEX", "http://me:s3cret@" ++ Rest),
            {ok, Uv} = py_uv:find(Pythons),
            ?assertEqual({ok, <<"fetched\n">>}, py_command:run(Uv, [], #{timeout => 10_000})),
            ?assertEqual({ok, Uv}, py_uv:known())
        end
     || Pythons <- [[proplists:get_value(python, Config)], []]
    ].

%% The index at the end refuses passwords.
a_password_does_not_follow_where_an_index_leads(Config) ->
    Url = index(Config, "", #{}),
    ok = uv_wheel(Config, good),
    {ok, Port} = py:call('__main__', serve_lead, [bin(Url)]),
    os:putenv("UV_DEFAULT_INDEX", "http://me:s3cret@127.0.0.1:" ++ integer_to_list(Port)),
    [
        begin
            without_uv(Config, "cache" ++ integer_to_list(length(Pythons))),
            {ok, Uv} = py_uv:find(Pythons),
            ?assertEqual({ok, <<"fetched\n">>}, py_command:run(Uv, [], #{timeout => 10_000}))
        end
     || Pythons <- [[proplists:get_value(python, Config)], []]
    ].

a_wheel_of_uv_with_another_digest_is_refused(Config) ->
    Url = index(Config, "", #{}),
    ok = uv_wheel(Config, bad),
    without_uv(Config, "cache"),
    os:putenv("UV_DEFAULT_INDEX", Url),
    [
        begin
            {error, Why} = py_uv:find(Pythons),
            ?assertNotEqual(nomatch, string:find(Why, "does not have the digest")),
            ?assertEqual(none, py_uv:known())
        end
     || Pythons <- [[proplists:get_value(python, Config)], []]
    ].

%% The next node does not wait for what the killed one has left, since nothing is left.
ensure_ends_with_a_node_that_is_killed(Config) ->
    Venv = venv(Config),
    Begun = in(Config, "begun"),
    fake_uv(Config, ["setsid sleep 600 &\necho $! > ", Begun, ".new\nmv ", Begun, ".new ", Begun, "\nwait\n"]),
    Peer = py_test:peer([]),
    true = unlink(Peer),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python], 60_000),
    _ = peer:cast(Peer, py, ensure_venv, [Venv, [<<"tinypkg">>]]),
    py_test:eventually(fun() -> filelib:is_file(Begun) end),
    {ok, Number} = file:read_file(Begun),
    {ok, _} = py_command:run("/bin/kill", ["-KILL", peer:call(Peer, os, getpid, [])], #{timeout => 10_000}),
    py_test:eventually(fun() -> not filelib:is_file("/proc/" ++ string:trim(binary_to_list(Number))) end),
    fake_uv(Config, []),
    ?assertEqual(ok, py_venv:ensure_venv(Venv, [<<"tinypkg">>])).

a_python_that_is_missing_is_installed_from_a_mirror(Config) ->
    with_mirror(Config, fun(_Uv, Version) ->
        os:putenv("PYENV_ROOT", in(Config, "empty")),
        os:putenv("XDG_CACHE_HOME", in(Config, "cache")),
        {ok, #{executable := Exe, chosen := Why}} = py_python:find(#{python => Version}, py_runtime:priv_dir()),
        ?assertNotEqual(nomatch, string:find(Why, "installed by uv")),
        ?assertNotEqual(nomatch, string:find(Exe, in(Config, "cache"))),
        %% The next start finds it.
        os:putenv("UV_PYTHON_INSTALL_MIRROR", "file:///nowhere"),
        {ok, #{libpython := Lib}} = py_python:find(#{python => Version}, py_runtime:priv_dir()),
        ?assertNotEqual(nomatch, string:find(Lib, in(Config, "cache")))
    end).

a_python_with_packages_is_bundled_for_a_release(Config) ->
    with_mirror(Config, fun(Uv, Version) ->
        os:putenv("PATH", filename:dirname(Uv) ++ ":/usr/bin:/bin"),
        os:putenv("UV_DEFAULT_INDEX", index(Config, "", #{<<"tinypkg">> => [{<<"1.0">>, 42}]})),
        Project = project(Config),
        Python = proplists:get_value(python, Config),
        Lock = ["lock", "--python", Python, "--project", filename:dirname(Project)],
        {ok, _} = py_command:run(Uv, Lock, #{timeout => 60_000}),
        os:putenv("UV_DEFAULT_INDEX", index(Config, "", #{<<"tinypkg">> => [{<<"1.0">>, 42}, {<<"2.0">>, 43}]})),
        Made = in(Config, "python"),
        Script = filename:join(py_test:root(), "scripts/bundle_python.sh"),
        Args = [Script, Made, Version, Project],
        ?assertMatch({ok, _}, py_command:run("/bin/sh", Args, #{timeout => 120_000})),
        %% Its second run takes the place of the first, and another directory is left alone.
        ?assertMatch({ok, _}, py_command:run("/bin/sh", Args, #{timeout => 120_000})),
        {error, {exit_status, 1, Said}} = py_command:run("/bin/sh", [Script, in(Config, "index"), Version], #{timeout => 60_000}),
        ?assertNotEqual(nomatch, string:find(Said, "was not made by this script")),
        Moved = in(Config, "release/python"),
        ok = filelib:ensure_dir(Moved),
        ok = file:rename(Made, Moved),
        Peer = py_test:peer([{python, Moved}]),
        {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python], 60_000),
        ?assertEqual({ok, 42}, peer:call(Peer, py, call, [tinypkg, value, []])),
        ?assertEqual({ok, bin(Moved)}, peer:call(Peer, py, eval, ["__import__('sys').prefix"])),
        ok = peer:stop(Peer)
    end).

%% The Python of this node, packed as python-build-standalone packs its own, where uv looks for one.
with_mirror(Config, Fun) ->
    #{prefix := Prefix, version := {3, Minor}, free_threaded := Free} = py_runtime:python(),
    case Prefix =:= <<"/usr">> orelse Free of
        true ->
            {skip, "the Python of this node can't be packed"};
        false ->
            with_uv(fun(Uv) ->
                ok = mirror(Config, Prefix, integer_to_list(Minor)),
                %% No other Python is on the PATH.
                Empty = in(Config, "empty"),
                ok = filelib:ensure_path(Empty),
                ok = file:make_symlink(Uv, filename:join(Empty, "uv")),
                os:putenv("PATH", Empty),
                Fun(filename:join(Empty, "uv"), list_to_binary("3." ++ integer_to_list(Minor)))
            end)
    end.

mirror(Config, Prefix, Minor) ->
    Name = "20260101/cpython-3." ++ Minor ++ ".99+20260101-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz",
    Archive = in(Config, "mirror/" ++ Name),
    ok = filelib:ensure_dir(Archive),
    {ok, _} = py_command:run("/bin/tar", [
        "--use-compress-program=gzip -1", "-cf", Archive, "--exclude=test", "--exclude=__pycache__", "--exclude=*.a",
        "--exclude=site-packages", "--exclude=idlelib", "--transform=s,^[.],python,",
        "-C", Prefix, "./bin", "./lib"
    ], #{timeout => 120_000}),
    Releases = "https://github.com/astral-sh/python-build-standalone/releases/download/",
    Json = in(Config, "downloads.json"),
    ok = file:write_file(Json, [
        "{\"cpython-3.", Minor, ".99-linux-x86_64-gnu\": {\"name\": \"cpython\", \"arch\": {\"family\": \"x86_64\", "
        "\"variant\": null}, \"os\": \"linux\", \"libc\": \"gnu\", \"major\": 3, \"minor\": ", Minor, ", \"patch\": 99, "
        "\"prerelease\": \"\", \"url\": \"", Releases, string:replace(Name, "+", "%2B"), "\", \"sha256\": null, "
        "\"variant\": null, \"build\": \"20260101\"}}"
    ]),
    os:putenv("UV_PYTHON_INSTALL_MIRROR", "file://" ++ in(Config, "mirror")),
    os:putenv("UV_PYTHON_DOWNLOADS_JSON_URL", Json),
    ok.

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

%% The real one; it is fetched once, if it is not on the PATH.
with_uv(Fun) ->
    case py_uv:find([Exe || {ok, #{<<"executable">> := Exe}} <- [py:call('erlang._venv', running, [])]]) of
        {ok, Uv} -> Fun(Uv);
        {error, Why} -> {skip, unicode:characters_to_list(Why)}
    end.

%% First on the PATH. What it is asked to do does not matter.
fake_uv(Config, Text) ->
    Uv = in(Config, "bin/uv"),
    ok = filelib:ensure_dir(Uv),
    ok = file:write_file(Uv, ["#!/bin/sh\n", Text]),
    ok = file:change_mode(Uv, 8#755),
    os:putenv("PATH", filename:dirname(Uv) ++ ":" ++ os:getenv("PATH")).

without_uv(Config, Cache) ->
    os:putenv("PATH", in(Config, "nothing")),
    os:putenv("XDG_CACHE_HOME", in(Config, Cache)).

project(Config) ->
    File = in(Config, "project/pyproject.toml"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, [
        "[project]\nname = 'shop'\nversion = '1'\nrequires-python = '>=3.11'\ndependencies = ['tinypkg']\n"
    ]),
    File.

%% A package index of wheels, served by this node; the same server for all indexes of a case.
index(Config, Password, Packages) ->
    Root = in(Config, "index"),
    ok = filelib:ensure_path(filename:join(Root, "simple")),
    ok = py:exec(wheel_maker()),
    [
        {ok, _} = py:call('__main__', add_to_index, [bin(Root), Name, Version, Value])
     || {Name, Versions} <- maps:to_list(Packages), {Version, Value} <- Versions
    ],
    {ok, Port} = py:call('__main__', serve_index, [bin(Root), bin(Password)]),
    "http://127.0.0.1:" ++ integer_to_list(Port) ++ "/simple".

uv_wheel(Config, Digest) ->
    {ok, none} = py:call('__main__', make_uv_wheel, [bin(in(Config, "index")), Digest =:= good]),
    ok.

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
        "def add_link(root, name, path):\n"
        "    import hashlib, os\n"
        "    with open(path, 'rb') as wheel:\n"
        "        digest = hashlib.sha256(wheel.read()).hexdigest()\n"
        "    page = f'{root}/simple/{name}'\n"
        "    os.makedirs(page, exist_ok=True)\n"
        "    file = os.path.basename(path)\n"
        "    with open(f'{page}/index.html', 'a') as links:\n"
        "        links.write(f'<a href=\"../../{file}#sha256={digest}\">{file}</a><br>\\n')\n"
        "def add_to_index(root, name, version, value):\n"
        "    import os\n"
        "    if not os.path.exists(f'{root}/{name}-{version}-py3-none-any.whl'):\n"
        "        add_link(root, name, make_wheel(root, name, version, value))\n"
        "def make_uv_wheel(root, good):\n"
        "    import platform, zipfile\n"
        "    for version in ('0.9.9', '0.10.1'):\n"
        "        path = f'{root}/uv-{version}-py3-none-manylinux_2_17_{platform.machine()}.whl'\n"
        "        with zipfile.ZipFile(path, 'w') as wheel:\n"
        "            said = 'fetched' if version == '0.10.1' else 'old'\n"
        "            wheel.writestr(f'uv-{version}.data/scripts/uv', f'#!/bin/sh\\necho {said}\\n')\n"
        "        add_link(root, 'uv', path)\n"
        "        if not good:\n"
        "            with open(path, 'ab') as wheel:\n"
        "                wheel.write(b'more')\n"
        "def serve_index(root, password):\n"
        "    import base64, functools, http.server, threading\n"
        "    wanted = password and 'Basic ' + base64.b64encode(password.encode()).decode()\n"
        "    class Handler(http.server.SimpleHTTPRequestHandler):\n"
        "        def do_GET(self):\n"
        "            if self.headers.get('Authorization') != (wanted or None):\n"
        "                self.send_error(401)\n"
        "            else:\n"
        "                super().do_GET()\n"
        "        def log_message(self, *_):\n"
        "            pass\n"
        "    import sys\n"
        "    servers = sys.__dict__.setdefault('py_venv_indexes', {})\n"
        "    if root not in servers:\n"
        "        handler = functools.partial(Handler, directory=root)\n"
        "        servers[root] = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n"
        "        threading.Thread(target=servers[root].serve_forever, daemon=True).start()\n"
        "    return servers[root].server_address[1]\n"
        "def serve_lead(url):\n"
        "    import http.server, threading\n"
        "    class Handler(http.server.BaseHTTPRequestHandler):\n"
        "        def do_GET(self):\n"
        "            self.send_response(302)\n"
        "            self.send_header('Location', url + self.path)\n"
        "            self.send_header('Content-Length', '0')\n"
        "            self.end_headers()\n"
        "        def log_message(self, *_):\n"
        "            pass\n"
        "    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n"
        "    threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "    return server.server_address[1]\n"
    >>.

refused(Part, {error, {bad_argument, Sentence} = Reason}) ->
    ?assert(py_error:is_reason(Reason)),
    ?assertNotEqual(nomatch, string:find(Sentence, Part), Sentence);
refused(_Part, Other) ->
    ct:fail("not refused: ~tp", [Other]).

bin(Text) -> unicode:characters_to_binary(Text).
