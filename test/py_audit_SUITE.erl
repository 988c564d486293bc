%% The `audit' setting: what is listed is refused, nothing else is, and a restart changes the list.
-module(py_audit_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    without_the_setting_nothing_is_refused/1,
    subprocess_refuses_every_way_to_start_a_program/1,
    a_full_event_name_refuses_that_event_only/1,
    the_part_before_the_dot_refuses_all_of_its_events/1,
    what_python_raises_is_known/1,
    a_slip_of_the_fingers_stops_the_start/1,
    after_a_restart_the_new_list_counts/1,
    what_is_preloaded_is_refused_too/1,
    contexts_and_python_threads_are_refused_too/1,
    sub_interpreters_are_refused_too/1,
    python_code_cannot_make_an_interpreter_without_the_refusals/1,
    a_loop_that_is_refused_is_an_error_of_its_call/1,
    a_loop_is_refused_while_all_workers_are_busy/1,
    a_loop_that_can_not_be_replaced_is_started_by_a_later_call/1
]).

all() ->
    [
        without_the_setting_nothing_is_refused,
        subprocess_refuses_every_way_to_start_a_program,
        a_full_event_name_refuses_that_event_only,
        the_part_before_the_dot_refuses_all_of_its_events,
        what_python_raises_is_known,
        a_slip_of_the_fingers_stops_the_start,
        after_a_restart_the_new_list_counts,
        what_is_preloaded_is_refused_too,
        contexts_and_python_threads_are_refused_too,
        sub_interpreters_are_refused_too,
        python_code_cannot_make_an_interpreter_without_the_refusals,
        a_loop_that_is_refused_is_an_error_of_its_call,
        a_loop_is_refused_while_all_workers_are_busy,
        a_loop_that_can_not_be_replaced_is_started_by_a_later_call
    ].

init_per_testcase(_Case, Config) ->
    _ = application:stop(erlang_python),
    Config.

%% Other suites may run in this node: a start without the setting empties the list.
end_per_testcase(_Case, _Config) ->
    _ = application:stop(erlang_python),
    ok = application:unset_env(erlang_python, audit),
    ok = application:unset_env(erlang_python, preload),
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = application:stop(erlang_python).

without_the_setting_nothing_is_refused(_Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ?assertEqual({ok, 7}, py:call(subprocess, call, [[<<"sh">>, <<"-c">>, <<"exit 7">>]])),
    ?assertEqual({ok, 0}, py:call(os, system, [<<"true">>])).

subprocess_refuses_every_way_to_start_a_program(_Config) ->
    start([subprocess]),
    refused(<<"subprocess.Popen">>, py:call(subprocess, run, [[<<"true">>]])),
    refused(<<"subprocess.Popen">>, py:call(os, popen, [<<"true">>])),
    refused(<<"os.system">>, py:call(os, system, [<<"true">>])),
    refused(<<"os.fork">>, py:call(os, fork, [])),
    refused(<<"os.exec">>, py:call(os, execv, [<<"/bin/true">>, [<<"true">>]])),
    refused(<<"os.posix_spawn">>, py:eval("__import__('os').posix_spawn('/bin/true', ['true'], {})")),
    refused(<<"pty.spawn">>, py:call(pty, spawn, [<<"true">>])),
    %% The rest of Python is as it was.
    ?assertEqual({ok, 4.0}, py:call(math, sqrt, [16])),
    ?assertMatch({ok, _}, py:call(os, getpid, [])).

a_full_event_name_refuses_that_event_only(_Config) ->
    start(["os.system"]),
    refused(<<"os.system">>, py:call(os, system, [<<"true">>])),
    ?assertEqual({ok, 0}, py:call(subprocess, call, [[<<"true">>]])).

the_part_before_the_dot_refuses_all_of_its_events(_Config) ->
    start([<<"socket">>]),
    refused(<<"socket.gethostbyname">>, py:call(socket, gethostbyname, [<<"localhost">>])),
    refused(<<"socket.__new__">>, py:call(socket, socket, [])),
    ?assertEqual({ok, 0}, py:call(os, system, [<<"true">>])).

%% The events that the standard library raises by name; those of C are not to be found like this.
what_python_raises_is_known(_Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = py:exec(
        "import pathlib, re, sysconfig\n"
        "root = pathlib.Path(sysconfig.get_path('stdlib'))\n"
        "files = [f for f in root.rglob('*.py') if not {'site-packages', 'test', 'idlelib'} & set(f.relative_to(root).parts)]\n"
        "texts = [f.read_text(errors='replace') for f in files]\n"
        "events = sorted({e for t in texts for e in re.findall(r'sys\\.audit\\(\\s*[\"\\']([^\"\\']+)', t)})\n"
    ),
    {ok, Events} = py:eval("events"),
    ?assert(length(Events) > 20, Events),
    ?assertEqual(ok, py_audit_events:check(Events)).

a_slip_of_the_fingers_stops_the_start(_Config) ->
    ok = application:set_env(erlang_python, audit, [subproces]),
    {error, Why} = application:ensure_all_started(erlang_python),
    ?assertMatch({match, _}, re:run(io_lib:format("~p", [Why]), "did you mean subprocess\\?")).

after_a_restart_the_new_list_counts(_Config) ->
    start([subprocess]),
    refused(<<"os.system">>, py:call(os, system, [<<"true">>])),
    ok = application:stop(erlang_python),
    start([socket]),
    ?assertEqual({ok, 0}, py:call(os, system, [<<"true">>])),
    refused(<<"socket.__new__">>, py:call(socket, socket, [])),
    ok = application:stop(erlang_python),
    start([]),
    ?assertMatch({ok, _}, py:call(socket, gethostbyname, [<<"localhost">>])).

what_is_preloaded_is_refused_too(Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = export_probe(Config),
    ok = application:stop(erlang_python),
    ok = application:set_env(erlang_python, audit, [subprocess]),
    ok = application:set_env(erlang_python, preload, [audit_probe]),
    {error, Why} = application:ensure_all_started(erlang_python),
    ?assertMatch({match, _}, re:run(io_lib:format("~p", [Why]), "PermissionError")).

contexts_and_python_threads_are_refused_too(_Config) ->
    start([subprocess]),
    {ok, Context} = py_context:new(#{}),
    refused(<<"os.system">>, py:call(Context, os, system, [<<"true">>])),
    ok = py:exec(
        "import os, threading\n"
        "seen = []\n"
        "def probe():\n"
        "    try:\n"
        "        os.system('true')\n"
        "    except PermissionError as error:\n"
        "        seen.append(str(error))\n"
        "thread = threading.Thread(target=probe)\n"
        "thread.start()\n"
        "thread.join()\n"
    ),
    {ok, [Seen]} = py:eval("seen"),
    ?assertMatch(<<"os.system ", _/binary>>, Seen),
    refused(<<"os.system">>, py:parallel([{os, system, [<<"true">>]}])),
    refused(<<"os.system">>, py:map({os, system}, [<<"true">>], #{})).

sub_interpreters_are_refused_too(Config) ->
    start([subprocess]),
    case py_context:new(#{mode => subinterp}) of
        {ok, Context} ->
            refused(<<"os.system">>, py:call(Context, os, system, [<<"true">>])),
            ok = py:register_pool(audited, #{mode => subinterp}),
            refused(<<"os.system">>, py:call(audited, os, system, [<<"true">>])),
            %% Also what it imports at its start.
            ok = export_probe(Config),
            refused(<<"os.system">>, py_context:new(#{mode => subinterp, preload => [audit_probe]}));
        {error, not_supported} ->
            {skip, "this Python has no own-GIL sub-interpreters"}
    end.

python_code_cannot_make_an_interpreter_without_the_refusals(_Config) ->
    start([subprocess]),
    {ok, Module} = py:eval("next(m for m in ('_interpreters', '_xxsubinterpreters') if __import__('importlib.util').util.find_spec(m))"),
    Create = fun(Where) -> py:call(Where, Module, create, [], #{}, #{return => ref}) end,
    {ok, Worker} = py_context:new(#{}),
    refused_to_make(Create(Worker)),
    _ =
        case py_context:new(#{mode => subinterp}) of
            {ok, Context} -> refused_to_make(Create(Context));
            {error, not_supported} -> ok
        end,
    ok = application:stop(erlang_python),
    start([]),
    {ok, Free} = py_context:new(#{}),
    {ok, Made} = Create(Free),
    {ok, _} = py:call(Free, Module, destroy, [Made]),
    ok.

refused_to_make(Result) ->
    ?assertMatch({error, {'PermissionError', <<"making an interpreter is refused", _/binary>>}}, Result).

%% A module that starts a program when it is imported.
export_probe(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "preloaded"),
    ok = filelib:ensure_path(Dir),
    ok = file:write_file(
        filename:join(Dir, "audit_probe.py"), "import os\nos.system('true')\n"
    ),
    py_test:add_path(Dir).

a_loop_that_is_refused_is_an_error_of_its_call(_Config) ->
    [refused_loop(Driver) || Driver <- [thread, beam]].

refused_loop(Driver) ->
    ok = application:set_env(erlang_python, driver, Driver),
    start([sys]),
    Sup = whereis(erlang_python_sup),
    try
        Answers = [py:await(py:async_call(asyncio, sleep, [0]), 20_000) || _ <- lists:seq(1, 3)],
        [?assertMatch({error, {'PermissionError', <<"sys.", _/binary>>}}, Answer) || Answer <- Answers],
        ?assertMatch({error, {'PermissionError', _}}, py:async_gather([{asyncio, sleep, [0]}])),
        ?assertEqual([], supervisor:which_children(py_event_loop_sup)),
        {ok, Context} = py_context:new(#{}),
        ?assertMatch({error, _}, py:await(py:async_call(Context, asyncio, sleep, [0]), 20_000)),
        ?assertEqual(Sup, whereis(erlang_python_sup)),
        ?assertEqual({ok, 4.0}, py:call(math, sqrt, [16]))
    after
        application:unset_env(erlang_python, driver),
        _ = application:stop(erlang_python)
    end.

%% Whether a loop can run is found out without them: the first coroutine does not wait for a worker.
a_loop_is_refused_while_all_workers_are_busy(Config) ->
    start([]),
    ok = py_test:export_python(proplists:get_value(data_dir, Config)),
    ok = py:exec(<<"import py_tools">>),
    {ok, _} = py:call('erlang._audit', install, [[sys]]),
    #{num_workers := Workers} = persistent_term:get(py_config),
    Busy = py_test:occupy(main, Workers),
    Answer = py:await(py:async_call(asyncio, sleep, [0]), 20_000),
    ok = py_test:release(Busy),
    ?assertMatch({error, {'PermissionError', <<"sys.", _/binary>>}}, Answer).

%% A loop that dies when no other can run is not started in vain, and the next call has one as soon as it can.
a_loop_that_can_not_be_replaced_is_started_by_a_later_call(_Config) ->
    start([]),
    {ok, none} = py:await(py:async_call(asyncio, sleep, [0])),
    Sup = whereis(py_event_loop_sup),
    [{_, Loop, _, _}] = supervisor:which_children(Sup),
    {ok, _} = py:call('erlang._audit', install, [[sys]]),
    true = exit(Loop, kill),
    ok = py_test:eventually(fun() -> [undefined] =:= [Pid || {_, Pid, _, _} <- supervisor:which_children(Sup)] end),
    %% Until the pool has heard of it, the loop that died is asked.
    ok = py_test:eventually(fun() ->
        case py:await(py:async_call(asyncio, sleep, [0])) of
            {error, {'PermissionError', _}} -> true;
            {error, {context_died, _}} -> false
        end
    end),
    {ok, _} = py:call('erlang._audit', install, [[]]),
    ?assertEqual({ok, none}, py:await(py:async_call(asyncio, sleep, [0]))),
    ?assertEqual(Sup, whereis(py_event_loop_sup)).

start(Names) ->
    ok = application:set_env(erlang_python, audit, Names),
    {ok, _} = application:ensure_all_started(erlang_python).

refused(Event, Result) ->
    Sentence = <<Event/binary, " is refused by the audit setting of erlang_python">>,
    ?assertEqual({error, {'PermissionError', Sentence}}, Result).
