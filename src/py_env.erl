%% Variables of the environment, from Erlang to Python: each side has a copy of its own, made when it started.
%%
%% Process: the caller's.
-module(py_env).

-export([export/0, export/1]).

%% All that `os:env/0' knows; what only Python has stays.
-spec export() -> ok | {error, py_error:reason()}.
export() -> tell([{Name, Value} || {Name, Value} <- os:env()]).

%% These alone. What Erlang does not have is unset.
-spec export([unicode:chardata()]) -> ok | {error, py_error:reason()}.
export(Names) ->
    case py_text:all(Names) of
        {ok, Texts} -> tell([{Name, os:getenv(unicode:characters_to_list(Name))} || Name <- Texts]);
        error -> {error, {bad_argument, names}}
    end.

tell(Variables) ->
    Pairs = [{bytes(Name), value(Value)} || {Name, Value} <- Variables],
    case py:call('erlang._boot', set_environment, [Pairs]) of
        {ok, none} -> ok;
        {error, _} = Error -> Error
    end.

value(false) -> none;
value(Value) -> bytes(Value).

bytes(Text) -> {bytes, py_text:path(Text)}.
