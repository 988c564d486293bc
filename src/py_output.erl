%% Sends what Python prints where the `log_stdout' setting says, then has nothing more to do.
%%
%% Process: the supervisor's, at every start: the setting may have changed.
-module(py_output).

-export([start_link/1]).

-spec start_link(py_config:config()) -> ignore | {error, {log_stdout, py_error:reason()}}.
start_link(#{log_stdout := ToLogger}) ->
    case py:call('erlang._boot', route_output, [ToLogger], #{}, infinity) of
        {ok, _} -> ignore;
        {error, Reason} -> {error, {log_stdout, Reason}}
    end.
