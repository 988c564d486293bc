%% What calls between Erlang and Python need, Python itself included: each child depends on the ones above it. Its end
%% is that of the application.
-module(py_services_sup).

-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(py_config:config()) -> supervisor:startlink_ret().
start_link(Config) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, Config).

-spec init(py_config:config()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{num_workers := Workers, stop_timeout := Stop} = Config) ->
    Flags = #{strategy => rest_for_one, intensity => 10, period => 10},
    Children = [
        worker(py_registry, []),
        worker(py_state, []),
        worker(py_shared_dict, []),
        %% Starts Python itself, or stops the start with a sentence.
        (worker(py_runtime, [Config]))#{shutdown => Stop + 1000},
        worker(py_logger, []),
        worker(py_printer, []),
        worker(py_courier, []),
        worker(py_callback, [Config]),
        pool(main, Workers),
        sup(py_channel_sup, []),
        worker(py_pg, []),
        worker(py_signal, []),
        sup(py_event_loop_sup, []),
        (worker(py_event_loop_pool, []))#{start := {py_event_loop_pool, start_main, [Config]}},
        sup(py_context_sup, []),
        worker(py_subinterp_pool, [Config]),
        worker(py_bind, [Config])
    ],
    {ok, {Flags, Children}}.

worker(Module, Args) ->
    #{id => Module, start => {Module, start_link, Args}, shutdown => 5000}.

sup(Module, Args) ->
    #{id => Module, start => {Module, start_link, Args}, type => supervisor, shutdown => infinity}.

pool(Name, Size) ->
    (sup(py_pool_sup, [Name, Size]))#{id => {py_pool_sup, Name}}.
