%% Correlation: who has called, for which trace, with which metadata, from Erlang into Python and back.
-module(py_about_SUITE).

-include("py_test.hrl").

-export([init_per_testcase/2]).
-export([
    the_options_of_a_call_are_told/1,
    the_metadata_of_the_caller_is_told/1,
    a_process_without_metadata_tells_nothing/1,
    every_call_of_a_gather_is_told/1,
    tasks_and_threads_inherit_it/1,
    a_callback_has_the_metadata_of_the_caller/1,
    a_trace_goes_through_all_levels/1,
    the_next_callback_knows_nothing_of_it/1,
    what_python_can_not_take_is_told_in_words/1,
    log_records_carry_it/1,
    waiters_are_counted/1,
    a_coroutine_that_was_cancelled_waits_no_more/1
]).
-export([log/2]).

-define(PARENT, <<"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01">>).

-include("py_drivers.hrl").

init_per_testcase(_Case, Config) ->
    ok = py:register_function(metadata, fun([]) -> maps:with([request, trace_id], metadata()) end),
    py_test:start(Config).

metadata() ->
    case logger:get_process_metadata() of
        undefined -> #{};
        Metadata -> Metadata
    end.

%% Runs the fun in a process with this metadata.
with(Metadata, Fun) ->
    py_test:in_process(fun() ->
        ok = logger:set_process_metadata(Metadata),
        Fun()
    end).

%% Every way to call a function that tells what it knows, and what it knew.
everyway(Opts) ->
    {ok, Stream} = py:stream_start(py_abouts, items, [], #{}, Opts),
    [
        py:call(py_abouts, now, [], #{}, Opts),
        py:eval(<<"__import__('py_abouts').now()">>, #{}, Opts),
        py:await(py:spawn_call(py_abouts, now, [], #{}, Opts)),
        py:await(py:async_call(py_abouts, now, [], #{}, Opts)),
        py:await(py:async_call(py_abouts, soon, [], #{}, Opts)),
        only(py:parallel([{py_abouts, now, []}], Opts)),
        only(py:map({py_abouts, now_for}, [1], Opts)),
        receive
            {py_stream, Stream, {data, Known}} -> {ok, Known}
        end
    ].

only({ok, [Known]}) -> {ok, Known};
only(Other) -> Other.

the_options_of_a_call_are_told(_Config) ->
    py_test:in_process(fun() ->
        Self = self(),
        ?assertEqual(
            [{ok, [Self, 7, Self, #{}, none]}], lists:usort(everyway(#{trace_id => 7}))
        ),
        ?assertEqual(
            [{ok, [Self, ?PARENT, Self, #{}, ?PARENT]}], lists:usort(everyway(#{trace_id => ?PARENT}))
        ),
        ?assertEqual([{ok, [Self, none, Self, #{}, none]}], lists:usort(everyway(#{reply_to => Self})))
    end).

the_metadata_of_the_caller_is_told(_Config) ->
    with(#{request => <<"r1">>, traceparent => ?PARENT}, fun() ->
        Known = #{<<"request">> => <<"r1">>, <<"traceparent">> => ?PARENT},
        Expected = fun(TraceId) -> [{ok, [self(), TraceId, self(), Known, ?PARENT]}] end,
        ?assertEqual(Expected(none), lists:usort(everyway(#{}))),
        ?assertEqual(Expected(none), lists:usort(everyway(#{timeout => 10_000}))),
        ?assertEqual(Expected(8), lists:usort(everyway(#{trace_id => 8}))),
        ?assertEqual(Expected(none), [py:call(py_abouts, now, [], #{}, 10_000)]),
        ?assertEqual(Expected(none), [py:await(py:async_call(py_abouts, soon, []))])
    end).

a_process_without_metadata_tells_nothing(_Config) ->
    py_test:in_process(fun() ->
        Nothing = [{ok, [self(), none, self(), #{}, none]}],
        ?assertEqual(Nothing, lists:usort(everyway(#{}))),
        %% Nor is what an earlier call has said.
        _ = everyway(#{trace_id => 7}),
        ?assertEqual(Nothing, lists:usort(everyway(#{})))
    end).

every_call_of_a_gather_is_told(_Config) ->
    Calls = [{py_abouts, F, []} || F <- [now, soon, now]],
    {ok, Known} = py:async_gather(Calls, #{trace_id => 9}),
    ?assertEqual([[self(), 9, self(), #{}, none]], lists:usort(Known)).

tasks_and_threads_inherit_it(_Config) ->
    with(#{request => 1}, fun() ->
        Known = [self(), 5, self(), #{<<"request">> => 1}, none],
        Ref = py:async_call(py_abouts, everywhere, [], #{}, #{trace_id => 5}),
        ?assertEqual({ok, [Known, Known, Known]}, py:await(Ref)),
        ?assertEqual({ok, Known}, py:call(py_abouts, in_a_thread, [], #{}, #{trace_id => 5}))
    end).

a_callback_has_the_metadata_of_the_caller(_Config) ->
    with(#{request => <<"r2">>, more => 1}, fun() ->
        Expected = {ok, #{<<"request">> => <<"r2">>}},
        ?assertEqual(Expected, py:call(py_abouts, call, [metadata])),
        ?assertEqual(Expected, py:await(py:async_call(py_abouts, await_call, [metadata]))),
        Traced = py:call(py_abouts, call, [metadata], #{}, #{trace_id => 3}),
        ?assertEqual({ok, #{<<"request">> => <<"r2">>, <<"trace_id">> => 3}}, Traced)
    end).

a_trace_goes_through_all_levels(_Config) ->
    %% Erlang → Python → Erlang → Python: the innermost knows the trace of the outermost.
    ok = py:register_function(inner, fun([]) ->
        {ok, [_, TraceId | _]} = py:call(py_abouts, now, []),
        TraceId
    end),
    ?assertEqual({ok, 4}, py:call(py_abouts, call, [inner], #{}, #{trace_id => 4})),
    Ref = py:async_call(py_abouts, await_call, [inner], #{}, #{trace_id => 4}),
    ?assertEqual({ok, 4}, py:await(Ref)).

the_next_callback_knows_nothing_of_it(_Config) ->
    [
        begin
            {ok, #{<<"trace_id">> := 6}} = py:call(py_abouts, call, [metadata], #{}, #{trace_id => 6}),
            ?assertEqual({ok, #{}}, py:call(py_abouts, call, [metadata]))
        end
     || _ <- lists:seq(1, 20)
    ],
    ok.

what_python_can_not_take_is_told_in_words(_Config) ->
    with(#{request => [1 | 2], other => <<1:3>>}, fun() ->
        {ok, [_, TraceId, _, Known, none]} = py:call(py_abouts, now, [], #{}, #{trace_id => [a | b]}),
        ?assertEqual(<<"[a|b]">>, TraceId),
        ?assertEqual(#{<<"request">> => <<"[1|2]">>, <<"other">> => <<"<<1:3>>">>}, Known)
    end).

log_records_carry_it(_Config) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        with(#{request => <<"r3">>}, fun() ->
            {ok, none} = py:call(py_abouts, log, [<<"plain">>], #{}, #{trace_id => 1}),
            {ok, none} = py:await(py:async_call(py_abouts, log_soon, [<<"task">>], #{}, #{trace_id => 2}))
        end),
        {ok, none} = py:call(py_abouts, log, [<<"bare">>]),
        ?assertMatch(#{request := <<"r3">>, trace_id := 1, domain := [python]}, logged()),
        ?assertMatch(#{request := <<"r3">>, trace_id := 2, domain := [python]}, logged()),
        ?assertEqual(#{}, maps:with([request, trace_id], logged()))
    after
        ok = logger:remove_handler(?MODULE)
    end.

log(#{meta := #{logger_name := <<"about">>} = Meta}, #{config := #{to := Pid}}) -> Pid ! {logged, Meta};
log(_Event, _Config) -> ok.

logged() ->
    {logged, Meta} = py_test:message(),
    Meta.

waiters_are_counted(_Config) ->
    Self = self(),
    ok = py:register_function(hold, fun([]) ->
        Self ! {held, self()},
        receive
            go_on -> held
        end
    end),
    Before = waiters(),
    Thread = py:spawn_call(py_abouts, call, [hold]),
    Task = py:async_call(py_abouts, await_call, [hold]),
    Held = [element(2, py_test:message()) || _ <- [1, 2]],
    ok = py_test:eventually(fun() ->
        waiters() =:= maps:map(fun(_, N) -> N + 1 end, Before)
    end),
    [Pid ! go_on || Pid <- Held],
    ?assertEqual([{ok, <<"held">>}, {ok, <<"held">>}], [py:await(Thread), py:await(Task)]),
    ok = py_test:eventually(fun() -> waiters() =:= Before end).

a_coroutine_that_was_cancelled_waits_no_more(_Config) ->
    Self = self(),
    ok = py:register_function(hold, fun([]) ->
        Self ! {held, self()},
        receive
            go_on -> held
        end
    end),
    #{coroutines := Before} = waiters(),
    Waiting = fun(Count) ->
        py_test:eventually(fun() -> maps:get(coroutines, waiters()) =:= Before + Count end)
    end,
    Task = py:async_call(py_abouts, await_call, [hold]),
    {held, Cancelled} = py_test:message(),
    ok = Waiting(1),
    ok = py:cancel(Task),
    %% The function goes on; nobody waits for it.
    ok = Waiting(0),
    %% In the coroutine itself.
    ok = py:register_function(begun, fun([]) ->
        Self ! {asks, self()},
        receive
            begun -> true
        end
    end),
    GivesUp = py:async_call(py_abouts, gives_up, [hold]),
    [{asks, Asks}, {held, GivenUp}] = lists:sort([py_test:message() || _ <- [1, 2]]),
    Asks ! begun,
    ?assertEqual({ok, true}, py:await(GivesUp)),
    ok = Waiting(0),
    %% Late answers do no harm: the processes that gave them run the next functions.
    [Pid ! go_on || Pid <- [Cancelled, GivenUp]],
    Next = [py:async_call(py_abouts, await_call, [hold]) || _ <- [1, 2, 3]],
    [Pid ! go_on || {held, Pid} <- [py_test:message() || _ <- Next]],
    ?assertEqual([{ok, <<"held">>} || _ <- Next], [py:await(Each) || Each <- Next]),
    ok = Waiting(0).

waiters() ->
    #{waiters := #{threads := _, coroutines := _, tasks := _} = Waiters} = py:stats(),
    Waiters.
