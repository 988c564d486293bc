%% Questions to processes of the application, which may be ending or gone.
%%
%% Process: the caller's own. A crash of the other one is our bug, and still one of the caller.
-module(py_ask).

-export([server/3, server_of/4, otherwise/2]).

%% The answer of a `gen_server', or `Otherwise' if it is not there, or ends before it has answered.
-spec server(gen_server:server_ref(), term(), term()) -> term().
server(Server, Question, Otherwise) ->
    otherwise(fun() -> gen_server:call(Server, Question, infinity) end, Otherwise).

%% The same for what users give as a server of those modules. What is none would not answer: `{error, no_server}'.
-spec server_of([module()], gen_server:server_ref(), term(), term()) -> term() | {error, no_server}.
server_of(Modules, Server, Question, Otherwise) when is_pid(Server), node(Server) =:= node() ->
    %% One that has ended is asked, too: there are several ways to say so.
    case is_process_alive(Server) andalso not runs(Server, Modules) andalso is_process_alive(Server) of
        true -> {error, no_server};
        false -> server(Server, Question, Otherwise)
    end;
server_of(Modules, Name, Question, Otherwise) when is_atom(Name) ->
    case whereis(Name) of
        undefined -> Otherwise;
        Port when is_port(Port) -> {error, no_server};
        Pid -> server_of(Modules, Pid, Question, Otherwise)
    end;
server_of(_Modules, Remote, Question, Otherwise) when is_pid(Remote) ->
    server(Remote, Question, Otherwise);
server_of(_Modules, _Server, _Question, _Otherwise) ->
    {error, no_server}.

runs(Pid, Modules) ->
    case proc_lib:translate_initial_call(Pid) of
        {Module, init, 1} -> lists:member(Module, Modules);
        _ -> false
    end.

%% The same as `server/3' for a fun that asks.
-spec otherwise(fun(() -> term()), term()) -> term().
otherwise(Ask, Otherwise) ->
    try
        Ask()
    catch
        exit:{Why, _} when Why =:= noproc; Why =:= normal; Why =:= shutdown; Why =:= killed ->
            Otherwise;
        exit:{{shutdown, _}, _} ->
            Otherwise;
        exit:{{nodedown, _}, _} ->
            Otherwise;
        %% It has asked another one, which ended.
        exit:{{Why, {gen_server, call, _}}, _} when Why =:= noproc; Why =:= shutdown; Why =:= killed ->
            Otherwise;
        %% So `gen_server:stop/1' has it.
        exit:noproc ->
            Otherwise
    end.
