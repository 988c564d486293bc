%% One server and nothing else: how often it is started again is no other server's business. Ends with it.
-module(py_asgi_server_sup).

-behaviour(supervisor).

-export([start_link/1, options/1]).
-export([init/1]).

-spec start_link(py_asgi_options:options()) -> supervisor:startlink_ret().
start_link(Options) ->
    supervisor:start_link(?MODULE, Options).

%% Those that its server was started with; it may be ending.
-spec options(pid()) -> {ok, py_asgi_options:options()} | error.
options(Supervisor) ->
    case py_ask:otherwise(fun() -> supervisor:get_childspec(Supervisor, server) end, gone) of
        {ok, #{start := {_, _, [_, Options]}}} -> {ok, Options};
        _ -> error
    end.

-spec init(py_asgi_options:options()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Options) ->
    Server = #{
        id => server,
        start => {py_asgi_server, start_link, [self(), Options]},
        %% One that was stopped, or whose application does not start any more, stays away.
        restart => transient,
        significant => true,
        shutdown => py_asgi_options:shutdown(Options)
    },
    Flags = #{strategy => one_for_one, intensity => 5, period => 60, auto_shutdown => any_significant},
    {ok, {Flags, [Server]}}.
