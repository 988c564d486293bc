%% ASGI applications served by the node: the life of a server.
-module(py_asgi_SUITE).

-include("py_test.hrl").
-include_lib("kernel/include/file.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([log/2]).
-export([
    an_application_is_served/1,
    what_is_no_server_is_refused/1,
    a_server_is_known_by_its_name/1,
    an_application_that_does_not_start_tells_why/1,
    a_lifespan_that_hangs_is_a_timeout/1,
    an_application_that_does_not_start_leaves_the_port_free/1,
    a_child_of_a_fork_keeps_no_port/1,
    a_worker_whose_mailbox_is_gone_has_another_one/1,
    a_start_that_is_cancelled_leaves_the_port_free/1,
    options_are_checked/1,
    a_port_in_use_is_an_error_whose_log_names_it/1,
    a_server_that_stops_leaves_the_unix_socket_of_its_successor/1,
    a_handler_that_crashes_is_a_500_with_its_traceback_in_the_log/1,
    a_handler_that_exits_is_a_500/1,
    a_loop_that_dies_is_replaced_on_the_same_socket/1,
    a_server_that_is_killed_comes_back_alone/1,
    a_loop_that_dies_leaves_no_client_waiting/1,
    an_application_that_can_not_come_back_ends_its_server/1,
    stopping_lets_requests_be_answered/1,
    stopping_without_a_limit_lets_requests_be_answered/1,
    stopping_in_a_hurry_ends_requests/1,
    a_lifespan_that_does_not_end_is_left/1,
    stopping_the_application_stops_servers/1,
    stopping_the_application_lets_requests_be_answered/1,
    a_unix_socket_is_served_and_removed/1,
    several_workers_share_a_socket/1,
    connections_go_to_the_worker_with_the_fewest/1,
    a_worker_that_is_stopped_in_its_tracks_gets_no_more_connections/1,
    sub_interpreters_serve_too/1,
    mounts_and_wsgi/1,
    numbers_of_the_moment/1,
    reloading_takes_new_code_and_loses_no_connection/1,
    code_that_can_not_be_reloaded_leaves_the_old/1,
    the_old_application_ends_after_its_requests/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    ok = py_test:export_python(proplists:get_value(data_dir, Config)),
    Config.

end_per_testcase(_Case, _Config) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    _ = [supervisor:terminate_child(py_asgi_sup, Id) || {Id, _, _, _} <- children()],
    _ = [supervisor:delete_child(py_asgi_sup, Id) || {Id, _, _, _} <- children()],
    ok.

children() -> supervisor:which_children(py_asgi_sup).

serve(Opts) -> serve(<<"py_asgi_apps:app">>, Opts).

serve(App, Opts) ->
    {ok, Server} = py_asgi:serve(App, maps:merge(#{port => 0}, Opts)),
    {Server, py_asgi:port(Server)}.

body({200, _, Body}) -> Body.

what_is_no_server_is_refused(_Config) ->
    Deaf = spawn(fun() -> receive stop -> ok end end),
    [
        ?assertEqual({error, {bad_argument, server}}, Ask(Wrong))
     || Ask <- [fun py_asgi:info/1, fun py_asgi:port/1, fun py_asgi:stop/1, fun py_asgi:reload/1],
        Wrong <- [whereis(py_registry), py_registry, self(), Deaf, init, 17, <<"server">>]
    ],
    Deaf ! stop,
    ?assertEqual({error, not_running}, py_asgi:info(py_asgi_nobody)).

an_application_is_served(_Config) ->
    {Server, Port} = serve(#{}),
    Socket = py_http:connect(Port),
    {200, Headers, <<"hello">>} = py_http:ask(Socket, "/hello"),
    ?assertEqual(<<"text/plain">>, proplists:get_value(<<"content-type">>, Headers)),
    %% The same connection, and what the lifespan left.
    ?assertMatch({200, _, <<"of the lifespan">>}, py_http:ask(Socket, "/state")),
    ok = py_asgi:stop(Server),
    ?assert(py_http:is_closed(Socket)),
    ?assertEqual({error, not_running}, py_asgi:stop(Server)),
    ?assertEqual({error, not_running}, py_asgi:port(Server)),
    ?assertEqual({error, econnrefused}, gen_tcp:connect({127, 0, 0, 1}, Port, [])).

a_server_is_known_by_its_name(_Config) ->
    {Server, Port} = serve(#{name => py_asgi_named}),
    ?assertEqual(Server, whereis(py_asgi_named)),
    ?assertEqual(Port, py_asgi:port(py_asgi_named)),
    Again = py_asgi:serve("py_asgi_apps:app", #{name => py_asgi_named, port => 0}),
    ?assertReason({bad_argument, _}, Again),
    ok = py_asgi:stop(py_asgi_named).

an_application_that_does_not_start_tells_why(_Config) ->
    {<<"erlang.serve.LifespanFailed">>, _, #{formatted := Text}} =
        py_test:reason(py_asgi:serve("py_asgi_apps:broken", #{port => 0, lifespan => on})),
    ?assertMatch([_, _], binary:split(Text, <<"KeyError: 'no database'">>)),
    ?assertMatch([_, _], binary:split(Text, <<"in broken">>)),
    Free = #{port => 0},
    NotFound = <<"erlang.serve.AppNotFound">>,
    %% The message says it all: no traceback of the loader.
    ?assertReason({NotFound, _}, py_asgi:serve("py_asgi_apps:nothing", Free)),
    Reason = py_test:reason(py_asgi:serve("py_no_such:app", Free)),
    ?assertEqual({NotFound, <<"there is no module 'py_no_such'">>}, Reason),
    ?assertMatch({match, _}, re:run(py_error:format(Reason), "there is no module 'py_no_such'.*app_dir")),
    Secure = Free#{certificate => "/none"},
    Unread = <<"/none can't be read: No such file or directory">>,
    ?assertReason({bad_argument, Unread}, py_asgi:serve("py_asgi_apps:app", Secure)),
    %% Also where no line is written.
    Misspelt = Free#{access_log => false, access_log_format => "%(stauts)s"},
    ?assertReason({bad_argument, <<"access_log_format: ", _/binary>>}, py_asgi:serve("py_asgi_apps:app", Misspelt)),
    ok = py_test:eventually(fun() -> [] =:= [Pid || {_, Pid, _, _} <- children(), is_pid(Pid)] end).

a_lifespan_that_hangs_is_a_timeout(_Config) ->
    Hanging = {factory, "py_asgi_apps:make_hanging"},
    ?assertEqual({error, timeout}, py_asgi:serve(Hanging, #{port => 0, start_timeout => 50})).

an_application_that_does_not_start_leaves_the_port_free(_Config) ->
    Listen = fun(Port) -> gen_tcp:listen(Port, [{ip, {127, 0, 0, 1}}, {reuseaddr, true}]) end,
    {ok, Held} = Listen(0),
    {ok, Port} = inet:port(Held),
    ok = gen_tcp:close(Held),
    IsFree = fun() ->
        case Listen(Port) of
            {ok, Socket} -> ok =:= gen_tcp:close(Socket);
            {error, eaddrinuse} -> false
        end
    end,
    Opts = #{port => Port, lifespan => on, start_timeout => 5000},
    ?assertReason(
        {<<"erlang.serve.LifespanFailed">>, _, _}, py_asgi:serve("py_asgi_apps:broken", Opts#{workers => 2})
    ),
    ok = py_test:eventually(IsFree),
    Late = Opts#{start_timeout => 50},
    ?assertEqual({error, timeout}, py_asgi:serve({factory, "py_asgi_apps:make_hanging"}, Late)),
    ok = py_test:eventually(IsFree).

a_worker_whose_mailbox_is_gone_has_another_one(_Config) ->
    {Server, Port} = serve(#{}),
    Socket = py_http:connect(Port),
    {200, _, <<"hello">>} = py_http:ask(Socket, "/hello"),
    %% Who reads the mailbox for Python. With `py_callback' all of them end.
    Readers = fun() -> [Pid || Pid <- processes(), reads_a_mailbox(Pid)] end,
    ok = py_test:eventually(fun() -> Readers() =/= [] end),
    [ok = py_test:down(Pid) || Pid <- Readers()],
    %% What it is asked meanwhile may be lost with the mailbox, and is answered.
    ok = py_test:eventually(fun() -> {ok, [up]} =:= statuses(Server) end),
    ?assertMatch({ok, #{restarts := 0}}, py_asgi:info(Server)),
    ?assertMatch({200, _, <<"hello">>}, py_http:ask(Socket, "/hello")),
    ok = py_asgi:stop(Server).

reads_a_mailbox(Pid) -> {current_function, {py_mailbox, next, 2}} =:= process_info(Pid, current_function).

a_start_that_is_cancelled_leaves_the_port_free(_Config) ->
    Free = [py:await(py:async_call(py_asgi_apps, cancelled_start, [Turns])) || Turns <- lists:seq(0, 12)],
    ?assertEqual([{ok, true} || _ <- Free], Free).

a_child_of_a_fork_keeps_no_port(_Config) ->
    {Server, Port} = serve(#{workers => 2}),
    {ok, Client} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, Child} = py:call(py_asgi_apps, forked, []),
    try
        ok = gen_tcp:send(Client, <<"GET /loop HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n">>),
        ok = until_closed(Client),
        ok = py_asgi:stop(Server),
        {ok, Again} = py_asgi:serve("py_asgi_apps:app", #{port => Port}),
        ok = py_asgi:stop(Again)
    after
        {ok, none} = py:call(os, kill, [Child, 9]),
        {ok, _} = py:call(os, waitpid, [Child, 0])
    end.

until_closed(Socket) ->
    case gen_tcp:recv(Socket, 0, 20_000) of
        {ok, _} -> until_closed(Socket);
        {error, closed} -> ok
    end.

options_are_checked(_Config) ->
    Refused = fun(Opts) ->
        {bad_argument, Text} = py_test:reason(py_asgi:serve("py_asgi_apps:app", Opts)),
        Text
    end,
    ?assertEqual(
        <<"port must be an integer from 0 to 65535, and is 70000">>, Refused(#{port => 70000})
    ),
    ?assertMatch(<<"there is no option prot; the options are ", _/binary>>, Refused(#{prot => 1})),
    ?assertEqual(<<"mode must be loop or subinterp, and is process">>, Refused(#{mode => process})),
    Both = #{uds => "/tmp/x", port => 1},
    ?assertEqual(<<"uds is given in place of host and port">>, Refused(Both)),
    ?assertEqual(<<"private_key needs a certificate">>, Refused(#{private_key => "x"})),
    ?assertEqual(
        <<"root_path must begin with a slash and not end with one, and is \"api/\"">>, Refused(#{root_path => "api/"})
    ),
    ?assertEqual(
        <<"idle_timeout must be milliseconds from 1 to 4294967295, and is 0">>, Refused(#{idle_timeout => 0})
    ),
    ?assertMatch(<<"start_timeout must be milliseconds or infinity", _/binary>>, Refused(#{start_timeout => -1})),
    ?assertEqual(<<"uds_mode must be an integer from 0 to 511, and is 512">>, Refused(#{uds_mode => 8#1000})),
    ?assertEqual(
        <<"access_log_file must be the path of a file, stdout or stderr, and is stdin">>,
        Refused(#{access_log_file => stdin})
    ),
    %% Of the wheel, and of its command line.
    [?assertMatch(<<"there is no option ", _/binary>>, Refused(#{Key => 1})) || Key <- [fd, reload]],
    ?assertMatch(<<"mounts must be", _/binary>>, Refused(#{mounts => #{"api" => "a:b"}})),
    ?assertEqual(<<"the options must be a map, and are []">>, Refused([])),
    ?assertEqual(<<"private_key_password must be a text">>, Refused(#{private_key_password => hunter2})),
    ?assertReason({bad_argument, _}, py_asgi:serve("no_colon", #{})),
    ?assertReason({bad_argument, _}, py_asgi:serve(app, #{})).

a_port_in_use_is_an_error_whose_log_names_it(_Config) ->
    {_, Port} = serve(#{}),
    Before = children(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        ?assertEqual({error, {posix, eaddrinuse}}, py_asgi:serve("py_asgi_apps:app", #{port => Port})),
        Text = logged(<<"can't listen on 127.0.0.1:", (integer_to_binary(Port))/binary>>),
        ?assertMatch([_, _], binary:split(Text, <<"address already in use">>))
    after
        ok = logger:remove_handler(?MODULE)
    end,
    ok = py_test:eventually(fun() -> Before =:= children() end).

a_server_that_stops_leaves_the_unix_socket_of_its_successor(Config) ->
    %% A path may have about 100 characters.
    {ok, Before} = file:get_cwd(),
    ok = file:set_cwd(proplists:get_value(priv_dir, Config)),
    try
        {ok, Old} = py_asgi:serve("py_asgi_apps:app", #{uds => "successor"}),
        {ok, New} = py_asgi:serve("py_asgi_apps:app", #{uds => "successor"}),
        ok = py_asgi:stop(Old),
        ?assertMatch({ok, _}, file:read_link_info("successor")),
        ok = py_asgi:stop(New),
        ?assertEqual({error, enoent}, file:read_link_info("successor"))
    after
        ok = file:set_cwd(Before)
    end.

a_handler_that_crashes_is_a_500_with_its_traceback_in_the_log(_Config) ->
    {_, Port} = serve(#{}),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        ?assertMatch({500, _, _}, py_http:get(Port, "/fail")),
        Text = logged(<<"ValueError: the handler failed">>),
        ?assertMatch([_, _], binary:split(Text, <<"in fail">>)),
        ?assertMatch({200, _, <<"hello">>}, py_http:get(Port, "/"))
    after
        ok = logger:remove_handler(?MODULE)
    end.

a_handler_that_exits_is_a_500(_Config) ->
    {_, Port} = serve(#{}),
    ?assertMatch({500, _, _}, py_http:get(Port, "/leave")),
    ?assertMatch({500, _, _}, py_http:get(Port, "/leave_later")),
    ?assertMatch({200, _, <<"hello">>}, py_http:get(Port, "/")).

%% The callback of the test's own handler.
log(#{msg := {Format, Args}}, #{config := #{to := Pid}}) when is_list(Args) ->
    Pid ! {logged, unicode:characters_to_binary(io_lib:format(Format, Args))};
log(_Event, _Config) ->
    ok.

%% The record that has this in it.
logged(Part) ->
    receive
        {logged, Text} ->
            case binary:match(Text, Part) of
                nomatch -> logged(Part);
                _ -> Text
            end
    after 20_000 -> error({not_logged, Part})
    end.

%% The process that stands for the loop of the first worker.
loop_of(Server) ->
    {ok, [#{pid := Worker} | _]} = gen_server:call(Server, workers),
    {links, Links} = process_info(Worker, links),
    [Loop] = Links -- [Server],
    {Worker, Loop}.

%% A loop that ends may still take a connection with it. Connecting never fails: the socket stays.
answer(Port, Path) ->
    Socket = py_http:connect(Port),
    try
        body(py_http:ask(Socket, Path))
    catch
        error:{badmatch, {error, closed}} -> closed
    after
        py_http:close(Socket)
    end.

a_loop_that_dies_is_replaced_on_the_same_socket(_Config) ->
    {Server, Port} = serve(#{}),
    Before = body(py_http:get(Port, "/loop")),
    {Worker, Loop} = loop_of(Server),
    Monitor = monitor(process, Worker),
    ok = py_test:down(Loop),
    receive
        {'DOWN', Monitor, process, Worker, _} -> ok
    end,
    ok = py_test:eventually(fun() -> not lists:member(answer(Port, "/loop"), [Before, closed]) end),
    ok = py_test:eventually(fun() ->
        {ok, #{restarts := Restarts, workers := [#{status := Status}]}} = py_asgi:info(Server),
        {Restarts, Status} =:= {1, up}
    end).

a_loop_that_dies_leaves_no_client_waiting(_Config) ->
    {Server, Port} = serve(#{}),
    true = register(py_asgi_test, self()),
    Client = py_http:connect(Port),
    ok = py_http:send(Client, "GET /stay", [], <<>>),
    ok = py_test:message(<<"stays">>),
    {_, Loop} = loop_of(Server),
    ok = py_test:down(Loop),
    ?assert(py_http:is_closed(Client)).

an_application_that_can_not_come_back_ends_its_server(_Config) ->
    {Server, _} = serve("py_asgi_apps:starts_once", #{lifespan => on}),
    Monitor = monitor(process, Server),
    {_, Loop} = loop_of(Server),
    ok = py_test:down(Loop),
    receive
        {'DOWN', Monitor, process, Server, Why} ->
            ?assertMatch({shutdown, {<<"erlang.serve.LifespanFailed">>, _, _}}, Why)
    end,
    ok = py_test:eventually(fun() -> [] =:= [Pid || {_, Pid, _, _} <- children(), is_pid(Pid)] end).

%% A request that waits for its answer, and the process to be told it.
begun(Port) ->
    true = register(py_asgi_test, self()),
    Socket = py_http:connect(Port),
    ok = py_http:send(Socket, "GET /wait", [], <<>>),
    receive
        {<<"waits">>, Box} -> {Socket, Box}
    end.

stopping_lets_requests_be_answered(_Config) ->
    {Server, Port} = serve(#{}),
    answered_after(fun() -> py_asgi:stop(Server) end, Port).

stopping_without_a_limit_lets_requests_be_answered(_Config) ->
    {Server, Port} = serve(#{}),
    [?assertEqual({error, {bad_argument, timeout}}, py_asgi:stop(Server, Wrong)) || Wrong <- [-1, 1.5, soon]],
    answered_after(fun() -> py_asgi:stop(Server, infinity) end, Port).

%% What its requests need of Erlang is there until then.
stopping_the_application_lets_requests_be_answered(_Config) ->
    {_, Port} = serve(#{}),
    answered_after(fun() -> application:stop(erlang_python) end, Port),
    {ok, _} = application:ensure_all_started(erlang_python).

answered_after(Stop, Port) ->
    {Socket, Box} = begun(Port),
    Test = self(),
    Stopper = spawn_link(fun() -> Test ! {self(), Stop()} end),
    %% Nobody listens any more, and still the request is answered.
    ok = py_test:eventually(fun() -> refuses(Port) end),
    Box ! <<"at last">>,
    ?assertMatch({200, _, <<"at last">>}, py_http:response(Socket)),
    ok = py_test:message(<<"lifespan.shutdown">>),
    ok = py_test:message({Stopper, ok}).

refuses(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, []) of
        {ok, Socket} -> ok = gen_tcp:close(Socket), false;
        %% It was in the queue when the socket closed.
        {error, econnreset} -> false;
        {error, econnrefused} -> true
    end.

stopping_in_a_hurry_ends_requests(_Config) ->
    {Server, Port} = serve(#{}),
    {Socket, _} = begun(Port),
    ok = py_asgi:stop(Server, 0),
    ?assertMatch({500, _, _}, py_http:response(Socket)),
    ?assert(py_http:is_closed(Socket)),
    ok = py_test:message(<<"lifespan.shutdown">>).

a_lifespan_that_does_not_end_is_left(_Config) ->
    {Server, Port} = serve("py_asgi_apps:never_shut", #{stop_timeout => 50}),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    try
        true = register(py_asgi_test, self()),
        ?assertEqual(ok, py_asgi:stop(Server)),
        ok = py_test:message(<<"hangs">>),
        _ = logged(<<"did not end its lifespan within">>),
        ?assert(refuses(Port))
    after
        ok = logger:remove_handler(?MODULE)
    end.

stopping_the_application_stops_servers(_Config) ->
    {_, Port} = serve(#{stop_timeout => 0}),
    {Socket, _} = begun(Port),
    ok = application:stop(erlang_python),
    %% It may have been told of the stop before its connection was closed.
    ?assert(py_http:is_closed(Socket) orelse py_http:is_closed(Socket)),
    ok = py_test:eventually(fun() -> refuses(Port) end),
    %% What waited for Erlang then is in nobody's way now.
    {ok, _} = application:ensure_all_started(erlang_python),
    {_, Next} = serve(#{}),
    ?assertMatch({200, _, <<"hello">>}, py_http:get(Next, "/")).

a_unix_socket_is_served_and_removed(Config) ->
    %% Relative: the name of a Unix socket is short.
    {ok, Here} = file:get_cwd(),
    ok = file:set_cwd(proplists:get_value(priv_dir, Config)),
    try
        {ok, Server} = py_asgi:serve("py_asgi_apps:app", #{uds => "asgi"}),
        ?assertEqual(undefined, py_asgi:port(Server)),
        ?assertMatch({ok, #{uds := <<"asgi">>}}, py_asgi:info(Server)),
        ?assertMatch({200, _, <<"hello">>}, py_http:get(<<"asgi">>, "/")),
        ?assertEqual(8#666, mode("asgi")),
        ok = py_asgi:stop(Server),
        ?assertNot(filelib:is_file("asgi")),
        {ok, Private} = py_asgi:serve("py_asgi_apps:app", #{uds => "asgi", uds_mode => 8#600}),
        ?assertEqual(8#600, mode("asgi")),
        ok = py_asgi:stop(Private)
    after
        ok = file:set_cwd(Here)
    end.

a_server_that_is_killed_comes_back_alone(_Config) ->
    {Other, OtherPort} = serve(#{}),
    {First, Port} = serve(#{}),
    ok = py_asgi:stop(First),
    {ok, Server} = py_asgi:serve("py_asgi_apps:app", #{port => Port, name => asgi_to_kill}),
    %% Its loop has a copy of the socket, and lets it go when it comes to that.
    true = register(py_asgi_test, self()),
    ok = py_http:send(py_http:connect(Port), "GET /busy", [], <<>>),
    ok = py_test:message(<<"busy">>),
    exit(Server, kill),
    ok = py_test:eventually(fun() ->
        Pid = whereis(asgi_to_kill),
        is_pid(Pid) andalso Pid =/= Server andalso
            ({ok, [up]} =:= statuses(asgi_to_kill))
    end),
    ?assertMatch({200, _, <<"hello">>}, py_http:get(Port, "/")),
    ?assert(is_process_alive(Other)),
    ?assertMatch({200, _, <<"hello">>}, py_http:get(OtherPort, "/")),
    ok = py_asgi:stop(asgi_to_kill).

statuses(Server) ->
    case py_asgi:info(Server) of
        {ok, #{workers := Workers}} -> {ok, [Status || #{status := Status} <- Workers]};
        {error, _} = Error -> Error
    end.

mode(Path) ->
    {ok, #file_info{mode = Mode}} = file:read_file_info(Path),
    Mode band 8#777.

several_workers_share_a_socket(_Config) ->
    [
        begin
            {Server, Port} = serve(#{workers => 3, reuse_port => Reuse}),
            ?assertMatch({200, _, <<"hello">>}, py_http:get(Port, "/")),
            {ok, #{workers := Workers}} = py_asgi:info(Server),
            ?assertEqual([up, up, up], [Status || #{status := Status} <- Workers]),
            ok = py_asgi:stop(Server)
        end
     || Reuse <- [false, true]
    ].

connections_go_to_the_worker_with_the_fewest(_Config) ->
    Modes = [loop | [subinterp || py:execution_mode() =/= multi_executor]],
    [
        begin
            {Server, Port} = serve(#{workers => 3, mode => Mode}),
            %% One after another: the same loop sleeps last each time.
            Sockets = [asked(Port) || _ <- lists:seq(1, 30)],
            ?assertEqual([10, 10, 10], connections(Server)),
            lists:foreach(fun py_http:close/1, lists:sublist(Sockets, 15)),
            ok = py_test:eventually(fun() -> lists:sum(connections(Server)) =:= 15 end),
            More = [asked(Port) || _ <- lists:seq(1, 15)],
            ?assertEqual([10, 10, 10], connections(Server)),
            lists:foreach(fun py_http:close/1, lists:nthtail(15, Sockets) ++ More),
            ok = py_asgi:stop(Server)
        end
     || Mode <- Modes
    ].

asked(Port) ->
    Socket = py_http:connect(Port),
    {200, _, <<"hello">>} = py_http:ask(Socket, "/"),
    Socket.

connections(Server) ->
    {ok, #{workers := Workers}} = py_asgi:info(Server),
    [Connections || #{connections := Connections} <- Workers].

a_worker_that_is_stopped_in_its_tracks_gets_no_more_connections(_Config) ->
    {Server, Port} = serve(#{workers => 2}),
    {_, Loop} = loop_of(Server),
    ok = py_test:down(Loop),
    %% Those that were given to it before it was closed are closed with it.
    ok = py_test:eventually(fun() -> answer(Port, "/") =:= <<"hello">> end),
    ok = py_test:eventually(fun() ->
        {ok, #{restarts := Restarts, workers := Workers}} = py_asgi:info(Server),
        {Restarts, [Status || #{status := Status} <- Workers]} =:= {1, [up, up]}
    end),
    ok = py_test:eventually(fun() -> connections(Server) =:= [0, 0] end),
    Sockets = [asked(Port) || _ <- lists:seq(1, 10)],
    ?assertEqual([5, 5], connections(Server)),
    lists:foreach(fun py_http:close/1, Sockets),
    ok = py_asgi:stop(Server).

sub_interpreters_serve_too(_Config) ->
    case py:execution_mode() of
        multi_executor ->
            Own = #{mode => subinterp, port => 0},
            ?assertEqual({error, not_supported}, py_asgi:serve("py_asgi_apps:app", Own));
        _ ->
            {Server, Port} = serve(#{mode => subinterp, workers => 2}),
            ?assertMatch({200, _, <<"hello">>}, py_http:get(Port, "/")),
            ok = py_asgi:reload(Server),
            {ok, #{workers := Workers}} = py_asgi:info(Server),
            ?assertEqual([up, up], [Status || #{status := Status} <- Workers]),
            {_, Context} = loop_of(Server),
            ok = py_test:down(Context),
            ok = py_test:eventually(fun() ->
                {ok, #{restarts := Restarts}} = py_asgi:info(Server),
                {Restarts, answer(Port, "/")} =:= {1, <<"hello">>}
            end),
            ok = py_asgi:stop(Server)
    end.

mounts_and_wsgi(_Config) ->
    Mounts = #{"/old" => {wsgi, "py_asgi_apps:wsgi"}, "/made" => {factory, "py_asgi_apps:make"}},
    {_, Port} = serve(#{mounts => Mounts}),
    ?assertMatch({200, _, <<"hello">>}, py_http:get(Port, "/")),
    ?assertMatch({200, _, <<"wsgi /old /x">>}, py_http:get(Port, "/old/x")),
    ?assertMatch({200, _, <<"/made /made/y">>}, py_http:get(Port, "/made/y")),
    {_, Own} = serve({wsgi, "py_asgi_apps:wsgi"}, #{}),
    ?assertMatch({200, _, <<"wsgi  /z">>}, py_http:get(Own, "/z")).

numbers_of_the_moment(_Config) ->
    {Server, Port} = serve(#{}),
    {Socket, Box} = begun(Port),
    ?assertMatch({200, _, _}, py_http:get(Port, "/")),
    {ok, Info} = py_asgi:info(Server),
    ?assertMatch(#{port := Port, host := <<"127.0.0.1">>, in_flight := 1, served := 1}, Info),
    Box ! <<"done">>,
    ?assertMatch({200, _, <<"done">>}, py_http:response(Socket)),
    ok = py_test:eventually(fun() ->
        {ok, #{in_flight := InFlight, served := Served}} = py_asgi:info(Server),
        {InFlight, Served} =:= {0, 2}
    end).

%% A module of an application, with this as its answer. Each case has its own: a module is imported once.
write_app(Config, Case, Text) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "app"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Main = "from py_asgi_part_" ++ Case ++ " import answer\n"
        "from py_asgi_apps import respond\n"
        "async def app(scope, receive, send):\n"
        "    await respond(send, answer)\n",
    ok = file:write_file(filename:join(Dir, "py_asgi_main_" ++ Case ++ ".py"), Main),
    ok = file:write_file(filename:join(Dir, "py_asgi_part_" ++ Case ++ ".py"), Text),
    Dir.

reloading_takes_new_code_and_loses_no_connection(Config) ->
    Dir = write_app(Config, "new", "answer = b'first'\n"),
    Opts = #{port => 0, app_dir => Dir, workers => 2, lifespan => off},
    {ok, Server} = py_asgi:serve("py_asgi_main_new:app", Opts),
    Sockets = [py_http:connect(py_asgi:port(Server)) || _ <- lists:seq(1, 10)],
    [?assertMatch({200, _, <<"first">>}, py_http:ask(Socket, "/")) || Socket <- Sockets],
    Dir = write_app(Config, "new", "answer = b'the second'\n"),
    ok = py_asgi:reload(Server),
    [?assertMatch({200, _, <<"the second">>}, py_http:ask(Socket, "/")) || Socket <- Sockets].

code_that_can_not_be_reloaded_leaves_the_old(Config) ->
    Dir = write_app(Config, "old", "answer = b'kept'\n"),
    {ok, Server} = py_asgi:serve("py_asgi_main_old:app", #{port => 0, app_dir => Dir, lifespan => off}),
    Port = py_asgi:port(Server),
    {200, _, Kept} = py_http:get(Port, "/"),
    Dir = write_app(Config, "old", "answer = undefined_name\n"),
    {'NameError', _, #{formatted := Text}} = py_test:reason(py_asgi:reload(Server)),
    ?assertMatch([_, _], binary:split(Text, <<"py_asgi_part_old.py">>)),
    ?assertMatch({200, _, Kept}, py_http:get(Port, "/")).

the_old_application_ends_after_its_requests(_Config) ->
    {Server, Port} = serve(#{}),
    {Socket, Box} = begun(Port),
    ok = py_asgi:reload(Server),
    %% The new one has begun; the old one still has a request.
    ok = py_test:message(<<"lifespan.startup">>),
    ?assertMatch({200, _, <<"hello">>}, py_http:get(Port, "/")),
    ok = py_test:nothing_waits(),
    Box ! <<"answered">>,
    ?assertMatch({200, _, <<"answered">>}, py_http:response(Socket)),
    ok = py_test:message(<<"lifespan.shutdown">>).
