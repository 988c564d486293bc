%% Every core: sub-interpreters as contexts, and `parallel' and `map' over them.
-module(py_parallel_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    parallel_gives_values_in_the_order_of_the_calls/1,
    calls_run_at_the_same_time/1,
    more_calls_than_workers_are_queued/1,
    the_first_error_ends_the_rest/1,
    a_timeout_of_parallel_is_kept_and_leaves_nothing_behind/1,
    timeouts_are_kept_while_interpreters_start/1,
    a_caller_that_dies_takes_its_calls_with_it/1,
    an_interpreter_stuck_in_c_is_passed_over/1,
    bad_calls_are_refused/1,
    calls_run_for_the_caller/1,
    the_caller_is_told_of_an_error/1,
    an_option_that_says_nothing_here_is_refused/1,
    map_keeps_the_order_and_tells_its_progress/1,
    a_map_over_nothing_is_nothing/1,
    sub_interpreters_have_names_and_modules_of_their_own/1,
    a_sub_interpreter_calls_erlang_and_prints/1,
    a_call_in_a_sub_interpreter_is_interrupted_on_timeout/1,
    a_reference_of_another_interpreter_is_refused/1,
    an_object_that_a_waiting_call_names_stays/1,
    an_object_is_used_in_the_interpreter_that_has_it/1,
    an_object_is_used_by_a_function_that_its_interpreter_waits_for/1,
    a_module_that_refuses_sub_interpreters_says_what_to_do/1,
    a_call_that_waits_falls_back_to_the_main_interpreter/1,
    a_call_that_nobody_waits_for_does_not_fall_back/1,
    a_killed_interpreter_of_the_pool_is_replaced/1,
    a_stopped_sub_interpreter_is_ended_and_counted/1,
    large_binaries_and_exceptions_cross/1,
    erlang_and_python_agree_on_the_mode/1,
    a_module_that_brings_the_gil_back_changes_the_mode/1,
    threads_without_a_gil_work_on_the_same_objects/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% Runs the test where there are sub-interpreters.
with_context(Test) ->
    case py_context:new(#{mode => subinterp}) of
        {ok, Ctx} ->
            try
                Test(Ctx)
            after
                py_context:stop(Ctx)
            end;
        {error, not_supported} ->
            ?assertNotEqual(subinterp, py:execution_mode()),
            {skip, "this Python has no own-GIL sub-interpreters"}
    end.

parallel_gives_values_in_the_order_of_the_calls(_Config) ->
    Numbers = lists:seq(1, 10),
    Calls = [{py_parallel_jobs, ident, [N]} || N <- Numbers],
    ?assertEqual({ok, Numbers}, py:parallel(Calls)),
    ?assertEqual({ok, []}, py:parallel([])).

%% Two calls that wait for each other: one after the other they would wait for ever.
calls_run_at_the_same_time(_Config) ->
    Place = spawn_link(fun() -> meeting(#{}) end),
    ok = py:register_function(parallel_meet, fun([Name]) ->
        Place ! {here, Name, self()},
        receive {met, Name} -> true after 20_000 -> false end
    end),
    Call = {py_parallel_jobs, meet, [<<"parallel">>]},
    ?assertEqual({ok, [true, true]}, py:parallel([Call, Call], 60_000)),
    Opts = #{chunk => 1, timeout => 60_000},
    ?assertEqual({ok, [true, true]}, py:map({py_parallel_jobs, meet}, [<<"map">>, <<"map">>], Opts)).

%% Tells the first who comes, and the second one, that both are here.
meeting(First) ->
    receive
        {here, Name, Pid} when is_map_key(Name, First) ->
            [Each ! {met, Name} || Each <- [Pid, maps:get(Name, First)]],
            meeting(maps:remove(Name, First));
        {here, Name, Pid} ->
            meeting(First#{Name => Pid})
    end.

more_calls_than_workers_are_queued(_Config) ->
    Calls = [{py_parallel_jobs, slow_ident, [], #{x => N}} || N <- lists:seq(1, 40)],
    ?assertEqual({ok, lists:seq(1, 40)}, py:parallel(Calls)).

the_first_error_ends_the_rest(_Config) ->
    Calls = [{math, sqrt, [-1]} | lists:duplicate(20, {py_parallel_jobs, spin, []})],
    {Ms, Result} = py_test:milliseconds(fun() -> py:parallel(Calls) end),
    ?assertReason({'ValueError', _}, Result),
    ?assert(Ms < 10000),
    %% The interpreters are free again.
    ?assertEqual({ok, [1, 2]}, py:parallel([{py_parallel_jobs, ident, [N]} || N <- [1, 2]])).

a_timeout_of_parallel_is_kept_and_leaves_nothing_behind(_Config) ->
    %% The interpreters are there.
    ?assertEqual({ok, [1]}, py:parallel([{py_parallel_jobs, ident, [1]}])),
    Calls = lists:duplicate(8, {py_parallel_jobs, spin, []}),
    Times = [
        begin
            {Ms, Result} = py_test:milliseconds(fun() -> py:parallel(Calls, 200) end),
            ?assertEqual({error, timeout}, Result),
            ok = py_test:nothing_waits(),
            Ms
        end
     || _ <- lists:seq(1, 5)
    ],
    %% They spin for ever, so an end is that of the timeout; one that does not stop costs 5 s more. What else it
    %% takes longer is the doing of the machine, and not each time.
    ?assert(lists:min(Times) >= 200, Times),
    ?assert(lists:min(Times) < 3000, Times),
    ?assertEqual({ok, [1]}, py:parallel([{py_parallel_jobs, ident, [1]}])).

%% In a node that has made none yet; a thread keeps the GIL of the main interpreter, which a new one needs.
timeouts_are_kept_while_interpreters_start(Config) ->
    case py:execution_mode() of
        free_threaded -> {skip, "there is no GIL to hold"};
        _ -> timeouts_of_first_uses(Config)
    end.

timeouts_of_first_uses(Config) ->
    Peer = py_test:peer([]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ok = peer:call(Peer, py_test, export_python, [proplists:get_value(data_dir, Config)]),
    {Late, Then} = peer:call(Peer, erlang, apply, [fun first_uses/0, []], 60_000),
    [?assertEqual({error, timeout}, Answer, Use) || {Use, Answer} <- Late],
    ?assertEqual({ok, [2.0, 3.0]}, Then),
    ok = py_test:stop_peer(Peer).

first_uses() ->
    Uses = [
        {parallel, fun() -> py:parallel([{math, sqrt, [4]}]) end},
        {parallel_200, fun() -> py:parallel([{math, sqrt, [4]}], 200) end},
        {map, fun() -> py:map({math, sqrt}, [4, 9], #{timeout => 50}) end},
        {memory_stats, fun py:memory_stats/0},
        {venv_info, fun py:venv_info/0}
    ],
    Contexts = [
        {new, fun() -> py_context:new(#{mode => subinterp}) end},
        {new_50, fun() -> py_context:new(#{mode => subinterp, timeout => 50}) end}
    ],
    #{num_subinterp_workers := Size} = persistent_term:get(py_config),
    {All, Stay} = case py:execution_mode() of subinterp -> {Uses ++ Contexts, Size}; _ -> {Uses, 0} end,
    %% Fails if the GIL is released before all have answered.
    Late = py_test:holding_gil(fun() -> with_call_timeout(100, fun() -> [{Use, Ask()} || {Use, Ask} <- All] end) end),
    Then = py:parallel([{math, sqrt, [4]}, {math, sqrt, [9]}], 60_000),
    %% Those that came too late for who had asked for them are gone again.
    ok = py_test:eventually(fun() -> length(supervisor:which_children(py_context_sup)) =:= Stay end),
    py_test:nothing_waits(),
    {Late, Then}.

%% The setting `call_timeout', for a moment.
with_call_timeout(Timeout, Fun) ->
    Normal = py_call:default_timeout(),
    ok = persistent_term:put(py_call_timeout, Timeout),
    try Fun() after persistent_term:put(py_call_timeout, Normal) end.

a_caller_that_dies_takes_its_calls_with_it(_Config) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        py:parallel(lists:duplicate(8, {py_parallel_jobs, spin_and_tell, [Self]}), infinity)
    end),
    ok = py_test:message(<<"begun">>),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, killed} -> ok end,
    %% Those that had begun are stopped, and those that waited never begin.
    ok = py_test:message(<<"stopped">>),
    ok = py_test:eventually(fun() -> received(<<"begun">>) =:= received(<<"stopped">>) end),
    ?assert(received(<<"begun">>) < 7),
    ?assertEqual({ok, [1, 2]}, py:parallel([{py_parallel_jobs, ident, [N]} || N <- [1, 2]])).

received(Message) ->
    {messages, All} = process_info(self(), messages),
    length([Each || Each <- All, Each =:= Message]).

an_interpreter_stuck_in_c_is_passed_over(_Config) ->
    ?assertEqual({error, timeout}, py:parallel([{time, sleep, [30]}], 50)),
    Calls = [{py_parallel_jobs, ident, [N]} || N <- lists:seq(1, 8)],
    {Ms, Result} = py_test:milliseconds(fun() -> py:parallel(Calls) end),
    ?assertEqual({ok, lists:seq(1, 8)}, Result),
    ?assert(Ms < 3000),
    %% All of them stuck: the calls wait until the interpreters are replaced, and then run.
    ?assertEqual({error, timeout}, py:parallel(lists:duplicate(16, {time, sleep, [30]}), 50)),
    ?assertEqual({ok, lists:seq(1, 8)}, py:parallel(Calls)).

bad_calls_are_refused(_Config) ->
    ?assertReason({bad_argument, calls}, py:parallel([{math}])),
    ?assertReason({bad_argument, calls}, py:parallel(nothing)),
    ?assertReason({bad_argument, args}, py:parallel([{math, sqrt, [1 | 2]}])),
    ?assertReason({bad_argument, <<"the option chunk must be a positive integer, got 0">>}, py:map({math, sqrt}, [1], #{chunk => 0})),
    ?assertReason({bad_argument, <<"the option progress must be a pid, got me">>}, py:map({math, sqrt}, [1], #{progress => me})),
    ?assertReason({bad_argument, list}, py:map({math, sqrt}, no_list, #{})),
    ?assertReason({bad_argument, list}, py:map({math, sqrt}, [1 | 2], #{})),
    ?assertReason({bad_argument, function}, py:map(math, [1], #{})),
    ?assertReason({bad_argument, opts}, py:map({math, sqrt}, [1], -1)).

calls_run_for_the_caller(_Config) ->
    ?assertEqual({ok, [self()]}, py:parallel([{erlang, self, []}])),
    ?assertEqual({ok, [none, none]}, py:parallel([{py_parallel_jobs, tell, [N]} || N <- [1, 2]])),
    ?assertEqual({ok, [none]}, py:map({py_parallel_jobs, tell}, [3], #{})),
    [ok = py_test:message(N) || N <- [1, 2, 3]],
    ok = py_test:nothing_waits().

the_caller_is_told_of_an_error(_Config) ->
    Calls = [{math, sqrt, [-1]} | lists:duplicate(20, {py_parallel_jobs, spin, []})],
    py_test:in_process(fun() ->
        undefined = py:last_error(),
        {error, {'ValueError', _}} = py:parallel(Calls),
        ?assertMatch(#{type := 'ValueError', formatted := <<"ValueError", _/binary>>}, py:last_error()),
        %% Those that were stopped say nothing.
        {ok, _} = py:parallel([{py_parallel_jobs, ident, [N]} || N <- lists:seq(1, 20)]),
        ?assertMatch(#{type := 'ValueError'}, py:last_error())
    end),
    {error, {'ValueError', _, Story}} = py:parallel(Calls, #{traceback => true}),
    ?assertMatch(#{traceback := [], formatted := <<"ValueError", _/binary>>}, Story).

an_option_that_says_nothing_here_is_refused(_Config) ->
    Calls = [{math, sqrt, [1]}],
    [
        begin
            refused(Key, py:parallel(Calls, #{Key => Value})),
            refused(Key, py:map({math, sqrt}, [1], #{Key => Value}))
        end
     || {Key, Value} <- [{context, main}, {window, 1}, {cancel, true}, {tiemout, 5}]
    ],
    refused(return, py:map({math, sqrt}, [1], #{return => ref})).

refused(Option, Answer) ->
    {bad_argument, Text} = py_test:reason(Answer),
    ?assertNotEqual(nomatch, string:prefix(Text, io_lib:format("the option ~ts means nothing here", [Option]))).

map_keeps_the_order_and_tells_its_progress(_Config) ->
    Items = lists:seq(1, 100),
    Opts = #{chunk => 7, progress => self()},
    ?assertEqual({ok, Items}, py:map({py_parallel_jobs, ident}, Items, Opts)),
    Told = told(),
    ?assertEqual(15, length(Told)),
    ?assertEqual({100, 100}, lists:last(Told)),
    ?assertEqual(Told, lists:sort(Told)),
    ?assertEqual({ok, [1.0, 2.0]}, py:map(math, "sqrt", [1, 4], #{})),
    ?assertEqual({ok, [1.0, 2.0]}, py:map({math, sqrt}, [1, 4], 20_000)),
    ?assertReason(timeout, py:map({time, sleep}, [60], 10)),
    ?assertReason({'ValueError', _}, py:map({math, sqrt}, [1, -1], #{})).

told() ->
    receive
        {py_progress, Done, Total} -> [{Done, Total} | told()]
    after 0 -> []
    end.

a_map_over_nothing_is_nothing(_Config) ->
    ?assertEqual({ok, []}, py:map({math, sqrt}, [])).

sub_interpreters_have_names_and_modules_of_their_own(_Config) ->
    with_context(fun(A) ->
        with_context(fun(B) ->
            ok = py:exec(A, <<"import json\njson.mark = 1\nx = 'a'">>),
            ?assertEqual({ok, <<"a">>}, py:eval(A, <<"x">>)),
            ?assertReason({'NameError', _}, py:eval(B, <<"x">>)),
            ?assertEqual({ok, false}, py:eval(B, <<"hasattr(__import__('json'), 'mark')">>)),
            ?assertEqual({ok, false}, py:eval(<<"hasattr(__import__('json'), 'mark')">>))
        end)
    end).

a_sub_interpreter_calls_erlang_and_prints(_Config) ->
    ok = py:register_function(sub_add, fun([X, Y]) -> X + Y end),
    with_context(fun(Ctx) ->
        Self = self(),
        ok = py:exec(Ctx, <<"import erlang">>),
        ?assertEqual({ok, 3}, py:eval(Ctx, <<"erlang.sub_add(1, 2)">>)),
        ?assertEqual({ok, Self}, py:eval(Ctx, <<"erlang.self()">>)),
        ok = py:exec(Ctx, <<"erlang.send(erlang.self(), ('hello', erlang.Atom('ok')))">>),
        ok = py_test:message({<<"hello">>, ok}),
        %% Nested: Erlang, sub-interpreter, Erlang, the same sub-interpreter.
        ok = py:register_function(sub_again, fun([]) -> py:eval(Ctx, <<"40 + 2">>) end),
        ?assertEqual({ok, {<<"ok">>, 42}}, py:eval(Ctx, <<"erlang.sub_again()">>))
    end).

a_call_in_a_sub_interpreter_is_interrupted_on_timeout(_Config) ->
    with_context(fun(Ctx) ->
        ?assertEqual({error, timeout}, py:call(Ctx, py_parallel_jobs, spin, [], #{}, 100)),
        ?assertEqual({ok, 1}, py:call(Ctx, py_parallel_jobs, ident, [1]))
    end).

a_reference_of_another_interpreter_is_refused(_Config) ->
    with_context(fun(Ctx) ->
        {ok, Ref} = py:call(Ctx, builtins, object, [], #{}, #{return => ref}),
        ?assertMatch({ok, <<"<object", _/binary>>}, py:call(Ctx, builtins, repr, [Ref])),
        ?assertReason({bad_argument, _}, py:call(builtins, repr, [Ref]))
    end).

%% The arguments are the last that have the object, and its call waits for a worker.
an_object_that_a_waiting_call_names_stays(_Config) ->
    Test = self(),
    ok = py:register_function(hold_on, fun([]) ->
        Test ! {holds, self()},
        receive
            go_on -> none
        end
    end),
    {ok, Workers} = py_subinterp_pool:workers(self()),
    {ok, Before} = py:call(py_parallel_picky, alive, []),
    {Caller, Monitor} = spawn_monitor(fun() -> exit(hold_and_use(length(Workers))) end),
    Holding = [
        receive
            {holds, Pid} -> Pid;
            {'DOWN', Monitor, process, Caller, TooEarly} -> error(TooEarly)
        end
     || _ <- Workers
    ],
    true = garbage_collect(Caller),
    %% Releases are applied after later calls.
    [{ok, _} = py:call(py_parallel_picky, alive, []) || _ <- lists:seq(1, 20)],
    ?assertEqual({ok, Before + 1}, py:call(py_parallel_picky, alive, [])),
    [Pid ! go_on || Pid <- Holding],
    receive
        {'DOWN', Monitor, process, Caller, {ok, Owner}} -> ?assertEqual(<<"ann">>, Owner);
        %% Another interpreter has no use for it.
        {'DOWN', Monitor, process, Caller, Refused} ->
            ?assertNot(lists:member(default, Workers)),
            ?assertReason({bad_argument, _}, Refused)
    end,
    ok = py_test:eventually(fun() -> py:call(py_parallel_picky, alive, []) =:= {ok, Before} end),
    ok = py:unregister_function(hold_on).

hold_and_use(Workers) ->
    Held = [{py_parallel_jobs, hold_on, []} || _ <- lists:seq(1, Workers)],
    case py:parallel(Held ++ [{py_parallel_picky, owner, [made()]}], #{fallback => main}) of
        {ok, Values} -> {ok, lists:last(Values)};
        {error, _} = Error -> Error
    end.

made() ->
    {ok, Object} = py:call(py_parallel_picky, 'Owned', [ann], #{}, #{return => ref}),
    Object.

an_object_is_used_in_the_interpreter_that_has_it(_Config) ->
    with_context(fun(Ctx) ->
        {ok, Deque} = py:call(Ctx, collections, deque, [[1]], #{}, #{return => ref}),
        {ok, Other} = py_context:new(#{mode => subinterp}),
        ?assertEqual({ok, none}, py:call_method(Deque, append, [2])),
        %% By any process, also one that is bound.
        py_test:in_process(fun() ->
            ok = py:bind(),
            ?assertEqual({ok, none}, py:call_method(Deque, append, [3]))
        end),
        ?assertEqual({ok, none}, py:getattr(Deque, maxlen)),
        {ok, List} = py:call(Ctx, builtins, list, [Deque], #{}, #{return => ref}),
        ?assertEqual({ok, [1, 2, 3]}, py:to_term(List)),
        ?assertReason({'AttributeError', _}, py:getattr(Deque, nothing)),
        ?assertMatch(#{type := 'AttributeError'}, py:last_error()),
        {ok, [Parallel]} = py:parallel([{collections, deque, [[4]]}], #{return => ref}),
        ?assertEqual({ok, 4}, py:call_method(Parallel, pop, [])),
        %% After its interpreter nobody has it.
        {ok, Last} = py:call(Other, builtins, object, [], #{}, #{return => ref}),
        ok = py_context:stop(Other),
        ?assertReason({context_died, noproc}, py:getattr(Last, x)),
        ?assertReason({bad_argument, _}, py:call_method(Deque, append, [1 | 2]))
    end).

an_object_is_used_by_a_function_that_its_interpreter_waits_for(_Config) ->
    with_context(fun(Ctx) ->
        {ok, Deque} = py:call(Ctx, collections, deque, [[1]], #{}, #{return => ref}),
        ok = py:register_function(pop_it, fun([]) -> py:call_method(Deque, pop, []) end),
        ?assertEqual({ok, {<<"ok">>, 1}}, py:call(Ctx, erlang, call, [pop_it]))
    end).

a_module_that_refuses_sub_interpreters_says_what_to_do(_Config) ->
    py_test:with_numpy(fun() ->
        with_context(fun(Ctx) ->
            Call = fun(Opts) -> py:call(Ctx, numpy, sum, [[1, 2]], #{}, Opts) end,
            {'ImportError', Text} = py_test:reason(Call(#{})),
            ?assertMatch({match, _}, re:run(Text, "fallback => main")),
            ?assertEqual({ok, 3}, Call(#{fallback => main})),
            ?assertEqual(
                {ok, [3, 7]},
                py:parallel([{numpy, sum, [L]} || L <- [[1, 2], [3, 4]]], #{fallback => main})
            )
        end)
    end).

a_call_that_waits_falls_back_to_the_main_interpreter(_Config) ->
    with_context(fun(Ctx) ->
        [
            begin
                Here = Opts#{context => Ctx, fallback => main},
                ?assertEqual({ok, 1}, py:call(py_parallel_picky, ident, [1], #{}, Here)),
                Source = "__import__('py_parallel_picky').ident(2)",
                ?assertEqual({ok, 2}, py:eval(Source, #{}, Here)),
                ?assertEqual({ok, [0, 1]}, py:stream(py_parallel_picky, items, [2], #{}, Here)),
                ?assertEqual({ok, [0, 1]}, py:async_stream(py_parallel_picky, items, [2], #{}, Here)),
                Calls = [{py_parallel_picky, ident, [N]} || N <- [3, 4]],
                ?assertEqual({ok, [3, 4]}, py:parallel(Calls, Opts#{fallback => main})),
                refuses(fun() -> short(py:call(Ctx, py_parallel_picky, ident, [1], #{}, Opts)) end)
            end
         || Opts <- [#{}, #{traceback => true}]
        ]
    end).

%% Where there is no GIL there is nothing to refuse.
refuses(Import) ->
    case py:execution_mode() of
        free_threaded -> ok;
        _ -> ?assertReason({'ImportError', _}, Import())
    end.

short({error, {Type, Text, #{traceback := _}}}) -> {error, {Type, Text}};
short(Result) -> Result.

a_call_that_nobody_waits_for_does_not_fall_back(_Config) ->
    with_context(fun(Ctx) ->
        Opts = #{context => Ctx, fallback => main},
        refused(fallback, py:await(py:spawn_call(math, sqrt, [4], #{}, Opts))),
        refused(fallback, py:await(py:async_call(math, sqrt, [4], #{}, Opts))),
        refused(fallback, py:async_gather([{math, sqrt, [4]}], Opts)),
        refused(fallback, py:stream_start(builtins, range, [4], #{}, Opts)),
        %% Without a context it would do nothing.
        refused(fallback, py:await(py:spawn_call(math, sqrt, [4], #{}, #{fallback => main})))
    end).

a_killed_interpreter_of_the_pool_is_replaced(_Config) ->
    {ok, _} = py:parallel([{math, sqrt, [1]}]),
    case py:execution_mode() of
        subinterp ->
            Contexts = [Pid || {Pid, _} <- py_registry:pools(), is_pid(Pid)],
            ?assertNotEqual([], Contexts),
            _ = [ok = py_test:down(Pid) || Pid <- Contexts],
            ?assertEqual({ok, [2.0]}, py:parallel([{math, sqrt, [4]}]));
        _ ->
            {skip, "this Python has no own-GIL sub-interpreters"}
    end.

a_stopped_sub_interpreter_is_ended_and_counted(_Config) ->
    with_context(fun(_Ctx) -> ok end),
    case py:stats() of
        #{subinterpreters := #{made := 0}} ->
            {skip, "this Python has no own-GIL sub-interpreters"};
        _ ->
            #{subinterpreters := #{ended := Before}} = py:stats(),
            {ok, Ctx} = py_context:new(#{mode => subinterp}),
            ok = py_context:stop(Ctx),
            ok = py_test:eventually(fun() ->
                #{subinterpreters := #{ended := Ended}} = py:stats(),
                Ended > Before
            end),
            ?assertReason({context_died, _}, py:call(Ctx, math, sqrt, [4]))
    end.

erlang_and_python_agree_on_the_mode(_Config) ->
    {ok, Mode} = py:eval("__import__('erlang').detect_mode().value"),
    #{free_threaded := Free} = py_runtime:python(),
    ?assertEqual(Free, py:execution_mode() =:= free_threaded),
    ?assertEqual(Free, Mode =:= <<"free_threaded">>),
    with_context(fun(Ctx) ->
        {ok, Inside} = py:eval(Ctx, "__import__('erlang').detect_mode().value"),
        Own = case Free of true -> <<"free_threaded">>; false -> <<"subinterp">> end,
        ?assertEqual(Own, Inside)
    end).

a_module_that_brings_the_gil_back_changes_the_mode(Config) ->
    case py:execution_mode() of
        free_threaded -> gil_comes_back(proplists:get_value(data_dir, Config));
        _ -> {skip, "this Python has a GIL all the time"}
    end.

%% In a node of its own: it does not go again.
gil_comes_back(DataDir) ->
    Peer = py_test:peer([]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    free_threaded = peer:call(Peer, py, execution_mode, []),
    ok = peer:call(Peer, py_test, export_python, [DataDir]),
    {ok, true} = peer:call(Peer, py, call, [py_parallel_jobs, import_what_needs_the_gil, []]),
    ok = py_test:eventually(fun() -> peer:call(Peer, py, execution_mode, []) =:= multi_executor end),
    {ok, [2.0, 3.0]} = peer:call(Peer, py, parallel, [[{math, sqrt, [4]}, {math, sqrt, [9]}]]),
    ok = py_test:stop_peer(Peer).

%% Conversion reads lists and dicts that other threads change: an answer or an error, never worse.
threads_without_a_gil_work_on_the_same_objects(_Config) ->
    Jobs = [{py_parallel_jobs, Job, [N]} || N <- lists:seq(1, 40), Job <- [change, read]],
    {ok, Answers} = py:parallel(Jobs, 60_000),
    [?assert(is_integer(A) orelse (is_list(A) andalso length(A) =< 400) orelse is_map(A)) || A <- Answers].

large_binaries_and_exceptions_cross(_Config) ->
    Bytes = binary:copy(<<255, 0>>, 500000),
    ?assertEqual({ok, [Bytes]}, py:parallel([{py_parallel_jobs, ident, [{bytes, Bytes}]}])),
    ?assertEqual({ok, [1000000]}, py:parallel([{builtins, len, [{view, Bytes}]}])),
    with_context(fun(Ctx) ->
        ?assertReason({'ZeroDivisionError', _}, py:eval(Ctx, <<"1/0">>)),
        #{type := 'ZeroDivisionError', formatted := Text} = py:last_error(),
        ?assertMatch({match, _}, re:run(Text, "ZeroDivisionError"))
    end).
