%% The servers of ASGI applications, each under a supervisor of its own. `py_asgi_keeper' starts again those
%% whose supervisors were killed.
-module(py_asgi_sup).

-behaviour(supervisor).

-export([start_link/0, start_server/1, servers/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% The supervisor of the server; the server itself tells `starter' when it is up.
-spec start_server(py_asgi_options:options()) -> {ok, pid()} | {error, py_error:reason()}.
start_server(#{name := Name} = Options) ->
    %% Looked at first: what a supervisor says of a start that failed is long, and the keeper tries again and again.
    case whereis(Name) of
        undefined -> add(Options);
        _ -> {error, taken()}
    end;
start_server(Options) ->
    add(Options).

add(Options) ->
    Spec = #{
        id => make_ref(),
        start => {py_asgi_server_sup, start_link, [Options]},
        restart => temporary,
        type => supervisor
    },
    Ask = fun() -> supervisor:start_child(?MODULE, Spec) end,
    case py_ask:otherwise(Ask, {error, not_running}) of
        {ok, Pid} ->
            {ok, Pid};
        {error, not_running} ->
            {error, not_running};
        {error, {{shutdown, {failed_to_start_child, server, Why}}, _Child}} ->
            {error, refused(Why)};
        {error, Reason} ->
            {error, {context_died, Reason}}
    end.

refused({already_started, _}) -> taken();
refused({shutdown, Reason}) -> Reason;
refused(Why) -> {context_died, Why}.

taken() -> {bad_argument, <<"a process of this name exists">>}.

%% Those that run: the supervisor of each, and the options.
-spec servers() -> [{pid(), py_asgi_options:options()}].
servers() ->
    Supervisors = py_ask:otherwise(fun() -> supervisor:which_children(?MODULE) end, []),
    [{Pid, Options} || {_, Pid, _, _} <- Supervisors, is_pid(Pid), {ok, Options} <- [py_asgi_server_sup:options(Pid)]].

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_one}, []}}.
