%% Text as users write it, strings or binaries, and sentences for them.
%%
%% Place: where options and arguments are checked.
%% Process: the caller's.
-module(py_text).

-export([one/1, all/1, path/1, absolute/1, format/2]).

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

%% A path is bytes and need not be UTF-8: one in a binary stays as it is.
-spec path(unicode:chardata() | file:filename_all()) -> binary().
path(Path) when is_binary(Path) -> Path;
path(Path) -> converted(Path).

%% From the root on. A node whose working directory was deleted has none: there a relative path stays as it is.
-spec absolute(file:filename_all()) -> file:filename_all().
absolute(Path) ->
    case {filename:pathtype(Path), file:get_cwd()} of
        {absolute, _} -> filename:absname(Path, "/");
        {_, {ok, Cwd}} -> filename:absname(Path, Cwd);
        {_, {error, _}} -> Path
    end.

%% A sentence for a user.
-spec format(io:format(), [term()]) -> unicode:unicode_binary().
format(Format, Args) ->
    %% io_lib gives characters, so the conversion cannot stop half way.
    converted(io_lib:format(Format, Args)).

converted(Characters) ->
    Binary = unicode:characters_to_binary(Characters),
    true = is_binary(Binary),
    Binary.
