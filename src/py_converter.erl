%% Converters of users: functions of Python that every interpreter of the node uses.
%%
%% Process: the caller's own. The main interpreter keeps the list that new ones begin with.
-module(py_converter).

-export([register/3]).

-include("py_nif.hrl").

-spec register(to_python | to_erlang, py_call:name(), {py_call:name(), py_call:name()}) ->
    ok | {error, py_error:reason()}.
register(Direction, What, {Module, Function}) when
    Direction =:= to_python; Direction =:= to_erlang
->
    Names = [Direction | [py_call:text(Name) || Name <- [What, Module, Function]]],
    case py:call('erlang._object', register_converter, Names) of
        {ok, _} -> tell(py_registry:interpreters(), Names);
        {error, _} = Error -> Error
    end;
register(_Direction, _What, {_Module, _Function}) ->
    {error, {bad_argument, direction}};
register(_Direction, _What, _Function) ->
    {error, {bad_argument, function}}.

%% Those that are there have it before the calls that come after this one. One that can't import what
%% the main interpreter could says so in the log.
tell([], _Names) ->
    ok;
tell([Pool | Rest], Names) ->
    {ok, Payload} = py_call:payload('erlang._boot', add_converter, Names, #{}),
    %% Refused only where the interpreter ends, or where so much waits that it tells everybody else.
    _ = py_call:cast(Pool, ?OP_CALL, 0, Payload, infinity),
    tell(Rest, Names).
