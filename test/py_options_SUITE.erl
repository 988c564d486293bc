%% An option that a function does not take is refused, not ignored; and the table of those it takes is true.
-module(py_options_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    every_family_is_asked/1,
    every_option_has_a_value_here/1,
    an_option_of_others_is_refused/1,
    an_option_of_its_own_is_taken/1,
    a_default_is_a_value_that_may_be_given/1,
    a_value_of_another_kind_is_refused/1,
    a_number_that_is_too_large_is_refused/1,
    options_that_are_no_map_are_refused/1,
    a_window_needs_somebody_to_stream_to/1,
    answers_go_to_processes_of_this_node/1,
    a_slip_of_the_fingers_gets_the_right_spelling/1,
    the_error_is_a_sentence/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% By the names of `py_options:families/0': each with options.
functions() ->
    maps:merge(calls(), others()).

calls() ->
    Graph = #{nodes => #{a => #{run => {py, os, getpid}}}},
    #{
        {py, call} => fun(O) -> py:call(math, sqrt, [4], #{}, O) end,
        {py, eval} => fun(O) -> py:eval(<<"1">>, #{}, O) end,
        {py, ctx_call} => fun(O) -> py:with_context(fun(Ctx) -> py:ctx_call(Ctx, math, sqrt, [4], #{}, O) end) end,
        {py, ctx_eval} => fun(O) -> py:with_context(fun(Ctx) -> py:ctx_eval(Ctx, <<"1">>, #{}, O) end) end,
        {py_event_loop, run} => fun(O) -> py_event_loop:run(math, sqrt, [4], O) end,
        {py_wsgi, run} => fun(O) -> py_wsgi:run(m, app, #{}, O) end,
        {py, stream} => fun(O) -> py:stream(builtins, range, [1], #{}, O) end,
        {py, stream_eval} => fun(O) -> py:stream_eval(<<"[1]">>, #{}, O) end,
        {py, async_stream} => fun(O) -> py:async_stream(builtins, range, [1], #{}, O) end,
        {py, stream_start} => fun(O) -> py:stream_start(builtins, range, [0], #{}, O) end,
        {py, cast} => fun cast/1,
        {py, spawn_call} => fun(O) -> py:await(py:spawn_call(math, sqrt, [4], #{}, O)) end,
        {py, async_call} => fun(O) -> py:await(py:async_call(math, sqrt, [4], #{}, O)) end,
        {py, async_gather} => fun(O) -> py:async_gather([{math, sqrt, [4]}], O) end,
        {py, parallel} => fun(O) -> py:parallel([], O) end,
        {py, map} => fun(O) -> py:map({math, sqrt}, [], O) end,
        {py_dag, run} => fun(O) -> py_dag:run(Graph, #{}, O) end,
        {py_dag, start} => fun(O) -> ended(py_dag:start(Graph, #{}, O)) end,
        {py_asgi, run} => fun(O) -> py_asgi:run(m, app, #{}, <<>>, O) end,
        {py_asgi, run_async} => fun(O) -> asgi(py_asgi:run_async(m, app, #{}, <<>>, O)) end,
        {py_event_loop, run_async} => fun run_async/1
    }.

others() ->
    #{
        {py_context, new} => fun(O) -> ended_with(fun py_context:stop/1, py_context:new(O)) end,
        {py_context, start_link} => fun(O) -> stopped(py_context:start_link(O)) end,
        {py, register_pool} => fun pool/1,
        {py_pool, start_link} => fun(O) -> stopped(py_pool:start_link(maps:merge(#{name => py_options_pool}, O))) end,
        {py_channel, new} => fun(O) -> ended_with(fun py_channel:close/1, py_channel:new(O)) end,
        {py, shared_dict_new} => fun(O) -> ended_with(fun py:shared_dict_close/1, py:shared_dict_new(O)) end,
        %% Nothing is made: these are no requirements.
        {py, ensure_venv} => fun(O) -> py:ensure_venv("/nowhere/venv", [<<"--nonsense">>], O) end,
        {py_event_loop, start_link} => fun(O) -> stopped(py_event_loop:start_link(O)) end,
        {py_event_loop_pool, start_link} => fun(O) -> stopped(py_event_loop_pool:start_link(O)) end,
        {py_event_router, start_link} => fun(O) -> py_event_router:start_link(make_ref(), O) end,
        {py_event_worker, start_link} => fun(O) -> stopped(py_event_worker:start_link(<<"w">>, O)) end,
        {py_reactor_context, start_link} => fun reactor/1
    }.

%% A cast has no answer: what is refused is logged.
cast(Opts) -> py_options:read(cast, Opts).

ended({ok, Run}) -> py_dag:await(Run);
ended(Error) -> Error.

asgi({ok, Ref}) -> py_asgi:await_response(Ref);
asgi(Error) -> Error.

stopped(Started) ->
    ended_with(fun(Pid) -> true = unlink(Pid), gen_server:stop(Pid) end, Started).

ended_with(End, {ok, Made}) ->
    ok = End(Made),
    {ok, ended};
ended_with(_End, Error) ->
    Error.

pool(Opts) ->
    Name = py_options_pool,
    case py:register_pool(Name, Opts) of
        ok -> py:unregister_pool(Name);
        Error -> Error
    end.

run_async(Opts) ->
    {ok, Loop} = py_event_loop:get_loop(),
    case py_event_loop:run_async(Loop, maps:merge(#{module => math, func => sqrt, args => [4]}, Opts)) of
        {ok, Ref} -> receive {async_result, Ref, Answer} -> Answer end;
        Error -> Error
    end.

reactor(Opts) ->
    Protocol = #{protocol => {'erlang.reactor', 'Protocol'}},
    stopped(py_reactor_context:start_link(maps:merge(Protocol, Opts))).

every_family_is_asked(_Config) ->
    Named = lists:append([Functions || {_, Functions} <- py_options:families()]),
    ?assertEqual(lists:sort(Named), lists:sort(maps:keys(functions()))),
    Families = [Family || {Family, _} <- py_options:families()],
    [?assertEqual([], Takers -- Families, Name) || {Name, _, Takers, _} <- py_options:table()].

%% Something sensible for each option there is.
values() ->
    #{
        args => [4],
        caller => self(),
        cancel => true,
        chunk => 1,
        context => main,
        driver => thread,
        extra_args => [],
        fallback => main,
        func => sqrt,
        installer => pip,
        kwargs => #{},
        max => 1,
        max_connections => 1,
        max_entries => 1,
        max_memory => 1 bsl 28,
        max_queue => 1,
        mode => worker,
        module => math,
        name => py_options_name,
        nonsense => 1,
        notify => self(),
        owner => self(),
        partial => true,
        pictures => [],
        preload => [],
        priority => high,
        progress => self(),
        protocol => {'erlang.reactor', 'Protocol'},
        redis => embedded,
        ref => make_ref(),
        reply_to => self(),
        return => ref,
        size => 1,
        stream_to => whereis(init),
        timeout => 20_000,
        trace_id => 1,
        traceback => true,
        want => [],
        window => 1
    }.

every_option_has_a_value_here(_Config) ->
    Names = lists:usort([nonsense | [Name || {Name, _, _, _} <- py_options:table()]]),
    ?assertEqual(Names, lists:sort(maps:keys(values()))).

%% What each function says to each option that it takes, or does not take.
each(Wanted) ->
    [
        {Function, Name, (maps:get(Function, functions()))(#{Name => Value})}
     || {Family, Functions} <- py_options:families(),
        Function <- Functions,
        {Name, Value} <- maps:to_list(values()),
        lists:member(Name, py_options:takes(Family)) =:= Wanted
    ].

is_refused({_Function, Name, Answer}) ->
    Begin = py_text:format("the option ~ts means nothing here", [Name]),
    case Answer of
        {error, {bad_argument, Text}} when is_binary(Text) -> string:prefix(Text, Begin) =/= nomatch;
        _ -> false
    end.

an_option_of_others_is_refused(_Config) ->
    Answers = each(false),
    ?assert(length(Answers) > 500),
    ?assertEqual([], [Answer || Answer <- Answers, not is_refused(Answer)]).

an_option_of_its_own_is_taken(_Config) ->
    ?assertEqual([], [Answer || Answer <- each(true), is_refused(Answer)]).

a_default_is_a_value_that_may_be_given(_Config) ->
    Others = [Family || {Family, _} <- py_options:families()] -- py_options:calls(),
    [?assertEqual({ok, py_options:defaults(Each)}, py_options:check(Each, #{}), Each) || Each <- Others],
    Given = [{Each, Default} || {Each, _} <- py_options:families(), Default <- maps:to_list(py_options:defaults(Each))],
    ?assert(length(Given) > 5),
    [?assertMatch({ok, #{Name := Value}}, taken(Family, #{Name => Value}), Name) || {Family, {Name, Value}} <- Given].

taken(Family, Given) ->
    case lists:member(Family, py_options:calls()) of
        true -> py_options:read(Family, Given);
        false -> py_options:check(Family, Given)
    end.

a_value_of_another_kind_is_refused(_Config) ->
    Answers = [
        {Function, Name, (maps:get(Function, functions()))(#{Name => 1.5})}
     || {Family, Functions} <- py_options:families(),
        Function <- Functions,
        {Name, Kind, Takers, _} <- py_options:table(),
        lists:member(Family, Takers),
        Kind =/= term,
        %% A name that is registered nowhere, and what is looked at before.
        Name =/= context,
        {Family, Name} =/= {loop_run, kwargs}
    ],
    ?assert(length(Answers) > 100),
    ?assertEqual([], [Answer || Answer <- Answers, not is_wrong(Answer)]),
    ?assertReason({context_died, noproc}, py:call(math, sqrt, [4], #{}, #{context => 1.5})).

%% Before anything is made: native code has no such numbers.
a_number_that_is_too_large_is_refused(_Config) ->
    Numbers = [
        {Function, Name, (maps:get(Function, functions()))(#{Name => 1 bsl 80})}
     || {Family, Functions} <- py_options:families(),
        Function <- Functions,
        {Name, Kind, Takers, _} <- py_options:table(),
        lists:member(Family, Takers),
        of_numbers(Kind)
    ],
    ?assert(length(Numbers) > 25),
    ?assertEqual([], [Answer || {_, _, {Tag, _}} = Answer <- Numbers, Tag =/= error]),
    ?assertEqual([], [Answer || {_, _, {error, Reason}} = Answer <- Numbers, element(1, Reason) =/= bad_argument]).

of_numbers(count) -> true;
of_numbers(threads) -> true;
of_numbers({integer, _, _}) -> true;
of_numbers({time, _}) -> true;
of_numbers(_) -> false.

is_wrong({_Function, Name, Answer}) ->
    Pattern = py_text:format("^the option ~ts must be .+, got 1\\.5$", [Name]),
    case Answer of
        {error, {bad_argument, Text}} when is_binary(Text) -> re:run(Text, Pattern) =/= nomatch;
        _ -> false
    end.

options_that_are_no_map_are_refused(_Config) ->
    Ask = [context, pool, channel, shared_dict, event_loop, event_router, event_worker],
    Functions = lists:append([Functions || {Family, Functions} <- py_options:families(), lists:member(Family, Ask)]),
    ?assertEqual([], [{F, A} || F <- Functions, A <- [(maps:get(F, functions()))([])], A =/= {error, {bad_argument, opts}}]),
    ?assertReason({bad_argument, opts}, py_dag:start(#{nodes => #{}}, #{}, [])).

a_window_needs_somebody_to_stream_to(_Config) ->
    ?assertReason({bad_argument, <<"the option window needs stream_to">>}, py_asgi:run(m, app, #{}, <<>>, #{window => 1})),
    ?assertMatch({ok, _}, py:stream_start(builtins, range, [0], #{}, #{window => 1})).

answers_go_to_processes_of_this_node(_Config) ->
    Pid = binary_to_term(<<131, 88, 119, 3, "a@b", 1:32, 0:32, 1:32>>),
    [
        ?assertMatch({error, {bad_argument, <<"the option ", _/binary>>}}, Answer)
     || Answer <- [
            run_async(#{caller => Pid}),
            run_async(#{caller => Pid, ref => make_ref()}),
            py:stream_start(builtins, range, [1], #{}, #{reply_to => Pid})
        ]
    ].

the_error_is_a_sentence(_Config) ->
    {bad_argument, Text} = py_test:reason(py:call(math, sqrt, [4], #{}, #{window => 1})),
    ?assertEqual(
        <<"the option window means nothing here. This function takes timeout, context, return, traceback, fallback, "
            "priority, trace_id, reply_to">>,
        Text
    ),
    ?assertEqual(
        <<"An argument was refused: ", Text/binary, ". Correct it and call again.">>,
        py_error:format({bad_argument, Text})
    ).

a_slip_of_the_fingers_gets_the_right_spelling(_Config) ->
    [
        begin
            {bad_argument, Text} = py_test:reason(Answer),
            ?assertNotEqual(nomatch, string:find(Text, ["did you mean ", Right, "?"]), Text)
        end
     || {Right, Answer} <- [
            {"timeout", py:call(math, sqrt, [4], #{}, #{tiemout => 1})},
            {"progress", py:map({math, sqrt}, [], #{progres => self()})},
            {"max_memory", py_context:new(#{maxmemory => 1})}
        ]
    ],
    {bad_argument, Odd} = py_test:reason(py:call(math, sqrt, [4], #{}, #{"timeout" => 1})),
    ?assertEqual(nomatch, string:find(Odd, "did you mean")).
