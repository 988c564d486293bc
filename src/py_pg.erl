%% Groups of processes, for messages between Erlang processes and Python tasks on all nodes: OTP's
%% `pg' in a scope of our own, or in another one that runs.
%%
%% Process: the caller's own.
-module(py_pg).

-export([start_link/0, join/1, leave/1, members/1, broadcast/2]).
-export([scope/1, join/3, leave/3, members/2, broadcast/3]).

%% The scope where nobody names another.
-define(SCOPE, erlang_python).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() -> pg:start_link(?SCOPE).

%% The calling process receives what is sent to the group from now on.
-spec join(Group :: term()) -> ok | {error, not_running}.
join(Group) -> join(?SCOPE, Group, self()).

-spec leave(Group :: term()) -> ok | not_joined | {error, not_running}.
leave(Group) -> leave(?SCOPE, Group, self()).

-spec members(Group :: term()) -> [pid()].
members(Group) -> members(?SCOPE, Group).

%% To how many it was sent.
-spec broadcast(Group :: term(), Message :: term()) -> non_neg_integer().
broadcast(Group, Message) -> broadcast(?SCOPE, Group, Message).

%% What Python calls a scope.
-spec scope(none | binary()) -> atom().
scope(none) ->
    ?SCOPE;
scope(Name) ->
    Scope = binary_to_existing_atom(Name, utf8),
    case whereis(Scope) of
        undefined -> error({no_such_scope, Name});
        _ -> Scope
    end.

-spec join(atom(), term(), pid()) -> ok | {error, not_running}.
join(Scope, Group, Pid) ->
    py_ask:otherwise(fun() -> pg:join(Scope, Group, Pid) end, {error, not_running}).

-spec leave(atom(), term(), pid()) -> ok | not_joined | {error, not_running}.
leave(Scope, Group, Pid) ->
    Leave = fun() ->
        try
            pg:leave(Scope, Group, Pid)
        catch
            %% OTP 29 looks into the table of the scope first, which ends with it.
            error:badarg:Trace ->
                case ets:whereis(Scope) of
                    undefined -> exit(noproc);
                    _ -> erlang:raise(error, badarg, Trace)
                end
        end
    end,
    py_ask:otherwise(Leave, {error, not_running}).

-spec members(atom(), term()) -> [pid()].
members(Scope, Group) -> pg:get_members(Scope, Group).

-spec broadcast(atom(), term(), term()) -> non_neg_integer().
broadcast(Scope, Group, Message) ->
    Members = members(Scope, Group),
    lists:foreach(fun(Pid) -> Pid ! Message end, Members),
    length(Members).
