%% Dictionaries that Erlang and several interpreters share: one step per key, bounds, owners.
-module(py_shared_dict_SUITE).

-include_lib("common_test/include/ct.hrl").
-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    what_one_side_stores_the_other_reads/1,
    a_value_is_swapped_only_for_the_one_that_is_there/1,
    an_atom_is_its_name_in_keys_and_comparisons/1,
    patterns_of_ets_are_plain_values/1,
    a_key_is_taken_once/1,
    interpreters_and_erlang_count_without_losing_one/1,
    a_function_is_applied_in_one_step_by_all_interpreters/1,
    a_default_is_set_once/1,
    iteration_is_over_a_copy/1,
    past_its_bound_it_says_full_and_existing_keys_still_change/1,
    the_bound_is_exact_under_concurrent_stores_and_removes/1,
    without_a_name_it_ends_with_its_owner/1,
    with_a_name_it_stays_until_it_is_closed/1,
    bad_options_are_refused/1,
    python_says_what_is_wrong/1
]).

%% Each process has names of its own, so nothing is imported for others.
-define(D, "__import__('erlang').SharedDict").

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) ->
    {ok, Dict} = py:shared_dict_new(#{name => dict, owner => whereis(init)}),
    [{dict, Dict} | Config].

end_per_testcase(_Case, Config) ->
    _ = py:shared_dict_close(?config(dict, Config)),
    ok.

what_one_side_stores_the_other_reads(Config) ->
    Dict = ?config(dict, Config),
    Value = #{<<"list">> => [1, 2.5, <<"x">>], <<"big">> => 1 bsl 100},
    ok = py:shared_dict_put(Dict, <<"key">>, Value),
    ?assertEqual({ok, Value}, py:eval(?D "(d)['key']", #{d => Dict})),
    ok = py:exec(?D "('dict')['other'] = (1, 'two')"),
    ?assertEqual({ok, {1, <<"two">>}}, py:shared_dict_get(Dict, other)),
    ?assertEqual({error, not_found}, py:shared_dict_get(Dict, missing)),
    ?assertEqual({ok, 7}, py:eval(?D "('dict').get('missing', 7)")),
    ?assertEqual({ok, [true, false]}, py:eval("['key' in " ?D "('dict'), 1 in " ?D "('dict')]")).

a_value_is_swapped_only_for_the_one_that_is_there(Config) ->
    Dict = ?config(dict, Config),
    ?assertEqual(false, py:shared_dict_swap(Dict, k, 1, 2)),
    ?assertEqual(true, py:shared_dict_put_new(Dict, k, 1)),
    ?assertEqual(false, py:shared_dict_put_new(Dict, k, 5)),
    ?assertEqual(false, py:shared_dict_swap(Dict, k, 1.0, 2)),
    ?assertEqual(true, py:shared_dict_swap(Dict, k, 1, 2)),
    ?assertEqual({ok, true}, py:eval(?D "('dict').compare_and_swap('k', 2, [3])")),
    ?assertEqual({ok, false}, py:eval(?D "('dict').compare_and_swap('k', 2, 4)")),
    ?assertEqual({ok, [3]}, py:shared_dict_get(Dict, k)).

an_atom_is_its_name_in_keys_and_comparisons(Config) ->
    Dict = ?config(dict, Config),
    ok = py:shared_dict_put(Dict, {user, 1}, #{state => ready}),
    ?assertEqual({ok, #{<<"state">> => <<"ready">>}}, py:eval(?D "('dict')[('user', 1)]")),
    %% Python can't give the atom back.
    ?assertEqual(
        {ok, true},
        py:eval(?D "('dict').compare_and_swap(('user', 1), {'state': 'ready'}, 'done')")
    ),
    ?assertEqual({ok, <<"done">>}, py:shared_dict_get(Dict, {user, 1})).

patterns_of_ets_are_plain_values(Config) ->
    Dict = ?config(dict, Config),
    ok = py:shared_dict_put(Dict, '_', '$1'),
    ok = py:shared_dict_put(Dict, '$1', {'$_', [{const, 1}]}),
    ?assertEqual(false, py:shared_dict_swap(Dict, '$1', '_', 0)),
    ?assertEqual(true, py:shared_dict_swap(Dict, '_', '$1', {{'$1'}})),
    ?assertEqual({ok, {{'$1'}}}, py:shared_dict_get(Dict, '_')),
    ?assertEqual({ok, {'$_', [{const, 1}]}}, py:shared_dict_get(Dict, <<"$1">>)).

a_key_is_taken_once(Config) ->
    Dict = ?config(dict, Config),
    ok = py:shared_dict_put(Dict, job, 1),
    Takers = [
        fun() -> py:shared_dict_take(Dict, job) end,
        fun() -> py:shared_dict_take(Dict, job) end,
        fun() -> py:eval(?D "('dict').pop('job', None)") end
    ],
    Got = [Value || {ok, Value} <- at_once(Takers), Value =/= none],
    ?assertEqual([1], Got),
    ?assertEqual(0, py:shared_dict_size(Dict)).

%% Main interpreter, two sub-interpreters where there are some, and two processes.
interpreters_and_erlang_count_without_losing_one(Config) ->
    Dict = ?config(dict, Config),
    Code = "import erlang\nd = erlang.SharedDict('dict')\nfor i in range(300): d.incr('hits'); d.incr(i % 7, 2)",
    with_interpreters(fun(Contexts) ->
        Python = [fun() -> py:exec(Ctx, Code) end || Ctx <- Contexts],
        Main = [fun() -> py:exec(Code) end || _ <- [1, 2]],
        Erlang = [fun() -> count(Dict, 300) end || _ <- [1, 2]],
        All = Python ++ Main ++ Erlang,
        _ = [ok = Done || Done <- at_once(All)],
        ?assertEqual({ok, 300 * length(All)}, py:shared_dict_get(Dict, hits)),
        Sum = lists:sum([N || {Key, N} <- py:shared_dict_to_list(Dict), is_integer(Key)]),
        ?assertEqual(2 * 300 * (length(All) - 2), Sum)
    end).

count(_Dict, 0) ->
    ok;
count(Dict, Left) ->
    true = is_integer(py:shared_dict_incr(Dict, hits)),
    count(Dict, Left - 1).

a_function_is_applied_in_one_step_by_all_interpreters(Config) ->
    Dict = ?config(dict, Config),
    Code =
        "import erlang\nd = erlang.SharedDict('dict')\n"
        "for i in range(100): d.apply('list', lambda x: x[:1] + [x[1] + 1], ['first', 0])",
    with_interpreters(fun(Contexts) ->
        All = [fun() -> py:exec(Code) end | [fun() -> py:exec(Ctx, Code) end || Ctx <- Contexts]],
        _ = [ok = Done || Done <- at_once(All)],
        ?assertEqual({ok, [<<"first">>, 100 * length(All)]}, py:shared_dict_get(Dict, list))
    end).

a_default_is_set_once(Config) ->
    Dict = ?config(dict, Config),
    Ask = fun(N) -> fun() -> py:eval(?D "('dict').setdefault('k', n)", #{n => N}) end end,
    Answers = at_once([Ask(N) || N <- lists:seq(1, 4)]),
    {ok, Value} = py:shared_dict_get(Dict, k),
    ?assertEqual(lists:duplicate(4, {ok, Value}), Answers).

iteration_is_over_a_copy(_Config) ->
    ok = py:exec(
        "import erlang\nd = erlang.SharedDict('dict')\n"
        "d.update({'a': 1, 'b': 2, 'c': 3})\n"
        "seen = []\n"
        "for key in d:\n"
        "    seen.append(key)\n"
        "    del d[key]\n"
        "    d[key + key] = 0\n"
        "rest = sorted(d.items())"
    ),
    ?assertEqual({ok, [<<"a">>, <<"b">>, <<"c">>]}, py:eval("sorted(seen)")),
    ?assertEqual({ok, [{<<"aa">>, 0}, {<<"bb">>, 0}, {<<"cc">>, 0}]}, py:eval("rest")),
    ?assertEqual({ok, {3, #{<<"aa">> => 0, <<"bb">> => 0, <<"cc">> => 0}}}, py:eval("(len(d), d.snapshot())")),
    ok = py:exec("d.clear()"),
    ?assertEqual({ok, []}, py:eval("list(d)")).

past_its_bound_it_says_full_and_existing_keys_still_change(_Config) ->
    {ok, Small} = py:shared_dict_new(#{max_entries => 2}),
    ok = py:shared_dict_put(Small, 1, a),
    ok = py:shared_dict_put(Small, 2, b),
    ?assertEqual({error, full}, py:shared_dict_put(Small, 3, c)),
    ?assertEqual({error, full}, py:shared_dict_incr(Small, 3)),
    ?assertEqual(ok, py:shared_dict_put(Small, 2, c)),
    ?assertEqual(false, py:shared_dict_put_new(Small, 2, d)),
    ?assertReason({'OverflowError', _}, py:exec([?D "('", Small, "')[3] = 1"])),
    {ok, c} = py:shared_dict_take(Small, 2),
    ?assertEqual(ok, py:shared_dict_put(Small, 3, c)),
    ok = py:shared_dict_clear(Small),
    ?assertEqual(0, py:shared_dict_size(Small)),
    ?assertEqual(1, py:shared_dict_incr(Small, 9)).

the_bound_is_exact_under_concurrent_stores_and_removes(_Config) ->
    {ok, Small} = py:shared_dict_new(#{max_entries => 10}),
    Storm = fun(From) ->
        fun() ->
            _ = [
                begin
                    _ = py:shared_dict_put(Small, From + N rem 8, N),
                    true = py:shared_dict_size(Small) =< 10,
                    py:shared_dict_take(Small, From + N rem 3)
                end
             || N <- lists:seq(1, 500)
            ],
            ok
        end
    end,
    [ok, ok, ok, ok] = at_once([Storm(From) || From <- [0, 4, 8, 12]]),
    ok = py:shared_dict_clear(Small),
    _ = [ok = py:shared_dict_put(Small, N, N) || N <- lists:seq(1, 10)],
    ?assertEqual({error, full}, py:shared_dict_put(Small, 11, 11)).

without_a_name_it_ends_with_its_owner(_Config) ->
    Test = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        {ok, Dict} = py:shared_dict_new(),
        ok = py:shared_dict_put(Dict, a, 1),
        Test ! {made, Dict},
        receive stop -> ok end
    end),
    Made = receive {made, Dict} -> Dict end,
    ?assertEqual({ok, 1}, py:shared_dict_get(Made, a)),
    Pid ! stop,
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    py_test:eventually(fun() -> py:shared_dict_get(Made, a) =:= {error, no_such_dict} end).

with_a_name_it_stays_until_it_is_closed(_Config) ->
    Name = <<"stays">>,
    {ok, Name} = py_test:in_process(fun() -> py:shared_dict_new(#{name => stays}) end),
    ok = py:shared_dict_put(Name, a, 1),
    ?assertEqual({error, exists}, py:shared_dict_new(#{name => Name})),
    ok = py:exec("again = " ?D "('stays', create=True, max_entries=5)"),
    ?assertEqual({ok, 1}, py:eval("again['a']")),
    ok = py:exec("again.close()"),
    ?assertEqual({error, no_such_dict}, py:shared_dict_put(stays, a, 1)),
    ?assertEqual({error, no_such_dict}, py:shared_dict_close(stays)).

bad_options_are_refused(_Config) ->
    Refused = fun(Opts) ->
        {error, {bad_argument, Text}} = py:shared_dict_new(Opts),
        Text
    end,
    ?assertMatch(<<"the option size means nothing here", _/binary>>, Refused(#{size => 1})),
    ?assertMatch(<<"the option name must be an atom or a binary", _/binary>>, Refused(#{name => 1})),
    ?assertMatch(<<"the option owner must be a pid", _/binary>>, Refused(#{owner => me})),
    ?assertMatch(<<"the option max_entries must be a positive integer", _/binary>>, Refused(#{max_entries => 0})),
    ?assertEqual({error, {bad_argument, opts}}, py:shared_dict_new([])).

python_says_what_is_wrong(_Config) ->
    ?assertReason({'KeyError', <<"'k'">>}, py:eval(?D "('dict')['k']")),
    ?assertReason({'LookupError', _}, py:eval(?D "('nowhere')")),
    ok = py:exec(?D "('dict')['text'] = 'x'"),
    ?assertReason({'TypeError', _}, py:eval(?D "('dict').incr('text')")),
    ?assertReason({'TypeError', _}, py:eval(?D "('dict').incr('text', 'x')")).

%%% Small things

with_interpreters(Test) ->
    Contexts = [Ctx || _ <- [1, 2], {ok, Ctx} <- [py_context:new(#{mode => subinterp})]],
    try
        Test(Contexts)
    after
        [py_context:stop(Ctx) || Ctx <- Contexts]
    end.

%% Each in a process of its own, all let go together; the answers in order.
at_once(Funs) ->
    Test = self(),
    Pids = [
        spawn_link(fun() ->
            receive go -> Test ! {self(), Fun()} end
        end)
     || Fun <- Funs
    ],
    _ = [Pid ! go || Pid <- Pids],
    [receive {Pid, Answer} -> Answer end || Pid <- Pids].
