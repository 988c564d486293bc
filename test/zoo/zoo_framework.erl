%% Serves one application in this node, until the node is told to stop.
%%
%% erl -pa … -eval 'zoo_framework:main()' -extra zoo_fastapi DIRECTORY_OF_THE_PROGRAMS PORT
-module(zoo_framework).

-export([main/0]).

-spec main() -> ok.
main() ->
    [Name, Dir, Port] = init:get_plain_arguments(),
    {ok, _} = application:ensure_all_started(erlang_python),
    {ok, _} = py:eval(
        <<"__import__('sys').path.append(dir)">>, #{dir => unicode:characters_to_binary(Dir)}
    ),
    Served = py_asgi:serve(list_to_binary(Name ++ ":app"), #{port => list_to_integer(Port)}),
    case Served of
        {ok, _} ->
            ok;
        {error, Why} ->
            io:format("~ts~n", [py_error:format(Why)]),
            init:stop(1)
    end.
