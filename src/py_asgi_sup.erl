%% The servers of ASGI applications: each is replaced by itself. Owns the table of single requests.
-module(py_asgi_sup).

-behaviour(supervisor).

-export([start_link/0, start_server/1]).
-export([init/1]).

%% Milliseconds beyond its `stop_timeout' that a server has to end.
-define(MORE, 10_000).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec start_server(py_asgi_options:options()) -> {ok, pid()} | {error, py_error:reason()}.
start_server(#{stop_timeout := Stop} = Options) ->
    Spec = #{
        id => make_ref(),
        start => {py_asgi_server, start_link, [Options]},
        %% One that was stopped, or whose application does not start any more, stays away.
        restart => transient,
        shutdown => Stop + ?MORE
    },
    Ask = fun() -> supervisor:start_child(?MODULE, Spec) end,
    case py_ask:otherwise(Ask, {error, not_running}) of
        {ok, Pid} ->
            {ok, Pid};
        {error, not_running} ->
            {error, not_running};
        {error, {{already_started, _}, _Child}} ->
            {error, {bad_argument, <<"a process of this name exists">>}};
        {error, {{shutdown, Reason}, _Child}} ->
            {error, Reason};
        {error, Reason} ->
            {error, {context_died, Reason}}
    end.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = py_asgi_run:new_requests(),
    {ok, {#{strategy => one_for_one, intensity => 100, period => 10}, []}}.
