%% Text as users write it, strings or binaries, and sentences for them.
%%
%% Place: where options and arguments are checked.
%% Process: the caller's.
-module(py_text).

-export([one/1, all/1, format/2]).

%% A string or binary that is not empty and has no NUL, which no path, name or URL may hold.
-spec one(term()) -> {ok, binary()} | error.
one(Text) when is_binary(Text); is_list(Text) ->
    try unicode:characters_to_binary(Text) of
        Binary when is_binary(Binary), Binary =/= <<>> ->
            case binary:match(Binary, <<0>>) of
                nomatch -> {ok, Binary};
                _ -> error
            end;
        _ ->
            error
    catch
        error:badarg -> error
    end;
one(_) ->
    error.

%% A list of such.
-spec all(term()) -> {ok, [binary()]} | error.
all(List) -> all(List, []).

all([], Done) ->
    {ok, lists:reverse(Done)};
all([Each | Rest], Done) ->
    case one(Each) of
        {ok, Text} -> all(Rest, [Text | Done]);
        error -> error
    end;
all(_, _) ->
    error.

%% A sentence for a user.
-spec format(io:format(), [term()]) -> unicode:unicode_binary().
format(Format, Args) ->
    %% io_lib gives characters, so the conversion cannot stop half way.
    Text = unicode:characters_to_binary(io_lib:format(Format, Args)),
    true = is_binary(Text),
    Text.
