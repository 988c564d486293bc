%% Calls of high priority go before what else waits, and what else waits goes on all the same.
-module(py_priority_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    whatever_can_be_hurried_goes_before_what_waits/1,
    one_that_waits_goes_after_eight_of_high_priority/1,
    a_call_of_high_priority_has_room_where_others_have_none/1,
    a_call_of_high_priority_interrupts_nothing/1,
    a_priority_is_high_or_normal/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% A context is one thread: what waits for it runs in an order that can be told.
init_per_testcase(_Case, Config) ->
    {ok, Ctx} = py_context:new(#{max_queue => 100}),
    [{context, Ctx} | Config].

end_per_testcase(_Case, Config) ->
    ok = py_context:stop(context(Config)).

context(Config) -> proplists:get_value(context, Config).

whatever_can_be_hurried_goes_before_what_waits(Config) ->
    Ctx = context(Config),
    [
        begin
            Busy = py_test:occupy(Ctx, 1),
            ok = note(Ctx, <<"waited">>, normal),
            {Pid, Monitor} = spawn_monitor(fun() -> exit(Hurry(Ctx, #{priority => high})) end),
            ok = queued(Ctx, 2),
            ok = py_test:release(Busy),
            receive
                {'DOWN', Monitor, process, Pid, Answer} -> ?assertMatch({What, ok}, {What, answer(Answer)})
            after 20_000 -> error({silence, What})
            end,
            ?assertEqual({What, [<<"hurried">>, <<"waited">>]}, {What, notes(Ctx)})
        end
     || {What, Hurry} <- ways()
    ].

ways() ->
    Note = [<<"hurried">>],
    Code = <<"__import__('py_tools').note('hurried')">>,
    Items = <<"[__import__('py_tools').note('hurried')]">>,
    [
        {call, fun(Ctx, Opts) -> py:call(Ctx, py_tools, note, Note, #{}, Opts) end},
        {eval, fun(Ctx, Opts) -> py:eval(Ctx, Code, #{}, Opts) end},
        {stream_eval, fun(Ctx, Opts) -> py:stream_eval(Ctx, Items, #{}, Opts) end},
        {cast, fun(Ctx, Opts) -> py:cast(Ctx, py_tools, note, Note, #{}, Opts) end},
        {spawn_call, fun(Ctx, Opts) -> py:await(py:spawn_call(Ctx, py_tools, note, Note, #{}, Opts)) end},
        {stream_start, fun(Ctx, Opts) ->
            {ok, Ref} = py:stream_start(Ctx, py_tools, note_items, Note, #{}, Opts),
            py_test:message({py_stream, Ref, done})
        end}
    ].

answer(ok) -> ok;
answer({ok, _}) -> ok;
answer(Other) -> Other.

one_that_waits_goes_after_eight_of_high_priority(Config) ->
    Ctx = context(Config),
    Busy = py_test:occupy(Ctx, 1),
    [ok = note(Ctx, N, normal) || N <- lists:seq(1, 5)],
    [ok = note(Ctx, N, high) || N <- lists:seq(101, 120)],
    ok = py_test:release(Busy),
    Order = lists:append([lists:seq(101, 108), [1], lists:seq(109, 116), [2], lists:seq(117, 120), [3, 4, 5]]),
    ?assertEqual(Order, notes(Ctx)).

a_call_of_high_priority_has_room_where_others_have_none(Config) ->
    Ctx = context(Config),
    Busy = py_test:occupy(Ctx, 1),
    [ok = note(Ctx, N, normal) || N <- lists:seq(1, 100)],
    ?assertEqual({error, overload}, py:call(Ctx, py_tools, note, [0], #{}, #{})),
    [ok = note(Ctx, N, high) || N <- lists:seq(101, 200)],
    ?assertEqual({error, overload}, py:call(Ctx, py_tools, note, [0], #{}, #{priority => high})),
    ok = py_test:release(Busy),
    ?assertEqual(lists:seq(1, 200), lists:sort(notes(Ctx))).

a_call_of_high_priority_interrupts_nothing(Config) ->
    Ctx = context(Config),
    Busy = py_test:occupy(Ctx, 1),
    ?assertEqual({error, timeout}, py:call(Ctx, py_tools, note, [1], #{}, #{priority => high, timeout => 50})),
    ok = py_test:release(Busy),
    ?assertEqual([], notes(Ctx)).

a_priority_is_high_or_normal(Config) ->
    Ctx = context(Config),
    Call = fun(Priority) -> py:call(Ctx, math, sqrt, [16], #{}, #{priority => Priority}) end,
    ?assertEqual({ok, 4.0}, Call(high)),
    ?assertEqual({ok, 4.0}, Call(normal)),
    ?assertReason({bad_argument, <<"the option priority must be normal or high, got low">>}, Call(low)).

%% Nobody waits for it.
note(Ctx, What, Priority) ->
    py:cast(Ctx, py_tools, note, [What], #{}, #{priority => Priority}).

%% In the order they were made, by all that waited.
notes(Ctx) ->
    ok = queued(Ctx, 0),
    {ok, Notes} = py:call(Ctx, py_tools, notes, []),
    Notes.

queued(Ctx, Count) ->
    {ok, Pool} = py_call:pool(Ctx),
    py_test:eventually(fun() -> element(1, py_nif:pool_info(Pool)) =:= Count end).
