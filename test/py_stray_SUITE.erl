%% Processes of the application that others depend on live on, whoever sends them what.
-module(py_stray_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([log/2]).
-export([
    every_server_outlives_what_it_does_not_know/1,
    every_server_outlives_forged_messages/1,
    every_server_uses_the_shared_way/1,
    what_is_dropped_is_logged/1,
    a_flood_is_one_line/1,
    what_python_prints_is_not_logged_as_stray/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

every_server_outlives_what_it_does_not_know(_Config) ->
    with_servers(fun(Servers) ->
        [ok = outlives(Server, [{call, {stray, 1}}, {cast, stray}, {info, [stray]}]) || Server <- Servers]
    end).

every_server_outlives_forged_messages(_Config) ->
    with_servers(fun(Servers) ->
        [ok = outlives(Server, forged(Module)) || {Module, _} = Server <- Servers]
    end).

%% A new server that swallows or dies is found here.
every_server_uses_the_shared_way(_Config) ->
    {ok, Modules} = application:get_key(erlang_python, modules),
    Servers = [Module || Module <- Modules, is_server(Module)],
    ?assert(length(Servers) > 20),
    Others = [
        {Module, Missing}
     || Module <- Servers, Missing <- [call, cast, info], not uses(Module, Missing)
    ],
    ?assertEqual([], Others).

what_is_dropped_is_logged(_Config) ->
    [Line] = logged(fun() -> py_courier ! {nobody, knows, this} end),
    ?assertMatch({match, _}, re:run(Line, "py_courier dropped a message that it does not know.*: {nobody,knows,this}")).

a_flood_is_one_line(_Config) ->
    Lines = logged(fun() -> [py_courier ! {nobody, N} || N <- lists:seq(1, 1000)] end),
    %% A second may begin in between.
    ?assert(length(Lines) =< 3).

what_python_prints_is_not_logged_as_stray(_Config) ->
    ?assertEqual([], logged(fun() -> ok = py:exec(<<"print('seen', flush=True)">>) end)).

%% ---- who is asked

%% All servers of the tree, with one of each kind that is started when it is needed.
with_servers(Fun) ->
    {ok, _} = py:await(py:async_call(asyncio, sleep, [0, 1])),
    {ok, Context} = py_context:new(#{}),
    {ok, Channel} = py_channel:new(),
    {ok, Worker} = py_event_worker:start_link(<<"stray">>),
    {ok, Loop} = py_event_worker:loop(Worker),
    {ok, Router} = py_event_router:start_link(Loop),
    {ok, Reactor} = py_reactor_context:start_link(#{protocol => {'erlang.reactor', 'Protocol'}}),
    {ok, Server} = py_asgi:serve("builtins:print", #{port => 0, lifespan => off}),
    try
        Own = [{py_event_worker, Worker}, {py_event_router, Router}, {py_reactor_context, Reactor}],
        {links, Links} = process_info(Server, links),
        Workers = [{py_asgi_worker, Pid} || Pid <- Links, is_pid(Pid), server(Pid) =:= py_asgi_worker],
        Servers = Own ++ Workers ++ servers(erlang_python_sup),
        Kinds = lists:usort([Module || {Module, _} <- Servers]),
        Expected = [py_registry, py_shared_dict, py_logger, py_callback, py_signal, py_bind, py_channel],
        Later = [py_subinterp_pool, py_context, py_event_loop, py_worker, py_asgi_server, py_asgi_worker],
        ?assertEqual([], (Expected ++ Later) -- Kinds),
        Fun(Servers),
        ?assertEqual({ok, 2.0}, py:call(math, sqrt, [4]))
    after
        ok = py_asgi:stop(Server),
        ok = py_reactor_context:stop(Reactor),
        ok = py_event_router:stop(Router),
        ok = py_event_worker:stop(Worker),
        ok = py_channel:close(Channel),
        ok = py_context:stop(Context)
    end.

servers(Supervisor) ->
    lists:append([
        case {Type, server(Pid)} of
            {supervisor, _} -> servers(Pid);
            {worker, none} -> [];
            {worker, Module} -> [{Module, Pid}]
        end
     || {_, Pid, Type, _} <- supervisor:which_children(Supervisor), is_pid(Pid)
    ]).

server(Pid) ->
    case proc_lib:translate_initial_call(Pid) of
        {Module, init, 1} ->
            case is_server(Module) andalso lists:prefix("py_", atom_to_list(Module)) of
                true -> Module;
                false -> none
            end;
        _ ->
            none
    end.

is_server(Module) ->
    {module, Module} = code:ensure_loaded(Module),
    lists:member(gen_server, proplists:get_value(behaviour, Module:module_info(attributes), [])).

uses(Module, Function) ->
    {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(code:which(Module), [imports]),
    lists:member({py_stray, Function, 3}, Imports).

%% It answers in the end, so it has seen all of them.
outlives({Module, Pid}, Messages) ->
    Monitor = monitor(process, Pid),
    [send(Kind, Pid, Message) || {Kind, Message} <- Messages],
    ?assertEqual({Module, {error, unknown}}, {Module, asked(Pid, still_there)}),
    true = demonitor(Monitor, [flush, info]),
    ok.

send(call, Pid, Message) -> asked(Pid, Message);
send(cast, Pid, Message) -> gen_server:cast(Pid, Message);
send(info, Pid, Message) -> Pid ! Message.

asked(Pid, Message) ->
    try
        gen_server:call(Pid, Message, infinity)
    catch
        exit:Why -> Why
    end.

%% What looks like a message of theirs and is none.
forged(py_registry) ->
    [{call, {add_pool, a, b, c}}, {call, {remove_pool, a}}, {call, {remove_pools_of, a}}, down(nobody)];
forged(py_shared_dict) ->
    [{call, {new, a}}, {call, {new, {a, b, c}}}, {call, {new, {none, 1, c}}}, {call, {close, a}}, down(nobody)];
forged(py_logger) ->
    [
        {info, {py_log, a, b, c, d, e}},
        {info, {py_log, 10, <<"a">>, <<"b">>, #{line => c, time => d, pid => e, file => <<255>>}, <<"f">>}},
        {info, {py_log, 10, <<255>>, <<255>>, #{}, undefined}}
    ];
forged(py_callback) ->
    [
        {info, {py_callback, a, b, c, d, e, f}},
        {info, {py_callback, 0, b, c, d, e, f}},
        {info, {py_abandoned, a}},
        {info, {'EXIT', self(), a}}
    ];
forged(py_signal) ->
    Token = py_signal:open(),
    [
        {call, {add, Token, sigkill}},
        {call, {add, Token, 5}},
        {call, {remove, Token, 5}},
        {call, {close, Token}},
        {cast, {came, 5}}
    ];
forged(py_bind) ->
    [
        {call, {lend, a, b}},
        {call, {lend, self(), b}},
        {call, {give_back, a}},
        {info, {py_worker_down, stuck}},
        down(nobody)
    ];
forged(py_subinterp_pool) ->
    [{cast, new_path}, down(nobody)];
forged(py_event_loop_pool) ->
    [{cast, {is_up, 99, a}}, {cast, {is_up, a, make_ref()}}, {cast, {is_up, 1, a}}];
forged(py_courier) ->
    [
        {info, {relay, 0, self(), [], a}},
        {info, {relay, 0, nobody, [a, b], <<>>}},
        {info, {relay, 0, self(), a, <<>>}},
        {info, {relay, a, self(), [], <<>>}},
        {info, {forward, 0, nobody, a}},
        {info, {forward, -1, nobody, a}},
        {info, {sent, self(), node(), 1}}
    ];
forged(py_channel) ->
    [{call, {recv, soon, a}}, {call, {forget, a}}, {info, {expired, a}}, down(nobody)];
forged(py_event_worker) ->
    [
        {call, {ask, a, b, self()}},
        {call, {ask, timer, 1, c}},
        {call, {remove, a}},
        {info, {select, a, b, ready_input}},
        down(nobody)
    ];
forged(py_event_router) ->
    [{info, {select, a, b, ready_input}}];
forged(py_asgi_server) ->
    [{info, {worker_ready, a}}, {info, {start_worker, a}}, {info, {'EXIT', self(), a}}];
forged(_) ->
    [down(self())].

down(Who) -> {info, {'DOWN', make_ref(), process, Who, why}}.

%% ---- what is logged

logged(Fun) ->
    ok = settle(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    try
        _ = Fun(),
        ok = settle(),
        lines()
    after
        ok = logger:remove_handler(?MODULE)
    end.

%% What was sent before is dropped by now, and no line of this second is left out.
settle() ->
    [{error, unknown} = gen_server:call(Server, settle) || Server <- [py_courier, py_registry]],
    _ = py_logger:info(),
    Now = erlang:monotonic_time(second),
    py_test:eventually(fun() -> erlang:monotonic_time(second) > Now end).

lines() ->
    receive
        {line, Line} ->
            case re:run(Line, "settle") of
                nomatch -> [Line | lines()];
                _ -> lines()
            end
    after 0 -> []
    end.

log(#{msg := {Format, Args}}, #{config := Pid}) when is_list(Format) ->
    Line = unicode:characters_to_list(io_lib:format(Format, Args)),
    _ = string:find(Line, "does not know") =/= nomatch andalso (Pid ! {line, Line}),
    ok;
log(_Event, _Handler) ->
    ok.
