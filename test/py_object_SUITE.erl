%% Objects that stay in Python while Erlang has references to them; converters of users.
-module(py_object_SUITE).

-include("py_test.hrl").
-include_lib("erlang_python/src/py_nif.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([
    any_object_is_returned_as_a_reference/1,
    methods_are_called_with_arguments_and_keywords/1,
    an_exception_of_a_method_is_an_error/1,
    attributes_are_read/1,
    a_reference_becomes_a_term_when_asked/1,
    a_reference_is_the_object_wherever_it_is_passed/1,
    a_reference_works_in_any_process/1,
    a_reference_works_in_a_context_and_in_a_callback/1,
    an_object_is_released_when_its_reference_is_dropped/1,
    an_argument_lives_until_its_call_has_it/1,
    an_object_is_released_when_the_process_that_has_it_dies/1,
    an_object_named_by_a_queued_call_is_not_released/1,
    a_nested_call_that_was_given_up_keeps_no_objects/1,
    an_object_named_by_an_answer_of_erlang_is_not_released/1,
    ten_thousand_objects_leave_nothing_behind/1,
    only_references_are_references/1,
    a_forged_reference_is_refused/1,
    the_numbers_of_a_reference_cannot_be_guessed/1,
    a_converter_makes_terms_of_a_class/1,
    a_converter_makes_objects_of_a_tuple/1,
    a_converter_that_fails_is_an_error/1,
    a_converter_that_cannot_be_found_is_refused/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) ->
    {ok, _} = py:call(py_objects, forget, []),
    Config.

account(Owner) ->
    {ok, Account} = py:call(py_objects, 'Account', [Owner], #{}, #{return => ref}),
    Account.

alive() ->
    ok = py_test:collect_if_free_threaded(),
    {ok, Count} = py:call(py_objects, alive, []),
    Count.

%% ---- references

any_object_is_returned_as_a_reference(_Config) ->
    [
        begin
            {ok, Ref} = py:eval(Code, #{}, #{return => ref}),
            ?assert(py:is_ref(Ref)),
            ?assertMatch({'$py_ref', _, _, _, _}, Ref),
            ?assertEqual({ok, Type}, py:call(py_tools, identity, [Type])),
            {ok, Class} = py:call(builtins, type, [Ref], #{}, #{return => ref}),
            ?assertEqual({ok, Type}, py:getattr(Class, '__name__'))
        end
     || {Code, Type} <- [
            {<<"1">>, <<"int">>},
            {<<"[1, 2]">>, <<"list">>},
            {<<"object()">>, <<"object">>},
            {<<"(x for x in [1])">>, <<"generator">>},
            {<<"__import__('math')">>, <<"module">>},
            {<<"None">>, <<"NoneType">>}
        ]
    ],
    ?assertReason({not_convertible, <<"<object object", _/binary>>}, py:eval(<<"object()">>)).

methods_are_called_with_arguments_and_keywords(_Config) ->
    Account = account(ann),
    [?assertEqual({ok, 10 * N}, py:call_method(Account, deposit, [10])) || N <- [1, 2]],
    ?assertEqual({ok, 29}, py:call_method(Account, <<"deposit">>, [10], #{fee => 1})),
    ?assertEqual({ok, 39}, py:call_method(Account, "deposit", [10])).

an_exception_of_a_method_is_an_error(_Config) ->
    Account = account(ann),
    ?assertReason({'ValueError', <<"ann">>}, py:call_method(Account, fail, [])),
    ?assertReason({'AttributeError', _}, py:call_method(Account, withdraw, [])),
    ?assertReason({'TypeError', _}, py:call_method(Account, deposit, [])),
    ?assertReason({not_convertible, _}, py:call_method(Account, other, [])).

attributes_are_read(_Config) ->
    Account = account(ann),
    ?assertEqual({ok, <<"ann">>}, py:getattr(Account, owner)),
    ?assertEqual({ok, 0}, py:getattr(Account, <<"balance">>)),
    ?assertEqual({ok, <<"account">>}, py:getattr(Account, "kind")),
    ?assertReason({'AttributeError', _}, py:getattr(Account, nothing)).

a_reference_becomes_a_term_when_asked(_Config) ->
    {ok, Ref} = py:eval(<<"{'a': [1, 2]}">>, #{}, #{return => ref}),
    ?assertEqual({ok, #{<<"a">> => [1, 2]}}, py:to_term(Ref)),
    ?assertReason({not_convertible, _}, py:to_term(account(ann))).

a_reference_is_the_object_wherever_it_is_passed(_Config) ->
    {Ann, Bob} = {account(ann), account(bob)},
    ?assertEqual({ok, {-5, 5}}, py:call(py_objects, transfer, [Ann, Bob, 5])),
    ?assertEqual({ok, true}, py:call(py_objects, same, [Ann, Ann])),
    ?assertEqual({ok, false}, py:call(py_objects, same, [Ann, Bob])),
    ?assertEqual({ok, [-5, 5]}, py:call(py_objects, balances, [[Ann, Bob]])),
    ?assertEqual({ok, [5]}, py:call(py_objects, balances, [], #{accounts => [Bob]})),
    ?assertEqual({ok, 5}, py:eval(<<"d['k'].balance">>, #{d => #{k => Bob}})).

a_reference_works_in_any_process(_Config) ->
    Account = account(ann),
    {ok, 7} = py_test:in_process(fun() -> py:call_method(Account, deposit, [7]) end),
    ?assertEqual({ok, 7}, py:getattr(Account, balance)).

a_reference_works_in_a_context_and_in_a_callback(_Config) ->
    Account = account(ann),
    {ok, Ctx} = py_context:new(#{}),
    ?assertEqual({ok, 0}, py:eval(Ctx, <<"a.balance">>, #{a => Account})),
    ok = py_context:stop(Ctx),
    %% The answer of a callback may be one.
    ok = py:register_function(obj_account, fun([]) -> Account end),
    ?assertEqual({ok, <<"ann">>}, py:eval(<<"__import__('erlang').obj_account().owner">>)),
    ok = py:unregister_function(obj_account).

%% The caller drops the reference with the call itself, and collects its garbage before the call is submitted.
an_argument_lives_until_its_call_has_it(_Config) ->
    Exported = fun() -> maps:get(exported_objects, py:stats()) end,
    Encode = [
        fun(Ref) -> {?OP_CALL, py_call:payload(builtins, isinstance, [Ref, Ref], #{})} end,
        fun(Ref) -> {?OP_CALL, py_call:payload(builtins, dict, [], #{x => Ref})} end,
        fun(Ref) -> {?OP_EVAL, py_call:source(<<"isinstance(x, x)">>, #{x => Ref})} end
    ],
    Each = fun(Fun) ->
        Before = Exported(),
        {Op, {ok, Payload}} = Fun(class()),
        true = garbage_collect(),
        %% Whatever was posted for release is released by now.
        {ok, _} = py:call(py_objects, 'Account', [<<"other">>], #{}, #{return => ref}),
        true = garbage_collect(),
        ok = py_test:eventually(fun() -> Exported() =< Before + 1 end),
        py_call:sync(default, Op, ?FLAG_RETURN_REF, Payload, 5000)
    end,
    Is = fun({ok, Ref}) -> py:is_ref(Ref); (Error) -> Error end,
    [?assertEqual(true, py_test:in_process(fun() -> Is(Each(Fun)) end)) || Fun <- Encode],
    ok = py_test:eventually(fun() -> Exported() =:= 0 end).

class() ->
    {ok, Ref} = py:eval(<<"type('Fresh', (), {})">>, #{}, #{return => ref}),
    Ref.

an_object_is_released_when_its_reference_is_dropped(_Config) ->
    ok = drop(account(ann)),
    true = garbage_collect(),
    ok = py_test:eventually(fun() -> alive() =:= 0 end).

drop(Account) ->
    1 = alive(),
    {ok, 1} = py:call_method(Account, deposit, [1]),
    ok.

an_object_is_released_when_the_process_that_has_it_dies(_Config) ->
    Test = self(),
    Pid = spawn(fun() ->
        Account = account(ann),
        Test ! made,
        receive
            never -> Account
        end
    end),
    ok = py_test:message(made),
    ?assertEqual(1, alive()),
    ok = py_test:down(Pid),
    ok = py_test:eventually(fun() -> alive() =:= 0 end).

an_object_named_by_a_queued_call_is_not_released(_Config) ->
    ok = py:register_pool(obj_one, #{size => 1}),
    Busy = py_test:occupy(obj_one, 1),
    Calls = py_test:in_process(fun() ->
        Account = account(ann),
        Ref = py:spawn_call(obj_one, builtins, getattr, [Account, owner], #{}),
        {queued, Ref}
    end),
    %% That process is dead, its call cancelled; this one's is not.
    ?assertMatch({queued, _}, Calls),
    Ref = queue_and_drop(),
    true = garbage_collect(),
    [{ok, _} = py:call(py_tools, nap, [0.02]) || _ <- lists:seq(1, 5)],
    ok = py_test:release(Busy),
    ?assertEqual({ok, <<"bob">>}, py:await(Ref)),
    ok = py_test:eventually(fun() -> alive() =:= 0 end),
    ok = py:unregister_pool(obj_one).

queue_and_drop() ->
    py:spawn_call(builtins, getattr, [account(bob), owner], #{}, #{context => obj_one}).

%% The answer waits for its loop, and the process that answered has forgotten the object.
an_object_named_by_an_answer_of_erlang_is_not_released(_Config) ->
    Table = ets:new(executor, [public]),
    ok = py:register_function(obj_made, fun([]) ->
        true = ets:insert(Table, {executor, self()}),
        account(ann)
    end),
    ok = py:register_function(obj_forgotten, fun([]) ->
        ok = py_test:eventually(fun() -> has_answered(Table) end),
        [{executor, Executor}] = ets:lookup(Table, executor),
        true = garbage_collect(Executor),
        ok = py_test:in_process(fun() ->
            [{ok, _} = py:call(py_tools, nap, [0.02]) || _ <- lists:seq(1, 5)],
            ok
        end)
    end),
    Ref = py:async_call(py_objects, take_late, []),
    ?assertEqual({ok, <<"ann">>}, py:await(Ref)),
    ok = py_test:eventually(fun() -> alive() =:= 0 end),
    ok = py:unregister_function(obj_made),
    ok = py:unregister_function(obj_forgotten).

%% The second call waits behind the first, which cannot be stopped, and has not begun when its caller answers.
a_nested_call_that_was_given_up_keeps_no_objects(_Config) ->
    ok = py:register_function(obj_gives_up, fun([]) ->
        [?assertReason(timeout, py:call(time, sleep, [1], #{}, 50)) || _ <- [1, 2]],
        none
    end),
    ?assertEqual({ok, none}, py:call(erlang, call, [obj_gives_up])),
    ok = drop(account(ann)),
    true = garbage_collect(),
    ok = py_test:eventually(fun() -> alive() =:= 0 end),
    ok = py:unregister_function(obj_gives_up).

has_answered(Table) ->
    case ets:lookup(Table, executor) of
        [{executor, Pid}] when Pid =:= self() -> true;
        [{executor, Pid}] ->
            case process_info(Pid, current_function) of
                {current_function, {py_executor, wait, _}} -> true;
                undefined -> true;
                _ -> false
            end;
        [] -> false
    end.

ten_thousand_objects_leave_nothing_behind(_Config) ->
    #{exported_objects := Before} = py:stats(),
    Many = py_test:in_process(fun() ->
        Accounts = [account(N) || N <- lists:seq(1, 10_000)],
        {ok, Balances} = py:call(py_objects, balances, [Accounts]),
        length(Balances)
    end),
    ?assertEqual(10_000, Many),
    ok = py_test:eventually(fun() -> alive() =:= 0 end),
    ?assertMatch(#{exported_objects := Before}, py:stats()).

only_references_are_references(_Config) ->
    [
        ?assertNot(py:is_ref(Term))
     || Term <- [ref, make_ref(), {'$py_ref', 0, 0, 1, make_ref()}, {'$py_ref', 0, 0, 1, x}, self()]
    ].

a_forged_reference_is_refused(_Config) ->
    {'$py_ref', Interp, Index, Generation, Resource} = Account = account(ann),
    Forged = [
        {'$py_ref', Interp, Index, Generation + 1, Resource},
        {'$py_ref', Interp, Index + 1_000_000, Generation, Resource},
        {'$py_ref', Interp, -1, Generation, Resource},
        {'$py_ref', Interp, 1 bsl 70, Generation, Resource},
        {'$py_ref', Interp, Index, text, Resource}
    ],
    [?assertReason({bad_argument, _}, py:getattr(F, owner)) || F <- Forged],
    ?assertEqual({ok, <<"ann">>}, py:getattr(Account, owner)).

%% What a stranger can write, he must not be able to open.
the_numbers_of_a_reference_cannot_be_guessed(_Config) ->
    Accounts = [account(ann) || _ <- lists:seq(1, 20)],
    Guesses = [{'$py_ref', 0, I, G, none} || I <- lists:seq(0, 30), G <- lists:seq(1, 30)],
    [?assertReason({bad_argument, _}, py:getattr(Guess, owner)) || Guess <- Guesses],
    Generations = [Generation || {'$py_ref', 0, _, Generation, _} <- Accounts],
    ?assertEqual(20, length(lists:usort(Generations))),
    %% Nor from the others.
    [
        ?assertReason({bad_argument, _}, py:getattr({'$py_ref', 0, I, G + D, none}, owner))
     || {'$py_ref', 0, I, G, _} <- Accounts, D <- [-2, -1, 1, 2]
    ],
    ?assertEqual({ok, <<"ann">>}, py:getattr(hd(Accounts), owner)).

%% ---- converters

a_converter_makes_terms_of_a_class(_Config) ->
    ok = py:register_converter(to_erlang, 'py_objects.Money', {py_objects, money_term}),
    ?assertEqual({ok, [{<<"money">>, 5, <<"EUR">>}]}, py:call(py_objects, give_money, [5])),
    {ok, none} = py:call(erlang, send, [self(), 1]),
    ok = py_test:message(1),
    ok = py:exec(<<"import erlang, py_objects\nerlang.send(erlang.self(), py_objects.give_money(7))">>),
    ok = py_test:message([{<<"money">>, 7, <<"EUR">>}]).

a_converter_makes_objects_of_a_tuple(_Config) ->
    ok = py:register_converter(to_python, money, {py_objects, make_money}),
    ?assertEqual({ok, <<"Money 3 USD">>}, py:call(py_objects, describe_money, [{money, 3, 'USD'}])),
    ?assertReason({'TypeError', _}, py:call(py_objects, describe_money, [{money, 3}])),
    %% Other tuples are what they were.
    ?assertEqual({ok, {<<"coins">>, 3}}, py:call(py_tools, identity, [{coins, 3}])).

a_converter_that_fails_is_an_error(_Config) ->
    ok = py:register_converter(to_erlang, <<"py_objects.Broken">>, {py_objects, broken_term}),
    ?assertReason({'ValueError', <<"this converter is broken">>}, py:call(py_objects, give_broken, [])),
    ok = py:register_converter(to_erlang, "py_objects.Loop", {"py_objects", "loop_term"}),
    ?assertReason({bad_argument, too_deep}, py:call(py_objects, give_loop, [])).

a_converter_that_cannot_be_found_is_refused(_Config) ->
    [
        ?assertReason({_, _}, py:register_converter(Direction, What, Function))
     || {Direction, What, Function} <- [
            {to_erlang, 'py_objects.Nothing', {py_objects, money_term}},
            {to_erlang, 'py_objects.Money', {py_objects, nothing}},
            {to_erlang, 'no_module.Money', {py_objects, money_term}},
            {to_erlang, 'Money', {py_objects, money_term}},
            {to_python, money, {no_module, make}},
            {sideways, money, {py_objects, make_money}}
        ]
    ].
