%% The whole story of an exception: source lines and Python's own text are added to it.
-module(py_details).

-export([last/0, describe/1]).

-spec last() -> py_error:details() | undefined.
last() ->
    case py_nif:last_error(py_call:slot()) of
        undefined -> undefined;
        Bytes -> describe(binary_to_term(Bytes, [safe]))
    end.

%% Python's own `traceback' module writes the text; should even that fail, the story is told
%% without source lines.
-spec describe(py_error:details()) -> py_error:details().
describe(#{traceback := Frames} = Details) ->
    case py:call('erlang._object', describe, [Details]) of
        {ok, {Texts, Formatted}} ->
            Lines = lists:zipwith(fun with_text/2, Frames, Texts),
            Details#{traceback := Lines, formatted => Formatted};
        {error, _} ->
            Details#{formatted => <<>>}
    end.

with_text(Frame, <<>>) -> Frame;
with_text(Frame, Text) -> Frame#{text := Text}.
