%% The whole story of an exception: source lines and Python's own text are added to it, unless the job
%% was asked for them and has done so itself.
-module(py_details).

-export([last/0]).

-spec last() -> py_error:details() | undefined.
last() ->
    case py_nif:last_error(py_call:slot()) of
        undefined -> undefined;
        Bytes -> told(py_term:decode(Bytes))
    end.

told({ok, Details}) -> described(Details);
told({error, _}) -> undefined.

%% Python's own `traceback' module writes the text; should even that fail, the story is told
%% without source lines.
described(#{formatted := _} = Details) ->
    Details;
described(Details) ->
    case py:call('erlang._story', describe, [Details]) of
        {ok, {Texts, Formatted}} -> (with_texts(Details, Texts))#{formatted => Formatted};
        {error, _} -> Details#{formatted => <<>>}
    end.

with_texts(undefined, none) ->
    undefined;
with_texts(#{traceback := Frames, cause := Cause, context := Context} = Details, Texts) ->
    {Lines, OfCause, OfContext, OfMembers} = Texts,
    Told = Details#{
        traceback := lists:zipwith(fun with_text/2, Frames, Lines),
        cause := with_texts(Cause, OfCause),
        context := with_texts(Context, OfContext)
    },
    case Told of
        #{exceptions := Members} ->
            Told#{exceptions := lists:zipwith(fun with_texts/2, Members, OfMembers)};
        #{} ->
            Told
    end.

with_text(Frame, <<>>) -> Frame;
with_text(Frame, Text) -> Frame#{text := Text}.
