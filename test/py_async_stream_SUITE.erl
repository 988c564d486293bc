%% Asynchronous generators streamed to a process: message by message, within a window, cancelled.
-module(py_async_stream_SUITE).

-include("py_test.hrl").

-export([init_per_testcase/2]).
-export([
    items_come_as_messages_then_done/1,
    whatever_only_async_for_takes_is_streamed/1,
    it_runs_on_a_loop_for_its_caller/1,
    a_failure_comes_after_the_items_before_it/1,
    an_item_that_has_no_term_ends_the_stream/1,
    no_more_than_the_window_is_made_before_an_acknowledgement/1,
    acknowledging_goes_on_to_the_end/1,
    a_cancelled_stream_sends_nothing_and_closes_its_generator/1,
    a_generator_that_waits_is_cancelled/1,
    a_stream_whose_reader_died_closes_its_generator/1,
    a_stream_past_its_time_says_so_and_closes_its_generator/1,
    an_endless_generator_leaves_the_loop_to_others/1,
    wide_maps_come_in_order_with_the_rest/1,
    a_stream_of_a_loop_that_died_says_so/1,
    a_thousand_streams_share_a_loop/1,
    a_stream_runs_in_its_context/1,
    a_stream_runs_in_a_named_pool/1
]).

-include("py_drivers.hrl").

init_per_testcase(_Case, Config) -> py_test:start(Config).

start(Function, Args) -> start(Function, Args, #{}).

start(Function, Args, Opts) ->
    {ok, Ref} = py:stream_start(py_async_streams, Function, Args, #{}, Opts),
    Ref.

items_come_as_messages_then_done(_Config) ->
    ?assertEqual(lists:seq(0, 999), items(start(count, [1000]))),
    ?assertEqual([0, 1, 2], items(start(slow_count, [3, 0.001]))),
    py_test:nothing_waits().

%% All items of a stream that ends well.
items(Ref) ->
    case py_test:message() of
        {py_stream, Ref, {data, Item}} -> [Item | items(Ref)];
        {py_stream, Ref, done} -> []
    end.

whatever_only_async_for_takes_is_streamed(_Config) ->
    ?assertEqual([0, 1], items(start(wrapped, [2]))),
    ?assertEqual([1, 0], items(start('Only', []))),
    ?assertEqual([<<"plain">>], items(start('Both', []))),
    ok = py:exec(<<"async def mine(x):\n    yield x\n">>),
    {ok, Ref} = py:stream_start('__main__', mine, [7]),
    ?assertEqual([7], items(Ref)).

it_runs_on_a_loop_for_its_caller(_Config) ->
    ?assertEqual([self(), <<"ErlangEventLoop">>], items(start(who, []))).

a_failure_comes_after_the_items_before_it(_Config) ->
    Ref = start(fails_after, [2]),
    ?assertEqual({py_stream, Ref, {data, 0}}, py_test:message()),
    ?assertEqual({py_stream, Ref, {data, 1}}, py_test:message()),
    {py_stream, Ref, Error} = py_test:message(),
    ?assertReason({'ValueError', <<"enough">>}, Error),
    ?assertMatch(#{type := 'ValueError', traceback := [_ | _]}, py:last_error()),
    Traced = start(fails_after, [0], #{traceback => true}),
    {py_stream, Traced, WithTraceback} = py_test:message(),
    ?assertReason({'ValueError', <<"enough">>, #{traceback := [_ | _]}}, WithTraceback),
    py_test:nothing_waits().

an_item_that_has_no_term_ends_the_stream(_Config) ->
    Ref = start(unconvertible, [self()]),
    ?assertEqual({py_stream, Ref, {data, 1}}, py_test:message()),
    {py_stream, Ref, Error} = py_test:message(),
    ?assertReason({not_convertible, _}, Error),
    ok = py_test:message(<<"closed">>),
    py_test:nothing_waits().

no_more_than_the_window_is_made_before_an_acknowledgement(_Config) ->
    {ok, Before} = py:call(py_async_streams, made_so_far, []),
    Ref = start(count, [1000], #{window => 5}),
    [?assertEqual({py_stream, Ref, {data, N}}, py_test:message()) || N <- lists:seq(0, 4)],
    %% The loop has all the time it wants.
    {ok, _} = py:await(py:async_call(asyncio, sleep, [0.05])),
    ok = py_test:nothing_waits(),
    ?assertEqual({ok, Before ++ lists:seq(0, 4)}, py:call(py_async_streams, made_so_far, [])),
    ok = py:stream_ack(Ref, 2),
    [?assertEqual({py_stream, Ref, {data, N}}, py_test:message()) || N <- [5, 6]],
    {ok, _} = py:await(py:async_call(asyncio, sleep, [0.05])),
    ok = py_test:nothing_waits(),
    ok = py:stream_cancel(Ref).

acknowledging_goes_on_to_the_end(_Config) ->
    ?assertEqual(20_000, acknowledge(start(count, [20_000], #{window => 3}), 0)).

acknowledge(Ref, Seen) ->
    case py_test:message() of
        {py_stream, Ref, {data, Seen}} ->
            ok = py:stream_ack(Ref, 1),
            acknowledge(Ref, Seen + 1);
        {py_stream, Ref, done} ->
            Seen
    end.

a_cancelled_stream_sends_nothing_and_closes_its_generator(_Config) ->
    [
        begin
            Ref = start(watched, [self()], Opts),
            ok = py_test:message({py_stream, Ref, {data, 0}}),
            ok = py:stream_cancel(Ref),
            ok = drain(Ref),
            ok = py:stream_ack(Ref, 10),
            ok = py_test:message(<<"closed">>),
            ok = py_test:nothing_waits()
        end
     || Opts <- [#{}, #{window => 1}]
    ].

%% Takes out what was sent before the cancellation.
drain(Ref) ->
    receive
        {py_stream, Ref, {data, _}} -> drain(Ref)
    after 0 -> ok
    end.

a_generator_that_waits_is_cancelled(_Config) ->
    Ref = start(waits, [self()]),
    ok = py_test:message({py_stream, Ref, {data, 0}}),
    ok = py:stream_cancel(Ref),
    ok = py_test:message(<<"closed">>),
    py_test:nothing_waits().

a_stream_whose_reader_died_closes_its_generator(_Config) ->
    Test = self(),
    [
        begin
            Reader = spawn(fun() ->
                Ref = start(watched, [Test], Opts),
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
     || Opts <- [#{window => 1}, #{window => 1000}, #{}]
    ].

a_stream_past_its_time_says_so_and_closes_its_generator(_Config) ->
    past_its_time(50).

%% The generator must have begun: on a busy machine that takes longer.
past_its_time(Time) ->
    Read = fun() ->
        Ref = start(waits, [self()], #{timeout => Time}),
        receive
            {py_stream, Ref, {data, 0}} ->
                ok = py_test:message({py_stream, Ref, {error, timeout}}),
                ok = py_test:message(<<"closed">>),
                exit(closed);
            {py_stream, Ref, {error, timeout}} ->
                exit(too_early)
        end
    end,
    {_, Monitor} = spawn_monitor(Read),
    receive
        {'DOWN', Monitor, process, _, closed} -> ok;
        {'DOWN', Monitor, process, _, too_early} -> past_its_time(2 * Time)
    end.

an_endless_generator_leaves_the_loop_to_others(_Config) ->
    Test = self(),
    %% It would fill this mailbox.
    Reader = spawn(fun() -> read_all(start(endless, [])) end),
    ?assertEqual({ok, none}, py:await(py:async_call(asyncio, sleep, [0.01]), 10_000)),
    ok = py_test:down(Reader),
    ?assertEqual(Test, self()).

read_all(Ref) ->
    receive
        {py_stream, Ref, _} -> read_all(Ref)
    end.

wide_maps_come_in_order_with_the_rest(_Config) ->
    [
        begin
            Ref = start(wide, [self(), Keys]),
            Wide = maps:from_list([{N, N} || N <- lists:seq(0, Keys - 1)]),
            ?assertEqual({py_stream, Ref, {data, Wide}}, py_test:message()),
            ?assertEqual(<<"between">>, py_test:message()),
            ?assertEqual({py_stream, Ref, {data, <<"after">>}}, py_test:message()),
            ?assertEqual({py_stream, Ref, done}, py_test:message())
        end
     || Keys <- [32, 129, 10_000]
    ].

a_stream_of_a_loop_that_died_says_so(_Config) ->
    Ref = start(watched, [self()], #{window => 1}),
    ok = py_test:message({py_stream, Ref, {data, 0}}),
    [{_, Loop, _, _} | _] = supervisor:which_children(py_event_loop_sup),
    ok = py_test:down(Loop),
    receive
        {py_stream, Ref, Error} -> ?assertReason({context_died, _}, Error)
    end,
    ok = py_test:message(<<"closed">>).

a_thousand_streams_share_a_loop(_Config) ->
    Refs = [start(slow_count, [3, 0.01], #{window => 4}) || _ <- lists:seq(1, 1000)],
    [
        [ok = py_test:message({py_stream, Ref, What}) || What <- [{data, 0}, {data, 1}, {data, 2}, done]]
     || Ref <- Refs
    ],
    py_test:nothing_waits().

a_stream_runs_in_its_context(_Config) ->
    Modes = [worker | [subinterp || py:execution_mode() =:= subinterp]],
    [
        begin
            {ok, Ctx} = py_context:new(#{mode => Mode}),
            ok = py:exec(Ctx, <<
                "import asyncio\n"
                "async def items(n):\n"
                "    for i in range(n):\n"
                "        await asyncio.sleep(0.001)\n"
                "        yield i\n"
            >>),
            {ok, Ref} = py:stream_start('__main__', items, [3], #{}, #{context => Ctx, window => 4}),
            ?assertEqual([0, 1, 2], items(Ref)),
            ok = watched_in(Ctx),
            ok = py_context:stop(Ctx)
        end
     || Mode <- Modes
    ].

a_stream_runs_in_a_named_pool(_Config) ->
    ok = py:register_pool(streaming, #{size => 1}),
    {ok, Ref} = py:stream_start(
        py_async_streams, slow_count, [3, 0.001], #{}, #{context => streaming, window => 4}
    ),
    ?assertEqual([0, 1, 2], items(Ref)),
    ok = watched_in(streaming),
    {ok, Failing} = py:stream_start(py_async_streams, fails_after, [0], #{}, #{context => streaming}),
    {py_stream, Failing, Error} = py_test:message(),
    ?assertReason({'ValueError', <<"enough">>}, Error),
    ok = py:unregister_pool(streaming).

watched_in(Place) ->
    Opts = #{context => Place, window => 1},
    {ok, Ref} = py:stream_start(py_async_streams, watched, [self()], #{}, Opts),
    ok = py_test:message({py_stream, Ref, {data, 0}}),
    %% The thread is free while the reader has enough.
    ?assertEqual({ok, 3}, py:call(Place, operator, add, [1, 2])),
    ok = py:stream_cancel(Ref),
    ok = py_test:message(<<"closed">>).
