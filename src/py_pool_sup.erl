%% One pool: the process that owns it, then its workers.
-module(py_pool_sup).

-behaviour(supervisor).

-export([start_link/2, start_own/2]).
-export([init/1]).

-spec start_link(atom(), pos_integer()) -> supervisor:startlink_ret().
start_link(Name, Size) ->
    supervisor:start_link(?MODULE, {Name, Size}).

%% One that a user owns. It ends with the names of the application, and its own supervisor starts it again.
-spec start_own(atom(), pos_integer()) -> supervisor:startlink_ret().
start_own(Name, Size) ->
    supervisor:start_link(?MODULE, {Name, Size, own}).

-spec init({atom(), pos_integer()} | {atom(), pos_integer(), own}) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Name, Size, own}) ->
    {ok, {Flags, [Pool, Workers]}} = init({Name, Size}),
    Own = Pool#{start := {py_pool, begin_link, [Name, Size, own]}, restart => transient, significant => true},
    {ok, {Flags#{auto_shutdown => any_significant}, [Own, Workers]}};
init({Name, Size}) ->
    %% Without its pool no worker stays.
    Flags = #{strategy => rest_for_one, intensity => 100, period => 10},
    Pool = #{id => py_pool, start => {py_pool, begin_link, [Name, Size]}},
    Workers = #{
        id => py_worker_sup,
        start => {py_worker_sup, start_link, [Name, Size]},
        type => supervisor
    },
    {ok, {Flags, [Pool, Workers]}}.
