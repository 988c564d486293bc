%% Chat: a FastAPI application with a page, a stream of events and WebSockets. Browsers, Python and
%% Erlang processes are in one room, a group of py_pg.
%%
%% Run: pip install fastapi, ./dev build, then
%%      ERL_LIBS=_build/default/lib escript examples/chat/chat.erl 8000
-module(chat).

-export([main/1, start/2]).
-mode(compile).

main(Args) ->
    {ok, _} = application:ensure_all_started(erlang_python),
    Here = filename:dirname(filename:absname(escript:script_name())),
    case start(Here, port(Args)) of
        {ok, Server} ->
            io:format("the chat is at http://127.0.0.1:~b/~nEnter ends it~n", [py_asgi:port(Server)]),
            _ = io:get_line(""),
            %% A stream of events has no end of its own: it is not waited for.
            ok = py_asgi:stop(Server, 500);
        {error, Reason} ->
            io:format("it did not start: ~tp~n", [Reason])
    end.

port([]) -> 8000;
port([Text]) -> list_to_integer(Text).

%% Puts an Erlang process into the room, and serves.
start(Folder, Port) ->
    _ = spawn(fun() -> ok = py_pg:join(room), clerk() end),
    py_asgi:serve(<<"chat:app">>, #{
        name => chat, port => Port, app_dir => unicode:characters_to_binary(Folder)
    }).

clerk() ->
    receive
        {_Who, <<"erlang, ", _/binary>>} ->
            Words = io_lib:format("yes, I am ~p, one of ~b processes", [
                self(), erlang:system_info(process_count)
            ]),
            py_pg:broadcast(room, {<<"erlang">>, unicode:characters_to_binary(Words)});
        _ ->
            ok
    end,
    clerk().
