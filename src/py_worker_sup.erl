%% The workers of one pool: each is replaced by itself.
-module(py_worker_sup).

-behaviour(supervisor).

-export([start_link/2]).
-export([init/1]).

-spec start_link(atom(), pos_integer()) -> supervisor:startlink_ret().
start_link(PoolName, Size) ->
    supervisor:start_link(?MODULE, {PoolName, Size}).

-spec init({atom(), pos_integer()}) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({PoolName, Size}) ->
    Workers = [
        #{id => {py_worker, N}, start => {py_worker, start_link, [PoolName]}}
     || N <- lists:seq(1, Size)
    ],
    {ok, {#{strategy => one_for_one, intensity => 100, period => 10}, Workers}}.
