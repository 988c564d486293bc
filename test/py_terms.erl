%% Random terms, and what becomes of a term on its way through Python and back.
-module(py_terms).

-define(PROPER_NO_TRANS, true).
-include_lib("proper/include/proper.hrl").

-export([convertible/0, normal/1]).

%% Any term that has a form in Python; maps may have keys that collide there.
-spec convertible() -> proper_types:type().
convertible() -> ?SIZED(Size, convertible(Size)).

convertible(0) ->
    leaf();
convertible(Size) ->
    Smaller = ?LAZY(convertible(Size div 3)),
    frequency([
        {20, leaf()},
        {10, list(Smaller)},
        {10, ?LET(Items, list(Smaller), plain_tuple(Items))},
        {9, ?LET(Pairs, list({key(), Smaller}), distinct_map(Pairs, #{}, #{}))},
        {1, ?LET(Pairs, list({key(), Smaller}), maps:from_list(Pairs))}
    ]).

%% Without the keys that would collide with an earlier one.
distinct_map([], _Seen, Map) ->
    Map;
distinct_map([{Key, Value} | Rest], Seen, Map) ->
    Forms = [{there, python_key(Key)}, {back, form(Key)}],
    case lists:any(fun(Form) -> is_map_key(Form, Seen) end, Forms) of
        true -> distinct_map(Rest, Seen, Map);
        false -> distinct_map(Rest, maps:merge(Seen, maps:from_keys(Forms, [])), Map#{Key => Value})
    end.

%% The first element must not give the tuple another meaning.
plain_tuple([Tag | Rest]) when Tag =:= bytes; Tag =:= view; Tag =:= ndarray; Tag =:= '$py_ref' ->
    list_to_tuple([plain, Tag | Rest]);
plain_tuple(Items) ->
    list_to_tuple(Items).

leaf() ->
    frequency([
        {3, integer()},
        {1, big()},
        {2, float()},
        {3, some_atom()},
        {2, binary()},
        {2, text()},
        {1, {bytes, binary()}},
        {1, {view, binary()}},
        {1, list(byte())},
        {1, handle()}
    ]).

key() ->
    oneof([integer(), big(), float(), some_atom(), binary(), text(), {bytes, binary()}, handle(), {some_atom(), integer()}]).

big() ->
    ?LET({Bits, Low, Sign}, {range(30, 700), integer(), oneof([1, -1])}, Sign * (1 bsl Bits) + Low).

text() -> ?LET(Text, list(character()), unicode:characters_to_binary(Text)).

character() -> oneof([range($\s, $~), range(16#A0, 16#D7FF), range(16#E000, 16#10FFFF), 0]).

%% A fixed set: atoms are never given back.
some_atom() ->
    oneof([
        a, ok, error, true, false, none, nil, undefined, '', 'a b', 'größe', '数', infinity, nan, 'None'
    ]).

handle() ->
    oneof([
        exactly(self()), exactly(whereis(init)), exactly(fun lists:map/2), exactly(fun(X) -> X end),
        ?LAZY(make_ref())
    ]).

%% What comes back, or that two keys of a map become one.
-spec normal(term()) -> {ok, term()} | collision.
normal(Term) ->
    try
        {ok, form(Term)}
    catch
        throw:collision -> collision
    end.

form(Atom) when is_atom(Atom) -> atom_form(Atom);
form({bytes, Bin}) when is_binary(Bin) -> Bin;
form({view, Bin}) when is_binary(Bin) -> Bin;
form(List) when is_list(List) -> [form(Item) || Item <- List];
form(Tuple) when is_tuple(Tuple) -> list_to_tuple(form(tuple_to_list(Tuple)));
form(Map) when is_map(Map) -> map_form(maps:to_list(Map));
form(Term) -> Term.

atom_form(Atom) when is_boolean(Atom) -> Atom;
atom_form(Atom) when Atom =:= none; Atom =:= nil; Atom =:= undefined -> none;
atom_form(Atom) -> atom_to_binary(Atom).

map_form(Pairs) ->
    ok = distinct([python_key(Key) || {Key, _} <- Pairs]),
    Normal = maps:from_list([{form(Key), form(Value)} || {Key, Value} <- Pairs]),
    %% On the way back a str and bytes may become one.
    length(Pairs) =:= map_size(Normal) orelse throw(collision),
    Normal.

distinct(Keys) ->
    length(lists:usort(Keys)) =:= length(Keys) orelse throw(collision),
    ok.

%% Equal if and only if Python takes them for one key. Numbers: 1 == 1.0 == True.
python_key(true) -> {number, 1};
python_key(false) -> {number, 0};
python_key(Float) when is_float(Float), trunc(Float) == Float -> {number, trunc(Float)};
python_key(Number) when is_number(Number) -> {number, Number};
python_key(Atom) when is_atom(Atom) ->
    case atom_form(Atom) of
        none -> none;
        Name -> {text, Name}
    end;
python_key({bytes, Bin}) when is_binary(Bin) -> {bytes, Bin};
python_key(Bin) when is_binary(Bin) ->
    case unicode:characters_to_list(Bin) of
        Text when is_list(Text) -> {text, Bin};
        _ -> {bytes, Bin}
    end;
python_key(Tuple) when is_tuple(Tuple) -> {tuple, [python_key(Item) || Item <- tuple_to_list(Tuple)]};
python_key(Other) -> {other, Other}.
