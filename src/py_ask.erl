%% Questions to processes of the application, which may be ending or gone.
%%
%% Process: the caller's own. A crash of the other one is our bug, and still one of the caller.
-module(py_ask).

-export([server/3, otherwise/2]).

%% The answer of a `gen_server', or `Otherwise' if it is not there, or ends before it has answered.
-spec server(gen_server:server_ref(), term(), term()) -> term().
server(Server, Question, Otherwise) ->
    otherwise(fun() -> gen_server:call(Server, Question, infinity) end, Otherwise).

%% The same for a fun that asks.
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
        %% So `gen_server:stop/1' has it.
        exit:noproc ->
            Otherwise
    end.
