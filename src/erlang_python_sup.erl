%% The tree: the services, and beside them the servers of applications. A server goes on when a service is replaced.
%%
%% Process: owns the tables of what outlives every process of the tree: the functions and the requests of users.
-module(erlang_python_sup).

-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(py_config:config()) -> supervisor:startlink_ret().
start_link(Config) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

-spec init(py_config:config()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    ok = py_registry:new_functions(),
    ok = py_asgi_run:new_requests(),
    ok = py_asgi_options:new_secrets(),
    ok = py_event_loops:new_pools(),
    ok = py_asgi_socket:new_owned(),
    Flags = #{strategy => one_for_one, intensity => 10, period => 10, auto_shutdown => any_significant},
    Children = [
        %% If the services can't be kept running, all ends.
        (sup(py_services_sup, [Config]))#{restart => temporary, significant => true},
        sup(py_asgi_sup, []),
        #{id => py_asgi_keeper, start => {py_asgi_keeper, start_link, []}, shutdown => infinity}
    ],
    {ok, {Flags, Children}}.

sup(Module, Args) ->
    #{id => Module, start => {Module, start_link, Args}, type => supervisor, shutdown => infinity}.
