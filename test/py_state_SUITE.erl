%% The shared state: keys that both sides can spell, exact bounds, atomic counters.
-module(py_state_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    what_was_stored_is_fetched/1,
    a_key_that_is_not_there_is_not_found/1,
    removing_takes_it_away_and_twice_is_fine/1,
    an_atom_and_its_name_are_the_same_key/1,
    true_false_and_none_stay_what_they_are/1,
    an_integer_and_a_float_are_two_keys/1,
    keys_lists_them_and_clear_removes_them/1,
    a_counter_starts_at_zero_and_moves_both_ways/1,
    a_counter_grows_beyond_64_bits/1,
    a_value_that_is_no_integer_cannot_be_counted/1,
    py_has_them_too/1,
    a_hundred_processes_count_without_losing_one/1,
    past_its_bound_it_says_full_and_existing_keys_still_change/1,
    the_bound_is_exact_under_concurrent_stores_and_removes/1,
    without_the_owner_it_says_not_running/1
]).

all() ->
    [
        what_was_stored_is_fetched,
        a_key_that_is_not_there_is_not_found,
        removing_takes_it_away_and_twice_is_fine,
        an_atom_and_its_name_are_the_same_key,
        true_false_and_none_stay_what_they_are,
        an_integer_and_a_float_are_two_keys,
        keys_lists_them_and_clear_removes_them,
        a_counter_starts_at_zero_and_moves_both_ways,
        a_counter_grows_beyond_64_bits,
        a_value_that_is_no_integer_cannot_be_counted,
        py_has_them_too,
        a_hundred_processes_count_without_losing_one,
        past_its_bound_it_says_full_and_existing_keys_still_change,
        the_bound_is_exact_under_concurrent_stores_and_removes,
        without_the_owner_it_says_not_running
    ].

init_per_testcase(_Case, Config) ->
    %% The application may be running in this node, and its table is as good.
    case whereis(py_state) of
        undefined ->
            {ok, Pid} = py_state:start_link(),
            true = unlink(Pid),
            [{own, Pid} | Config];
        _ ->
            ok = py_state:state_clear(),
            Config
    end.

end_per_testcase(_Case, Config) ->
    case proplists:get_value(own, Config) of
        undefined -> py_state:state_clear();
        Pid -> stop(Pid)
    end.

stop(Pid) ->
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Monitor, process, Pid, _} -> ok
    end.

what_was_stored_is_fetched(_Config) ->
    Terms = [1, 2.5, <<"b">>, "s", {a, #{b => [c]}}, self(), make_ref(), fun() -> ok end],
    [
        begin
            ok = py_state:state_store(Key, {value, Key}),
            ?assertEqual({ok, {value, Key}}, py_state:state_fetch(Key))
        end
     || Key <- Terms
    ],
    ok = py_state:state_store(1, again),
    ?assertEqual({ok, again}, py_state:state_fetch(1)).

a_key_that_is_not_there_is_not_found(_Config) ->
    ?assertEqual({error, not_found}, py_state:state_fetch(<<"missing">>)).

removing_takes_it_away_and_twice_is_fine(_Config) ->
    ok = py_state:state_store(k, 1),
    ?assertEqual(ok, py_state:state_remove(k)),
    ?assertEqual(ok, py_state:state_remove(k)),
    ?assertEqual({error, not_found}, py_state:state_fetch(k)).

an_atom_and_its_name_are_the_same_key(_Config) ->
    ok = py_state:state_store(<<"hits">>, 1),
    ?assertEqual({ok, 1}, py_state:state_fetch(hits)),
    ok = py_state:state_store({user, 7, [session]}, data),
    ?assertEqual({ok, data}, py_state:state_fetch({<<"user">>, 7, [<<"session">>]})),
    ok = py_state:state_store('größe', 2),
    ?assertEqual({ok, 2}, py_state:state_fetch(<<"größe"/utf8>>)),
    ?assertEqual({error, not_found}, py_state:state_fetch("hits")).

true_false_and_none_stay_what_they_are(_Config) ->
    ok = py_state:state_store(true, yes),
    ?assertEqual({error, not_found}, py_state:state_fetch(<<"true">>)),
    ok = py_state:state_store(undefined, nothing),
    ?assertEqual({ok, nothing}, py_state:state_fetch(none)),
    ?assertEqual({ok, nothing}, py_state:state_fetch(nil)).

an_integer_and_a_float_are_two_keys(_Config) ->
    ok = py_state:state_store(1, integer),
    ok = py_state:state_store(1.0, float),
    ?assertEqual({ok, integer}, py_state:state_fetch(1)).

keys_lists_them_and_clear_removes_them(_Config) ->
    [ok = py_state:state_store(Key, v) || Key <- [a, 2, {c}]],
    ?assertEqual(lists:sort([<<"a">>, 2, {<<"c">>}]), lists:sort(py_state:state_keys())),
    ?assertEqual(ok, py_state:state_clear()),
    ?assertEqual([], py_state:state_keys()).

a_counter_starts_at_zero_and_moves_both_ways(_Config) ->
    ?assertEqual(1, py_state:state_incr(n)),
    ?assertEqual(11, py_state:state_incr(<<"n">>, 10)),
    ?assertEqual(10, py_state:state_decr(n)),
    ?assertEqual(-5, py_state:state_decr(n, 15)),
    ?assertEqual({ok, -5}, py_state:state_fetch(n)),
    ?assertEqual(-3, py_state:state_decr(fresh, 3)).

a_counter_grows_beyond_64_bits(_Config) ->
    Big = 1 bsl 80,
    ok = py_state:state_store(n, Big),
    ?assertEqual(Big + 1, py_state:state_incr(n)).

a_value_that_is_no_integer_cannot_be_counted(_Config) ->
    ok = py_state:state_store(n, <<"text">>),
    {error, Reason} = py_state:state_incr(n),
    ?assertMatch({bad_argument, _}, Reason),
    ?assert(py_error:is_reason(Reason)),
    ?assertMatch({error, {bad_argument, _}}, py_state:state_incr(m, 1.5)),
    ?assertMatch({error, {bad_argument, _}}, py_state:state_decr(m, <<"1">>)),
    ?assertEqual({ok, <<"text">>}, py_state:state_fetch(n)).

py_has_them_too(_Config) ->
    ok = py:state_store(a, 1),
    ?assertEqual({ok, 1}, py:state_fetch(a)),
    ?assertEqual([2, 5], [py:state_incr(a), py:state_incr(a, 3)]),
    ?assertEqual([4, -6], [py:state_decr(a), py:state_decr(a, 10)]),
    ?assertEqual([<<"a">>], py:state_keys()),
    ok = py:state_remove(a),
    ?assertEqual({error, not_found}, py:state_fetch(a)),
    ok = py:state_store(b, 1),
    ?assertEqual(ok, py:state_clear()),
    ?assertEqual([], py:state_keys()).

a_hundred_processes_count_without_losing_one(_Config) ->
    in_parallel(100, fun(_) -> [py_state:state_incr(n) || _ <- lists:seq(1, 1000)] end),
    ?assertEqual({ok, 100_000}, py_state:state_fetch(n)).

past_its_bound_it_says_full_and_existing_keys_still_change(_Config) ->
    Max = py_state:max_entries(),
    [ok = py_state:state_store(N, N) || N <- lists:seq(1, Max)],
    ?assertEqual({error, full}, py_state:state_store(one_more, 1)),
    ?assertEqual({error, full}, py_state:state_incr(a_counter)),
    ?assertEqual(ok, py_state:state_store(1, changed)),
    ?assertEqual(3, py_state:state_incr(2)),
    ok = py_state:state_remove(3),
    ?assertEqual(ok, py_state:state_store(one_more, 1)),
    ?assertEqual({error, full}, py_state:state_store(two_more, 1)),
    ok = py_state:state_clear(),
    ?assertEqual(ok, py_state:state_store(two_more, 1)).

the_bound_is_exact_under_concurrent_stores_and_removes(_Config) ->
    Max = py_state:max_entries(),
    in_parallel(20, fun(Me) ->
        Keys = lists:seq(Me, 3000, 3),
        [ok = py_state:state_store(Key, Me) || Key <- Keys],
        [ok = py_state:state_remove(Key) || Key <- Keys]
    end),
    ?assertEqual([], py_state:state_keys()),
    in_parallel(10, fun(Me) -> [py_state:state_store({Me, N}, N) || N <- lists:seq(1, Max div 8)] end),
    ?assertEqual(Max, length(py_state:state_keys())).

without_the_owner_it_says_not_running(Config) ->
    case proplists:get_value(own, Config) of
        undefined ->
            {skip, "the application runs in this node"};
        Pid ->
            stop(Pid),
            [
                ?assertEqual({error, not_running}, Operation())
             || Operation <- [
                    fun() -> py_state:state_fetch(a) end,
                    fun() -> py_state:state_store(a, 1) end,
                    fun() -> py_state:state_remove(a) end,
                    fun() -> py_state:state_incr(a) end,
                    fun py_state:state_keys/0,
                    fun py_state:state_clear/0
                ]
            ],
            ok
    end.

in_parallel(Count, Work) ->
    Started = [spawn_monitor(fun() -> Work(N) end) || N <- lists:seq(1, Count)],
    [
        receive
            {'DOWN', Monitor, process, Pid, Why} -> normal = Why
        end
     || {Pid, Monitor} <- Started
    ].
