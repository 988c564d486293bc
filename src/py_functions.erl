%% Functions that Python may call: names checked, then registered.
-module(py_functions).

-export([register/2, unregister/1]).

-spec register(py_call:name(), py_registry:callback()) -> ok | {error, py_error:reason()}.
register(Name, Function) ->
    case {name(Name), is_function_spec(Function)} of
        {{ok, <<"$", _/binary>>}, _} -> {error, {bad_argument, name}};
        {{ok, Binary}, true} -> py_registry:add_function(Binary, Function);
        {{ok, _}, false} -> {error, {bad_argument, no_function(Function)}};
        {error, _} -> {error, {bad_argument, name}}
    end.

-spec unregister(py_call:name()) -> ok.
unregister(Name) ->
    case name(Name) of
        {ok, Binary} -> py_registry:remove_function(Binary);
        error -> ok
    end.

is_function_spec(Fun) when is_function(Fun, 1) -> true;
is_function_spec({Module, Function}) -> is_atom(Module) andalso is_atom(Function);
is_function_spec(_) -> false.

no_function(Fun) when is_function(Fun) ->
    {arity, Arity} = erlang:fun_info(Fun, arity),
    py_text:format("a function takes one argument, the list of what Python gives; this one takes ~b", [Arity]);
no_function(_) ->
    function.

name(Name) when is_atom(Name) -> {ok, atom_to_binary(Name)};
name(<<_, _/binary>> = Name) -> {ok, Name};
name([_ | _] = Name) ->
    case unicode:characters_to_binary(Name) of
        Binary when is_binary(Binary) -> {ok, Binary};
        _ -> error
    end;
name(_) -> error.
