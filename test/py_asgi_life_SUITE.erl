%% Servers of applications while processes of the tree are killed and replaced.
-module(py_asgi_life_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_server_outlives_every_service/1,
    a_server_in_a_sub_interpreter_outlives_every_service/1,
    a_server_whose_supervisor_is_killed_comes_back/1,
    a_server_whose_keeper_was_replaced_comes_back/1,
    a_server_that_was_stopped_stays_away/1,
    a_server_is_stopped_while_it_is_started_again/1,
    reports_of_a_server_have_no_password/1,
    a_name_that_is_taken_is_refused_without_a_report/1
]).
-export([served_while_killed/2, ids/0, after_kills/2, stopped_while_down/2, reported/2, log/2]).

-define(APP, "py_asgi_living:app").
%% A node bears ten ends in ten seconds.
-define(MOST_ENDS, 8).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> Config.

end_per_suite(_Config) -> ok.

new_node(Config) ->
    Peer = py_test:peer([]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ok = peer:call(Peer, py_test, export_python, [proplists:get_value(data_dir, Config)]),
    ok = peer:call(Peer, py, register_function, [asgi_life_count, erlang, length]),
    Peer.

with_node(Config, Function, Args) ->
    Peer = new_node(Config),
    try
        peer:call(Peer, ?MODULE, Function, Args, 120_000)
    after
        ok = py_test:stop_peer(Peer)
    end.

%% ---- services

%% The same process, and the same connection: nobody outside notices anything.
a_server_outlives_every_service(Config) ->
    Ids = with_node(Config, ids, []),
    ?assert(length(Ids) >= 17, Ids),
    Ends = [with_node(Config, served_while_killed, [loop, Some]) || Some <- parts(Ids)],
    ?assertEqual([], [End || Each <- Ends, {_, Seen} = End <- Each, Seen =/= same]).

%% Without the registry nobody finds its interpreter: then there is another one.
a_server_in_a_sub_interpreter_outlives_every_service(Config) ->
    Ids = [py_registry, py_callback, py_channel_sup, py_context_sup, py_bind],
    case with_node(Config, served_while_killed, [subinterp, Ids]) of
        {skip, _} = Skip -> Skip;
        Ends -> ?assertEqual([{Id, case Id of py_registry -> other; _ -> same end} || Id <- Ids], Ends)
    end.

ids() ->
    [Id || {Id, _, _, _} <- lists:reverse(supervisor:which_children(py_services_sup))].

parts(List) when length(List) =< ?MOST_ENDS -> [List];
parts(List) ->
    {Part, Rest} = lists:split(?MOST_ENDS, List),
    [Part | parts(Rest)].

served_while_killed(Mode, Ids) ->
    case py_asgi:serve(?APP, #{port => 0, mode => Mode, lifespan => off}) of
        {ok, Server} ->
            Ends = [{Id, killed(Id, Server)} || Id <- Ids],
            ok = py_asgi:stop(Server, 20_000),
            Ends;
        {error, not_supported} ->
            {skip, "no sub-interpreters"}
    end.

killed(Id, Server) ->
    Port = py_asgi:port(Server),
    Socket = py_http:connect(Port),
    {200, _, _} = py_http:ask(Socket, "/"),
    Pid = service(Id),
    ok = py_test:down(Pid),
    %% With all those that depend on it.
    ok = py_test:eventually(fun() -> service(Id) =/= Pid end),
    ok = py_test:eventually(fun() -> answers(Port) end),
    Same = asks(Socket),
    _ = py_http:close(Socket),
    %% It hears its commands again, too.
    ok = py_test:eventually(fun() -> {ok, [up]} =:= statuses(Server) end),
    case Same of
        true -> same;
        false -> other
    end.

service(Id) ->
    {Id, Pid, _, _} = lists:keyfind(Id, 1, supervisor:which_children(py_services_sup)),
    Pid.

asks(Socket) ->
    try py_http:ask(Socket, "/") of
        {Status, _, _} -> Status =:= 200
    catch
        error:{badmatch, {error, _}} -> false
    end.

%% Until the services are back, Erlang does not answer the application.
answers(Port) ->
    try py_http:get(Port, "/") of
        {Status, _, _} -> Status =:= 200
    catch
        error:{badmatch, {error, _}} -> false
    end.

statuses(Server) ->
    case py_asgi:info(Server) of
        {ok, #{workers := Workers}} -> {ok, [Status || #{status := Status} <- Workers]};
        {error, _} = Error -> Error
    end.

%% ---- supervisors

a_server_whose_supervisor_is_killed_comes_back(Config) ->
    ?assertEqual([back, back], with_node(Config, after_kills, [own, all])).

a_server_whose_keeper_was_replaced_comes_back(Config) ->
    ?assertEqual([same, back], with_node(Config, after_kills, [keeper, all])).

%% The other server comes back, so that one had its time.
a_server_that_was_stopped_stays_away(Config) ->
    ?assertEqual([stopped, back], with_node(Config, after_kills, [stop_another, all])).

a_server_is_stopped_while_it_is_started_again(Config) ->
    [?assertEqual(ok, with_node(Config, stopped_while_down, [asgi_life, By])) || By <- [keeper, supervisor]].

stopped_while_down(Name, By) ->
    {ok, Server} = py_asgi:serve(?APP, #{port => 0, name => Name, lifespan => off}),
    [{Supervisor, _}] = py_asgi_sup:servers(),
    case By of
        keeper ->
            ok = sys:suspend(py_asgi_keeper),
            ok = py_test:down(Supervisor),
            ok = py_test:eventually(fun() -> whereis(Name) =:= undefined end),
            %% Its first try is in vain.
            true = register(Name, self()),
            ok = sys:resume(py_asgi_keeper),
            _ = sys:get_state(py_asgi_keeper),
            true = unregister(Name);
        supervisor ->
            ok = sys:suspend(Supervisor),
            ok = py_test:down(Server),
            _ = spawn_link(fun() ->
                _ = py_test:eventually(fun() -> queued(Supervisor) >= 2 end),
                ok = sys:resume(Supervisor)
            end)
    end,
    Stopped = py_asgi:stop(Name),
    ok = py_test:eventually(fun() -> [] =:= py_asgi_sup:servers() end),
    ok = py_test:eventually(fun() -> #{} =:= sys:get_state(py_asgi_keeper) end),
    ?assertEqual(undefined, whereis(Name)),
    Stopped.

queued(Pid) ->
    {message_queue_len, Length} = process_info(Pid, message_queue_len),
    Length.

%% With the same name and port.
after_kills(First, Then) ->
    {ok, Server} = py_asgi:serve(?APP, #{port => 0, name => asgi_life, lifespan => off}),
    Port = py_asgi:port(Server),
    Seen = [after_kill(One, Port) || One <- [First, Then]],
    ?assertEqual(1, length(py_asgi_sup:servers())),
    ok = py_asgi:stop(asgi_life),
    Seen.

after_kill(stop_another, _Port) ->
    {ok, Known} = py_asgi:serve(?APP, #{port => 0, lifespan => off}),
    ok = py_asgi:stop(Known),
    %% One that is not known yet, too.
    ok = sys:suspend(py_asgi_keeper),
    {ok, Unknown} = py_asgi:serve(?APP, #{port => 0, lifespan => off}),
    ok = py_asgi:stop(Unknown),
    ok = py_test:eventually(fun() -> 1 =:= length(py_asgi_sup:servers()) end),
    ok = sys:resume(py_asgi_keeper),
    stopped;
after_kill(Whom, Port) ->
    Before = whereis(asgi_life),
    ok = py_test:down(process(Whom)),
    case Whom of
        keeper -> ok = py_test:eventually(fun() -> is_pid(whereis(py_asgi_keeper)) end);
        _ -> ok = py_test:eventually(fun() -> not lists:member(whereis(asgi_life), [undefined, Before]) end)
    end,
    ok = py_test:eventually(fun() -> {ok, [up]} =:= statuses(asgi_life) andalso answers(Port) end),
    case whereis(asgi_life) of
        Before -> same;
        _ -> back
    end.

process(own) ->
    [{Supervisor, _}] = py_asgi_sup:servers(),
    Supervisor;
process(all) ->
    whereis(py_asgi_sup);
process(keeper) ->
    whereis(py_asgi_keeper).

%% ---- reports

reports_of_a_server_have_no_password(Config) ->
    {Reports, Seen} = with_node(Config, reported, [password, asgi_life]),
    ?assertEqual(other, Seen),
    ?assertNotEqual(nomatch, string:find(Reports, "private_key_password"), Reports),
    ?assertEqual(nomatch, string:find(Reports, "hunter2"), Reports).

a_name_that_is_taken_is_refused_without_a_report(Config) ->
    ?assertMatch({<<>>, {error, {bad_argument, _}}}, with_node(Config, reported, [name, init])).

%% What supervisors say when a server is killed, or does not start.
reported(What, Name) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    Seen = reported_of(What, Name),
    ok = logger:remove_handler(?MODULE),
    {unicode:characters_to_binary(reports()), Seen}.

reported_of(name, Name) ->
    py_asgi:serve(?APP, #{port => 0, name => Name, lifespan => off});
reported_of(password, Name) ->
    %% Without a certificate nobody asks for it.
    {ok, Server} = py_asgi:serve(?APP, #{port => 0, name => Name, lifespan => off, private_key_password => "hunter2"}),
    ok = py_test:down(Server),
    ok = py_test:eventually(fun() -> not lists:member(whereis(Name), [undefined, Server]) end),
    ok = py_test:eventually(fun() -> {ok, [up]} =:= statuses(Name) end),
    other.

reports() ->
    receive
        {reported, Report} -> [Report | reports()]
    after 0 -> []
    end.

%% The callback of the test's own handler.
log(#{msg := {report, #{label := {supervisor, _}} = Report}}, #{config := Pid}) ->
    Pid ! {reported, io_lib:format("~0tp~n", [Report])};
log(_Event, _Config) ->
    ok.
