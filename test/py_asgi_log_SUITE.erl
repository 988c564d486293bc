%% The access log of a server in a node: events of `logger', or lines in a file.
-module(py_asgi_log_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_request_is_an_event_with_its_time/1,
    an_event_has_the_format_that_was_asked_for/1,
    every_event_is_there_when_the_server_has_stopped/1,
    a_handler_that_blocks_costs_lines_and_holds_up_no_request/1,
    a_handler_that_is_killed_costs_a_batch_and_not_the_log/1,
    records_go_through_logging_where_it_is_configured/1,
    a_file_has_every_line_when_the_server_has_stopped/1,
    sub_interpreters_write_whole_lines_to_one_file/1,
    a_reload_keeps_the_log/1,
    a_format_that_can_not_be_read_is_an_error/1
]).
-export([log/2]).

-define(APP, "py_asgi_logged:app").

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

init_per_testcase(_Case, Config) ->
    #{level := Level} = logger:get_primary_config(),
    [{level, Level} | Config].

end_per_testcase(_Case, Config) ->
    _ = logger:remove_handler(?MODULE),
    logger:set_primary_config(level, proplists:get_value(level, Config)).

%% ---- a handler that tells the test

listen(Config) ->
    ok = logger:set_primary_config(level, info),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => Config}).

log(#{meta := #{logger_name := <<"erlang.serve.access">>}} = Event, #{config := #{test := Test} = Config}) ->
    Text = text(Event),
    Test ! {event, Event, Text},
    case Config of
        #{gate := Gate} -> wait_at(Gate);
        #{} -> ok
    end;
log(_Event, _Config) ->
    ok.

text(#{msg := {Format, Args}}) -> unicode:characters_to_binary(io_lib:format(Format, Args)).

%% Until the gate is gone.
wait_at(Gate) ->
    Monitor = monitor(process, Gate),
    receive
        {'DOWN', Monitor, process, Gate, _} -> ok
    end.

next() ->
    receive
        {event, Event, Text} -> {Event, Text}
    after 20_000 -> error(no_event)
    end.

serve(Opts) ->
    {ok, Server} = py_asgi:serve(?APP, Opts#{port => 0, lifespan => off}),
    {Server, py_asgi:port(Server)}.

%% ---- logger

a_request_is_an_event_with_its_time(_Config) ->
    ok = listen(#{test => self()}),
    {Server, Port} = serve(#{}),
    Before = os:system_time(microsecond),
    Trace = <<"4bf92f3577b34da6a3ce929d0e0e4736">>,
    Parent = <<"00-", Trace/binary, "-00f067aa0ba902b7-01">>,
    {200, _, _} = py_http:request(Port, <<"GET">>, "/ping?a=1", [{<<"traceparent">>, Parent}], <<>>),
    {#{level := Level, meta := Meta}, Text} = next(),
    ok = py_asgi:stop(Server),
    ?assertEqual(info, Level),
    ?assertMatch(
        [<<"127.0.0.1:", _/binary>>, <<" trace_id=", Trace/binary>>],
        binary:split(Text, <<" - \"GET /ping?a=1 HTTP/1.1\" 200">>)
    ),
    #{time := Time, domain := [python]} = Meta,
    %% To the millisecond.
    ?assert(Time >= Before - 1000),
    ?assert(Time =< os:system_time(microsecond)).

an_event_has_the_format_that_was_asked_for(_Config) ->
    ok = listen(#{test => self()}),
    {Server, Port} = serve(#{access_log_format => "%(method)s %(status)s %(bytes)s"}),
    {200, _, _} = py_http:get(Port, "/"),
    ?assertMatch({_, <<"GET 200 5">>}, next()),
    ok = py_asgi:stop(Server),
    {Other, OtherPort} = serve(#{access_log_format => json}),
    {200, _, _} = py_http:get(OtherPort, "/\"\\"),
    {_, Json} = next(),
    ok = py_asgi:stop(Other),
    {ok, Found} = py:call(json, loads, [Json]),
    ?assertMatch(#{<<"target">> := <<"/\"\\">>, <<"status">> := 200, <<"trace_id">> := none}, Found).

every_event_is_there_when_the_server_has_stopped(_Config) ->
    ok = listen(#{test => self()}),
    {Server, Port} = serve(#{access_log_format => "%(path)s"}),
    Socket = py_http:connect(Port),
    Paths = [<<"/", (integer_to_binary(N))/binary>> || N <- lists:seq(1, 500)],
    [{200, _, _} = py_http:ask(Socket, Path) || Path <- Paths],
    ok = py_asgi:stop(Server),
    Seen = [receive {event, _, Text} -> Text after 0 -> missing end || _ <- Paths],
    ?assertEqual(Paths, Seen).

a_handler_that_blocks_costs_lines_and_holds_up_no_request(_Config) ->
    Gate = spawn(fun() -> receive open -> ok end end),
    ok = listen(#{test => self(), gate => Gate}),
    {Server, Port} = serve(#{access_log_format => "%(target)s"}),
    Socket = py_http:connect(Port),
    Path = ["/", lists:duplicate(1500, $x)],
    Count = 2500,
    {200, _, _} = py_http:ask(Socket, Path),
    %% From now on the handler waits.
    {_, Line} = next(),
    [{200, _, _} = py_http:ask(Socket, Path) || _ <- lists:seq(2, Count)],
    Gate ! open,
    Told = told(Count - 1, Line),
    ok = py_asgi:stop(Server),
    ?assertMatch([_ | _], Told),
    ok = py_test:nothing_waits().

%% Handlers run in a process that they may end.
a_handler_that_is_killed_costs_a_batch_and_not_the_log(_Config) ->
    Gate = spawn(fun() -> receive open -> ok end end),
    ok = listen(#{test => self(), gate => Gate}),
    {Server, Port} = serve(#{access_log_format => "%(target)s"}),
    {200, _, _} = py_http:request(Port, <<"GET">>, "/", [], <<>>),
    {#{meta := #{pid := Logs}}, Line} = next(),
    ok = py_test:down(Logs),
    Gate ! open,
    {200, _, _} = py_http:request(Port, <<"GET">>, "/", [], <<>>),
    ?assertEqual([1], told(2, Line)),
    ok = py_asgi:stop(Server).

%% Events until so many requests are either seen or told as missing; the numbers that were told.
told(0, _Line) ->
    [];
told(Left, Line) ->
    case next() of
        {_, Line} ->
            told(Left - 1, Line);
        {#{level := warning}, Text} ->
            [Number, <<"requests", _/binary>>] = binary:split(Text, <<" ">>),
            Missing = binary_to_integer(Number),
            [Missing | told(Left - Missing, Line)]
    end.

records_go_through_logging_where_it_is_configured(_Config) ->
    ok = listen(#{test => self()}),
    Names = <<"__import__('logging').getLogger('erlang.serve.access')">>,
    Filter = <<"lambda record: record.args[2] != '/health'">>,
    {ok, _} = py:eval(<<Names/binary, ".addFilter(", Filter/binary, ")">>),
    try
        {Server, Port} = serve(#{}),
        {200, _, _} = py_http:get(Port, "/health"),
        {200, _, _} = py_http:get(Port, "/shown"),
        {_, Text} = next(),
        ?assertMatch([_, <<>>], binary:split(Text, <<" - \"GET /shown HTTP/1.1\" 200">>)),
        ok = py_asgi:stop(Server)
    after
        {ok, _} = py:eval(<<Names/binary, ".filters.clear()">>)
    end.

%% ---- files

%% Whatever the level of `logger' is.
a_file_has_every_line_when_the_server_has_stopped(Config) ->
    ok = logger:set_primary_config(level, error),
    File = filename:join(proplists:get_value(priv_dir, Config), "access.log"),
    {Server, Port} = serve(#{access_log_file => File, workers => 2}),
    Paths = [<<"/", (integer_to_binary(N))/binary>> || N <- lists:seq(1, 100)],
    [{200, _, _} = py_http:get(Port, Path) || Path <- Paths],
    ok = py_asgi:stop(Server),
    ?assertEqual(lists:sort(Paths), lists:sort([target(Line) || Line <- lines(File)])).

target(Line) ->
    {match, [Target]} = re:run(Line, <<"\"GET (\\S+) HTTP/1.1\" 200 5$">>, [{capture, [1], binary}]),
    Target.

lines(File) ->
    {ok, Text} = file:read_file(File),
    binary:split(Text, <<"\n">>, [global, trim]).

sub_interpreters_write_whole_lines_to_one_file(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "interpreters.log"),
    Opts = #{access_log_file => File, access_log_format => "%(target)s", workers => 2, mode => subinterp},
    case py_asgi:serve(?APP, Opts#{port => 0, lifespan => off}) of
        {error, not_supported} ->
            {skip, "this Python has no own-GIL interpreters"};
        {ok, Server} ->
            Port = py_asgi:port(Server),
            Paths = [["/", lists:duplicate(N * 7, $x)] || N <- lists:seq(1, 200)],
            [{200, _, _} = py_http:get(Port, Path) || Path <- Paths],
            ok = py_asgi:stop(Server),
            ?assertEqual(lists:sort([iolist_to_binary(Path) || Path <- Paths]), lists:sort(lines(File)))
    end.

a_reload_keeps_the_log(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "reloaded.log"),
    {Server, Port} = serve(#{access_log_file => File, access_log_format => "%(path)s"}),
    {200, _, _} = py_http:get(Port, "/before"),
    ok = py_asgi:reload(Server),
    {200, _, _} = py_http:get(Port, "/after"),
    ok = py_asgi:stop(Server),
    ?assertEqual([<<"/before">>, <<"/after">>], lines(File)).

a_format_that_can_not_be_read_is_an_error(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "none.log"),
    Opts = #{port => 0, lifespan => off, access_log_file => File, access_log_format => "%(nothing)s"},
    {error, {bad_argument, Why}} = py_asgi:serve(?APP, Opts),
    ?assertMatch({_, _}, binary:match(Why, <<"there is no field %(nothing)s">>)),
    {error, {bad_argument, Bad}} = py_asgi:serve(?APP, #{access_log_format => 7}),
    ?assertEqual(<<"access_log_format must be a text, common or json, and is 7">>, Bad).
