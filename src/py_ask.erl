%% Questions to processes of the application, which may be ending or gone.
%%
%% Process: the caller's own. A crash of the other one is our bug, and still one of the caller.
-module(py_ask).

-export([server/3, server_of/4, stop_of/2, otherwise/2]).

%% Milliseconds that another node has to tell what a process is.
-define(TELLING, 5000).

%% The answer of a `gen_server', or `Otherwise' if it is not there, or ends before it has answered.
-spec server(gen_server:server_ref(), term(), term()) -> term().
server(Server, Question, Otherwise) ->
    otherwise(fun() -> gen_server:call(Server, Question, infinity) end, Otherwise).

%% The same for what users give as a server of those modules, by its pid or its name, here or on another node. What is
%% none would not answer, or answer something else: `{error, no_server}'.
-spec server_of([module()], term(), term(), term()) -> term() | {error, no_server}.
server_of(Modules, Server, Question, Otherwise) ->
    of_kind(Modules, Server, fun(Pid) -> server(Pid, Question, Otherwise) end, Otherwise).

%% Stops a server of those modules. One that has ended is stopped already.
-spec stop_of([module()], term()) -> ok | {error, no_server}.
stop_of(Modules, Server) ->
    of_kind(Modules, Server, fun(Pid) -> otherwise(fun() -> gen_server:stop(Pid) end, ok) end, ok).

of_kind(Modules, Server, Ask, Otherwise) ->
    case which(Server) of
        undefined ->
            Otherwise;
        Pid when is_pid(Pid) ->
            case kind(Modules, Pid) of
                known -> Ask(Pid);
                gone -> Otherwise;
                other -> {error, no_server}
            end;
        _ ->
            {error, no_server}
    end.

%% A pid, or `undefined' for a name that nobody has.
which(Name) when is_atom(Name), Name =/= undefined -> whereis(Name);
which({Name, Node}) when is_atom(Name), Node =:= node() -> which(Name);
which({Name, Node}) when is_atom(Name), is_atom(Node) -> on_node(Node, whereis, [Name]);
which(Server) -> Server.

kind(Modules, Pid) ->
    case on_node(node(Pid), process_info, [Pid, dictionary]) of
        {dictionary, Entries} ->
            case lists:keyfind('$initial_call', 1, Entries) of
                {_, {Module, init, 1}} -> known(lists:member(Module, Modules));
                _ -> other
            end;
        undefined ->
            gone
    end.

known(true) -> known;
known(false) -> other.

%% A node that can't be reached, or does not answer, has no processes.
on_node(Node, Function, Args) when Node =:= node() ->
    apply(erlang, Function, Args);
on_node(Node, Function, Args) ->
    try
        erpc:call(Node, erlang, Function, Args, ?TELLING)
    catch
        error:{erpc, _} -> undefined
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
