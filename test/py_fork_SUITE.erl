%% Processes that Python makes by fork: each case in a node of its own, which a signal must not end.
-module(py_fork_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_child_that_comes_back_from_a_call_ends_with_a_sentence/1,
    a_child_that_comes_back_to_an_event_loop_ends_with_a_sentence/1,
    a_signal_to_a_child_is_not_one_to_the_node/1,
    a_child_has_no_descriptor_of_the_emulator/1,
    a_child_has_no_descriptor_of_our_loops/1,
    a_child_that_c_code_made_has_no_handlers_of_the_emulator/1,
    handlers_of_faulthandler_stay/1,
    a_child_has_signal_handlers_of_its_own/1,
    a_child_that_asks_for_erlang_gets_an_exception/1,
    what_a_child_logs_and_prints_goes_to_its_standard_error/1,
    pools_of_processes_work_and_leave_nothing/1,
    a_child_that_ends_well_has_exit_code_0/1,
    a_child_has_no_pipe_of_a_process_that_another_thread_starts/1,
    a_child_holds_up_no_process_that_starts_later/1
]).

-export([open_files/0]).

all() ->
    [Name || {Name, 1} <- ?MODULE:module_info(exports), Name =/= module_info].

init_per_testcase(_Case, Config) ->
    Peer = py_test:peer([]),
    %% Before Python starts: what is open by now is the emulator's.
    Open = peer:call(Peer, ?MODULE, open_files, []),
    Started = peer:call(Peer, py_test, start, [Config]),
    [{peer, Peer}, {open, Open} | Started].

end_per_testcase(_Case, Config) ->
    py_test:stop_peer(proplists:get_value(peer, Config)).

on(Config, Fun) -> peer:call(proplists:get_value(peer, Config), erlang, apply, [Fun, []], 120_000).

%% The open descriptors of this node, with what they are.
-spec open_files() -> [{non_neg_integer(), binary()}].
open_files() ->
    {ok, Numbers} = file:list_dir("/proc/self/fd"),
    [
        {list_to_integer(Number), unicode:characters_to_binary(What)}
     || Number <- Numbers,
        {ok, What} <- [file:read_link_all("/proc/self/fd/" ++ Number)]
    ].

%% What a child that came back has said, and how it ended.
assert_ended({ok, {Said, Code}}) ->
    assert_says(<<"a process made by os.fork() came back">>, Said),
    ?assertEqual(1, Code).

assert_says(Text, Said) -> binary:match(Said, Text) =/= nomatch orelse error({not_said, Text, Said}).

a_child_that_comes_back_from_a_call_ends_with_a_sentence(Config) ->
    on(Config, fun() ->
        ok = py:register_function(fork_here, fun([]) ->
            {ok, Ended} = py:call(py_fork, comes_back, []),
            Ended
        end),
        assert_ended(py:call(py_fork, comes_back, [], #{}, 20_000)),
        assert_ended(py:call(py_fork, raises, [], #{}, 20_000)),
        assert_ended(py:call(py_fork, in_callback, [], #{}, 20_000)),
        {ok, Context} = py_context:new(#{}),
        assert_ended(py:call(Context, py_fork, comes_back, [], #{}, 20_000)),
        {ok, [1, Ended]} = py:stream(py_fork, comes_back_items, []),
        assert_ended({ok, Ended}),
        {ok, #{results := #{node := OfNode}}} =
            py_dag:run(#{nodes => #{node => #{run => {py, py_fork, comes_back}}}}, #{}),
        assert_ended({ok, OfNode}),
        {ok, 3} = py:call(math, isqrt, [9])
    end).

a_child_that_comes_back_to_an_event_loop_ends_with_a_sentence(Config) ->
    on(Config, fun() ->
        [
            begin
                application:stop(erlang_python),
                application:set_env(erlang_python, driver, Driver),
                _ = py_test:start(Config),
                assert_ended(py:await(py:async_call(py_fork, comes_back_async, []), 20_000)),
                assert_ended(py:await(py:async_call(py_fork, comes_back_later, []), 20_000))
            end
         || Driver <- [thread, beam]
        ]
    end).

a_signal_to_a_child_is_not_one_to_the_node(Config) ->
    on(Config, fun() ->
        [
            ?assertEqual(
                {ok, lists:duplicate(20, -Number)},
                py:call(py_fork, signalled, [Name, 20], #{}, 60_000)
            )
         || {Name, Number} <- [{<<"SIGTERM">>, 15}, {<<"SIGUSR1">>, 10}, {<<"SIGINT">>, 2}, {<<"SIGHUP">>, 1}]
        ],
        {ok, 3} = py:call(math, isqrt, [9])
    end).

a_child_has_no_descriptor_of_the_emulator(Config) ->
    Emulators = proplists:get_value(open, Config),
    ?assert(length(Emulators) > 5),
    on(Config, fun() ->
        {ok, Listed} = py:call(py_fork, descriptors, []),
        ?assertEqual([], [File || {Number, _} = File <- Listed, Number > 2, lists:member(File, Emulators)])
    end).

a_child_has_no_descriptor_of_our_loops(Config) ->
    on(Config, fun() ->
        {ok, 1} = py:await(py:async_call(asyncio, sleep, [0, 1])),
        {ok, Beam} = py_event_loop:start_link(#{driver => beam}),
        {ok, Ref} = py_event_loop:run_async(Beam, #{module => asyncio, func => sleep, args => [0, 1]}),
        {ok, 1} = py:await(Ref),
        {ok, Raw} = py_nif:event_loop_new(),
        Graph = #{nodes => #{get => #{run => ["GET", "x"]}}},
        {ok, _} = py_dag:run(Graph, #{}, #{redis => embedded}),
        {ok, Listed} = py:call(py_fork, descriptors, []),
        ?assertEqual([], [File || {_, <<"anon_inode:", _/binary>>} = File <- Listed]),
        ok = py_nif:event_loop_destroy(Raw),
        %% Nor has the child taken anything from its parent.
        {ok, Again} = py_event_loop:run_async(Beam, #{module => asyncio, func => sleep, args => [0, 2]}),
        ?assertEqual([{ok, 2}, {ok, 2}], [py:await(Again), py:await(py:async_call(asyncio, sleep, [0, 2]))])
    end).

a_child_that_c_code_made_has_no_handlers_of_the_emulator(Config) ->
    on(Config, fun() ->
        [
            ?assertEqual({ok, -Number}, py:call(py_fork, forked_by_c, [Name], #{}, 20_000))
         || {Name, Number} <- [{<<"SIGTERM">>, 15}, {<<"SIGUSR1">>, 10}]
        ],
        {ok, 3} = py:call(math, isqrt, [9])
    end).

handlers_of_faulthandler_stay(Config) ->
    on(Config, fun() ->
        {ok, Said} = py:call(py_fork, dumps, [], #{}, 20_000),
        assert_says(<<"Current thread">>, Said)
    end).

a_child_has_signal_handlers_of_its_own(Config) ->
    on(Config, fun() ->
        ?assertEqual({ok, {<<"SIG_DFL [15]">>, 0}}, py:call(py_fork, handlers, [], #{}, 20_000))
    end).

a_child_that_asks_for_erlang_gets_an_exception(Config) ->
    on(Config, fun() ->
        [
            begin
                {ok, {Said, 0}} = py:call(py_fork, Function, Args, #{}, 20_000),
                assert_says(<<"RuntimeError: this process was made by os.fork()">>, Said)
            end
         || {Function, Args} <- [{calls, []}, {sends, [self()]}]
        ]
    end).

what_a_child_logs_and_prints_goes_to_its_standard_error(Config) ->
    on(Config, fun() ->
        {ok, {Said, 0}} = py:call(py_fork, logs, [], #{}, 20_000),
        assert_says(<<"forked: a record\n">>, Said),
        assert_says(<<"a line\n">>, Said)
    end).

pools_of_processes_work_and_leave_nothing(Config) ->
    Times = py_test:full(5, 300),
    on(Config, fun() ->
        {ok, Before} = py:call(py_fork, children, []),
        ?assertEqual({ok, <<"done">>}, py:call(py_fork, pools, [Times], #{}, 110_000)),
        %% The resource tracker of multiprocessing would be one; fork needs none.
        py_test:eventually(fun() -> py:call(py_fork, children, []) =:= {ok, Before} end)
    end).

a_child_that_ends_well_has_exit_code_0(Config) ->
    on(Config, fun() ->
        ?assertEqual({ok, [0, 0]}, py:call(py_fork, exit_codes, [], #{}, 20_000))
    end).

a_child_has_no_pipe_of_a_process_that_another_thread_starts(Config) ->
    on(Config, fun() ->
        ?assertEqual({ok, <<"said\n">>}, py:call(py_fork_starts, output, [], #{}, 60_000)),
        ?assertEqual({ok, -9}, py:call(py_fork_starts, end_of_process, [], #{}, 60_000))
    end).

a_child_holds_up_no_process_that_starts_later(Config) ->
    on(Config, fun() ->
        ?assertEqual({ok, <<"said\n">>}, py:call(py_fork_starts, in_thread_of_child, [], #{}, 60_000)),
        ?assertEqual({ok, <<"said\n">>}, py:call(py_fork_starts, beside_a_start_that_hangs, [], #{}, 60_000))
    end).
