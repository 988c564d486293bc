%% Single requests from Erlang: `py_asgi:run', `run_async', `py_wsgi:run'.
-module(py_asgi_run_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_request_is_answered/1,
    texts_and_bytes_are_where_asgi_has_them/1,
    a_path_is_decoded/1,
    the_method_is_the_one_that_was_given/1,
    every_cookie_is_kept/1,
    a_wrong_scope_is_named/1,
    an_exception_is_an_error_with_its_traceback/1,
    a_broken_protocol_is_an_error/1,
    receive_waits_for_the_end_of_the_response/1,
    what_follows_the_response_is_not_waited_for/1,
    a_body_comes_from_a_fun_in_the_calling_process/1,
    a_fun_that_fails_ends_the_request/1,
    a_body_comes_from_a_process/1,
    a_body_whose_process_dies_is_a_disconnect/1,
    a_response_is_streamed_with_back_pressure/1,
    a_reader_that_dies_ends_the_request/1,
    a_request_runs_beside_its_caller/1,
    a_request_knows_the_metadata_of_its_caller/1,
    a_late_response_is_cancelled_and_leaves_no_message/1,
    a_response_is_awaited_once/1,
    a_request_that_was_killed_is_an_error/1,
    a_fun_that_blocks_does_not_keep_the_time/1,
    a_fun_that_is_killed_ends_the_request/1,
    only_the_request_hears_of_a_fun_that_is_killed/1,
    a_process_that_gives_no_body_keeps_nobody/1,
    a_body_that_is_no_iodata_is_named/1,
    a_request_ends_with_its_caller/1,
    an_application_of_asgi_2_runs/1,
    an_application_that_gives_no_coroutine_runs/1,
    a_large_body_goes_both_ways/1,
    a_context_answers_too/1,
    a_pool_answers_too/1,
    a_wsgi_application_is_asked/1,
    a_module_that_is_being_imported_is_waited_for/1
]).

-define(APP, py_asgi_requests).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) ->
    true = register(py_asgi_run_test, self()),
    Config.

end_per_testcase(_Case, _Config) -> ok.

a_request_is_answered(_Config) ->
    Hello = {ok, {200, [{<<"content-type">>, <<"text/plain">>}], <<"hello">>}},
    ?assertEqual(Hello, py_asgi:run(?APP, hello, #{}, <<>>)),
    ?assertEqual(Hello, py_asgi:run("py_asgi_requests", <<"hello">>, #{}, [], 5000)),
    ok = py_test:nothing_waits().

show(Scope) ->
    {ok, {200, [], Text}} = py_asgi:run(?APP, show, Scope, <<>>),
    {ok, Shown} = py:eval(<<"ast.literal_eval(text)">>, #{text => Text}),
    Shown.

texts_and_bytes_are_where_asgi_has_them(_Config) ->
    ok = py:exec(<<"import ast">>),
    Scope = #{
        method => 'POST',
        scheme => <<"https">>,
        path => <<"/a">>,
        query_string => <<"x=1">>,
        root_path => <<"/root">>,
        headers => [{<<"Content-Type">>, <<"text/plain">>}, {"X-Two", ["a", <<"b">>]}],
        server => {{127, 0, 0, 1}, 443},
        client => {<<"10.0.0.1">>, 5000},
        state => #{db => 1}
    },
    {ok, {200, [], Text}} = py_asgi:run(?APP, show, Scope, <<>>),
    ?assertEqual(
        <<"{'asgi': {'version': '3.0', 'spec_version': '2.4'}, 'client': ('10.0.0.1', 5000), "
            "'headers': [(b'content-type', b'text/plain'), (b'x-two', b'ab')], "
            "'http_version': '1.1', 'method': 'POST', 'path': '/a', 'query_string': b'x=1', "
            "'raw_path': b'/a', 'root_path': '/root', 'scheme': 'https', "
            "'server': ('127.0.0.1', 443), 'state': {'db': 1}, 'type': 'http'}">>,
        Text
    ).

a_path_is_decoded(_Config) ->
    ok = py:exec(<<"import ast">>),
    Escaped = #{path => <<"/caf%C3%A9/%2e%2F%zz%4">>},
    Decoded = <<"/café/./%zz%4"/utf8>>,
    ?assertMatch(
        #{<<"path">> := Decoded, <<"raw_path">> := <<"/caf%C3%A9/%2e%2F%zz%4">>}, show(Escaped)
    ),
    %% With both given nothing is decoded twice.
    Both = #{path => <<"/100%25">>, raw_path => <<"/100%2525">>},
    ?assertMatch(#{<<"path">> := <<"/100%25">>}, show(Both)),
    %% What is no UTF-8 is still a text.
    ?assertMatch(#{<<"path">> := <<"/", 16#FFFD/utf8>>}, show(#{path => <<"/%ff">>})).

the_method_is_the_one_that_was_given(_Config) ->
    ok = py:exec(<<"import ast">>),
    Same = #{path => <<"/same">>, headers => [{<<"a">>, <<"b">>}]},
    [
        ?assertMatch(#{<<"method">> := Method}, show(Same#{method => Method}))
     || Method <- [<<"GET">>, <<"DELETE">>, <<"GET">>, <<"PUT">>]
    ].

every_cookie_is_kept(_Config) ->
    Cookies = [{<<"set-cookie">>, <<"a=1">>}, {<<"set-cookie">>, <<"b=2">>}],
    ?assertEqual({ok, {204, Cookies, <<>>}}, py_asgi:run(?APP, cookies, #{}, <<>>)).

a_wrong_scope_is_named(_Config) ->
    [
        ?assertEqual({error, {bad_argument, {scope, Key}}}, py_asgi:run(?APP, hello, Scope, <<>>))
     || {Key, Scope} <- [
            {metod, #{metod => <<"GET">>}},
            {headers, #{headers => [x]}},
            {headers, #{headers => [{foo, bar}]}},
            {path, #{path => 5}},
            {client, #{client => <<"10.0.0.1">>}},
            {client, #{client => {{1, 2}, 80}}},
            {server, #{server => {{1, 2}, 80}}},
            {type, #{type => websocket}}
        ]
    ],
    ?assertReason({bad_argument, _}, py_asgi:run(?APP, hello, #{}, <<>>, #{stream_to => self()})),
    ?assertReason({bad_argument, _}, py_asgi:run(?APP, hello, #{}, <<>>, #{window => 0})),
    ?assertReason({bad_argument, _}, py_asgi:run(?APP, hello, #{}, <<>>, #{colour => red})).

an_exception_is_an_error_with_its_traceback(_Config) ->
    ?assertEqual({error, {'LookupError', <<"no such thing">>}}, py_asgi:run(?APP, raises, #{}, <<>>)),
    {'LookupError', _, #{formatted := Text}} =
        py_test:reason(py_asgi:run(?APP, raises, #{}, <<>>, #{traceback => true})),
    ?assertMatch([_, _], binary:split(Text, <<"in raises">>)),
    ?assertReason({'AttributeError', _}, py_asgi:run(?APP, nothing, #{}, <<>>)),
    ?assertReason({'ModuleNotFoundError', _}, py_asgi:run(py_no_such, app, #{}, <<>>)).

a_broken_protocol_is_an_error(_Config) ->
    [
        ?assertReason({asgi, _}, py_asgi:run(?APP, App, #{}, <<>>))
     || App <- [silent, body_first, unknown]
    ],
    %% The response was whole before: what is wrong after it is logged.
    ?assertMatch({ok, {200, _, _}}, py_asgi:run(?APP, twice, #{}, <<>>)).

receive_waits_for_the_end_of_the_response(_Config) ->
    ?assertMatch({ok, {200, [], <<"False">>}}, py_asgi:run(?APP, then_disconnect, #{}, <<>>)),
    ok = py_test:message(<<"http.disconnect">>).

what_follows_the_response_is_not_waited_for(_Config) ->
    ?assertEqual({ok, {200, [], <<"answered">>}}, py_asgi:run(?APP, background, #{}, <<>>)),
    {<<"goes on">>, Box} = py_test:message(),
    Box ! <<"enough">>,
    ok = py_test:message(<<"enough">>).

a_body_comes_from_a_fun_in_the_calling_process(_Config) ->
    Test = self(),
    _ = put(left, 3),
    Next = fun() ->
        Test = self(),
        case get(left) of
            0 -> {done, <<"end">>};
            N -> _ = put(left, N - 1), {more, ["piece ", integer_to_binary(N), " "]}
        end
    end,
    Body = <<"piece 3 piece 2 piece 1 end">>,
    ?assertEqual({ok, {200, [], Body}}, py_asgi:run(?APP, echo, #{method => 'POST'}, Next)),
    ok = py_test:nothing_waits().

a_fun_that_fails_ends_the_request(_Config) ->
    Fails = fun() -> error(no_more) end,
    ?assertError(no_more, py_asgi:run(?APP, echo, #{}, Fails)),
    {ok, Ref} = py_asgi:run_async(?APP, echo, #{}, Fails),
    ?assertEqual({error, {bad_argument, {body, no_more}}}, py_asgi:await_response(Ref)).

a_body_comes_from_a_process(_Config) ->
    Source = spawn_link(fun() -> pieces([{more, <<"one ">>}, {more, <<>>}, {done, <<"two">>}]) end),
    ?assertEqual({ok, {200, [], <<"one two">>}}, py_asgi:run(?APP, echo, #{}, Source)).

pieces([]) ->
    ok;
pieces([Piece | Rest]) ->
    receive
        {asgi_body, From, Ref} ->
            From ! {Ref, Piece},
            pieces(Rest)
    end.

a_body_whose_process_dies_is_a_disconnect(_Config) ->
    Source = spawn(fun() -> pieces([{more, <<"one ">>}]) end),
    ?assertReason({'ConnectionResetError', _}, py_asgi:run(?APP, echo, #{}, Source)).

%% Numbers that the application has told, until nothing more comes.
told(Next) ->
    receive
        Next -> told(Next + 1)
    after 0 -> Next
    end.

a_response_is_streamed_with_back_pressure(_Config) ->
    {ok, Ref} = py_asgi:run_async(?APP, counts, #{}, <<>>, #{stream_to => self(), window => 3}),
    %% The head and two pieces; the third waits until somebody has read.
    ok = py_test:message({asgi_stream, Ref, {start, 200, []}}),
    ok = py_test:message({asgi_stream, Ref, {data, <<"0 ">>}}),
    ok = py_test:message({asgi_stream, Ref, {data, <<"1 ">>}}),
    ok = py_test:eventually(fun() -> waits_to_send(Ref) end),
    ?assertEqual(2, told(0)),
    ok = py_asgi:ack(Ref, 2),
    ok = py_test:message({asgi_stream, Ref, {data, <<"2 ">>}}),
    ok = py_test:message({asgi_stream, Ref, {data, <<"3 ">>}}),
    ok = py_test:eventually(fun() -> waits_to_send(Ref) end),
    ?assertEqual(4, told(2)),
    ok = py_asgi:ack(Ref, 1000),
    [
        ok = py_test:message({asgi_stream, Ref, {data, <<(integer_to_binary(N))/binary, " ">>}})
     || N <- lists:seq(4, 99)
    ],
    ok = py_test:message({asgi_stream, Ref, done}),
    ok = py_test:message({asgi_response, Ref, {ok, {200, [], <<>>}}}),
    ?assertEqual(100, told(4)).

%% An executor has asked for room and got no answer yet: all that can be seen from outside.
waits_to_send(_Ref) ->
    Waiting = [
        Pid
     || Pid <- processes(),
        {current_function, {py_asgi_run, ask, 3}} =:= process_info(Pid, current_function)
    ],
    Waiting =/= [].

a_reader_that_dies_ends_the_request(_Config) ->
    Reader = spawn(fun() -> receive stop -> ok end end),
    {ok, Ref} = py_asgi:run_async(?APP, counts, #{}, <<>>, #{stream_to => Reader, window => 1}),
    ok = py_test:eventually(fun() -> waits_to_send(Ref) end),
    ok = py_test:down(Reader),
    ?assertEqual({error, cancelled}, py_asgi:await_response(Ref)).

a_request_runs_beside_its_caller(_Config) ->
    Refs = [element(2, py_asgi:run_async(?APP, echo, #{}, integer_to_binary(N))) || N <- [1, 2, 3]],
    ?assertMatch(
        [{ok, {200, [], <<"1">>}}, {ok, {200, [], <<"2">>}}, {ok, {200, [], <<"3">>}}],
        [py_asgi:await_response(Ref) || Ref <- Refs]
    ),
    {ok, Bad} = py_asgi:run_async(?APP, raises, #{}, <<>>),
    ok = py_test:message({asgi_response, Bad, {error, {'LookupError', <<"no such thing">>}}}).

a_late_response_is_cancelled_and_leaves_no_message(_Config) ->
    {ok, Ref} = py_asgi:run_async(?APP, hangs, #{}, <<>>),
    ok = py_test:message(<<"hangs">>),
    ?assertEqual({error, timeout}, py_asgi:await_response(Ref, 0)),
    ok = py_test:message(<<"over">>),
    ok = py_test:nothing_waits(),
    ?assertEqual({error, timeout}, py_asgi:run(?APP, hangs, #{}, <<>>, 10)),
    ok = py_test:message(<<"hangs">>),
    ok = py_test:message(<<"over">>),
    ok = py_test:nothing_waits().

a_response_is_awaited_once(_Config) ->
    Again = {error, {bad_argument, no_such_request}},
    {ok, Ref} = py_asgi:run_async(?APP, hello, #{}, <<>>),
    ?assertMatch({ok, {200, _, <<"hello">>}}, py_asgi:await_response(Ref, infinity)),
    ?assertEqual(Again, py_asgi:await_response(Ref, infinity)),
    ?assertEqual(Again, py_asgi:await_response(make_ref(), infinity)),
    %% The message may be taken by hand.
    {ok, Own} = py_asgi:run_async(?APP, hello, #{}, <<>>),
    receive {asgi_response, Own, {ok, _}} -> ok end,
    ?assertEqual(Again, py_asgi:await_response(Own, infinity)),
    ok = py_test:nothing_waits(),
    ?assertEqual([], ets:tab2list(py_asgi_requests)).

%% The process of the only request there is.
runner() ->
    [{_Ref, Runner}] = ets:tab2list(py_asgi_requests),
    Runner.

a_request_that_was_killed_is_an_error(_Config) ->
    {ok, Ref} = py_asgi:run_async(?APP, hangs, #{}, <<>>),
    ok = py_test:message(<<"hangs">>),
    exit(runner(), kill),
    ?assertReason({context_died, _}, py_asgi:await_response(Ref, infinity)),
    ok = py_test:message(<<"over">>),
    ?assertEqual([], ets:tab2list(py_asgi_requests)).

a_fun_that_blocks_does_not_keep_the_time(_Config) ->
    Test = self(),
    Blocks = fun() ->
        Test ! {blocked, self()},
        receive never -> {done, <<>>} end
    end,
    {ok, Ref} = py_asgi:run_async(?APP, echo, #{}, Blocks),
    {blocked, First} = py_test:message(),
    Gone = monitor(process, First),
    ?assertEqual({error, timeout}, py_asgi:await_response(Ref, 0)),
    ok = py_test:message({'DOWN', Gone, process, First, killed}),
    %% Whether it is called before its time is over is up to the machine.
    Waits = fun() -> receive never -> {done, <<>>} end end,
    {ok, Timed} = py_asgi:run_async(?APP, echo, #{}, Waits, 10),
    ?assertEqual({error, timeout}, py_asgi:await_response(Timed, infinity)),
    ok = py_test:nothing_waits().

a_fun_that_is_killed_ends_the_request(_Config) ->
    Killed = fun() -> exit(self(), kill) end,
    {ok, Ref} = py_asgi:run_async(?APP, echo, #{}, Killed),
    ?assertEqual({error, {bad_argument, {body, killed}}}, py_asgi:await_response(Ref, infinity)).

%% The request hears of it last, and its application is not told of a disconnect meanwhile.
only_the_request_hears_of_a_fun_that_is_killed(_Config) ->
    Test = self(),
    Waits = fun() -> Test ! {feeds, self()}, receive never -> ok end end,
    {ok, Ref} = py_asgi:run_async(?APP, echo, #{}, Waits),
    {feeds, Feeder} = py_test:message(),
    {links, [Runner]} = process_info(Feeder, links),
    true = erlang:suspend_process(Runner),
    exit(Feeder, kill),
    %% An application that was told something would have answered by then.
    ok = timer:sleep(200),
    true = erlang:resume_process(Runner),
    ?assertEqual({error, {bad_argument, {body, killed}}}, py_asgi:await_response(Ref, infinity)).

a_process_that_gives_no_body_keeps_nobody(_Config) ->
    {ok, Ref} = py_asgi:run_async(?APP, echo, #{}, self()),
    {asgi_body, Asks, _Tag} = py_test:message(),
    ?assertEqual({error, timeout}, py_asgi:await_response(Ref, 0)),
    ok = py_test:eventually(fun() ->
        {monitored_by, Waiting} = process_info(self(), monitored_by),
        not lists:member(Asks, Waiting)
    end).

a_body_that_is_no_iodata_is_named(_Config) ->
    Named = {error, {bad_argument, body}},
    [
        begin
            ?assertEqual(Named, py_asgi:run(?APP, hello, #{}, Body)),
            {ok, Ref} = py_asgi:run_async(?APP, hello, #{}, Body),
            ?assertEqual(Named, py_asgi:await_response(Ref))
        end
     || Body <- [an_atom, [1000], #{}]
    ].

a_request_ends_with_its_caller(_Config) ->
    Caller = spawn(fun() ->
        {ok, _} = py_asgi:run_async(?APP, hangs, #{}, <<>>),
        receive stop -> ok end
    end),
    ok = py_test:message(<<"hangs">>),
    ok = py_test:down(Caller),
    ok = py_test:message(<<"over">>).

an_application_of_asgi_2_runs(_Config) ->
    ?assertEqual({ok, {200, [], <<"old">>}}, py_asgi:run(?APP, 'Old', #{}, <<>>)).

an_application_that_gives_no_coroutine_runs(_Config) ->
    [
        ?assertEqual({ok, {200, [], <<"endpoint">>}}, py_asgi:run(?APP, App, #{}, <<>>))
     || App <- ['Endpoint', endpoint, partly]
    ].

a_large_body_goes_both_ways(_Config) ->
    Body = binary:copy(<<"0123456789">>, 1_000_000),
    ?assertEqual({ok, {200, [], Body}}, py_asgi:run(?APP, echo, #{}, Body)).

a_context_answers_too(_Config) ->
    {ok, Context} = py_context:new(#{mode => worker}),
    Opts = #{context => Context},
    ?assertMatch({ok, {200, _, <<"hello">>}}, py_asgi:run(?APP, hello, #{}, <<>>, Opts)),
    ok = py_context:stop(Context),
    ?assertReason({context_died, _}, py_asgi:run(?APP, hello, #{}, <<>>, Opts)).

a_pool_answers_too(_Config) ->
    ok = py:register_pool(asgi_pool, #{}),
    Opts = #{context => asgi_pool},
    ?assertMatch({ok, {200, _, <<"hello">>}}, py_asgi:run(?APP, hello, #{}, <<>>, Opts)),
    {ok, Ref} = py_asgi:run_async(?APP, echo, #{}, fun() -> {done, <<"body">>} end, Opts),
    ?assertEqual({ok, {200, [], <<"body">>}}, py_asgi:await_response(Ref)),
    ok = py:unregister_pool(asgi_pool),
    ?assertReason({bad_argument, _}, py_asgi:run(?APP, hello, #{}, <<>>, Opts)).

a_wsgi_application_is_asked(_Config) ->
    Environ = #{
        'REQUEST_METHOD' => <<"POST">>, <<"PATH_INFO">> => <<"/x">>, <<"wsgi.input">> => ["bo", "dy"]
    },
    Headers = [{<<"x-length">>, <<"4">>}, {<<"x-length">>, <<"twice">>}],
    ?assertEqual({ok, {201, Headers, <<"POST /x body">>}}, py_wsgi:run(?APP, wsgi, Environ)),
    ?assertMatch({ok, {201, _, <<"GET / ">>}}, py_wsgi:run(?APP, wsgi, #{}, 5000)),
    ?assertReason({'LookupError', _}, py_wsgi:run(?APP, wsgi_raises, #{})),
    ?assertReason({asgi, _}, py_wsgi:run(?APP, wsgi_silent, #{})),
    ?assertReason({bad_argument, _}, py_wsgi:run(?APP, wsgi, [])),
    [
        ?assertEqual({error, {bad_argument, 'wsgi.input'}}, py_wsgi:run(?APP, wsgi, #{Key => Body}))
     || Key <- ['wsgi.input', <<"wsgi.input">>], Body <- [none, 5, [256], [a | b], <<1:3>>]
    ].

a_request_knows_the_metadata_of_its_caller(_Config) ->
    py_test:in_process(fun() ->
        ok = logger:set_process_metadata(#{request => <<"r1">>}),
        Known = {ok, {200, [], <<"{'request': 'r1'}">>}},
        ?assertEqual(Known, py_asgi:run(?APP, about, #{}, <<>>)),
        {ok, Ref} = py_asgi:run_async(?APP, about, #{}, <<>>),
        ?assertEqual(Known, py_asgi:await_response(Ref, 10_000))
    end).

a_module_that_is_being_imported_is_waited_for(_Config) ->
    Test = self(),
    Release = fun([]) ->
        Test ! {importing, self()},
        receive go_on -> none end
    end,
    ok = py:register_function(py_asgi_half, Release),
    Import = py:spawn_call(importlib, import_module, [<<"py_asgi_half">>]),
    Importer = receive {importing, Pid} -> Pid end,
    {ok, Ref} = py_asgi:run_async(py_asgi_half, app, #{}, <<>>),
    %% The loop goes on meanwhile.
    ?assertMatch({ok, {200, _, <<"hello">>}}, py_asgi:run(?APP, hello, #{}, <<>>)),
    Importer ! go_on,
    ?assertEqual({ok, {200, [], <<"whole">>}}, py_asgi:await_response(Ref)),
    _ = py:await(Import),
    ok = py:unregister_function(py_asgi_half).
