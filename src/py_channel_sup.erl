%% The channels and mailboxes: none is started again.
-module(py_channel_sup).

-behaviour(supervisor).

-export([start_link/0, start_channel/2, start_mailbox/1, start_child/2]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec start_channel(pid(), pos_integer()) -> {ok, pid()} | {error, py_error:reason()}.
start_channel(Maker, Max) ->
    start(py_channel, [Maker, Max]).

-spec start_mailbox(pid()) -> {ok, pid()} | {error, py_error:reason()}.
start_mailbox(Caller) ->
    start(py_mailbox, [Caller]).

start(Module, Args) ->
    Ask = fun() -> supervisor:start_child(?MODULE, [Module, Args]) end,
    case py_ask:otherwise(Ask, {error, not_running}) of
        {ok, Pid} -> {ok, Pid};
        {error, not_running} -> {error, not_running};
        {error, Reason} -> {error, {context_died, Reason}}
    end.

-spec start_child(module(), [term()]) -> {ok, pid()} | {error, term()}.
start_child(Module, Args) -> apply(Module, start_link, Args).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = py_channel:new_table(),
    Channel = #{
        id => py_channel,
        start => {?MODULE, start_child, []},
        restart => temporary
    },
    {ok, {#{strategy => simple_one_for_one}, [Channel]}}.
