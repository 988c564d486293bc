%% Hello: starts Python in this node and calls three kinds of things: a function, an expression and
%% a module of this folder.
%%
%% Run: ./dev build, then
%%      ERL_LIBS=_build/default/lib escript examples/hello/hello.erl World
-module(hello).

-export([main/1]).

main(Args) ->
    Name = unicode:characters_to_binary(lists:join(" ", Args ++ ["World" || Args =:= []])),
    %% Modules beside this file can be imported.
    Here = filename:dirname(filename:absname(escript:script_name())),
    ok = application:set_env(erlang_python, python_path, [Here]),
    {ok, _} = application:ensure_all_started(erlang_python),

    {ok, Version} = py:call(platform, python_version, []),
    {ok, Answer} = py:eval("6 * 7"),
    {ok, Greeting} = py:call(greeting, greet, [Name], #{excited => true}),

    io:format("Python ~ts says the answer is ~b~n~ts~n", [Version, Answer, Greeting]).
