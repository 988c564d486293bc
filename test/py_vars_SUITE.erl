%% Context variables belong to Erlang processes, whichever thread runs their calls; tracing ends with a job.
%%
%% A pool of one thread: what one call left on it the next one would find.
-module(py_vars_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_process_keeps_its_variables_from_call_to_call/1,
    a_process_does_not_see_the_variables_of_another/1,
    decimal_settings_stay_with_their_process/1,
    a_call_with_a_trace_id_keeps_variables/1,
    what_runs_beside_the_process_has_a_copy/1,
    a_stream_has_one_copy_for_all_of_its_items/1,
    an_async_call_has_a_copy/1,
    a_context_has_variables_of_its_own/1,
    a_callback_begins_without_variables/1,
    variables_that_were_undone_are_not_kept/1,
    tracing_ends_with_its_job/1,
    what_a_debugger_set_for_all_threads_comes_back/1
]).

-define(POOL, vars_one).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Started = py_test:start(Config),
    ok = py:register_pool(?POOL, #{size => 1}),
    Started.

end_per_suite(_Config) -> py:unregister_pool(?POOL).

call(Function, Args) -> py:call(?POOL, py_vars, Function, Args).

%% Runs in a process of its own, which has no variables yet.
fresh(Fun) -> py_test:in_process(Fun).

a_process_keeps_its_variables_from_call_to_call(_Config) ->
    fresh(fun() ->
        {ok, <<"mine">>} = call(set_word, [<<"mine">>]),
        ?assertEqual({ok, <<"mine">>}, call(get_word, [])),
        %% In any pool, by eval and by exec.
        ?assertEqual({ok, <<"mine">>}, py:call(py_vars, get_word, [])),
        ok = py:exec("import py_vars; py_vars.set_word('other')"),
        ?assertEqual({ok, <<"other">>}, py:eval("__import__('py_vars').get_word()")),
        ?assertEqual({ok, <<"other">>}, call(get_word, []))
    end).

a_process_does_not_see_the_variables_of_another(_Config) ->
    fresh(fun() ->
        {ok, _} = call(set_word, [<<"mine">>]),
        ?assertEqual({ok, <<"none">>}, fresh(fun() -> call(get_word, []) end)),
        {ok, _} = fresh(fun() -> call(set_word, [<<"theirs">>]) end),
        ?assertEqual({ok, <<"mine">>}, call(get_word, []))
    end).

decimal_settings_stay_with_their_process(_Config) ->
    fresh(fun() ->
        {ok, _} = call(set_precision, [3]),
        ?assertEqual({ok, <<"0.333">>}, call(third, [])),
        {ok, Third} = fresh(fun() -> call(third, []) end),
        ?assertEqual(30, byte_size(Third)),
        ?assertEqual({ok, <<"0.333">>}, call(third, []))
    end).

a_call_with_a_trace_id_keeps_variables(_Config) ->
    fresh(fun() ->
        Traced = #{trace_id => <<"t">>},
        {ok, _} = py:call(?POOL, py_vars, set_word, [<<"mine">>], #{}, Traced),
        ?assertEqual({ok, <<"mine">>}, py:call(?POOL, py_vars, get_word, [], #{}, Traced)),
        ?assertEqual({ok, <<"mine">>}, call(get_word, []))
    end).

what_runs_beside_the_process_has_a_copy(_Config) ->
    fresh(fun() ->
        {ok, _} = call(set_word, [<<"mine">>]),
        Spawned = py:spawn_call(?POOL, py_vars, get_word, []),
        ?assertEqual({ok, <<"mine">>}, py:await(Spawned)),
        {ok, _} = py:await(py:spawn_call(?POOL, py_vars, set_word, [<<"theirs">>])),
        ok = py:cast(?POOL, py_vars, set_word, [<<"theirs">>]),
        ?assertEqual({ok, <<"mine">>}, call(get_word, []))
    end).

a_stream_has_one_copy_for_all_of_its_items(_Config) ->
    fresh(fun() ->
        {ok, _} = call(set_word, [<<"mine">>]),
        Expected = [<<"mine">>, <<"late">>, <<"late">>],
        ?assertEqual({ok, Expected}, py:stream(?POOL, py_vars, words, [<<"late">>])),
        {ok, Ref} = py:stream_start(?POOL, py_vars, words, [<<"late">>], #{}, #{window => 1}),
        ?assertEqual(Expected, items(Ref, item(Ref))),
        ?assertEqual({ok, <<"mine">>}, call(get_word, []))
    end),
    ?assertEqual({ok, <<"none">>}, fresh(fun() -> call(get_word, []) end)).

item(Ref) ->
    {py_stream, Ref, What} = py_test:message(),
    What.

items(_Ref, done) -> [];
items(Ref, {data, Item}) ->
    ok = py:stream_ack(Ref, 1),
    [Item | items(Ref, item(Ref))].

an_async_call_has_a_copy(_Config) ->
    fresh(fun() ->
        {ok, _} = call(set_word, [<<"mine">>]),
        Set = fun() -> py:await(py:async_call(py_vars, set_word_later, [<<"late">>])) end,
        ?assertEqual({ok, <<"mine">>}, Set()),
        ?assertEqual({ok, <<"mine">>}, Set()),
        ?assertEqual({ok, <<"mine">>}, call(get_word, [])),
        ?assertEqual({ok, <<"none">>}, fresh(Set))
    end).

a_context_has_variables_of_its_own(_Config) ->
    {ok, Context} = py_context:new(#{}),
    {ok, _} = py:call(Context, py_vars, set_word, [<<"shared">>]),
    ?assertEqual({ok, <<"shared">>}, fresh(fun() -> py:call(Context, py_vars, get_word, []) end)),
    ?assertEqual({ok, <<"none">>}, fresh(fun() -> call(get_word, []) end)),
    ok = py_context:stop(Context).

a_callback_begins_without_variables(_Config) ->
    ok = py:register_function(vars_nested, fun([]) ->
        {ok, Seen} = call(get_word, []),
        {ok, _} = call(set_word, [<<"nested">>]),
        Seen
    end),
    fresh(fun() ->
        [?assertEqual({ok, [<<"none">>, <<"mine">>]}, call(nest, [<<"mine">>])) || _ <- [1, 2, 3]],
        ?assertEqual({ok, <<"mine">>}, call(get_word, []))
    end),
    ok = py:unregister_function(vars_nested).

variables_that_were_undone_are_not_kept(_Config) ->
    fresh(fun() ->
        {ok, _} = call(set_and_undo, []),
        ?assertEqual({ok, <<"none">>}, call(get_word, [])),
        ?assertEqual({ok, <<"none">>}, fresh(fun() -> call(get_word, []) end))
    end).

tracing_ends_with_its_job(_Config) ->
    {ok, _} = call(trace, []),
    ?assertEqual({ok, [false, false]}, call(traced, [])).

what_a_debugger_set_for_all_threads_comes_back(_Config) ->
    {ok, _} = call(trace_all_threads, [true]),
    {ok, _} = call(trace, []),
    ?assertEqual({ok, true}, call(traced_by_debugger, [])),
    {ok, _} = call(trace_all_threads, [false]),
    {ok, _} = call(untrace, []),
    ?assertEqual({ok, [false, false]}, call(traced, [])).
