%% Values that do their worst: names, depth, change under the converter's feet, forged bytes, views.
-module(py_hostile_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    an_exception_class_with_a_long_name_is_told/1,
    a_message_with_a_nul_is_told/1,
    a_message_with_a_lone_surrogate_is_told/1,
    a_hundred_thousand_exception_classes_make_no_atom/1,
    a_hundred_thousand_strings_make_no_atom/1,
    a_term_nested_too_deep_is_refused/1,
    a_result_nested_too_deep_is_refused/1,
    the_deepest_allowed_term_comes_back/1,
    objects_that_recurse_without_end_are_errors/1,
    recursion_without_end_is_an_error_below_and_after_deep_nesting/1,
    a_container_that_changes_while_it_is_converted_is_an_error/1,
    an_object_may_call_erlang_while_it_is_converted/1,
    wrong_arguments_are_refused_by_name/1,
    what_stands_for_keyword_arguments_is_named/1,
    a_function_name_may_be_any_text/1,
    a_name_with_a_nul_is_not_cut/1,
    code_with_a_nul_is_not_cut/1,
    bytes_that_python_made_are_read_safely/1,
    a_forged_atom_is_counted/1,
    a_view_keeps_its_memory/1,
    a_view_of_a_binary_that_grows_later_stays/1,
    a_view_is_read_only/1,
    a_result_does_not_change_with_its_object/1,
    a_large_result_keeps_its_memory/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% Whatever the test did, the node and its Python are well.
end_per_testcase(_Case, _Config) ->
    {ok, _} = py:call(py_hostile, forget, []),
    {ok, 3} = py:call(operator, add, [1, 2]),
    ok.

hostile(Function) -> hostile(Function, []).

hostile(Function, Args) -> py:call(py_hostile, Function, Args).

%% ---- exceptions

an_exception_class_with_a_long_name_is_told(_Config) ->
    Name = iolist_to_binary(["py_hostile.", lists:duplicate(300, $E)]),
    ?assertReason({Name, <<"long">>}, hostile(raise_long_name)),
    ?assertMatch(#{type := Name}, py:last_error()).

a_message_with_a_nul_is_told(_Config) ->
    ?assertReason({'ValueError', <<"a", 0, "b">>}, hostile(raise_nul)),
    ?assertReason({'ValueError', <<"x", 0, "y">>}, hostile(raise_text, [<<"x", 0, "y">>])).

a_message_with_a_lone_surrogate_is_told(_Config) ->
    {error, {'ValueError', Message}} = Error = hostile(raise_surrogate),
    ?assertReason({'ValueError', _}, Error),
    ?assertMatch(<<"a", _/binary>>, Message),
    ?assertEqual($b, binary:last(Message)),
    ?assertMatch(#{type := 'ValueError'}, py:last_error()).

a_hundred_thousand_exception_classes_make_no_atom(_Config) ->
    %% What is made once is made by the first ones.
    [hostile(raise_new, [N]) || N <- lists:seq(1, 10)],
    Before = erlang:system_info(atom_count),
    [{error, {<<"made.up", _/binary>>, _}} = hostile(raise_new, [N]) || N <- lists:seq(1, py_test:full(10_000, 100_000))],
    ?assertEqual(0, erlang:system_info(atom_count) - Before).

a_hundred_thousand_strings_make_no_atom(_Config) ->
    {ok, _} = hostile(new_strings, [10]),
    Before = erlang:system_info(atom_count),
    {ok, Map} = hostile(new_strings, [100_000]),
    ?assertEqual(100_000, map_size(Map)),
    ?assertMatch(#{<<"never_seen_7">> := [<<"neither_7">>]}, Map),
    ?assertEqual(0, erlang:system_info(atom_count) - Before).

%% ---- depth

a_term_nested_too_deep_is_refused(_Config) ->
    Deep = [
        lists:foldl(fun(_, T) -> Wrap(T) end, [], lists:seq(1, 10_000))
     || Wrap <- [fun(T) -> [T] end, fun(T) -> {T} end, fun(T) -> #{k => T} end, fun(T) -> [1, {T}] end]
    ],
    [?assertReason({bad_argument, too_deep}, py:call(py_tools, identity, [T])) || T <- Deep],
    [?assertReason({bad_argument, too_deep}, py:eval(<<"x">>, #{x => T})) || T <- Deep],
    %% The answer of a callback, too.
    ok = py:register_function(hostile_deep, fun([]) -> hd(Deep) end),
    ?assertReason({_, _}, py:eval(<<"__import__('erlang').hostile_deep()">>)),
    ok = py:unregister_function(hostile_deep).

a_result_nested_too_deep_is_refused(_Config) ->
    [
        ?assertReason({bad_argument, too_deep}, hostile(Function, [10_000]))
     || Function <- [deep_list, deep_dict, deep_tuple]
    ],
    ?assertReason({bad_argument, too_deep}, hostile(circular)),
    %% As the message of an erlang.send: an exception in Python.
    ?assertReason(
        {'RecursionError', _},
        py:eval(<<"__import__('erlang').send(pid, __import__('py_hostile').deep_list(10_000))">>, #{pid => self()})
    ),
    ok = py_test:nothing_waits().

the_deepest_allowed_term_comes_back(_Config) ->
    #{max_depth := Max} = persistent_term:get(py_config),
    Term = lists:foldl(fun(_, T) -> [T] end, [], lists:seq(1, Max - 10)),
    ?assertEqual({ok, Term}, py:call(py_tools, identity, [Term])).

objects_that_recurse_without_end_are_errors(_Config) ->
    ?assertReason({bad_argument, too_deep}, hostile(endless)),
    ?assertReason({not_convertible, _}, hostile(bad_repr)),
    ?assertReason({<<"py_hostile.BadError">>, _}, hostile(raise_bad_error)),
    ?assertReason({<<"py_hostile.BadError">>, _}, hostile(raise_unprintable)),
    ?assertMatch(#{cause := #{type := 'ValueError'}}, py:last_error()),
    ?assertReason({'RecursionError', _}, py:stream(py_hostile, bad_iter, [])).

%% In a node of its own: the end of the stack is the end of the node.
recursion_without_end_is_an_error_below_and_after_deep_nesting(Config) ->
    Peer = py_test:peer([]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ok = peer:call(Peer, py_test, export_python, [proplists:get_value(data_dir, Config)]),
    {Below, After} = peer:call(Peer, erlang, apply, [fun below_and_after/0, []], 60_000),
    [
        begin
            ?assertReason({not_convertible, _}, Repr),
            ?assertReason({<<"py_hostile.BadError">>, _}, Error),
            ?assertReason({bad_argument, too_deep}, Endless)
        end
     || [Repr, Error, Endless] <- [Below, After]
    ],
    ok = py_test:stop_peer(Peer).

below_and_after() ->
    Recurse = fun() -> [hostile(F) || F <- [bad_repr, raise_bad_error, endless]] end,
    Test = self(),
    ok = py:register_function(hostile_down, fun
        ([0]) ->
            Test ! {below, Recurse()},
            0;
        ([N]) ->
            {ok, Depth} = hostile(down, [N - 1]),
            Depth + 1
    end),
    {ok, 3000} = py:call(py_hostile, down, [3000], #{}, 60_000),
    receive
        {below, Below} -> {Below, Recurse()}
    end.

%% ---- user code during the conversion

a_container_that_changes_while_it_is_converted_is_an_error(_Config) ->
    ?assertReason({'RuntimeError', _}, hostile(shrinking_list)),
    [changed_dict(py:execution_mode(), hostile(F)) || F <- [growing_dict, shrinking_dict]],
    case hostile(replaced_dict) of
        {ok, Map} -> ?assertEqual(100, map_size(Map));
        Error -> ?assertReason({_, _}, Error)
    end.

%% Without a GIL a dict is copied before it is converted: it is whole, as it was.
changed_dict(free_threaded, Answer) ->
    {ok, Map} = Answer,
    ?assertEqual(100, map_size(Map));
changed_dict(_Mode, Answer) ->
    ?assertReason({'RuntimeError', _}, Answer).

an_object_may_call_erlang_while_it_is_converted(_Config) ->
    ok = py:register_function(hostile_add, fun([A, B]) ->
        {ok, Sum} = py:call(operator, add, [A, B]),
        Sum
    end),
    ?assertEqual({ok, #{<<"sum">> => 3}}, hostile(talks)),
    ok = py:unregister_function(hostile_add).

%% ---- names and arguments

wrong_arguments_are_refused_by_name(_Config) ->
    Wrong = [
        {module, fun() -> py:call(1, f, []) end},
        {module, fun() -> py:call([], f, []) end},
        {function, fun() -> py:call(math, {sqrt}, []) end},
        {args, fun() -> py:call(math, sqrt, 16) end},
        {args, fun() -> py:call(math, sqrt, [1 | 2]) end},
        {code, fun() -> py:eval({code}) end},
        {timeout, fun() -> py:call(math, sqrt, [4], #{}, -1) end},
        {timeout, fun() -> py:call(math, sqrt, [4], #{}, 1.5) end},
        {timeout, fun() -> py:call(math, sqrt, [4], #{}, 1 bsl 40) end},
        {
            <<"the option timeout must be a time in milliseconds, or infinity, got 1099511627776">>,
            fun() -> py:call(math, sqrt, [4], #{}, #{timeout => 1 bsl 40}) end
        },
        {{no_such_pool, nowhere}, fun() -> py:call(nowhere, math, sqrt, [4]) end}
    ],
    [?assertReason({bad_argument, What}, Fun()) || {What, Fun} <- Wrong],
    ?assertReason({bad_argument, _}, py:call(<<255>>, sqrt, [4])),
    ?assertReason({_, _}, py:call(<<>>, sqrt, [4])),
    ?assertReason({bad_argument, _}, py:call(math, sqrt, [4], #{1 => 2})),
    ok = py_test:nothing_waits().

what_stands_for_keyword_arguments_is_named(_Config) ->
    Functions = #{
        call => fun(A, Kw) -> py:call(math, gcd, A, Kw) end,
        call_in_time => fun(A, Kw) -> py:call(math, gcd, A, Kw, 5000) end,
        spawn_call => fun(A, Kw) -> py:await(py:spawn_call(math, gcd, A, Kw)) end,
        async_call => fun(A, Kw) -> py:await(py:async_call(math, gcd, A, Kw)) end,
        async_stream => fun(A, Kw) -> py:async_stream(math, gcd, A, Kw) end,
        stream => fun(A, Kw) -> py:stream(math, gcd, A, Kw) end,
        stream_start => fun(A, Kw) -> py:stream_start(math, gcd, A, Kw) end
    },
    Answers = [
        {Name, Args, py_test:reason(Function(Args, Kw))}
     || {Name, Function} <- maps:to_list(Functions),
        {Args, Kw} <- [{[], 5000}, {[4], 5000}, {[48, 36], 5000}, {[4, 6], [{key, 5000}]}]
    ],
    Named = fun
        ({_, _, {bad_argument, <<"keyword arguments must be a map, got ", Rest/binary>>}}) ->
            re:run(Rest, "5000.*; a timeout is the fifth argument") =/= nomatch;
        (_) ->
            false
    end,
    ?assertEqual([], [Answer || Answer <- Answers, not Named(Answer)]),
    ?assertReason({bad_argument, <<"the names for the code must be a map", _/binary>>}, py:eval(<<"1">>, 5000)),
    ?assertReason({bad_argument, <<"the names for the code must be a map", _/binary>>}, py:stream_eval(<<"1">>, 5000)),
    {ok, Ctx} = py_context:new(#{}),
    ?assertReason({bad_argument, <<"keyword arguments must be", _/binary>>}, py:call(Ctx, math, sqrt, [4], 5000)),
    ok = py_context:stop(Ctx).

a_function_name_may_be_any_text(_Config) ->
    ok = py:exec(<<"def größe():\n    return 1\ndef 数():\n    return 2\n"/utf8>>),
    [
        ?assertEqual({ok, Value}, py:call('__main__', Name, []))
     || {Value, Names} <- [
            {1, ['größe', <<"größe"/utf8>>, "größe"]}, {2, ['数', <<"数"/utf8>>, "数"]}
        ],
        Name <- Names
    ].

a_name_with_a_nul_is_not_cut(_Config) ->
    ?assertReason({_, _}, py:call(<<"math", 0, "x">>, sqrt, [4])),
    ?assertReason({_, _}, py:call(math, <<"sqrt", 0, "x">>, [4])),
    ?assertReason({_, _}, py:call(math, <<"sqrt", 0>>, [4])),

    ?assertEqual({ok, #{<<"a", 0>> => 1, <<"a">> => 2}}, py:call(builtins, dict, [], #{<<"a", 0>> => 1, a => 2})),
    ok = py:register_function(<<"cut">>, fun(_) -> cut end),
    ?assertReason(
        {<<"erlang.ErlangError">>, _}, py:call(erlang, call, [<<"cut", 0, "more">>])
    ),
    ok = py:unregister_function(<<"cut">>),
    true = register(cut, self()),
    ?assertEqual({ok, none}, py:call(erlang, whereis, [<<"cut", 0>>])),
    ?assertReason({'ValueError', _}, py:call(erlang, send, [<<"cut", 0>>, hello])),
    true = unregister(cut),
    ok = py_test:nothing_waits().

code_with_a_nul_is_not_cut(_Config) ->
    ?assertReason({_, _}, py:eval(<<"1", 0, " + 1">>)),
    ?assertReason({_, _}, py:exec(<<"x = 1", 0, "\nx = 2">>)).

%% ---- bytes

bytes_that_python_made_are_read_safely(_Config) ->
    Bytes = <<131, 119, 9, "brand_new">>,
    ?assertEqual({ok, Bytes}, hostile(term_bytes, [<<"brand_new">>])),
    ?assertEqual([], [{M, unsafe(M)} || M <- our_modules(), unsafe(M) =/= []]).

%% The benchmark reads what it has written itself.
our_modules() ->
    {ok, Modules} = application:get_key(erlang_python, modules),
    Modules -- [py_unified_bench].

%% Every call of binary_to_term in a module's code that may make atoms.
unsafe(Module) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(Module), [abstract_code]),
    [Line || {call, Line, Called, Args} <- nodes_of(Forms), is_decoder(Called), not is_safe(Args)].

is_safe([_, Options]) -> lists:any(fun is_the_atom_safe/1, nodes_of(Options));
is_safe(_) -> false.

is_the_atom_safe({atom, _, safe}) -> true;
is_the_atom_safe(_) -> false.

is_decoder({atom, _, binary_to_term}) -> true;
is_decoder({remote, _, {atom, _, erlang}, {atom, _, binary_to_term}}) -> true;
is_decoder(_) -> false.

nodes_of(Tuple) when is_tuple(Tuple) -> [Tuple | nodes_of(tuple_to_list(Tuple))];
nodes_of([Head | Tail]) -> nodes_of(Head) ++ nodes_of(Tail);
nodes_of(_) -> [].

%% Made without its constructor: the quota counts it all the same (and refuses it past its end,
%% see py_callback_SUITE).
a_forged_atom_is_counted(_Config) ->
    #{atoms_minted := Before} = py:stats(),
    {ok, Atom} = hostile(forged_atom),
    ?assert(is_atom(Atom)),
    ?assertMatch(#{atoms_minted := Minted} when Minted =:= Before + 1, py:stats()).

%% ---- memory

a_view_keeps_its_memory(_Config) ->
    Sizes = [0, 1, 64, 5000, 1_000_000],
    Bins = [binary:copy(<<(N rem 256)>>, N) || N <- Sizes],
    [
        ?assertEqual({ok, {<<"memoryview">>, byte_size(B), true}}, hostile(keep, [{view, B}]))
     || B <- Bins
    ],
    %% Nested ones, too.
    {ok, _} = py:call(py_hostile, keep, [{view, hd(lists:reverse(Bins))}], #{}, 5000),
    ok = churn(),
    {ok, Kept} = hostile(kept),
    ?assertEqual(Sizes ++ [1_000_000], [byte_size(B) || B <- Kept]),
    ?assertEqual([<<(N rem 256)>> || N <- Sizes, N > 0], [binary:part(B, byte_size(B), -1) || B <- lists:droplast(Kept), B =/= <<>>]).

a_view_of_a_binary_that_grows_later_stays(_Config) ->
    %% A binary made by appending has room behind it, and appending writes there or moves it.
    Start = lists:foldl(fun(_, Acc) -> <<Acc/binary, "abcdefgh">> end, <<>>, lists:seq(1, 10_000)),
    {ok, _} = hostile(keep, [{view, Start}]),
    Grown = lists:foldl(fun(_, Acc) -> <<Acc/binary, "XXXXXXXX">> end, Start, lists:seq(1, 200_000)),
    ?assertEqual(80_000 + 1_600_000, byte_size(Grown)),
    ok = churn(),
    ?assertEqual({ok, [Start]}, hostile(kept)),
    ?assertEqual({ok, true}, hostile(growing_is_refused)).

churn() ->
    _ = [binary:copy(<<"trash">>, 100_000) || _ <- lists:seq(1, 20)],
    _ = [garbage_collect(P) || P <- processes()],
    ok.

a_view_is_read_only(_Config) ->
    Bin = binary:copy(<<0>>, 10_000),
    ?assertReason({'TypeError', _}, hostile(write_to, [{view, Bin}])),
    ?assertEqual(binary:copy(<<0>>, 10_000), Bin).

a_result_does_not_change_with_its_object(_Config) ->
    {ok, Array} = hostile(own, [<<"array">>]),
    {ok, View} = hostile(own, [<<"view">>]),
    {ok, Both} = hostile(own, [<<"both">>]),
    {ok, none} = hostile(change_owned),
    Expected = binary:copy(<<"x">>, 1_000_000),
    [?assert(Bytes =:= Expected) || Bytes <- [Array, View | Both]].

a_large_result_keeps_its_memory(_Config) ->
    {ok, Bytes} = py:eval(<<"b'0123456789' * 100_000">>),
    {ok, Text} = py:eval(<<"'ä' * 500_000"/utf8>>),
    {ok, _} = py:gc(),
    {ok, _} = py:eval(<<"[b'x' * 1_000_000 for _ in range(20)] and None">>),
    ?assertEqual(binary:copy(<<"0123456789">>, 100_000), Bytes),
    ?assertEqual(binary:copy(<<"ä"/utf8>>, 500_000), Text).
