%% Start, overload, replacement: the life of the application and of what it runs.
-module(py_life_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([keep_the_gil/0, stuck_while_bound/0, log/2]).
-export([
    a_wrong_setting_stops_the_start_with_a_sentence/1,
    a_wheel_in_the_environment_is_told_and_not_used/1,
    a_module_that_cannot_be_preloaded_stops_the_start/1,
    a_full_queue_is_an_answer/1,
    a_worker_stuck_in_c_is_replaced_and_one_warning_names_what_it_runs/1,
    a_bound_thread_stuck_in_c_is_replaced/1,
    the_native_module_is_not_loaded_again/1,
    one_that_keeps_the_gil_is_told_in_the_log/1,
    every_part_of_the_tree_is_replaced/1,
    a_part_that_is_replaced_leaves_what_was_set_up_at_the_start/1,
    a_process_that_leans_on_one_that_was_killed_is_an_error/1,
    stopping_and_starting_twenty_times_leaves_nothing_behind/1,
    reloading_takes_new_code/1,
    leaving_is_an_error_to_the_caller/1,
    children_give_their_exit_codes/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(Config) ->
    _ = init_per_testcase(end_per_suite, Config),
    ok.

init_per_testcase(_Case, Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    Config.

%% A node with these settings and the Python modules of this suite.
new_node(Settings, Config) ->
    Peer = py_test:peer(Settings),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ok = peer:call(Peer, py_test, export_python, [proplists:get_value(data_dir, Config)]),
    Peer.

%% ---- start

a_wheel_in_the_environment_is_told_and_not_used(Config) ->
    Wheel = filename:join([proplists:get_value(priv_dir, Config), "wheel", "erlang", "__init__.py"]),
    ok = filelib:ensure_dir(Wheel),
    ok = file:write_file(Wheel, "raise ImportError('the wheel')\n"),
    Place = unicode:characters_to_binary(filename:dirname(filename:dirname(Wheel))),
    {ok, none} = py:call(sys, 'path.append', [Place]),
    ok = application:stop(erlang_python),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    {ok, _} = application:ensure_all_started(erlang_python),
    Text = receive {warned, Warning} -> Warning after 30_000 -> "" end,
    ok = logger:remove_handler(?MODULE),
    ?assertNotEqual(nomatch, string:find(Text, "wheel/erlang/__init__.py is not used")),
    {ok, none} = py:call(sys, 'path.remove', [Place]).

a_wrong_setting_stops_the_start_with_a_sentence(_Config) ->
    [
        begin
            Peer = py_test:peer([{Key, Value}]),
            Text = refused_start(Peer),
            [?assertNotEqual(nomatch, string:find(Text, Part), {Text, Part}) || Part <- Says],
            %% The node itself lives, and starts it once the setting is right.
            ok = peer:call(Peer, application, unset_env, [erlang_python, Key]),
            {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
            ok = py_test:stop_peer(Peer)
        end
     || {Key, Value, Says} <- [
            {num_wrokers, 4, ["num_wrokers", "did you mean num_workers"]},
            {max_queue, -1, ["max_queue must be a positive integer"]},
            {python, "/there/is/no/python", ["/there/is/no/python", "does not exist"]}
        ]
    ].

a_module_that_cannot_be_preloaded_stops_the_start(_Config) ->
    Peer = py_test:peer([{preload, [json, there_is_no_such_module]}]),
    Text = refused_start(Peer),
    ?assertNotEqual(nomatch, string:find(Text, "preload of there_is_no_such_module failed. Python raised ModuleNotFoundError"), Text),
    %% Nothing of it is left running.
    ?assertEqual(undefined, peer:call(Peer, erlang, whereis, [erlang_python_sup])),
    ?assertEqual({error, not_running}, peer:call(Peer, py, call, [math, sqrt, [4]])),
    ok = peer:call(Peer, application, unset_env, [erlang_python, preload]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ?assertEqual({ok, 2.0}, peer:call(Peer, py, call, [math, sqrt, [4]])),
    ok = py_test:stop_peer(Peer).

%% The sentence that says why.
refused_start(Peer) ->
    {error, {erlang_python, {Sentence, _}}} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ?assert(is_binary(Sentence), Sentence),
    Sentence.

%% ---- overload and replacement

a_full_queue_is_an_answer(Config) ->
    Peer = new_node([{num_workers, 1}, {max_queue, 5}], Config),
    Seen = peer:call(Peer, erlang, apply, [fun overload/0, []], 30_000),
    [?assertReason(overload, Error) || {refused, Error} <- Seen],
    ?assertEqual(3, length([x || {refused, _} <- Seen])),
    ?assertEqual([{ok, none}], [Answer || {queued, Answers} <- Seen, Answer <- lists:usort(Answers)]),
    ok = py_test:stop_peer(Peer).

overload() ->
    Busy = py_test:occupy(main, 1),
    Queued = [py:spawn_call(py_tools, note, [N]) || N <- lists:seq(1, 5)],
    Refused = [
        {refused, py:call(py_tools, note, [6])},
        {refused, py:await(py:spawn_call(py_tools, note, [8]))},
        {refused, py:stream_start(builtins, range, [9])}
    ],
    ok = py_test:release(Busy),
    Answers = [py:await(Ref) || Ref <- Queued],
    {ok, [1, 2, 3, 4, 5]} = py:call(py_tools, notes, []),
    [{queued, Answers} | Refused].

a_worker_stuck_in_c_is_replaced_and_one_warning_names_what_it_runs(Config) ->
    Peer = new_node([{num_workers, 1}], Config),
    {Before, After, Logged} = peer:call(Peer, erlang, apply, [fun stuck/0, []], 60_000),
    [?assertNotEqual(Thread, Other) || {Thread, Other} <- lists:zip(Before, After)],
    ?assertMatch([{warning, _}, {warning, _}], Logged),
    Names = ["time.sleep was told", "the code \"__import__('time').sleep(60)\" was told"],
    [_, _] = [Name || Name <- Names, {_, Text} <- Logged, string:find(Text, Name) =/= nomatch],
    ok = py_test:stop_peer(Peer).

%% Calls that no interrupt reaches, since they sleep in C with the GIL released; then other ones, which answer
%% only when the threads were replaced. The reports of a supervisor would come before.
stuck() ->
    ok = py:register_pool(other, #{size => 1}),
    Idents = fun() -> [Ident || Pool <- [main, other], {ok, Ident} <- [py:call(Pool, threading, get_ident, [])]] end,
    Before = Idents(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{level => notice, config => {all, self()}}),
    %% Long enough to have begun: what is cancelled before that keeps no thread.
    {error, timeout} = py:call(time, sleep, [60], #{}, 1000),
    {error, timeout} = py:eval(other, <<"__import__('time').sleep(60)">>, #{}, 1000),
    After = Idents(),
    Logged = [receive {logged, Level, Text} -> {Level, Text} end || _ <- Before],
    receive {logged, _, _} = More -> error(More) after 0 -> {Before, After, Logged} end.

a_bound_thread_stuck_in_c_is_replaced(Config) ->
    Peer = new_node([], Config),
    {Before, After, Name} = peer:call(Peer, ?MODULE, stuck_while_bound, [], 60_000),
    ?assertNotEqual(Before, After),
    ?assertEqual({ok, 1}, Name),
    ok = py_test:stop_peer(Peer).

%% The second call waits until there is another thread; the names of the process stay.
stuck_while_bound() ->
    ok = py:bind(),
    ok = py:exec(<<"name = 1">>),
    Ident = fun() -> py:call(threading, get_ident, [], #{}, 30_000) end,
    {ok, Before} = Ident(),
    {error, timeout} = py:call(time, sleep, [60], #{}, 1000),
    {ok, After} = Ident(),
    {Before, After, py:eval(<<"name">>)}.

the_native_module_is_not_loaded_again(Config) ->
    Peer = new_node([], Config),
    ?assertEqual({error, sticky_directory}, peer:call(Peer, code, load_file, [py_nif])),
    ?assertEqual({error, sticky_directory}, peer:call(Peer, c, l, [py_nif])),
    ?assertEqual({ok, 2.0}, peer:call(Peer, py, call, [math, sqrt, [4]])),
    ok = peer:call(Peer, application, stop, [erlang_python]),
    ok = peer:call(Peer, application, start, [erlang_python]),
    ?assertEqual({ok, 2.0}, peer:call(Peer, py, call, [math, sqrt, [4]])),
    ok = py_test:stop_peer(Peer).

one_that_keeps_the_gil_is_told_in_the_log(Config) ->
    Peer = new_node([], Config),
    Said = peer:call(Peer, ?MODULE, keep_the_gil, [], 60_000),
    ?assertNotEqual(nomatch, string:find(Said, "the GIL"), Said),
    %% And it goes on when the lock comes back.
    ?assertEqual({ok, 2.0}, peer:call(Peer, py, call, [math, sqrt, [4], #{}, 20_000], 25_000)),
    ok = py_test:stop_peer(Peer).

%% Calls time out while C code sleeps without releasing the lock; what is logged meanwhile.
keep_the_gil() ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    ok = py:exec(<<"import ctypes\nsleep = ctypes.PyDLL(None).usleep\n">>),
    _ = py:spawn_call('__main__', sleep, [9_000_000], #{}, 100),
    said(60).

said(0) ->
    "";
said(Tries) ->
    {error, timeout} = py:call(math, sqrt, [4], #{}, 200),
    receive
        {said, Text} -> Text
    after 0 -> said(Tries - 1)
    end.

%% As a handler of `logger'.
log(#{msg := {"~ts", [Text]}, level := Level}, #{config := {all, Pid}}) -> _ = Pid ! {logged, Level, Text}, ok;
log(#{msg := Message, level := Level}, #{config := {all, Pid}}) -> _ = Pid ! {logged, Level, Message}, ok;
log(#{msg := {string, Text}, level := error}, #{config := Pid}) -> _ = Pid ! {said, Text}, ok;
log(#{msg := {"~ts", [Text]}, level := warning}, #{config := Pid}) -> _ = Pid ! {warned, Text}, ok;
log(_Event, _Config) -> ok.

every_part_of_the_tree_is_replaced(Config) ->
    Peer = new_node([], Config),
    Ids = peer:call(Peer, erlang, apply, [fun ids/0, []]),
    ok = py_test:stop_peer(Peer),
    ?assert(length(Ids) >= 17, Ids),
    %% A node bears ten ends in ten seconds.
    [ok = parts_are_replaced(Some, Config) || Some <- parts(Ids, 8)],
    ok.

ids() ->
    [Id || {Id, Pid, _, _} <- lists:reverse(supervisor:which_children(py_services_sup)), true = is_pid(Pid)].

a_part_that_is_replaced_leaves_what_was_set_up_at_the_start(Config) ->
    Peer = new_node([], Config),
    ok = peer:call(Peer, py, register_function, [life_kept, erlang, length]),
    Kept = peer:call(Peer, erlang, apply, [fun stored_and_replaced/0, []], 60_000),
    ?assertMatch({ok, #{results := #{said := <<"kept">>}}}, Kept),
    ok = py_test:stop_peer(Peer).

%% In the store that graphs ask.
stored_and_replaced() ->
    Redis = fun(Words) -> py_dag:run(#{nodes => #{said => #{run => Words}}}, #{}) end,
    {ok, _} = Redis(["SET", "life", "kept"]),
    ok = is_replaced(py_registry),
    Redis(["GET", "life"]).

a_process_that_leans_on_one_that_was_killed_is_an_error(Config) ->
    Peer = new_node([], Config),
    ok = peer:call(Peer, py, register_function, [life_kept, erlang, length]),
    ?assertEqual({error, not_running}, peer:call(Peer, erlang, apply, [fun bound_without_a_registry/0, []], 60_000)),
    ok = peer:call(Peer, py_test, eventually, [fun all_works/0], 60_000),
    py_test:stop_peer(Peer).

bound_without_a_registry() ->
    Registry = whereis(py_registry),
    true = erlang:suspend_process(Registry),
    {Pid, Monitor} = spawn_monitor(fun() -> exit({gave, py:with_context(fun() -> bound end)}) end),
    ok = py_test:eventually(fun() -> process_info(Registry, message_queue_len) =/= {message_queue_len, 0} end),
    true = exit(Registry, kill),
    receive
        {'DOWN', Monitor, process, Pid, {gave, Given}} -> Given;
        {'DOWN', Monitor, process, Pid, Why} -> {exit, Why}
    end.

parts(List, Size) when length(List) =< Size -> [List];
parts(List, Size) ->
    {Part, Rest} = lists:split(Size, List),
    [Part | parts(Rest, Size)].

parts_are_replaced(Ids, Config) ->
    Peer = new_node([], Config),
    %% What users have registered is theirs.
    ok = peer:call(Peer, py, register_function, [life_kept, erlang, length]),
    ok = peer:call(Peer, py_test, eventually, [fun all_works/0], 60_000),
    %% Which part it was is told where it is not so.
    Ends = [{Id, peer:call(Peer, erlang, apply, [fun() -> tried(Id) end, []], 60_000)} || Id <- Ids],
    ?assertEqual([], [Other || {_, End} = Other <- Ends, End =/= ok]),
    py_test:stop_peer(Peer).

tried(Id) ->
    try
        is_replaced(Id)
    catch
        Kind:Reason:Trace -> {Kind, Reason, Trace}
    end.

is_replaced(Id) ->
    {Id, Pid, _, _} = lists:keyfind(Id, 1, supervisor:which_children(py_services_sup)),
    ok = py_test:down(Pid),
    ok = py_test:eventually(fun() ->
        case lists:keyfind(Id, 1, supervisor:which_children(py_services_sup)) of
            {Id, Other, _, _} -> is_pid(Other) andalso Other =/= Pid;
            false -> false
        end
    end),
    py_test:eventually(fun all_works/0).

%% A call, a callback, a message by way of the courier, a context, the state, coroutines, every core, channels.
all_works() ->
    try
        ok = py:register_function(life_add, fun([A, B]) -> A + B end),
        {ok, 3} = py:call(erlang, call, [life_add, 1, 2], #{}, 1000),
        {ok, 2} = py:call(erlang, call, [life_kept, 1, 2], #{}, 1000),
        Map = maps:from_list([{N, N} || N <- lists:seq(1, 200)]),
        {ok, none} = py:call(erlang, send, [self(), Map], #{}, 1000),
        ok = py_test:message(Map),
        ok = py:bind(),
        {ok, 2} = py:eval(<<"1 + 1">>, #{}, 1000),
        ok = py:unbind(),
        {ok, Ctx} = py_context:new(#{}),
        {ok, 2} = py:eval(Ctx, <<"1 + 1">>, #{}, 1000),
        ok = py_context:stop(Ctx),
        {ok, 3} = py:await(py:async_call(py_asyncs, give, [3]), 1000),
        {ok, [2.0]} = py:parallel([{math, sqrt, [4]}], 10_000),
        ok =:= py:state_store(<<"life">>, 1)
    catch
        _:_ -> false
    end.

%% ---- again

reloading_takes_new_code(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "reloaded"),
    File = filename:join(Dir, "life_code.py"),
    ok = filelib:ensure_dir(File),
    %% Of different lengths: Python looks at the time of a file by the second.
    ok = file:write_file(File, "def said(): return 'old'\n"),
    ok = py_test:add_path(Dir),
    ?assertEqual({ok, <<"old">>}, py:call(life_code, said, [])),
    ok = file:write_file(File, "def said(): return 'the new'\n"),
    ?assertEqual({ok, <<"old">>}, py:call(life_code, said, [])),
    ?assertEqual(ok, py:reload(life_code)),
    ?assertEqual({ok, <<"the new">>}, py:call(life_code, said, [])),
    ?assertReason({'ModuleNotFoundError', _}, py:reload(there_is_no_such_module)).

stopping_and_starting_twenty_times_leaves_nothing_behind(_Config) ->
    Cycle = fun(N) ->
        ok = py_test:stop(),
        {ok, _} = application:ensure_all_started(erlang_python),
        %% A binding of before is no binding any more.
        ?assertNot(py:is_bound()),
        ok = py:bind(),
        {ok, N} = py:call(operator, pos, [N]),
        {ok, Ctx} = py_context:new(#{}),
        ok = py:exec(Ctx, <<"x = [0] * 100_000">>),
        {ok, N} = py:eval(<<"n">>, #{n => N}),
        %% Neither is given back: the stop does that.
        ok = py:register_pool(life_pool, #{size => 3})
    end,
    [Cycle(N) || N <- lists:seq(1, 3)],
    ok = py:unbind(),
    ok = py_test:stop(),
    {ok, _} = application:ensure_all_started(erlang_python),
    {Tasks, Resident, Atoms} = settled(undefined),
    Processes = others(),
    [Cycle(N) || N <- lists:seq(1, 20)],
    ok = py:unbind(),
    ok = py_test:stop(),
    {ok, _} = application:ensure_all_started(erlang_python),
    {TasksNow, ResidentNow, AtomsNow} = settled(Tasks),
    ?assert(TasksNow =< Tasks, {Tasks, TasksNow}),
    ?assert(ResidentNow - Resident < 20_000_000, {Resident, ResidentNow}),
    ok = py_test:eventually(fun() -> others() =< Processes end),
    ?assertEqual(Atoms, AtomsNow).

%% Threads end a moment after they are told to.
settled(Wanted) ->
    Tasks = fun() -> element(2, py:call(py_life, tasks, [])) end,
    case Wanted of
        undefined -> py_test:eventually(fun() -> Before = Tasks(), timer:sleep(500), Tasks() =:= Before end);
        _ -> py_test:eventually(fun() -> Tasks() =< Wanted end)
    end,
    {ok, _} = py:gc(),
    {ok, Resident} = py:call(py_life, resident, []),
    {Tasks(), Resident, erlang:system_info(atom_count)}.

%% The processes of this node. Those that run functions for Python come and go: some are kept ready.
others() -> length([Pid || Pid <- processes(), not is_executor(Pid)]).

is_executor(Pid) -> {initial_call, {py_executor, init, 1}} =:= process_info(Pid, initial_call).

%% ---- programs that end

leaving_is_an_error_to_the_caller(_Config) ->
    ?assertReason({'SystemExit', <<"3">>}, py:call(py_life, leave, [3])),
    ?assertReason({'SystemExit', _}, py:exec(<<"raise SystemExit">>)),
    ?assertReason({'KeyboardInterrupt', <<>>}, py:call(py_life, interrupt, [])),
    ?assertReason({'StopIteration', _}, py:call(py_life, stop_iteration, [])),
    ?assertReason({'GeneratorExit', _}, py:exec(<<"raise GeneratorExit">>)),
    ?assertReason({'SystemExit', _}, py:stream_eval(<<"(__import__('sys').exit(1) for _ in [1])">>)),
    ?assertEqual({ok, 3}, py:call(operator, add, [1, 2])).

children_give_their_exit_codes(Config) ->
    [?assertEqual({ok, Code}, py:call(py_life, run, [exit_with(Code)])) || Code <- [0, 1, 3, 255]],
    ?assertEqual({ok, -9}, py:call(py_life, run, [<<"kill -9 $$">>])),
    ?assertEqual({ok, {2, <<"out\n">>, <<"err\n">>}}, py:call(py_life, output, [<<"echo out; echo err >&2; exit 2">>])),
    ?assertEqual({ok, 5}, py:call(py_life, system, [exit_with(5)])),
    %% In a node without sub-interpreters: CPython 3.13.0 itself aborts a child forked beside them.
    Peer = new_node([], Config),
    ?assertEqual({ok, 7}, peer:call(Peer, py, call, [py_life, fork, []])),
    ok = py_test:stop_peer(Peer),
    %% Many at once, each its own.
    Refs = [{Code, py:spawn_call(py_life, run, [exit_with(Code)])} || Code <- lists:seq(1, 20)],
    [?assertEqual({ok, Code}, py:await(Ref)) || {Code, Ref} <- Refs],
    %% And those of Erlang still work.
    ?assertEqual("here\n", os:cmd("echo here")),
    Port = open_port({spawn, "sh -c 'exit 4'"}, [exit_status]),
    ok = py_test:message({Port, {exit_status, 4}}).

exit_with(Code) -> iolist_to_binary(["exit ", integer_to_list(Code)]).
