%% What callers hear while the application stops, when it is stopped, and before it was started.
-module(py_not_running_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([before_the_start/0]).
-export([
    running_and_queued_calls_hear_of_the_stop/1,
    whoever_waits_hears_of_the_stop/1,
    whoever_asks_one_that_ends_hears_of_the_stop/1,
    python_that_waits_for_erlang_hears_of_the_stop/1,
    without_the_application_everything_says_not_running/1,
    before_the_first_start_everything_says_not_running/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) ->
    Started = py_test:start(Config),
    ok = py_test:export_python(filename:join([py_test:root(), "test", "py_life_SUITE_data"])),
    Started.

end_per_suite(Config) ->
    _ = init_per_testcase(end_per_suite, Config),
    ok.

init_per_testcase(_Case, Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    Config.

running_and_queued_calls_hear_of_the_stop(_Config) ->
    #{num_workers := Workers} = persistent_term:get(py_config),
    {_Gate, Running} = py_test:occupy(main, Workers),
    Queued = [py:spawn_call(py_tools, note, [N]) || N <- lists:seq(1, 10)],
    {ok, Stream} = py:stream_start(builtins, range, [10]),
    {Millis, ok} = py_test:milliseconds(fun() -> application:stop(erlang_python) end),
    ?assert(Millis < 3000, Millis),
    [?assertReason({context_died, _}, py:await(Ref, 5000)) || Ref <- Running ++ Queued],
    receive
        {py_stream, Stream, Error} -> ?assertReason({context_died, _}, Error)
    end,
    {ok, _} = application:ensure_all_started(erlang_python),
    ?assertEqual({ok, []}, py:call(py_tools, notes, [])),
    ok = py_test:nothing_waits().

%% What each of the funs gives that wait while the application is stopped.
at_the_stop(Waiting, Begun) ->
    Test = self(),
    Tell = fun(Name, Wait) -> Test ! {Name, try Wait() catch Kind:Why -> {Kind, Why} end} end,
    Pids = [spawn(fun() -> Tell(Name, Wait) end) || {Name, Wait} <- maps:to_list(Waiting)],
    Waits = fun(Pid) -> process_info(Pid, status) =:= {status, waiting} end,
    ok = py_test:eventually(fun() -> lists:all(Waits, Pids) andalso Begun() end),
    ok = application:stop(erlang_python),
    Hear = fun(Name, _) -> receive {Name, Answer} -> Answer after 10_000 -> nothing end end,
    Told = maps:map(Hear, Waiting),
    {ok, _} = application:ensure_all_started(erlang_python),
    Told.

whoever_waits_hears_of_the_stop(_Config) ->
    {ok, Empty} = py_channel:new(),
    {ok, Full} = py_channel:new(#{max => 1}),
    ok = py_channel:put(Full, 1),
    {ok, Loop} = py_event_loop:start_link(),
    true = unlink(Loop),
    Nodes = #{sleep => #{kind => io, run => {py, asyncio, sleep}, inputs => [time]}},
    Waiting = #{
        recv => fun() -> py_channel:recv(Empty) end,
        recv_in_time => fun() -> py_channel:recv(Empty, 60_000) end,
        put => fun() -> py_channel:put(Full, 2) end,
        run => fun() -> py_event_loop:run(asyncio, sleep, [60]) end,
        gather => fun() -> py:async_gather([{asyncio, sleep, [60]}]) end,
        asgi => fun() -> py_asgi:run(py_life, hangs, #{}, <<>>) end,
        asgi_async => fun() ->
            {ok, Ref} = py_asgi:run_async(py_life, hangs, #{}, <<>>),
            py_asgi:await_response(Ref, infinity)
        end,
        dag => fun() -> py_dag:run(#{nodes => Nodes}, #{time => 60}) end
    },
    Begun = fun() ->
        #{receivers := Receivers} = py_channel:info(Empty),
        #{senders := Senders} = py_channel:info(Full),
        {Receivers, Senders} =:= {2, 1}
    end,
    Told = at_the_stop(Waiting, Begun),
    Closed = {error, closed},
    ?assertMatch(#{recv := Closed, recv_in_time := Closed, put := Closed}, Told),
    Others = maps:without([recv, recv_in_time, put], Told),
    ?assertEqual(#{}, maps:filter(fun(_, Answer) -> not is_reason(Answer) end, Others)).

is_reason({error, Reason}) -> py_error:is_reason(Reason);
is_reason(_) -> false.

whoever_asks_one_that_ends_hears_of_the_stop(_Config) ->
    Servers = [py_shared_dict, py_bind, py_subinterp_pool, py_context_sup, py_channel_sup, py_asgi_sup],
    Waiting = #{
        shared_dict => fun() -> py:shared_dict_new() end,
        bind => fun() -> py:bind() end,
        own_context => fun() -> py:context() end,
        parallel => fun() -> py:parallel([{math, sqrt, [4]}]) end,
        context => fun() -> py_context:new(#{}) end,
        register_pool => fun() -> py:register_pool(life_pool, #{}) end,
        unregister_pool => fun() -> py:unregister_pool(life_pool) end,
        channel => fun() -> py_channel:new() end,
        serve => fun() -> py_asgi:serve(<<"py_life:hangs">>, #{port => 0}) end
    },
    lists:foreach(fun sys:suspend/1, Servers),
    Begun = fun() -> lists:all(fun has_mail/1, Servers) end,
    Told = at_the_stop(Waiting, Begun),
    ?assertEqual(#{}, maps:filter(fun(_, Answer) -> Answer =/= {error, not_running} end, Told)).

has_mail(Server) ->
    {message_queue_len, Length} = process_info(whereis(Server), message_queue_len),
    Length > 0.

python_that_waits_for_erlang_hears_of_the_stop(_Config) ->
    Test = self(),
    ok = py:register_function(life_waits, fun([]) ->
        Test ! waits,
        receive never -> ok end
    end),
    {ok, none} = py:call(py_life, begin_to_wait, []),
    [ok = py_test:message(waits) || _ <- [1, 2]],
    ok = py_test:stop(),
    {ok, _} = application:ensure_all_started(erlang_python),
    Heard = {ok, [<<"RuntimeError">>, <<"RuntimeError">>]},
    ok = py_test:eventually(fun() -> py:call(py_life, what_was_heard, []) =:= Heard end),
    ?assertMatch(#{waiting_in_callbacks := 0}, py:stats()).

without_the_application_everything_says_not_running(_Config) ->
    {ok, Ctx} = py_context:new(#{}),
    {ok, Object} = py:call(builtins, list, [], #{}, #{return => ref}),
    ok = py_test:stop(),
    Wrong = maps:filtermap(fun(_, F) -> other_than_not_running(F) end, functions(Object)),
    ?assertReason({context_died, _}, py:call(Ctx, math, sqrt, [4])),
    ?assertEqual(not_running, py:interrupt(Ctx)),
    ?assertEqual(ok, py:unregister_function(f)),
    ?assertEqual(ok, py:unbind()),
    ?assertMatch({ok, _}, py:version()),
    ?assert(is_map(py:stats())),
    {ok, _} = application:ensure_all_started(erlang_python),
    ?assertEqual(#{}, Wrong),
    ?assertEqual({ok, 2.0}, py:call(math, sqrt, [4])),
    %% Python itself has lived on, and so has the object.
    ?assertEqual({ok, []}, py:to_term(Object)).

before_the_first_start_everything_says_not_running(_Config) ->
    Peer = py_test:peer([]),
    Wrong = peer:call(Peer, ?MODULE, before_the_start, [], 30_000),
    ok = py_test:stop_peer(Peer),
    ?assertEqual(#{}, Wrong).

before_the_start() ->
    Object = {'$py_ref', 0, 1, 1, make_ref()},
    Functions = (functions(Object))#{
        subinterp => fun() -> py_context:new(#{mode => subinterp}) end,
        version => fun() -> py:version() end,
        stats => fun() -> py:stats() end,
        execution_mode => fun() -> py:execution_mode() end
    },
    ok = logger:set_process_metadata(#{request => 1}),
    Wrong = maps:filtermap(fun(_, F) -> other_than_not_running(F) end, Functions),
    ok = py:cancel(make_ref()),
    ok = py:stream_cancel(make_ref()),
    {error, {bad_argument, ref}} = py:stream_ack(make_ref(), 1),
    {error, timeout} = py:await(make_ref(), 0),
    undefined = py:last_error(),
    false = py:is_ref(Object),
    not_running = py:interrupt(main),
    %% This process has asked in vain so far.
    {ok, _} = application:ensure_all_started(erlang_python),
    {ok, 2.0} = py:call(math, sqrt, [4]),
    Wrong.

functions(Object) ->
    #{
        call => fun() -> py:call(math, sqrt, [4]) end,
        eval => fun() -> py:eval(<<"1">>) end,
        exec => fun() -> py:exec(<<"1">>) end,
        spawn_call => fun() -> py:await(py:spawn_call(math, sqrt, [4]), 1000) end,
        stream => fun() -> py:stream(builtins, range, [1]) end,
        stream_start => fun() -> py:stream_start(builtins, range, [1]) end,
        bind => fun() -> py:bind() end,
        bind_new => fun() -> py:bind(new) end,
        with_context => fun() -> py:with_context(fun() -> ok end) end,
        context => fun() -> py_context:new(#{}) end,
        own_context => fun() -> py:context() end,
        register_pool => fun() -> py:register_pool(life_pool, #{}) end,
        unregister_pool => fun() -> py:unregister_pool(life_pool) end,
        register_function => fun() -> py:register_function(f, fun(_) -> ok end) end,
        gc => fun() -> py:gc() end,
        memory_stats => fun() -> py:memory_stats() end,
        reload => fun() -> py:reload(json) end,
        getattr => fun() -> py:getattr(Object, x) end,
        state_fetch => fun() -> py:state_fetch(x) end,
        activate_venv => fun() -> py:activate_venv("/tmp") end,
        wsgi => fun() -> py_wsgi:run(m, app, #{}) end,
        low_level => fun() -> py_event_loop:run(math, sqrt, [4]) end,
        async_call => fun() -> py:await(py:async_call(math, sqrt, [4]), 1000) end,
        async_gather => fun() -> py:async_gather([{math, sqrt, [4]}]) end,
        async_stream => fun() -> py:async_stream(builtins, range, [1]) end,
        stream_eval => fun() -> py:stream_eval(<<"[1]">>) end,
        parallel => fun() -> py:parallel([{math, sqrt, [4]}]) end,
        map => fun() -> py:map({math, sqrt}, [4]) end,
        traced => fun() -> py:call(math, sqrt, [4], #{}, #{trace_id => 1}) end,
        call_method => fun() -> py:call_method(Object, append, [1]) end,
        to_term => fun() -> py:to_term(Object) end,
        state_incr => fun() -> py:state_incr(x) end,
        shared_dict => fun() -> py:shared_dict_new() end,
        register_converter => fun() -> py:register_converter(to_python, x, {builtins, list}) end,
        deactivate_venv => fun() -> py:deactivate_venv() end,
        dag => fun() -> py_dag:run(#{nodes => #{a => #{kind => cpu, run => {py, os, getpid}}}}, #{}) end,
        asgi => fun() -> py_asgi:run(app, app, #{}, <<>>) end,
        asgi_serve => fun() -> py_asgi:serve("app:app", #{port => 0}) end,
        channel => fun() -> py_channel:new() end,
        venv_info => fun() -> py:venv_info() end
    }.

other_than_not_running(Function) ->
    try Function() of
        {error, not_running} -> false;
        Other -> {true, Other}
    catch
        Kind:Reason -> {true, {Kind, Reason}}
    end.
