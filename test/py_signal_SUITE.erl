%% Signals of the system, handled by loops of Python; each case in a node of its own, on both drivers.
-module(py_signal_SUITE).

-include("py_test.hrl").

-export([all/0, groups/0, init_per_group/2, end_per_group/2]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([
    every_signal_of_the_emulator_runs_its_handler/1,
    every_loop_with_a_handler_hears_it/1,
    a_loop_of_a_sub_interpreter_hears_it/1,
    sigterm_stops_the_node_unless_python_handles_it/1,
    what_is_not_handled_stays_with_otp/1,
    a_closed_loop_gives_its_signals_back/1,
    a_killed_loop_gives_its_signals_back/1,
    stopping_the_application_gives_all_signals_back/1,
    a_loop_goes_on_when_the_one_who_tells_was_killed/1,
    what_can_not_be_handled_is_refused_clearly/1,
    a_child_tells_its_exit_code_while_sigchld_is_handled/1
]).
-export([kill/1]).

all() ->
    [{group, thread}, {group, beam}].

groups() ->
    Cases = [Name || {Name, 1} <- ?MODULE:module_info(exports), Name =/= module_info, Name =/= kill],
    [{Driver, py_test:order(), Cases} || Driver <- [thread, beam]].

init_per_group(Driver, Config) -> [{driver, Driver} | Config].

end_per_group(_Driver, _Config) -> ok.

init_per_testcase(_Case, Config) ->
    Peer = py_test:peer([{driver, proplists:get_value(driver, Config)}, {num_loops, 2}]),
    Started = peer:call(Peer, py_test, start, [Config]),
    [{peer, Peer} | Started].

end_per_testcase(_Case, Config) ->
    try
        py_test:stop_peer(proplists:get_value(peer, Config))
    catch
        %% It has ended already.
        exit:_ -> ok
    end.

on(Config, Fun) -> peer:call(proplists:get_value(peer, Config), erlang, apply, [Fun, []], 30_000).

%% Sends a signal to the node this is called in.
kill(Signal) ->
    [] = os:cmd("kill -" ++ Signal ++ " " ++ os:getpid()),
    ok.

%% Who gets signals.
handlers() -> gen_event:which_handlers(erl_signal_server).

every_signal_of_the_emulator_runs_its_handler(Config) ->
    Names = [
        <<"SIG", Name/binary>>
     || Name <- [
            <<"HUP">>, <<"QUIT">>, <<"ABRT">>, <<"ALRM">>, <<"TERM">>, <<"USR1">>, <<"USR2">>,
            <<"CHLD">>, <<"TSTP">>
        ]
    ],
    on(Config, fun() ->
        [
            begin
                ?assertEqual({ok, Name}, py:await(py:async_call(py_signals, hear, [Name]), 20_000)),
                ?assertEqual({ok, Name}, py:call(py_signals, hear_on_own_loop, [Name]))
            end
         || Name <- Names
        ],
        ?assertEqual([erl_signal_handler], handlers()),
        %% Nobody is left who waits for more.
        py_test:eventually(fun() ->
            #{waiters := #{coroutines := Waiting}} = py:stats(),
            Waiting =:= 0
        end)
    end).

every_loop_with_a_handler_hears_it(Config) ->
    on(Config, fun() ->
        Self = self(),
        {ok, One} = py_event_loop:start_link(),
        {ok, Two} = py_event_loop:start_link(),
        [tell_on(Loop, N) || {Loop, N} <- [{One, 1}, {Two, 2}]],
        Own = spawn(fun() -> py:call(py_signals, tell_on_own_loop, [Self, 'SIGUSR1', 3], #{}, infinity) end),
        ok = py_test:message(<<"ready">>),
        ok = kill("USR1"),
        [ok = py_test:message(N) || N <- [1, 2, 3]],
        %% Again, and one loop less.
        true = unlink(One),
        ok = py_test:down(One),
        ok = py_test:down(Own),
        ok = py_test:eventually(fun() ->
            #{waiters := #{coroutines := Waiting}} = py:stats(),
            Waiting =:= 1
        end),
        ok = kill("USR1"),
        ok = py_test:message(2),
        py_test:nothing_waits()
    end).

tell_on(Loop, What) ->
    Request = #{module => py_signals, func => tell, args => [self(), 'SIGUSR1', What]},
    {ok, Ref} = py_event_loop:run_async(Loop, Request),
    {ok, none} = py:await(Ref).

a_loop_of_a_sub_interpreter_hears_it(Config) ->
    on(Config, fun() ->
        case py:execution_mode() of
            subinterp ->
                {ok, Ctx} = py_context:new(#{mode => subinterp}),
                Hear = fun() -> py:await(py:async_call(Ctx, py_signals, hear, [<<"SIGUSR2">>]), 20_000) end,
                ?assertEqual({ok, <<"SIGUSR2">>}, Hear()),
                ?assertEqual([erl_signal_handler], handlers()),
                py_context:stop(Ctx);
            _ ->
                ok
        end
    end).

sigterm_stops_the_node_unless_python_handles_it(Config) ->
    Peer = proplists:get_value(peer, Config),
    on(Config, fun() ->
        {ok, none} = py:await(py:async_call(py_signals, tell, [self(), 'SIGTERM', 1])),
        ok = kill("TERM"),
        ok = py_test:message(1),
        ok = kill("TERM"),
        ok = py_test:message(1),
        {ok, true} = py:await(py:async_call(py_signals, forget, ['SIGTERM'])),
        {ok, false} = py:await(py:async_call(py_signals, forget, ['SIGTERM']))
    end),
    Monitor = monitor(process, Peer),
    %% The node may be gone before it could answer.
    ok = peer:cast(Peer, ?MODULE, kill, ["TERM"]),
    receive
        {'DOWN', Monitor, process, Peer, _} -> ok
    after 20_000 -> error(it_still_runs)
    end.

what_is_not_handled_stays_with_otp(Config) ->
    Peer = proplists:get_value(peer, Config),
    on(Config, fun() ->
        {ok, none} = py:await(py:async_call(py_signals, tell, [self(), 'SIGUSR2', 1])),
        ?assertEqual([py_signal_handler], handlers())
    end),
    Monitor = monitor(process, Peer),
    %% The node may be gone before it could answer.
    ok = peer:cast(Peer, ?MODULE, kill, ["TERM"]),
    receive
        {'DOWN', Monitor, process, Peer, _} -> ok
    after 20_000 -> error(it_still_runs)
    end.

a_closed_loop_gives_its_signals_back(Config) ->
    on(Config, fun() ->
        {ok, Loop} = py_event_loop:start_link(),
        ok = tell_all(Loop),
        ok = gen_server:stop(Loop),
        py_test:eventually(fun() -> handlers() =:= [erl_signal_handler] end)
    end).

a_killed_loop_gives_its_signals_back(Config) ->
    on(Config, fun() ->
        {ok, Loop} = py_event_loop:start_link(),
        ok = tell_all(Loop),
        true = unlink(Loop),
        ok = py_test:down(Loop),
        py_test:eventually(fun() -> handlers() =:= [erl_signal_handler] end)
    end).

tell_all(Loop) ->
    {ok, none} = tell_on(Loop, 1),
    ?assertEqual([py_signal_handler], handlers()),
    ok.

stopping_the_application_gives_all_signals_back(Config) ->
    on(Config, fun() ->
        {ok, none} = py:await(py:async_call(py_signals, tell, [self(), 'SIGHUP', 1])),
        ok = py_test:stop(),
        ?assertEqual([erl_signal_handler], handlers()),
        _ = py_test:start(Config),
        {ok, none} = py:await(py:async_call(py_signals, tell, [self(), 'SIGHUP', 2])),
        ok = kill("HUP"),
        ok = py_test:message(2)
    end).

a_loop_goes_on_when_the_one_who_tells_was_killed(Config) ->
    on(Config, fun() ->
        Self = self(),
        %% On a worker, which outlives it.
        _ = spawn_link(fun() -> py:call(py_signals, tell_twice, [Self], #{}, infinity) end),
        ok = py_test:message(<<"ready">>),
        ok = kill("USR1"),
        ok = py_test:message(1),
        ok = py_test:down(whereis(py_signal)),
        ok = py_test:message(<<"again">>),
        ok = kill("USR1"),
        ok = py_test:message(2)
    end).

what_can_not_be_handled_is_refused_clearly(Config) ->
    on(Config, fun() ->
        Refused = fun(What) ->
            {ok, Told} = py:await(py:async_call(py_signals, refused, [What])),
            Told
        end,
        %% As on systems without it: servers go on without a handler.
        [<<"NotImplementedError">>, Text] = Refused(2),
        ?assertMatch(<<"signal 2 (Interrupt) cannot be handled in an Erlang node", _/binary>>, Text),
        ?assertMatch([<<"NotImplementedError">>, _], Refused(40)),
        %% No program can handle it anywhere.
        ?assertMatch([<<"RuntimeError">>, _], Refused(9)),
        ?assertMatch([<<"ValueError">>, _], Refused(1000)),
        ?assertMatch([<<"TypeError">>, _], Refused(<<"x">>)),
        ?assertMatch([<<"TypeError">>, _], Refused(<<"coroutine">>)),
        ?assertEqual([erl_signal_handler], handlers())
    end).

a_child_tells_its_exit_code_while_sigchld_is_handled(Config) ->
    on(Config, fun() ->
        Child = fun() -> py:await(py:async_call(py_signals, child, [<<"exit 3">>, 'SIGCHLD']), 20_000) end,
        ?assertEqual([{ok, 3}, {ok, 3}], [Child(), Child()]),
        %% The emulator's own children too.
        ?assertEqual("7\n", os:cmd("sh -c 'exit 7'; echo $?")),
        ?assertEqual({ok, 3}, py:call(subprocess, call, [[<<"sh">>, <<"-c">>, <<"exit 3">>]]))
    end).
