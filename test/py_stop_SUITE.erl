%% Nodes that stop while Python is busy in them, or after it was misused: they end in time and with 0.
-module(py_stop_SUITE).

-include("py_test.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_node_with_running_python_threads_stops_in_time/1,
    a_node_with_threads_in_other_interpreters_stops_in_time/1,
    a_node_with_running_calls_stops_in_time/1,
    a_node_goes_on_after_misuse_and_stops_in_time/1,
    threads_are_joined_when_the_node_stops/1,
    exit_functions_run_when_the_node_stops/1,
    exit_functions_that_raise_are_logged/1,
    the_application_starts_again_without_a_working_directory/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

%% A node that waits for what never ends takes longer; how soon it stops on a busy machine is no question for a test.
-define(IN_TIME, 18_000).

%% Runs the code in a node of its own and stops it as its user would.
stopped_node(Code) ->
    Data = filename:join([py_test:root(), "test", "py_life_SUITE_data"]),
    py_test:run_node(
        lists:flatten(
            io_lib:format(
                "{ok, _} = application:ensure_all_started(erlang_python),"
                "ok = py_test:export_python(~p), ~ts, io:format(\"stopping~~n\"), init:stop().",
                [Data, Code]
            )
        ),
        20_000
    ).

a_node_with_running_python_threads_stops_in_time(_Config) ->
    [
        begin
            Code = io_lib:format("{ok, _} = py:call(py_life, ~p, [~p])", [Thread, Daemon]),
            {Status, Output, Millis} = stopped_node(Code),
            ?assertEqual(0, Status, {Thread, Daemon, Output}),
            %% Python joins threads that are no daemons: as long as stop_timeout lets it. They sleep far longer.
            ?assert(Millis < ?IN_TIME, {Thread, Daemon, Millis})
        end
     || {Thread, Daemon} <- [
            {sleeping_thread, true}, {busy_thread, true}, {calling_thread, true}, {sleeping_thread, false}
        ]
    ].

%% Such interpreters can't be ended: they are left behind, or still there when the node stops.
a_node_with_threads_in_other_interpreters_stops_in_time(_Config) ->
    case py_context:new(#{mode => subinterp}) of
        {ok, Ctx} ->
            ok = py_context:stop(Ctx),
            threads_in_other_interpreters();
        {error, not_supported} ->
            {skip, "this Python has no own-GIL sub-interpreters"}
    end.

threads_in_other_interpreters() ->
    Start =
        "Ctxs = [begin {ok, Ctx} = py_context:new(#{mode => subinterp}),"
        "{ok, _} = py:call(Ctx, py_life, Thread, [true]), Ctx end ||"
        " Thread <- [sleeping_thread, busy_thread, calling_thread]]",
    LeaveBehind =
        ", [ok = py_context:stop(Ctx) || Ctx <- Ctxs],"
        "ok = py_test:eventually(fun() -> {3, 0, 3} =:= erlang:delete_element(4, py_nif:subinterp_counts()) end)",
    [
        begin
            {Status, Output, Millis} = stopped_node(Start ++ Stop),
            ?assertEqual(0, Status, {Stop, Output}),
            ?assert(Millis < ?IN_TIME, {Stop, Millis})
        end
     || Stop <- ["", LeaveBehind]
    ],
    ok.

a_node_with_running_calls_stops_in_time(_Config) ->
    [
        begin
            {Status, Output, Millis} = stopped_node(Code),
            ?assertEqual(0, Status, {Code, Output}),
            ?assert(Millis < ?IN_TIME, {Code, Millis})
        end
     || Code <- [
            "py:spawn_call(time, sleep, [60])",
            "spawn(fun() -> py:call(py_tools, spin, [self()]) end)",
            "py:spawn_call(py_tools, nap, [60]), [py:spawn_call(py_tools, nap, [60]) || _ <- [1,2,3,4,5]]"
        ]
    ].

%% The caller hears of it or does not; whoever comes next notices nothing. A real SIGINT is for the node:
%% it asks for its break menu.
a_node_goes_on_after_misuse_and_stops_in_time(_Config) ->
    Code =
        "[begin {ok, none} = py:call(py_life, Misuse, []), {ok, 3} = py:call(operator, add, [1, 2]) end"
        " || Misuse <- [interrupt_main, leave_in_a_thread]]",
    {Status, Output, Millis} = stopped_node(Code),
    ?assertEqual(0, Status, Output),
    ?assert(Millis < ?IN_TIME, Millis).

%% Those of a call, of a coroutine and of a context. They end a while after the stop has begun.
threads_are_joined_when_the_node_stops(_Config) ->
    {0, Output, _} = stopped_node(
        "{ok, _} = py:call(py_life, thread_until_the_end, [<<\"call\">>]),"
        "{ok, _} = py:await(py:async_call(py_life, thread_of_a_coroutine, [<<\"coroutine\">>])),"
        "{ok, Ctx} = py_context:new(#{}),"
        "{ok, _} = py:call(Ctx, py_life, thread_until_the_end, [<<\"context\">>])"
    ),
    [
        ?assertNotEqual(nomatch, string:find(Output, ["the thread of a ", Of, " has ended"]), Output)
     || Of <- ["call", "coroutine", "context"]
    ].

exit_functions_run_when_the_node_stops(_Config) ->
    {0, Output, _} = stopped_node("{ok, _} = py:call(py_life, say_goodbye, [])"),
    ?assertNotEqual(nomatch, string:find(Output, "goodbye from atexit")).

exit_functions_that_raise_are_logged(_Config) ->
    {0, Output, _} = stopped_node("{ok, _} = py:call(py_life, raise_at_exit, [<<\"lost at exit\">>])"),
    ?assertNotEqual(nomatch, string:find(Output, "ValueError: lost at exit"), Output),
    %% The others run all the same.
    ?assertNotEqual(nomatch, string:find(Output, "goodbye from atexit"), Output).

the_application_starts_again_without_a_working_directory(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "gone"),
    ok = file:make_dir(Dir),
    Code = io_lib:format(
        "ok = file:set_cwd(~p), ok = file:del_dir(~p), ok = application:stop(erlang_python),"
        "{ok, _} = application:ensure_all_started(erlang_python),"
        "{ok, 3} = py:call(math, isqrt, [9]), io:format(\"again~~n\")",
        [Dir, Dir]
    ),
    {Status, Output, _} = stopped_node(Code),
    ?assertEqual(0, Status, Output),
    ?assertNotEqual(nomatch, string:find(Output, "again"), Output).
