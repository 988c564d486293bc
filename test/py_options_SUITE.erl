%% An option that a function does not take is refused, not ignored; and the table of those it takes is true.
-module(py_options_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    every_family_is_asked/1,
    an_option_of_others_is_refused/1,
    an_option_of_its_own_is_taken/1,
    a_window_needs_somebody_to_stream_to/1,
    the_error_is_a_sentence/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% By the names of `py_options:families/0': each with options.
functions() ->
    Graph = #{nodes => #{a => #{run => {py, os, getpid}}}},
    #{
        call => fun(O) -> py:call(math, sqrt, [4], #{}, O) end,
        eval => fun(O) -> py:eval(<<"1">>, #{}, O) end,
        {py_event_loop, run} => fun(O) -> py_event_loop:run(math, sqrt, [4], O) end,
        {py_wsgi, run} => fun(O) -> py_wsgi:run(m, app, #{}, O) end,
        stream => fun(O) -> py:stream(builtins, range, [1], #{}, O) end,
        stream_eval => fun(O) -> py:stream_eval(<<"[1]">>, #{}, O) end,
        async_stream => fun(O) -> py:async_stream(builtins, range, [1], #{}, O) end,
        stream_start => fun(O) -> py:stream_start(builtins, range, [0], #{}, O) end,
        cast => fun(O) -> cast(O) end,
        spawn_call => fun(O) -> py:await(py:spawn_call(math, sqrt, [4], #{}, O)) end,
        async_call => fun(O) -> py:await(py:async_call(math, sqrt, [4], #{}, O)) end,
        async_gather => fun(O) -> py:async_gather([{math, sqrt, [4]}], O) end,
        parallel => fun(O) -> py:parallel([], O) end,
        map => fun(O) -> py:map({math, sqrt}, [], O) end,
        {py_dag, run} => fun(O) -> py_dag:run(Graph, #{}, O) end,
        {py_dag, start} => fun(O) -> ended(py_dag:start(Graph, #{}, O)) end,
        {py_asgi, run} => fun(O) -> py_asgi:run(m, app, #{}, <<>>, O) end,
        {py_asgi, run_async} => fun(O) -> asgi(py_asgi:run_async(m, app, #{}, <<>>, O)) end,
        {py_event_loop, start_link} => fun(O) -> stopped(py_event_loop:start_link(O)) end,
        {py_event_loop, run_async} => fun(O) -> run_async(O) end,
        {py_event_router, start_link} => fun(O) -> py_event_router:start_link(make_ref(), O) end,
        {py_event_worker, start_link} => fun(O) -> stopped(py_event_worker:start_link(<<"w">>, O)) end,
        {py_reactor_context, start_link} => fun(O) -> reactor(O) end
    }.

%% A cast has no answer: what is refused is logged.
cast(Opts) -> py_call:options(cast, Opts).

ended({ok, Run}) -> py_dag:await(Run);
ended(Error) -> Error.

asgi({ok, Ref}) -> py_asgi:await_response(Ref);
asgi(Error) -> Error.

stopped({ok, Pid}) ->
    true = unlink(Pid),
    ok = gen_server:stop(Pid),
    {ok, stopped};
stopped(Error) ->
    Error.

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
    Named = lists:append(maps:values(py_options:families())),
    ?assertEqual(lists:sort(Named), lists:sort(maps:keys(functions()))).

%% Something sensible for each option there is.
values() ->
    #{
        args => [4],
        caller => self(),
        cancel => true,
        chunk => 1,
        context => main,
        driver => thread,
        fallback => main,
        func => sqrt,
        kwargs => #{},
        max_connections => 1,
        module => math,
        nonsense => 1,
        notify => self(),
        partial => true,
        pictures => [],
        progress => self(),
        protocol => {'erlang.reactor', 'Protocol'},
        redis => embedded,
        ref => make_ref(),
        reply_to => self(),
        return => ref,
        stream_to => whereis(init),
        timeout => 20_000,
        trace_id => 1,
        traceback => true,
        want => [],
        window => 1
    }.

each(Wanted) ->
    [
        {Name, Key, (maps:get(Name, functions()))(#{Key => Value})}
     || {Family, Names} <- maps:to_list(py_options:families()),
        Name <- Names,
        {Key, Value} <- maps:to_list(values()),
        %% The keyword arguments of `run' are in its options.
        {Name, Key} =/= {{py_event_loop, run}, kwargs},
        lists:member(Key, py_options:takes(Family)) =:= Wanted
    ].

an_option_of_others_is_refused(_Config) ->
    Answers = each(false),
    ?assert(length(Answers) > 100),
    Refused = fun({_, Key, Answer}) -> Answer =:= {error, {bad_argument, {option, Key}}} end,
    ?assertEqual([], [Answer || Answer <- Answers, not Refused(Answer)]).

an_option_of_its_own_is_taken(_Config) ->
    Refused = fun({_, Key, Answer}) -> Answer =:= {error, {bad_argument, {option, Key}}} end,
    Answers = [Answer || {_, Key, _} = Answer <- each(true), Key =/= window],
    ?assertEqual([], [Answer || Answer <- Answers, Refused(Answer)]).

a_window_needs_somebody_to_stream_to(_Config) ->
    ?assertReason({bad_argument, {option, window}}, py_asgi:run(m, app, #{}, <<>>, #{window => 1})),
    ?assertMatch({ok, _}, py:stream_start(builtins, range, [0], #{}, #{window => 1})).

the_error_is_a_sentence(_Config) ->
    Text = py_error:format(py_test:reason(py:call(math, sqrt, [4], #{}, #{window => 1}))),
    ?assertMatch({match, _}, re:run(Text, "The option window was refused: this function does not take it")).
