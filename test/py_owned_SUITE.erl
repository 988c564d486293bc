%% What stands in the supervision tree of a user: started by its specification, started again, and ended with it.
-module(py_owned_SUITE).

-behaviour(supervisor).

-include("py_test.hrl").

-export([all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([
    it_works_under_a_supervisor/1,
    one_that_is_killed_comes_back_with_its_name_and_options/1,
    one_that_is_killed_ten_times_leaves_no_thread/1,
    it_ends_with_its_supervisor_and_so_do_its_threads/1,
    it_ends_with_a_supervisor_that_is_killed/1,
    one_of_a_taken_name_is_an_error_and_no_report/1,
    it_comes_back_when_a_service_is_replaced/1,
    without_the_application_it_does_not_start/1
]).
-export([
    a_start_that_fails_is_an_error_to_a_caller_that_lives/1,
    a_name_may_be_taken_by_one_that_another_node_has_started/1,
    a_context_has_its_modules_and_its_interpreter_when_it_has_started/1,
    a_context_that_is_stopped_comes_back/1,
    loops_of_a_pool_that_end_are_replaced/1,
    a_pool_of_loops_gives_up/1,
    a_server_answers_what_it_has_begun_when_its_supervisor_stops/1,
    a_server_that_was_killed_listens_at_the_same_port/1,
    a_server_whose_supervisor_was_killed_makes_room_for_the_next/1,
    a_server_at_a_port_that_is_taken_is_an_error/1,
    a_password_may_be_a_fun_that_no_report_shows/1,
    the_end_of_the_application_ends_what_users_own/1
]).
-export([init/1, log/2, password/0, services_replaced/1, started_without/1, ended_with_the_application/0]).

-define(APP, <<"py_owned_app:app">>).

all() ->
    [{group, Kind} || Kind <- kinds()] ++ (py_test:cases(?MODULE) -- [init, log, services_replaced, started_without | of_all()]).

%% Each kind of process has all of these.
of_all() ->
    [
        it_works_under_a_supervisor,
        one_that_is_killed_comes_back_with_its_name_and_options,
        one_that_is_killed_ten_times_leaves_no_thread,
        it_ends_with_its_supervisor_and_so_do_its_threads,
        it_ends_with_a_supervisor_that_is_killed,
        one_of_a_taken_name_is_an_error_and_no_report,
        it_comes_back_when_a_service_is_replaced,
        without_the_application_it_does_not_start
    ].

groups() -> [{Kind, [], of_all()} || Kind <- kinds()].

kinds() ->
    [context, interpreter, pool, interpreter_pool, loop, beam_loop, loop_pool, reactor, server].

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_group(Kind, Config) ->
    case lists:member(Kind, [interpreter, interpreter_pool]) andalso py_context:new(#{mode => subinterp}) of
        false ->
            [{kind, Kind} | Config];
        {ok, Ctx} ->
            ok = py_context:stop(Ctx),
            [{kind, Kind} | Config];
        {error, not_supported} ->
            {skip, "no sub-interpreters"}
    end.

end_per_group(_Kind, _Config) -> ok.

kind(Config) -> proplists:get_value(kind, Config).

%% ---- the kinds: what is started, and whether what it is for works by its name

spec(context) -> py_context:child_spec(#{name => owned_it, preload => [py_tools]});
spec(interpreter) -> py_context:child_spec(#{name => owned_it, mode => subinterp, preload => [json]});
spec(pool) -> py_pool:child_spec(#{name => owned_it, size => 2});
spec(interpreter_pool) -> py_pool:child_spec(#{name => owned_it, size => 2, mode => subinterp});
spec(loop) -> py_event_loop:child_spec(#{name => owned_it, driver => thread});
spec(beam_loop) -> py_event_loop:child_spec(#{name => owned_it, driver => beam});
spec(loop_pool) -> py_event_loop_pool:child_spec(#{name => owned_it, size => 2});
spec(reactor) -> py_reactor_context:child_spec(#{name => owned_it, protocol => {'erlang.reactor', 'Protocol'}});
spec(server) -> py_asgi:child_spec(#{app => ?APP, name => owned_it, port => 0, stop_timeout => 5000}).

works(context) -> {ok, true} =:= py:eval(owned_it, <<"'py_tools' in __import__('sys').modules">>);
works(interpreter) -> {ok, true} =:= py:eval(owned_it, <<"'json' in __import__('sys').modules">>);
works(pool) ->
    {ok, 2.0} =:= py:call(owned_it, math, sqrt, [4]) andalso
        ok =:= py_test:eventually(fun() -> threads_of_pool() =:= 2 end);
works(interpreter_pool) -> {ok, 2.0} =:= py:call(owned_it, math, sqrt, [4]);
works(loop_pool) -> {ok, 3} =:= py_event_loop_pool:run(owned_it, py_asyncs, give, [3]);
works(reactor) ->
    case py_reactor_context:info(owned_it) of
        {ok, #{<<"connections">> := 0}} -> true;
        {error, _} -> false
    end;
works(server) ->
    case py_asgi:port(owned_it) of
        Port when is_integer(Port) -> answers(Port);
        {error, _} -> false
    end;
works(_Loop) ->
    case py_event_loop:run_async(owned_it, #{module => py_asyncs, func => give, args => [3]}) of
        {ok, Ref} -> {ok, 3} =:= py:await(Ref);
        {error, _} -> false
    end.

threads_of_pool() ->
    case py:stats() of
        #{pools := #{owned_it := #{threads := Threads}}} -> Threads;
        _ -> 0
    end.

answers(Port) ->
    try py_http:get(Port, "/") of
        {200, _, _} -> true
    catch
        error:{badmatch, {error, _}} -> false
    end.

%% Threads of the operating system that this node has.
threads() ->
    length(filelib:wildcard("/proc/self/task/*")).

%% ---- supervisors

init({Strategy, Specs}) ->
    {ok, {Strategy#{strategy => one_for_one}, Specs}}.

supervised(Specs) -> supervised(#{intensity => 100, period => 10}, Specs).

supervised(Strategy, Specs) ->
    {ok, Sup} = supervisor:start_link(?MODULE, {Strategy, Specs}),
    Sup.

child(Sup) ->
    [{_, Pid, _, _}] = supervisor:which_children(Sup),
    Pid.

stop(Sup) ->
    true = unlink(Sup),
    Monitor = monitor(process, Sup),
    true = exit(Sup, shutdown),
    receive
        {'DOWN', Monitor, process, Sup, Why} -> ?assertEqual(shutdown, Why)
    end.

%% ---- of all kinds

it_works_under_a_supervisor(Config) ->
    Kind = kind(Config),
    Sup = supervised([spec(Kind)]),
    ?assert(works(Kind)),
    ?assertMatch([{owned_it, _, _, _}], supervisor:which_children(Sup)),
    ok = stop(Sup),
    ?assertNot(works(Kind)).

one_that_is_killed_comes_back_with_its_name_and_options(Config) ->
    Kind = kind(Config),
    Sup = supervised([spec(Kind)]),
    Before = child(Sup),
    ok = py_test:down(Before),
    ok = py_test:eventually(fun() -> is_pid(child(Sup)) andalso child(Sup) =/= Before andalso works(Kind) end),
    ok = stop(Sup).

one_that_is_killed_ten_times_leaves_no_thread(Config) ->
    Kind = kind(Config),
    Sup = supervised([spec(Kind)]),
    true = works(Kind),
    Threads = threads(),
    Kill = fun(_) ->
        ok = py_test:down(child(Sup)),
        ok = py_test:eventually(fun() -> works(Kind) end)
    end,
    ok = lists:foreach(Kill, lists:seq(1, 10)),
    ok = py_test:eventually(fun() -> threads() =< Threads + 2 end),
    ok = stop(Sup).

it_ends_with_its_supervisor_and_so_do_its_threads(Config) ->
    Kind = kind(Config),
    %% What is made once stays.
    ok = stop(supervised([spec(Kind)])),
    Threads = threads(),
    Sups = [supervised([spec(Kind)])],
    true = works(Kind),
    ok = lists:foreach(fun stop/1, Sups),
    ok = py_test:eventually(fun() -> threads() =< Threads end),
    ?assertEqual(undefined, whereis(owned_it)).

it_ends_with_a_supervisor_that_is_killed(Config) ->
    Kind = kind(Config),
    Sup = supervised([spec(Kind)]),
    Child = child(Sup),
    Monitor = monitor(process, Child),
    true = unlink(Sup),
    ok = py_test:down(Sup),
    %% Its name is free for the next one at once, or as soon as it has ended.
    Next = supervised([spec(Kind)]),
    ok = py_test:eventually(fun() -> works(Kind) end),
    receive
        {'DOWN', Monitor, process, Child, _} -> ok
    end,
    ?assert(works(Kind)),
    ok = stop(Next).

one_of_a_taken_name_is_an_error_and_no_report(Config) ->
    Kind = kind(Config),
    Sup = supervised([spec(Kind)]),
    #{start := {M, F, A}} = spec(Kind),
    Reports = reports(fun() ->
        Answer = apply(M, F, A),
        ?assertMatch({error, _}, Answer),
        case Answer of
            {error, {already_started, Pid}} -> ?assert(is_pid(Pid));
            _ -> ?assertReason({bad_argument, _}, Answer)
        end
    end),
    ?assertEqual([], Reports),
    ?assert(works(Kind)),
    ok = stop(Sup).

%% What is logged as an error or worse.
reports(Do) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => error}),
    try
        Do()
    after
        ok = logger:remove_handler(?MODULE)
    end,
    logged().

logged() ->
    receive
        {?MODULE, Event} -> [Event | logged()]
    after 0 -> []
    end.

log(#{msg := Message}, #{config := Pid}) ->
    _ = Pid ! {?MODULE, Message},
    ok.

with_node(Config, Function, Args) ->
    Peer = py_test:peer([]),
    try
        {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
        ok = peer:call(Peer, py_test, export_python, [proplists:get_value(data_dir, Config)]),
        peer:call(Peer, ?MODULE, Function, Args, 120_000)
    after
        ok = py_test:stop_peer(Peer)
    end.

it_comes_back_when_a_service_is_replaced(Config) ->
    ?assertEqual(ok, with_node(Config, services_replaced, [kind(Config)])).

services_replaced(Kind) ->
    Sup = supervised(#{intensity => 2, period => 5}, [spec(Kind)]),
    true = works(Kind),
    Replaced = fun(Service) ->
        Before = whereis(Service),
        ok = py_test:down(Before),
        ok = py_test:eventually(fun() -> works(Kind) andalso whereis(Service) =/= Before end)
    end,
    ok = lists:foreach(Replaced, [py_bind, py_registry]),
    stop(Sup).

without_the_application_it_does_not_start(Config) ->
    ?assertEqual(ok, with_node(Config, started_without, [kind(Config)])).

started_without(Kind) ->
    ok = application:stop(erlang_python),
    #{start := {M, F, A}} = spec(Kind),
    ?assertEqual({error, not_running}, apply(M, F, A)),
    ok.

%% ---- starts that fail

a_start_that_fails_is_an_error_to_a_caller_that_lives(_Config) ->
    Wrong = [
        {bad_argument, py_context, #{nonsense => 1}},
        {'ModuleNotFoundError', py_context, #{preload => [py_owned_no_such_module]}},
        {not_supported, py_context, #{max_memory => 1 bsl 28}},
        {bad_argument, py_context, []},
        {bad_argument, py_pool, #{size => 1}},
        {bad_argument, py_pool, #{name => main}},
        {bad_argument, py_event_loop, #{driver => bus}},
        {bad_argument, py_event_loop_pool, #{size => 0}},
        {bad_argument, py_reactor_context, #{}},
        {'ModuleNotFoundError', py_reactor_context, #{protocol => {py_owned_no_such_module, 'Protocol'}}},
        {bad_argument, py_asgi, #{port => 0}},
        {bad_argument, py_asgi, #{app => ?APP, prot => 0}}
    ],
    Given = fun() ->
        [{Expected, Module, py_test:reason(Module:start_link(Opts))} || {Expected, Module, Opts} <- Wrong]
    end,
    Reports = reports(fun() ->
        %% In a process that does not trap exits.
        [?assertEqual(Expected, kind_of(Reason), {Module, Reason}) || {Expected, Module, Reason} <- py_test:in_process(Given)]
    end),
    ?assertEqual([], Reports),
    NotThere = fun() -> py_test:reason(py_asgi:start_link(#{app => <<"py_owned_app:missing">>, port => 0})) end,
    %% One line in the log says it.
    ?assertMatch([_], reports(fun() -> {<<"erlang.serve.AppNotFound">>, _} = py_test:in_process(NotThere) end)).

kind_of(Reason) when is_tuple(Reason) -> element(1, Reason);
kind_of(Reason) -> Reason.

a_name_may_be_taken_by_one_that_another_node_has_started(_Config) ->
    Elsewhere = binary_to_term(<<131, 88, 119, 3, "a@b", 90:32, 0:32, 1:32>>),
    Taken = py_test:in_process(fun() ->
        true = register(owned_it, self()),
        put('$ancestors', [Elsewhere]),
        py_context:start_link(#{name => owned_it})
    end),
    ?assertMatch({error, {already_started, _}}, Taken).

a_context_has_its_modules_and_its_interpreter_when_it_has_started(_Config) ->
    {ok, Ctx} = py_context:start_link(#{preload => [py_tools, json], max_queue => 5}),
    ?assertEqual({ok, true}, py:eval(Ctx, <<"{'py_tools', 'json'} <= set(__import__('sys').modules)">>)),
    {ok, Same} = py:eval(Ctx, <<"__import__('erlang').detect_mode()">>, #{}, #{return => ref}),
    ?assert(py:is_ref(Same)),
    true = unlink(Ctx),
    ok = gen_server:stop(Ctx).

a_context_that_is_stopped_comes_back(_Config) ->
    Sup = supervised([spec(context)]),
    Before = child(Sup),
    ok = py:exec(owned_it, <<"kept = 1">>),
    ok = py_context:stop(Before),
    ok = py_test:eventually(fun() -> is_pid(child(Sup)) andalso works(context) end),
    ?assertReason({'NameError', _}, py:eval(owned_it, <<"kept">>)),
    ok = supervisor:terminate_child(Sup, owned_it),
    ?assertNot(works(context)),
    ok = stop(Sup).

%% ---- loops

loops_of_a_pool_that_end_are_replaced(_Config) ->
    {ok, Pool} = py_event_loop_pool:start_link(#{size => 2}),
    {links, Links} = process_info(Pool, links),
    [First | _] = Loops = [Pid || Pid <- Links, is_pid(Pid), Pid =/= self()],
    ?assertEqual(2, length(Loops)),
    ok = py_test:down(First),
    Works = fun() -> [{ok, N} || N <- lists:seq(1, 20)] =:= [in_pool(Pool, N) || N <- lists:seq(1, 20)] end,
    ok = py_test:eventually(Works),
    ?assertMatch([#{started := _}, #{started := _}], py_event_loop_pool:get_stats(Pool)),
    ?assertReason({bad_argument, _}, py_event_loop_pool:run(Pool, math, sqrt, [4], #{context => main})),
    ?assertReason({bad_argument, _}, py_event_loop_pool:get_loop(nobody)),
    ?assertEqual({ok, 4}, py:await(py_event_loop_pool:create_task(Pool, py_asyncs, give, [4]))),
    ?assertReason({bad_argument, _}, py:await(py_event_loop_pool:create_task(nobody, py_asyncs, give, [4]))),
    true = unlink(Pool),
    ok = gen_server:stop(Pool).

%% From processes that have loops of their own.
in_pool(Pool, N) ->
    py_test:in_process(fun() -> py_event_loop_pool:run(Pool, py_asyncs, give, [N]) end).

a_pool_of_loops_gives_up(_Config) ->
    {ok, Pool} = py_event_loop_pool:start_link(#{driver => beam}),
    true = unlink(Pool),
    Monitor = monitor(process, Pool),
    Kill = fun() ->
        {links, Links} = process_info(Pool, links),
        [exit(Pid, kill) || Pid <- Links, is_pid(Pid)],
        false
    end,
    try py_test:eventually(Kill) catch error:_ -> ok end,
    receive
        {'DOWN', Monitor, process, Pool, Why} -> ?assertMatch({shutdown, {context_died, killed}}, Why)
    end.

%% ---- servers

server(More) -> py_asgi:child_spec(maps:merge(#{app => ?APP, name => owned_it}, More)).

a_server_answers_what_it_has_begun_when_its_supervisor_stops(_Config) ->
    #{shutdown := Shutdown} = Spec = server(#{port => 0, stop_timeout => 20_000}),
    ?assert(Shutdown > 20_000),
    ?assertMatch(#{shutdown := Usual} when Usual > 30_000, py_asgi:child_spec(#{app => ?APP})),
    Sup = supervised([Spec]),
    Socket = py_http:connect(py_asgi:port(owned_it)),
    ok = py_http:send(Socket, "GET /until_told", [], <<>>),
    ok = py_test:eventually(fun() -> {ok, 1} =:= py:eval(<<"__import__('py_owned_app').waiting()">>) end),
    Test = self(),
    _ = spawn_link(fun() ->
        Monitor = monitor(process, Sup),
        receive
            {'DOWN', Monitor, process, Sup, Why} -> Test ! {ended, Why}
        end
    end),
    true = unlink(Sup),
    true = exit(Sup, shutdown),
    %% It listens no more, and does not end.
    ok = py_test:eventually(fun() -> py_asgi_socket:is_ending(whereis(owned_it)) end),
    ok = py:exec(<<"import py_owned_app; py_owned_app.tell()">>),
    ?assertMatch({200, _, <<"told">>}, py_http:response(Socket)),
    ok = py_test:message({ended, shutdown}).

a_server_that_was_killed_listens_at_the_same_port(_Config) ->
    Port = py_test:free_port(),
    %% Its supervisor asks once only.
    Sup = supervised(#{intensity => 1, period => 60}, [server(#{port => Port, workers => 2})]),
    ?assert(answers(Port)),
    Before = child(Sup),
    ok = py_test:down(Before),
    ok = py_test:eventually(fun() -> answers(Port) andalso child(Sup) =/= Before end),
    ok = stop(Sup).

a_server_whose_supervisor_was_killed_makes_room_for_the_next(_Config) ->
    Port = py_test:free_port(),
    Sup = supervised([server(#{port => Port, stop_timeout => 500})]),
    Before = child(Sup),
    Socket = py_http:connect(Port),
    ok = py_http:send(Socket, "GET /until_told", [], <<>>),
    ok = py_test:eventually(fun() -> {ok, 1} =:= py:eval(<<"__import__('py_owned_app').waiting()">>) end),
    true = unlink(Sup),
    ok = py_test:down(Sup),
    Next = supervised([server(#{port => Port})]),
    ?assert(answers(Port)),
    ?assertNotEqual(Before, child(Next)),
    ok = stop(Next),
    ok = py:exec(<<"import py_owned_app; py_owned_app.tell()">>).

a_server_at_a_port_that_is_taken_is_an_error(_Config) ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    Start = fun() -> py_asgi:start_link(#{app => ?APP, port => Port}) end,
    ?assertReason({posix, eaddrinuse}, py_test:in_process(Start)),
    {ok, Server} = py_asgi:start_link(#{app => ?APP, port => 0}),
    Taken = py_asgi:port(Server),
    ?assertReason({posix, eaddrinuse}, py_test:in_process(fun() -> py_asgi:start_link(#{app => ?APP, port => Taken}) end)),
    ?assert(answers(Taken)),
    true = unlink(Server),
    ok = py_asgi:stop(Server).

a_password_may_be_a_fun_that_no_report_shows(_Config) ->
    Spec = server(#{port => 0, private_key_password => fun ?MODULE:password/0}),
    ?assertEqual(nomatch, string:find(io_lib:format("~tp", [Spec]), "hunter2")),
    {ok, #{private_key_password := Hidden}} =
        py_asgi_options:check(?APP, #{certificate => "c.pem", private_key => "k.pem", private_key_password => fun ?MODULE:password/0}),
    ?assert(is_reference(Hidden)),
    ?assertMatch({error, {bad_argument, _}}, py_asgi_options:check(?APP, #{private_key_password => fun() -> 17 end})).

password() -> "hunter2".

%% ---- the application

the_end_of_the_application_ends_what_users_own(Config) ->
    ?assertEqual([], with_node(Config, ended_with_the_application, [])).

ended_with_the_application() ->
    Kinds = [context, pool, loop_pool, server],
    Specs = [(spec(Kind))#{id := Kind, restart := temporary} || Kind <- Kinds],
    Named = [Spec#{start := {M, F, [Opts#{name := Id}]}} || #{id := Id, start := {M, F, [Opts]}} = Spec <- Specs],
    Sup = supervised(Named),
    Pids = [Pid || {_, Pid, _, _} <- supervisor:which_children(Sup)],
    4 = length(Pids),
    Monitors = [monitor(process, Pid) || Pid <- Pids],
    ok = application:stop(erlang_python),
    [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors],
    supervisor:which_children(Sup).
