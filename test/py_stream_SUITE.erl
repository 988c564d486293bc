%% Streams: collected or message by message, within a window, cancelled, failing.
-module(py_stream_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    whatever_can_be_iterated_is_collected/1,
    a_hundred_thousand_items_are_collected_in_order/1,
    a_failure_in_the_middle_fails_the_collection/1,
    items_come_as_messages_then_done/1,
    a_failure_comes_after_the_items_before_it/1,
    a_refused_stream_says_why/1,
    no_more_than_the_window_is_sent_before_an_acknowledgement/1,
    acknowledging_goes_on_to_the_end/1,
    a_cancelled_stream_sends_nothing_and_closes_its_generator/1,
    a_cancelled_stream_that_waits_for_its_reader_closes_its_generator/1,
    a_stream_whose_reader_died_closes_its_generator/1,
    a_generator_that_hangs_is_interrupted/1,
    wide_maps_come_in_order_with_the_rest/1,
    messages_go_where_reply_to_says/1,
    a_stream_runs_in_its_context/1,
    a_collection_that_timed_out_closes_its_generator/1,
    streams_share_their_workers/1,
    an_interrupted_stream_tells_its_reader/1,
    streams_of_one_thread_take_turns/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

end_per_testcase(_Case, _Config) ->
    {ok, _} = py:call(py_streams, taken, []),
    ok.

whatever_can_be_iterated_is_collected(_Config) ->
    ?assertEqual({ok, [0, 1, 2]}, py:stream(py_streams, count, [3])),
    ?assertEqual({ok, [0, 1]}, py:stream(builtins, range, [2])),
    ?assertEqual({ok, []}, py:stream(builtins, list, [])),
    ?assertEqual({ok, [<<"a">>, <<"b">>]}, py:stream_eval(<<"'ab'">>)),
    ?assertEqual({ok, [2, 4]}, py:stream_eval(<<"(k * x for x in xs)">>, #{xs => [1, 2], k => 2})),
    ?assertReason({'TypeError', _}, py:stream(builtins, int, [])).

a_hundred_thousand_items_are_collected_in_order(_Config) ->
    ?assertEqual({ok, lists:seq(0, 99_999)}, py:stream(builtins, range, [100_000])).

a_failure_in_the_middle_fails_the_collection(_Config) ->
    ?assertReason({'ValueError', <<"enough">>}, py:stream(py_streams, fails_after, [5])),
    ?assertReason({not_convertible, _}, py:stream(py_streams, unconvertible, [])).

items_come_as_messages_then_done(_Config) ->
    {ok, Ref} = py:stream_start(py_streams, count, [1000]),
    ?assertEqual(lists:seq(0, 999), items(Ref)).

%% All items of a stream that ends well.
items(Ref) ->
    receive
        {py_stream, Ref, {data, Item}} -> [Item | items(Ref)];
        {py_stream, Ref, done} -> [];
        {py_stream, Ref, {error, Reason}} -> error(Reason)
    after 10_000 -> error(silence)
    end.

a_failure_comes_after_the_items_before_it(_Config) ->
    {ok, Ref} = py:stream_start(py_streams, fails_after, [2]),
    ?assertEqual({py_stream, Ref, {data, 0}}, py_test:message()),
    ?assertEqual({py_stream, Ref, {data, 1}}, py_test:message()),
    {py_stream, Ref, Error} = py_test:message(),
    ?assertReason({'ValueError', <<"enough">>}, Error),
    {ok, Other} = py:stream_start(py_streams, unconvertible, [], #{}, #{traceback => true}),
    ?assertEqual({py_stream, Other, {data, 1}}, py_test:message()),
    {py_stream, Other, NotConvertible} = py_test:message(),
    ?assertReason({not_convertible, _}, NotConvertible),
    {ok, Traced} = py:stream_start(py_streams, fails_after, [0], #{}, #{traceback => true}),
    {py_stream, Traced, WithTraceback} = py_test:message(),
    ?assertReason({'ValueError', <<"enough">>, #{traceback := [_]}}, WithTraceback).

a_refused_stream_says_why(_Config) ->
    ?assertReason({bad_argument, module}, py:stream_start(1, count, [])),
    ?assertReason({bad_argument, _}, py:stream_start(py_streams, count, [1], #{}, #{window => 0})),
    {ok, Ref} = py:stream_start(py_streams, there_is_none, []),
    {py_stream, Ref, Error} = py_test:message(),
    ?assertReason({'AttributeError', _}, Error).

no_more_than_the_window_is_sent_before_an_acknowledgement(_Config) ->
    {ok, Ref} = py:stream_start(py_streams, count, [1000], #{}, #{window => 5}),
    [?assertEqual({py_stream, Ref, {data, N}}, py_test:message()) || N <- lists:seq(0, 4)],
    %% The generator is not run ahead either; the calls give it all the time it wants.
    [{ok, _} = py:call(py_tools, nap, [0.01]) || _ <- lists:seq(1, 5)],
    ok = py_test:nothing_waits(),
    ?assertEqual({ok, lists:seq(0, 4)}, py:call(py_streams, taken, [])),
    ok = py:stream_ack(Ref, 2),
    [?assertEqual({py_stream, Ref, {data, N}}, py_test:message()) || N <- [5, 6]],
    {ok, _} = py:call(py_tools, nap, [0.01]),
    ok = py_test:nothing_waits(),
    ok = py:stream_cancel(Ref).

acknowledging_goes_on_to_the_end(_Config) ->
    {ok, Ref} = py:stream_start(py_streams, count, [20_000], #{}, #{window => 3}),
    ?assertEqual(20_000, acknowledge(Ref, 0)).

acknowledge(Ref, Seen) ->
    case py_test:message() of
        {py_stream, Ref, {data, Seen}} ->
            ok = py:stream_ack(Ref, 1),
            acknowledge(Ref, Seen + 1);
        {py_stream, Ref, done} ->
            Seen
    end.

a_cancelled_stream_sends_nothing_and_closes_its_generator(_Config) ->
    {ok, Ref} = py:stream_start(py_streams, watched, [self()]),
    ok = py_test:message({py_stream, Ref, {data, 0}}),
    ok = py:stream_cancel(Ref),
    ok = drain(Ref),
    ok = py_test:message(<<"closed">>),
    ok = py_test:nothing_waits().

%% Takes out what was sent before the cancellation.
drain(Ref) ->
    receive
        {py_stream, Ref, {data, _}} -> drain(Ref)
    after 0 -> ok
    end.

a_cancelled_stream_that_waits_for_its_reader_closes_its_generator(_Config) ->
    {ok, Ref} = py:stream_start(py_streams, watched, [self()], #{}, #{window => 1}),
    ?assertEqual({py_stream, Ref, {data, 0}}, py_test:message()),
    ok = py:stream_cancel(Ref),
    ok = py:stream_ack(Ref, 10),
    ?assertEqual(<<"closed">>, py_test:message()),
    ok = py_test:nothing_waits().

a_stream_whose_reader_died_closes_its_generator(_Config) ->
    Test = self(),
    [
        begin
            Reader = spawn(fun() ->
                {ok, Ref} = py:stream_start(py_streams, watched, [Test], #{}, Opts),
                ok = py_test:message({py_stream, Ref, {data, 0}}),
                Test ! started,
                receive
                    never -> ok
                end
            end),
            ok = py_test:message(started),
            ok = py_test:down(Reader),
            ok = py_test:message(<<"closed">>)
        end
     || Opts <- [#{window => 1}, #{window => 100_000}]
    ].

a_generator_that_hangs_is_interrupted(_Config) ->
    {ok, Ref} = py:stream_start(py_streams, slow, [self()]),
    ?assertEqual({py_stream, Ref, {data, 1}}, py_test:message()),
    ?assertEqual(<<"going on">>, py_test:message()),
    ok = py:stream_cancel(Ref),
    ok = py_test:eventually(fun() ->
        {ok, Before} = py:call(py_tools, cpu_seconds, []),
        timer:sleep(50),
        {ok, After} = py:call(py_tools, cpu_seconds, []),
        After - Before < 0.02
    end),
    ok = py_test:nothing_waits().

wide_maps_come_in_order_with_the_rest(_Config) ->
    [
        begin
            {ok, Ref} = py:stream_start(py_streams, wide, [Keys]),
            ?assertEqual([maps:from_list([{N, N} || N <- lists:seq(0, Keys - 1)]), <<"after">>], items(Ref))
        end
     || Keys <- [32, 33, 128, 129, 100_000]
    ],
    %% A message sent between two items stays between them.
    {ok, Ref} = py:stream_start(py_streams, sends_between, [self(), 1000]),
    ?assertEqual({py_stream, Ref, {data, 1}}, py_test:message()),
    ?assertEqual(1000, map_size(py_test:message())),
    ?assertEqual({py_stream, Ref, {data, 2}}, py_test:message()),
    ?assertEqual({py_stream, Ref, done}, py_test:message()).

messages_go_where_reply_to_says(_Config) ->
    Test = self(),
    Reader = spawn_link(fun() -> Test ! {seen, py_test:message(), py_test:message()} end),
    {ok, Ref} = py:stream_start(py_streams, count, [1], #{}, #{reply_to => Reader}),
    ok = py_test:message({seen, {py_stream, Ref, {data, 0}}, {py_stream, Ref, done}}).

a_stream_runs_in_its_context(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    ok = py:exec(Ctx, <<"def items():\n    yield here\nhere = 'mine'">>),
    ?assertEqual({ok, [<<"mine">>]}, py:stream(Ctx, '__main__', items, [])),
    {ok, Ref} = py:stream_start('__main__', items, [], #{}, #{context => Ctx}),
    ?assertEqual([<<"mine">>], items(Ref)),
    ok = py_context:stop(Ctx).

a_collection_that_timed_out_closes_its_generator(_Config) ->
    ?assertReason(timeout, py:stream(py_streams, watched, [self()], #{}, 50)),
    ?assertEqual(<<"closed">>, py_test:message()),
    ok = py_test:nothing_waits().

streams_share_their_workers(_Config) ->
    %% More endless streams than workers, and a call that gets through all the same.
    Endless = [
        begin
            {ok, Ref} = py:stream_start(py_streams, watched, [self()], #{}, #{window => 1}),
            ok = py_test:message({py_stream, Ref, {data, 0}}),
            Ref
        end
     || _ <- lists:seq(1, 20)
    ],
    ?assertEqual({ok, 3}, py:call(operator, add, [1, 2])),
    [ok = py:stream_cancel(Ref) || Ref <- Endless],
    [ok = py_test:message(<<"closed">>) || _ <- Endless].

an_interrupted_stream_tells_its_reader(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    {ok, Ref} = py:stream_start(Ctx, itertools, count, []),
    ok = py_test:message({py_stream, Ref, {data, 0}}),
    ok = py_test:eventually(fun() -> py_context:interrupt(Ctx) =:= ok end),
    ?assertEqual({error, interrupted}, last(Ref)),
    ok = py_context:stop(Ctx).

%% What comes after the items.
last(Ref) ->
    receive
        {py_stream, Ref, {data, _}} -> last(Ref);
        {py_stream, Ref, Last} -> Last
    after 20_000 -> nothing
    end.

%% A turn is what comes of one stream before something of another.
streams_of_one_thread_take_turns(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    Refs = [endless(Ctx) || _ <- [1, 2, 3]],
    Turns = turns(60, next(Refs), Refs),
    [ok = py:stream_cancel(Ref) || Ref <- Refs],
    [ok = drain(Ref) || Ref <- Refs],
    ok = py_context:stop(Ctx),
    %% All of them run by now; each has its turn when both others have had one.
    Begun = lists:nthtail(30, Turns),
    [?assertEqual(lists:sort(Refs), lists:sort(lists:sublist(Begun, N, 3))) || N <- lists:seq(1, 28)].

endless(Ctx) ->
    {ok, Ref} = py:stream_start(Ctx, itertools, count, []),
    Ref.

turns(0, _Now, _Refs) -> [];
turns(Left, Now, Refs) -> [Now | turns(Left - 1, other(Now, Refs), Refs)].

%% The one that comes after `Now'.
other(Now, Refs) ->
    case next(Refs) of
        Now -> other(Now, Refs);
        Next -> Next
    end.

next(Refs) ->
    {py_stream, Ref, {data, _}} = py_test:message(),
    true = lists:member(Ref, Refs),
    Ref.
