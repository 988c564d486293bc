%% Ranking: viewer -> hundreds of features from Redis -> vm() -> filter() -> sort().
%%
%% "Before": eight threads, each blocked on one read at a time. "After": a graph, whose reads are all in
%% flight on one thread. Without redis-server only "after" runs, on the store in the node's memory.
%%
%% Run: ./dev build, then
%%      ERL_LIBS=_build/default/lib escript examples/ranking/ranking.erl [timeline.svg graph.dot trace.json]
-module(ranking).

-export([main/1]).

-define(ITEMS, 200).

main(Args) ->
    %% Modules beside this file can be imported.
    Here = filename:dirname(filename:absname(escript:script_name())),
    ok = application:set_env(erlang_python, python_path, [Here]),
    {ok, _} = application:ensure_all_started(erlang_python),
    case py:call(server, start, []) of
        {ok, none} -> rank(embedded, Args);
        {ok, Socket} -> with_server(Socket, Args)
    end.

with_server(Socket, Args) ->
    try
        Commands = rank(<<"unix:", Socket/binary>>, Args),
        {Time, {ok, _}} = timer:tc(fun() -> py:call(before, fetch, [Socket, Commands]) end),
        Text = "before: ~b reads by 8 blocking threads in ~.1f ms~n",
        io:format(Text, [length(Commands), Time / 1000])
    after
        {ok, _} = py:call(server, stop, [Socket])
    end.

rank(Redis, Args) ->
    {ok, Fill} = py:call(ranking, fill, [7, ?ITEMS]),
    {ok, _} = py_dag:run(#{nodes => #{fill => #{run => {input, words}}}}, #{words => Fill}, #{redis => Redis}),
    Python = fun(Function, Inputs) -> #{run => {py, ranking, Function}, inputs => Inputs} end,
    Nodes = #{
        viewer => Python(viewer, [user, count]),
        commands => Python(commands, [viewer]),
        features => #{kind => redis, run => {input, commands}},
        vm => Python(vm, [viewer, features]),
        filter => Python(filter, [vm]),
        sort => Python(sort, [filter])
    },
    Opts = #{redis => Redis, want => [commands, sort], pictures => [svg, dot, chrome_trace]},
    {ok, Graph} = py_dag:new(#{nodes => Nodes}, [user, count]),
    Run = fun() -> py_dag:run(Graph, #{user => 7, count => ?ITEMS}, Opts) end,
    {ok, _} = Run(),
    {ok, #{results := Results, timeline := Timeline, critical_path := Path, pictures := Pictures}} = Run(),
    #{sort := Best, commands := Commands} = Results,
    [{Asked, Answered}] = [{S, E} || #{node := features, started := S, ended := E} <- Timeline],
    io:format("the best: ~0tp~nwaited for: ~0tp~n", [Best, Path]),
    io:format("after: ~b reads on one thread in ~.1f ms~n", [length(Commands), (Answered - Asked) / 1.0e6]),
    [ok = file:write_file(File, maps:get(picture(filename:extension(File)), Pictures)) || File <- Args],
    Commands.

picture(".svg") -> svg;
picture(".dot") -> dot;
picture(".json") -> chrome_trace.
