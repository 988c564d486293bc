%% Decodes the bytes of terms that Python code has had in its hands.
%%
%% Process: whichever has the bytes. Never: raises; a supervised process that decodes what Python sent
%% must outlive it.
-module(py_term).

-export([decode/1, unknown/0]).

%% `[safe]' refuses atoms, nodes and functions (`fun M:F/A') that this node does not know.
-spec decode(binary()) -> {ok, term()} | {error, {not_convertible, binary()}}.
decode(Bytes) ->
    try binary_to_term(Bytes, [safe]) of
        Term -> {ok, Term}
    catch
        error:badarg -> {error, unknown()}
    end.

%% Why bytes could not be decoded.
-spec unknown() -> {not_convertible, binary()}.
unknown() ->
    {not_convertible, <<"with a function (fun M:F/A), an atom or a node that this node does not know">>}.
