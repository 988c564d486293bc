%% Python calls Erlang: functions, messages, atoms, log records, output.
-module(py_callback_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([log/2, add/1]).
-export([
    a_function_is_called_by_name_attribute_and_import/1,
    a_function_is_a_fun_or_a_module_and_name/1,
    an_unknown_function_is_an_error_that_names_it/1,
    an_erlang_exception_carries_kind_reason_and_stacktrace/1,
    an_uncaught_erlang_error_reaches_the_caller/1,
    a_reason_that_python_cannot_take_is_told_in_words/1,
    an_answer_that_python_cannot_take_is_an_error/1,
    an_argument_that_erlang_cannot_take_is_an_error/1,
    a_callback_works_in_eval_in_a_stream_and_in_a_context/1,
    a_python_thread_calls_erlang/1,
    many_python_threads_call_erlang_at_once/1,
    a_killed_executor_is_an_error_and_is_replaced/1,
    an_executor_that_outlived_its_manager_may_die/1,
    one_callback_leaves_nothing_to_the_next/1,
    what_a_callback_does_to_its_process_does_not_reach_the_next/1,
    a_late_message_does_not_reach_another_callers_callback/1,
    a_late_message_does_not_reach_the_callback_of_another_thread/1,
    callbacks_of_one_caller_run_in_one_process/1,
    a_callback_that_runs_is_not_said_to_be_gone/1,
    self_is_the_process_the_code_runs_for/1,
    a_message_goes_to_a_pid_and_to_a_name/1,
    a_message_to_nobody_is_an_error_or_lost/1,
    wide_dictionaries_come_by_every_kind_of_message/1,
    a_reply_never_overtakes_an_earlier_message/1,
    pids_can_be_compared_and_hashed/1,
    atoms_are_counted_and_refused_past_the_quota/1,
    log_records_reach_logger_with_level_place_and_process/1,
    the_default_handler_shows_records_of_python/1,
    an_uncaught_exception_in_a_thread_is_logged/1,
    an_exception_that_nobody_can_catch_is_logged/1,
    output_goes_to_the_group_leader_of_the_caller/1,
    shared_state_is_seen_from_both_sides/1,
    names_of_ours_cannot_be_registered/1
]).

all() -> py_test:cases(?MODULE) -- [add].

init_per_suite(Config) ->
    py_test:start(Config),
    ok = py:register_function(cb_add, ?MODULE, add),
    ok = py:register_function(cb_fail, fun fail/1),
    Config.

end_per_suite(_Config) ->
    ok = py:unregister_function(cb_fail),
    ok = py:unregister_function(cb_add).

add([A, B]) -> A + B.

fail([<<"error">>, Reason]) -> error(Reason);
fail([<<"throw">>, Reason]) -> throw(Reason);
fail([<<"exit">>, Reason]) -> exit(Reason);
fail([<<"badmatch">>]) -> 1 = add([1, 1]);
fail([<<"odd">>]) -> error({odd, [a | b], <<1:3>>}).

python(Function, Args) -> py:call(py_callbacks, Function, Args).

%% ---- functions

a_function_is_called_by_name_attribute_and_import(_Config) ->
    [?assertEqual({ok, 5}, python(F, [2, 3])) || F <- [by_call, by_attribute, by_import]].

a_function_is_a_fun_or_a_module_and_name(_Config) ->
    [
        begin
            ok = py:register_function(Name, Function),
            ?assertEqual({ok, 3}, py:call(erlang, call, [cb_other, 1, 2])),
            ok = py:unregister_function(Name),
            ?assertReason({_, _}, py:call(erlang, call, [cb_other, 1, 2]))
        end
     || Name <- [cb_other, <<"cb_other">>, "cb_other"], Function <- [fun add/1, {?MODULE, add}]
    ],
    [
        ?assertReason({bad_argument, function}, py:register_function(x, Wrong))
     || Wrong <- [{1, 2}, x]
    ],
    [
        begin
            {bad_argument, Text} = py_test:reason(py:register_function(x, Wrong)),
            ?assertMatch({match, _}, re:run(Text, "takes one argument, the list"))
        end
     || Wrong <- [fun() -> ok end, fun(_, _) -> ok end]
    ],
    ?assertReason({bad_argument, name}, py:register_function([], fun add/1)).

an_unknown_function_is_an_error_that_names_it(_Config) ->
    {error, {<<"erlang.ErlangError">>, Message}} = Error = python(unknown, []),
    ?assertReason({_, _}, Error),
    ?assertNotEqual(nomatch, string:find(Message, "there_is_no_such_function")).

an_erlang_exception_carries_kind_reason_and_stacktrace(_Config) ->
    [
        ?assertMatch({ok, {Kind, <<"why">>, [_ | _], _}}, python(failure, [Kind, why]))
     || Kind <- [<<"error">>, <<"throw">>, <<"exit">>]
    ],
    {ok, {<<"error">>, {<<"badmatch">>, 2}, Stack, Text}} = python(failure, [badmatch]),
    ?assertMatch([{<<"py_callback_SUITE">>, <<"fail">>, 1, _, Line} | _] when Line > 0, Stack),
    ?assertEqual(<<"error: ('badmatch', 2)">>, Text).

an_uncaught_erlang_error_reaches_the_caller(_Config) ->
    ?assertReason(
        {<<"erlang.ErlangError">>, <<"exit: 'gone'">>},
        py:call(erlang, call, [cb_fail, exit, gone])
    ).

a_reason_that_python_cannot_take_is_told_in_words(_Config) ->
    {ok, {<<"error">>, Reason, _, _}} = python(failure, [odd]),
    ?assertEqual(<<"{odd,[a|b],<<1:3>>}">>, Reason).

an_answer_that_python_cannot_take_is_an_error(_Config) ->
    ok = py:register_function(cb_odd, fun([]) -> [a | b] end),
    {error, {_, Message}} = Error = py:call(erlang, call, [cb_odd]),
    ?assertReason({'TypeError', _}, Error),
    ?assertNotEqual(nomatch, string:find(Message, "to a Python object: an improper")),
    ok = py:unregister_function(cb_odd).

an_argument_that_erlang_cannot_take_is_an_error(_Config) ->
    ?assertReason({'TypeError', _}, python(convert_badly, [])).

a_callback_works_in_eval_in_a_stream_and_in_a_context(_Config) ->
    Code = <<"__import__('erlang').cb_add(1, 2)">>,
    ?assertEqual({ok, 3}, py:eval(Code)),
    ?assertEqual({ok, [3, 4]}, py:stream_eval(<<"(__import__('erlang').cb_add(x, 2) for x in [1, 2])">>)),
    {ok, Ctx} = py_context:new(#{}),
    ?assertEqual({ok, 3}, py:eval(Ctx, Code)),
    %% A callback of a context that calls its own context.
    ok = py:register_function(cb_again, fun([]) -> py:eval(Ctx, Code) end),
    ?assertEqual({ok, {<<"ok">>, 3}}, py:eval(Ctx, <<"__import__('erlang').cb_again()">>)),
    ok = py:unregister_function(cb_again),
    ok = py_context:stop(Ctx).

a_python_thread_calls_erlang(_Config) ->
    ?assertEqual({ok, 7}, python(in_thread, [by_call, 3, 4])),
    ?assertEqual({ok, <<"ErlangError">>}, python(in_thread, [unknown])),
    ok = ok(python(in_thread, [send, self(), hello])),
    ok = py_test:message(<<"hello">>).

many_python_threads_call_erlang_at_once(_Config) ->
    Sum = lists:sum([N + M || N <- lists:seq(0, 19), M <- lists:seq(0, 99)]),
    ?assertEqual({ok, Sum}, python(many_threads, [20, 100])).

a_killed_executor_is_an_error_and_is_replaced(_Config) ->
    ok = py:register_function(cb_suicide, fun([]) -> exit(self(), kill) end),
    [
        ?assertReason({_, _}, py:call(erlang, call, [cb_suicide], #{}, 5000))
     || _ <- lists:seq(1, 10)
    ],
    ok = py:unregister_function(cb_suicide),
    ?assertEqual({ok, 5}, python(by_call, [2, 3])),
    ?assertMatch(#{waiting_in_callbacks := 0}, py:stats()).

an_executor_that_outlived_its_manager_may_die(_Config) ->
    Test = self(),
    ok = py:register_function(cb_stays, fun([]) ->
        process_flag(trap_exit, true),
        Test ! {stays, self()},
        receive
            go -> none
        end
    end),
    ok = py:register_function(cb_dies, fun([]) -> exit(self(), kill) end),
    _ = py:spawn_call(erlang, call, [cb_stays]),
    Executor =
        receive
            {stays, Pid} -> Pid
        end,
    Manager = whereis(py_callback),
    true = exit(Manager, kill),
    ok = py_test:eventually(fun() -> is_pid(whereis(py_bind)) andalso whereis(py_callback) =/= Manager end),
    Executor ! go,
    ok = py_test:eventually(fun() -> is_free(Executor) end),
    %% Told by whom, if not by a manager?
    [?assertReason({_, _}, py:call(erlang, call, [cb_dies], #{}, 20_000)) || _ <- [1, 2, 3]],
    ok = py:unregister_function(cb_stays),
    ok = py:unregister_function(cb_dies).

is_free(Executor) ->
    case process_info(Executor, current_function) of
        {current_function, {py_executor, wait, _}} -> true;
        undefined -> true;
        _ -> false
    end.

one_callback_leaves_nothing_to_the_next(_Config) ->
    ok = py:register_function(cb_leave, fun([]) ->
        Left = {get(left), process_info(self(), messages)},
        _ = put(left, behind),
        self() ! behind,
        ok = py:exec(<<"left = 'behind'">>),
        Left
    end),
    [
        ?assertEqual({ok, {none, {<<"messages">>, []}}}, py:call(erlang, call, [cb_leave]))
     || _ <- lists:seq(1, 5)
    ],
    ok = py:unregister_function(cb_leave).

what_a_callback_does_to_its_process_does_not_reach_the_next(_Config) ->
    Stays = spawn(fun() -> receive never -> ok end end),
    ok = py:register_function(cb_change, fun([]) ->
        Seen = state(self()),
        true = link(Stays),
        _ = monitor(process, Stays),
        _ = process_flag(trap_exit, true),
        _ = process_flag(priority, high),
        true = register(list_to_atom("cb_" ++ integer_to_list(erlang:unique_integer([positive]))), self()),
        term_to_binary(Seen)
    end),
    States = [element(2, python(bytes_of, [cb_change])) || _ <- lists:seq(1, 5)],
    [
        ?assertMatch(
            [{links, [_]}, {monitors, []}, {trap_exit, false}, {priority, normal}, {registered_name, []}],
            binary_to_term(State)
        )
     || State <- States
    ],
    ok = py:unregister_function(cb_change),
    ok = py_test:down(Stays).

state(Pid) -> process_info(Pid, [links, monitors, trap_exit, priority, registered_name]).

%% The first function gives its pid away; what comes of that comes during the second one.
a_late_message_does_not_reach_another_callers_callback(_Config) ->
    ?assertEqual({ok, <<"none">>}, after_a_late_message(fun(Name) -> py:call(erlang, call, [Name]) end)).

%% Python's number of a thread that has ended is that of the next one.
a_late_message_does_not_reach_the_callback_of_another_thread(_Config) ->
    Call = fun(Name) -> python(in_thread, [by_name, Name]) end,
    ?assertEqual({ok, <<"none">>}, after_a_late_message(Call)).

after_a_late_message(Call) ->
    Test = self(),
    ok = py:register_function(cb_late, fun([]) ->
        Executor = self(),
        Late = spawn(fun() ->
            receive {send, To} ->
                Executor ! the_answer,
                To ! sent
            end
        end),
        Test ! {late, Late},
        true
    end),
    ok = py:register_function(cb_asks, fun([]) ->
        Test ! {asks, self()},
        receive sent -> ok end,
        receive the_answer -> <<"another's">> after 0 -> <<"none">> end
    end),
    {ok, true} = py_test:in_process(fun() -> Call(cb_late) end),
    Late = receive {late, Pid} -> Pid after 20_000 -> error(no_message) end,
    Asked = spawn_monitor(fun() -> exit(Call(cb_asks)) end),
    receive {asks, Executor} -> Late ! {send, Executor} after 20_000 -> error(no_message) end,
    Answer = receive {'DOWN', Monitor, process, _, Why} when Monitor =:= element(2, Asked) -> Why end,
    [ok = py:unregister_function(Name) || Name <- [cb_late, cb_asks]],
    Answer.

%% The executor of a caller ends when the next callback of that one is on its way: another one runs it. The end of the
%% first must not be taken for that of the second.
a_callback_that_runs_is_not_said_to_be_gone(_Config) ->
    Ran = ets:new(ran, [public]),
    ok = py:register_function(cb_runs, fun([N]) -> ets:insert(Ran, {N, self()}) end),
    Callers = [
        spawn_monitor(fun() -> exit([Gone || N <- lists:seq(From, From + 5000), Gone <- gone(N, Ran)]) end)
     || From <- [10_000, 20_000, 30_000, 40_000]
    ],
    Gone = lists:append([receive {'DOWN', Monitor, process, _, Its} -> Its end || {_, Monitor} <- Callers]),
    ok = py:unregister_function(cb_runs),
    ?assertEqual([], [N || {N, Killed} <- Gone, {_, Pid} <- ets:lookup(Ran, N), Pid =/= Killed]).

gone(N, Ran) ->
    {ok, true} = py:call(erlang, call, [cb_runs, N]),
    [{_, Executor}] = ets:lookup(Ran, N),
    true = exit(Executor, kill),
    case py:call(erlang, call, [cb_runs, -N]) of
        {ok, true} -> [];
        {error, _} -> [{-N, Executor}]
    end.

%% No process is made for each of them.
callbacks_of_one_caller_run_in_one_process(_Config) ->
    ok = py:register_function(cb_self, fun([]) -> self() end),
    {ok, Pids} = py:eval(<<"[__import__('erlang').call('cb_self') for _ in range(1000)]">>),
    ?assertMatch([_], lists:usort(Pids)),
    ok = py:unregister_function(cb_self).

%% ---- messages

self_is_the_process_the_code_runs_for(_Config) ->
    ?assertEqual({ok, self()}, python(whoami, [])),
    {Pid, Monitor} = spawn_monitor(fun() -> exit(python(whoami, [])) end),
    receive
        {'DOWN', Monitor, process, Pid, Seen} -> ?assertEqual({ok, Pid}, Seen)
    end.

a_message_goes_to_a_pid_and_to_a_name(_Config) ->
    {ok, none} = python(send, [self(), {a, 1}]),
    ok = py_test:message({<<"a">>, 1}),
    true = register(cb_test, self()),
    {ok, none} = python(send, [cb_test, by_name]),
    ok = py_test:message(<<"by_name">>),
    ?assertEqual({ok, self()}, py:call(erlang, whereis, [cb_test])),
    true = unregister(cb_test),
    ?assertEqual({ok, none}, py:call(erlang, whereis, [cb_test])),
    ?assertEqual({ok, none}, py:call(erlang, whereis, [<<"no atom has this name yet">>])).

a_message_to_nobody_is_an_error_or_lost(_Config) ->
    ?assertReason({'ValueError', _}, python(send, [cb_nobody, x])),
    {Gone, Monitor} = spawn_monitor(fun() -> ok end),
    receive
        {'DOWN', Monitor, process, Gone, normal} -> ok
    end,
    %% As in Erlang.
    ?assertEqual({ok, none}, python(send, [Gone, x])),
    %% What can't be sent to is told to the sender, and harms nobody else.
    Courier = whereis(py_courier),
    [
        ?assertReason({'TypeError', _}, python(send, [Wrong, x]))
     || Wrong <- [17, 1.5, [1], #{a => 1}, none, {a, b, c}, {bytes, <<"cb_test">>}]
    ],
    ?assertEqual({ok, none}, python(send, [{a, b}, x])),
    ?assertEqual({ok, 5}, python(by_call, [2, 3])),
    ?assertEqual(Courier, whereis(py_courier)).

wide_dictionaries_come_by_every_kind_of_message(_Config) ->
    [
        begin
            Map = maps:from_list([{N, N} || N <- lists:seq(0, Keys - 1)]),
            {ok, none} = python(send_wide, [self(), Keys]),
            ok = py_test:message(Map),
            Ref = py:spawn_call(py_callbacks, wide, [Keys]),
            ok = py_test:message({py_response, Ref, {ok, Map}}),
            ?assertEqual({ok, Map}, py:await(py:spawn_call(py_callbacks, wide, [Keys]))),
            ?assertEqual({ok, Map}, python(wide, [Keys])),
            ?assertEqual({ok, [Map]}, py:stream(builtins, list, [[Map]])),
            {ok, Stream} = py:stream_start(builtins, list, [[Map]]),
            ok = py_test:message({py_stream, Stream, {data, Map}}),
            ok = py_test:message({py_stream, Stream, done}),
            %% As the argument and the answer of a callback.
            ok = py:register_function(cb_wide, fun([M]) -> M end),
            ?assertEqual({ok, Map}, py:call(erlang, call, [cb_wide, Map])),
            ok = py:unregister_function(cb_wide)
        end
     || Keys <- [32, 33, 128, 129, 100_000]
    ].

a_reply_never_overtakes_an_earlier_message(_Config) ->
    [
        begin
            Ref = py:spawn_call(py_callbacks, ordered, [self(), Keys]),
            Seen = [number(py_test:message()) || _ <- lists:seq(1, 20)],
            ?assertEqual(lists:seq(0, 19), Seen),
            ?assertEqual({py_response, Ref, {ok, <<"reply">>}}, py_test:message()),
            %% Of a call, all messages are there when it returns.
            {ok, <<"reply">>} = python(ordered, [self(), Keys]),
            {messages, Waiting} = process_info(self(), messages),
            ?assertEqual(lists:seq(0, 19), [number(M) || M <- Waiting]),
            [_ = py_test:message() || _ <- Waiting]
        end
     || Keys <- [1, 129, 2000], _ <- lists:seq(1, 20)
    ],
    ok = py_test:nothing_waits().

number(#{0 := Number}) -> Number;
number(Number) -> Number.

pids_can_be_compared_and_hashed(_Config) ->
    ?assertEqual({ok, {true, false, true, 1}}, python(compare, [self(), self(), whereis(init)])).

%% ---- atoms

atoms_are_counted_and_refused_past_the_quota(Config) ->
    Peer = py_test:peer([{atom_quota, 10}]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ok = peer:call(Peer, py_test, export_python, [proplists:get_value(data_dir, Config)]),
    {ok, {10, Text}} = peer:call(Peer, py, call, [py_callbacks, atoms, [<<"quota_">>, 20]]),
    ?assertNotEqual(nomatch, string:find(Text, "atom_quota")),
    ?assertMatch(#{atoms_minted := 10}, peer:call(Peer, py, stats, [])),
    %% Atoms that exist cost nothing.
    ?assertEqual({ok, ok}, peer:call(Peer, py, call, [py_callbacks, atom, [ok]])),
    ?assertEqual({ok, quota_0}, peer:call(Peer, py, call, [py_callbacks, atom, [<<"quota_0">>]])),
    ok = py_test:stop_peer(Peer),
    ?assertEqual({ok, 'größe'}, python(atom, [<<"größe"/utf8>>])).

%% ---- logging and output

%% The callback of the test's own handler.
log(#{meta := #{domain := [python | _]}} = Event, #{config := #{to := Pid}}) -> Pid ! {event, Event};
log(_Event, _Config) -> ok.

logged(Count, Fun) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, all),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        ok = Fun(),
        [
            receive
                {event, Event} -> Event
            after 5000 -> error(no_record)
            end
         || _ <- lists:seq(1, Count)
        ]
    after
        logger:remove_handler(?MODULE),
        logger:set_primary_config(level, Level)
    end.

text(#{msg := {Format, Args}}) -> unicode:characters_to_binary(io_lib:format(Format, Args)).

log_records_reach_logger_with_level_place_and_process(_Config) ->
    Events = logged(6, fun() -> ok(python(log_all, [])) end),
    ?assertEqual(
        [debug, info, warning, error, critical, error], [Level || #{level := Level} <- Events]
    ),
    ?assertEqual([<<"d">>, <<"i 1">>, <<"w">>, <<"e">>, <<"c">>], [text(E) || E <- lists:droplast(Events)]),
    [#{meta := Meta} | _] = Events,
    #{file := File, line := Line, pid := Pid, python := Python, logger_name := Name} = Meta,
    ?assertEqual({"py_callbacks.py", self(), <<"cb.log">>}, {filename:basename(File), Pid, Name}),
    ?assert(Line > 0),
    ?assertMatch(#{function := <<"log_all">>}, Python),
    ?assertNotEqual(nomatch, string:find(text(lists:last(Events)), "KeyError: 'lost'")).

ok({ok, _}) -> ok.

the_default_handler_shows_records_of_python(_Config) ->
    {0, Output, _} = py_test:run_node(
        "{ok, _} = application:ensure_all_started(erlang_python),"
        "ok = py:exec(\"import logging; logging.warning('seen by %s', 'all')\"),"
        "_ = py_logger:info(), init:stop().",
        20_000
    ),
    ?assertNotEqual(nomatch, string:find(Output, "seen by all")).

an_uncaught_exception_in_a_thread_is_logged(_Config) ->
    [Event] = logged(1, fun() -> ok(python(die_in_thread, [])) end),
    ?assertMatch(#{level := error}, Event),
    [?assertNotEqual(nomatch, string:find(text(Event), Part)) || Part <- ["doomed", "ZeroDivisionError"]].

an_exception_that_nobody_can_catch_is_logged(_Config) ->
    [Event] = logged(1, fun() -> ok(python(die_in_del, [])) end),
    ?assertNotEqual(nomatch, string:find(text(Event), "in __del__")).

output_goes_to_the_group_leader_of_the_caller(_Config) ->
    Test = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        true = group_leader(Test, self()),
        {ok, _} = python(print_all, []),
        exit(done)
    end),
    ?assertEqual(<<"one\ntwo-words\nto stderr\nno newline">>, output(Monitor, [])),
    ?assertNot(is_process_alive(Pid)).

%% Everything written until the process has ended and all of it has come.
output(Monitor, Text) ->
    receive
        {io_request, From, As, {put_chars, unicode, Chars}} ->
            From ! {io_reply, As, ok},
            output(Monitor, [Text, Chars])
    after 300 ->
        receive
            {'DOWN', Monitor, process, _, done} -> in_order(iolist_to_binary(Text))
        end
    end.

%% What has no newline comes at the end of the job, stderr apart from stdout.
in_order(Text) ->
    case binary:split(Text, <<"no newline">>) of
        [Before, After] -> <<Before/binary, After/binary, "no newline">>;
        [Text] -> Text
    end.

%% ---- state

shared_state_is_seen_from_both_sides(_Config) ->
    ok = py:state_store(<<"cb">>, [1]),
    ?assertEqual({ok, [1]}, py:call(erlang, state_get, [cb])),
    {ok, none} = py:call(erlang, state_set, [<<"cb">>, #{a => 1}]),
    ?assertEqual({ok, #{<<"a">> => 1}}, py:state_fetch(<<"cb">>)),
    ?assertEqual({ok, 5}, py:call(erlang, state_incr, [cb_count, 5])),
    ?assertEqual(4, py:state_decr(<<"cb_count">>)),
    ?assertEqual({ok, 17}, py:call(erlang, state_get, [cb_missing, 17])),
    ?assertReason({<<"erlang.ErlangError">>, _}, py:call(erlang, state_incr, [cb])),
    ?assertEqual({ok, 2}, py:call(erlang, state_decr, [cb_count, 2])),
    {ok, Keys} = py:call(erlang, state_keys, []),
    ?assertEqual([<<"cb">>, <<"cb_count">>], lists:sort(Keys)),
    ?assertEqual([{ok, none}, {ok, none}], [py:call(erlang, state_delete, [Key]) || Key <- [cb, missing]]),
    ?assertEqual([<<"cb_count">>], py:state_keys()),
    ?assertEqual({ok, none}, py:call(erlang, state_clear, [])),
    ?assertEqual([], py:state_keys()),
    [ok = py:state_remove(Key) || Key <- [<<"cb">>, <<"cb_count">>]],
    ?assertEqual({ok, none}, py:call(erlang, state_get, [cb])).

names_of_ours_cannot_be_registered(_Config) ->
    ?assertReason({bad_argument, name}, py:register_function('$atom', fun add/1)).
