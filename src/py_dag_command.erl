%% Commands of Redis as users write them: lists of words, with the values of inputs in their places.
%%
%% Process: the caller's; pure.
-module(py_dag_command).

-export([inputs/1, parts/2]).

-export_type([part/0]).

%% Text, the place of an input, or one word of several parts.
-type part() :: binary() | non_neg_integer() | [part()].

%% The inputs that the words name.
-spec inputs(term()) -> [py_dag:node_name()].
inputs({input, Name}) -> [Name];
inputs({join, Parts}) -> inputs(Parts);
inputs([First | Rest]) -> inputs(First) ++ inputs(Rest);
inputs(_Other) -> [].

%% One command, or many.
-spec parts(term(), fun((py_dag:node_name()) -> non_neg_integer())) ->
    {ok, {one, [part()]} | {many, [[part()]]}} | error.
parts([First | _] = Commands, Place) ->
    try
        case is_command(First) of
            true -> {ok, {many, each(fun(Command) -> command(Command, Place) end, Commands)}};
            false -> {ok, {one, command(Commands, Place)}}
        end
    catch
        throw:no_word -> error
    end.

%% A list of characters is a word: no command begins with a number.
is_command([Head | _]) -> not is_integer(Head);
is_command(_Word) -> false.

command([_ | _] = Words, Place) -> each(fun(Word) -> word(Word, Place) end, Words);
command(_Other, _Place) -> throw(no_word).

each(Make, [First | Rest]) -> [Make(First) | each(Make, Rest)];
each(_Make, []) -> [];
each(_Make, _Other) -> throw(no_word).

word({input, Name}, Place) -> Place(Name);
word({join, Parts}, Place) -> each(fun(Part) -> word(Part, Place) end, Parts);
word(Word, _Place) when is_binary(Word) -> Word;
word(Word, _Place) when is_atom(Word) -> atom_to_binary(Word);
word(Word, _Place) when is_integer(Word) -> integer_to_binary(Word);
word(Word, _Place) when is_float(Word) -> float_to_binary(Word, [short]);
word([_ | _] = Word, _Place) ->
    case io_lib:printable_unicode_list(Word) of
        true -> unicode:characters_to_binary(Word);
        false -> throw(no_word)
    end;
word(_Other, _Place) ->
    throw(no_word).
