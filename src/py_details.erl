%% The whole story of an exception: pairs from the native side made a map, source lines added.
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
-spec describe([{atom(), term()}]) -> py_error:details().
describe(Pairs) ->
    Details = #{traceback := Frames} = details(Pairs),
    case py:call('erlang._object', describe, [Pairs]) of
        {ok, {Texts, Formatted}} ->
            Lines = lists:zipwith(fun with_text/2, Frames, Texts),
            Details#{traceback := Lines, formatted => Formatted};
        {error, _} ->
            Details#{formatted => <<>>}
    end.

details(Pairs) ->
    #{traceback := Frames, cause := Cause, context := Context} = Map = maps:from_list(Pairs),
    Map#{
        traceback := [frame(Frame) || Frame <- Frames],
        cause := chained(Cause),
        context := chained(Context)
    }.

chained(undefined) -> undefined;
chained(Pairs) -> details(Pairs).

frame({File, Line, Function}) ->
    #{file => File, line => Line, function => Function, text => none}.

with_text(Frame, <<>>) -> Frame;
with_text(Frame, Text) -> Frame#{text := Text}.
