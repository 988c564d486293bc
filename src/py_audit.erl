%% Refuses the audit events of the `audit' setting, then has nothing more to do.
%%
%% Place: right after the main pool, before anything that runs a user's code.
%% Process: the supervisor's. At a restart with another list, the new list counts.
-module(py_audit).

-export([start_link/1]).

-spec start_link(py_config:config()) -> ignore | {error, {audit, py_error:reason()}}.
start_link(#{audit := Names}) ->
    case py:call('erlang._audit', install, [Names], #{}, infinity) of
        {ok, _} -> ignore;
        {error, Reason} -> {error, {audit, Reason}}
    end.
