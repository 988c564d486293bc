%% Conversion: what comes back is the documented normal form, byte by byte, or an error that names
%% the thing.
-module(py_convert_SUITE).

-define(PROPER_NO_TRANS, true).
-include_lib("proper/include/proper.hrl").
-include("py_test.hrl").
-include_lib("erlang_python/src/py_nif.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    any_term_comes_back_in_its_normal_form/1,
    every_encoding_of_a_term_is_read/1,
    integers_of_any_size_are_exact/1,
    floats_are_exact/1,
    binaries_of_any_size_are_exact/1,
    wide_maps_are_exact/1,
    broken_bytes_are_an_error/1,
    terms_have_the_documented_python_type/1,
    python_values_have_the_documented_form/1,
    what_has_no_form_is_an_error_with_its_repr/1,
    a_lone_surrogate_is_an_error/1,
    an_improper_list_is_named/1,
    a_bitstring_is_named/1,
    a_key_that_cannot_be_hashed_is_named/1,
    keys_that_become_one_are_named/1,
    pids_references_ports_and_funs_round_trip/1,
    a_pid_from_before_the_node_had_a_name_is_still_right/1,
    handles_cannot_be_made_up/1,
    numpy_arrays_and_scalars_convert/1
]).

all() -> py_test:cases(?MODULE).

init_per_suite(Config) -> py_test:start(Config).

end_per_suite(_Config) -> ok.

identity(Term) -> py:call(py_tools, identity, [Term]).

quick(Property) -> quick(Property, 500).

quick(Property, Count) ->
    ?assertEqual(true, proper:quickcheck(Property, [long_result, quiet, {numtests, Count}, {max_size, 14}])).

%% The same to the last bit: 0.0 is not -0.0, and 1 is not 1.0.
same(A, B) -> term_to_binary(A) =:= term_to_binary(B).

%% ---- properties

any_term_comes_back_in_its_normal_form(_Config) ->
    quick(?FORALL(Term, py_terms:convertible(), comes_back(Term, identity(Term))), 1000),
    %% As a local name of an eval, as an argument and an answer of a callback, as a message.
    ok = py:register_function(conv_same, fun([Term]) -> Term end),
    quick(?FORALL(Term, py_terms:convertible(), comes_back(Term, py:eval(<<"x">>, #{x => Term})))),
    quick(?FORALL(Term, py_terms:convertible(), comes_back(Term, by_callback(Term)))),
    quick(?FORALL(Term, py_terms:convertible(), comes_back(Term, by_message(Term)))),
    quick(?FORALL(Term, py_terms:convertible(), comes_back([Term], py:stream(builtins, iter, [[Term]])))),
    ok = py:unregister_function(conv_same).

comes_back(Term, Answer) ->
    case py_terms:normal(Term) of
        {ok, Normal} -> {ok, Value} = Answer, same(Normal, Value);
        collision -> {error, {bad_argument, _}} = Answer, py_error:is_reason(element(2, Answer))
    end.

by_callback(Term) ->
    case py:call(erlang, call, [conv_same, Term]) of
        {error, {'TypeError', Text}} -> {error, {bad_argument, Text}};
        Answer -> Answer
    end.

by_message(Term) ->
    case py:call(erlang, send, [self(), {here, Term}]) of
        {ok, none} ->
            receive
                {<<"here">>, Value} -> {ok, Value}
            after 5000 -> no_message
            end;
        {error, {'TypeError', Text}} ->
            {error, {bad_argument, Text}};
        Error ->
            Error
    end.

every_encoding_of_a_term_is_read(_Config) ->
    quick(
        ?FORALL({Term, Version}, {py_terms:convertible(), range(0, 2)}, begin
            Payload = term_to_binary({py_tools, identity, [Term], #{}}, [{minor_version, Version}]),
            comes_back(Term, submit(Payload))
        end)
    ),
    %% In pieces, cut anywhere.
    quick(
        ?FORALL({Term, Cuts}, {py_terms:convertible(), list(range(1, 40))}, begin
            Payload = term_to_binary({py_tools, identity, [Term], #{}}),
            comes_back(Term, submit(pieces(Payload, Cuts)))
        end)
    ).

submit(Payload) ->
    py_call:sync(default, ?OP_CALL, 0, Payload, 5000).

pieces(Bytes, [Cut | Cuts]) when byte_size(Bytes) > Cut ->
    <<Piece:Cut/binary, Rest/binary>> = Bytes,
    [Piece | pieces(Rest, Cuts)];
pieces(Bytes, _) ->
    [Bytes].

integers_of_any_size_are_exact(_Config) ->
    quick(
        ?FORALL({Bits, Sign, Low}, {range(0, 5000), oneof([1, -1]), integer()}, begin
            Integer = Sign * (1 bsl Bits) + Low,
            same({ok, [Integer]}, identity([Integer])) andalso same({ok, Integer}, identity(Integer))
        end)
    ),
    [
        begin
            Power = 1 bsl Bits,
            ?assertEqual({ok, [Power, -Power, Power - 1]}, py:call(py_convert, big, [Bits])),
            ?assertEqual({ok, true}, py:call(py_convert, check_big, [Power, Bits]))
        end
     || Bits <- [7, 8, 31, 32, 59, 60, 62, 63, 64, 65, 2039, 2040, 2041, 100_000]
    ].

floats_are_exact(_Config) ->
    quick(?FORALL(Float, float(), same({ok, {Float, Float}}, identity({Float, Float})))),
    [
        ?assert(same({ok, F}, identity(F)), F)
     || F <- [0.0, -0.0, 5.0e-324, 1.7976931348623157e308, 0.1, 1.0e22, -1.0]
    ].

binaries_of_any_size_are_exact(_Config) ->
    Sizes = [0, 1, 255, 256, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1_000_000, 20_000_000],
    [
        begin
            Bin = binary:copy(Byte, Size),
            ?assert({ok, Bin} =:= identity(Bin), Size),
            ?assert({ok, Bin} =:= identity({bytes, Bin}), Size),
            ?assert({ok, Bin} =:= identity({view, Bin}), Size),
            ?assert({ok, [Bin, {Bin}]} =:= identity([Bin, {{bytes, Bin}}]), Size)
        end
     || Size <- Sizes, Byte <- [<<"a">>, <<255>>]
    ],
    %% Text of every width that Python keeps.
    [
        begin
            Text = unicode:characters_to_binary(lists:duplicate(Count, Char)),
            ?assert({ok, Text} =:= identity(Text), {Char, Count})
        end
     || Char <- [$a, $ä, $数, 16#1F600], Count <- [1, 1000, 100_000]
    ].

wide_maps_are_exact(_Config) ->
    [
        begin
            Map = maps:from_list([{N, [N]} || N <- lists:seq(1, Size)]),
            ?assert({ok, Map} =:= identity(Map), Size)
        end
     || Size <- [0, 1, 31, 32, 33, 127, 128, 129, 1000, 200_000]
    ].

broken_bytes_are_an_error(_Config) ->
    Whole = term_to_binary({py_tools, identity, [[1, {a, #{b => <<"c">>}}, 1 bsl 80, 1.5]], #{}}),
    %% Cut at every place, and changed at every place.
    [?assertReason({bad_argument, _}, submit(binary:part(Whole, 0, N))) || N <- lists:seq(0, byte_size(Whole) - 1)],
    quick(
        ?FORALL({At, Byte}, {range(0, byte_size(Whole) - 1), byte()}, begin
            <<Before:At/binary, _, After/binary>> = Whole,
            case submit(<<Before/binary, Byte, After/binary>>) of
                {ok, _} -> true;
                {error, Reason} -> py_error:is_reason(Reason)
            end
        end),
        5000
    ),
    ?assertEqual({ok, 1}, identity(1)).

%% ---- the table

terms_have_the_documented_python_type(_Config) ->
    Rows = [
        {1, int}, {1 bsl 70, int}, {1.5, float}, {true, bool}, {false, bool},
        {none, 'NoneType'}, {nil, 'NoneType'}, {undefined, 'NoneType'}, {ok, str}, {'größe', str},
        {<<"text">>, str}, {<<"größe"/utf8>>, str}, {<<>>, str}, {<<255>>, bytes},
        {{bytes, <<"text">>}, bytes}, {{view, <<"text">>}, memoryview}, {[], list}, {"abc", list},
        {{}, tuple}, {{1, 2}, tuple}, {#{}, dict}, {self(), 'Pid'}, {make_ref(), 'Ref'},
        {fun lists:map/2, 'Fun'}, {fun() -> ok end, 'Fun'}, {hd(erlang:ports()), 'Port'}
    ],
    {Terms, Types} = lists:unzip(Rows),
    ?assertEqual({ok, [atom_to_binary(Type) || Type <- Types]}, py:call(py_convert, kinds, [Terms])),
    [
        ?assertEqual({ok, atom_to_binary(Type)}, py:call(py_convert, kind, [Term]), Term)
     || {Term, Type} <- Rows
    ].

python_values_have_the_documented_form(_Config) ->
    Expected = #{
        <<"namedtuple">> => {1, 2},
        <<"set">> => [1],
        <<"frozenset">> => [1],
        <<"empty set">> => [],
        <<"bytearray">> => <<255, 0>>,
        <<"memoryview">> => <<255, 0>>,
        <<"strided memoryview">> => <<"ace">>,
        <<"infinity">> => infinity,
        <<"negative infinity">> => neg_infinity,
        <<"nan">> => nan,
        <<"nested nan">> => [nan],
        <<"ordered dict">> => #{<<"a">> => 1},
        <<"default dict">> => #{<<"a">> => 1},
        <<"mapping proxy">> => #{<<"a">> => 1},
        <<"chain map">> => #{<<"a">> => 1},
        <<"counter">> => #{<<"a">> => 2},
        <<"dataclass">> => #{<<"number">> => 1, <<"lines">> => [<<"a">>]},
        <<"slotted">> => #{<<"a">> => 1},
        <<"datetime">> => <<"2024-02-29T12:30:00+00:00">>,
        <<"date">> => <<"2024-02-29">>,
        <<"time">> => <<"12:30:00">>,
        <<"decimal">> => <<"1.10">>,
        <<"uuid">> => <<"00000000-0000-0000-0000-000000000001">>,
        <<"path">> => <<"/a/b">>,
        <<"int enum">> => 3,
        <<"str subclass">> => <<"t">>,
        <<"int subclass">> => 5,
        <<"atom">> => ok,
        <<"none">> => none,
        <<"bool">> => true,
        <<"empty">> => {{}, [], #{}, <<>>, <<>>}
    },
    {ok, Names} = py:call(py_convert, names, []),
    ?assertEqual(lists:sort(Names), lists:sort(maps:keys(Expected))),
    [
        ?assertEqual({Name, {ok, maps:get(Name, Expected)}}, {Name, py:call(py_convert, value, [Name])})
     || Name <- Names
    ],
    {ok, [true, true, _]} = py:call(py_convert, atom_forms, []).

what_has_no_form_is_an_error_with_its_repr(_Config) ->
    [
        begin
            {error, {not_convertible, Repr}} = Error = py:call(py_convert, not_convertible, [Name]),
            ?assertReason({not_convertible, _}, Error),
            ?assertNotEqual(nomatch, string:find(Repr, Part), {Name, Repr})
        end
     || {Name, Part} <- [
            {object, "<object object at"}, {function, "<function value"}, {class, "Order"},
            {module, "<module 'decimal'"}, {generator, "<generator"}, {complex, "1j"},
            {range, "range(0, 3)"}, {fraction, "Fraction(1, 2)"}, {exception, "ValueError('v')"},
            {nested, "<object object at"}, {key, "<object object at"}
        ]
    ].

a_lone_surrogate_is_an_error(_Config) ->
    [
        ?assertReason({'UnicodeEncodeError', _}, py:call(py_convert, surrogate, [Where]))
     || Where <- [str, list, key]
    ].

%% ---- errors that name the thing

named(Term, Parts) ->
    {error, {bad_argument, Text}} = Error = identity(Term),
    ?assertReason({bad_argument, _}, Error),
    [?assertNotEqual(nomatch, string:find(Text, Part), {Text, Part}) || Part <- Parts].

an_improper_list_is_named(_Config) ->
    named([1 | 2], ["improper list", "[1]", "tail 2"]),
    named(#{a => {[x, y | <<"end">>]}}, ["improper list", "['x', 'y']", "'end'"]).

a_bitstring_is_named(_Config) ->
    named(<<5:3>>, ["bitstring of 3 bits"]),
    named([{<<255, 1:1>>}], ["bitstring of 9 bits"]).

a_key_that_cannot_be_hashed_is_named(_Config) ->
    named(#{[1, 2] => a}, ["hashed", "[1, 2]"]),
    named(#{#{a => 1} => b}, ["hashed", "{'a': 1}"]),
    named(#{{x, [1]} => b}, ["hashed", "('x', [1])"]).

keys_that_become_one_are_named(_Config) ->
    named(#{a => 1, <<"a">> => 2}, ["'a'"]),
    named(#{1 => a, 1.0 => b}, ["1"]),
    named(#{true => a, 1 => b}, ["become one"]),
    named(#{nil => a, undefined => b}, ["None"]),
    named([#{{a, 1} => x, {<<"a">>, 1.0} => y}], ["('a', 1"]),
    [
        begin
            {error, {bad_argument, Text}} = Error = py:call(py_convert, colliding, [Name]),
            ?assertReason({bad_argument, _}, Error),
            ?assertNotEqual(nomatch, string:find(Text, Part), Text)
        end
     || {Name, Part} <- [
            {<<"text and bytes">>, "'a'"}, {<<"atom and None">>, "None"}, {<<"tuple and list">>, "(1, 'a')"}
        ]
    ].

%% ---- pids and the like

handles() ->
    Remote = <<131, 88, 119, 9, "other@far", 77:32, 3:32, 1:32>>,
    [
        self(),
        whereis(init),
        make_ref(),
        alias(),
        hd(erlang:ports()),
        fun lists:map/2,
        fun(X) -> {X, handles} end,
        binary_to_term(Remote)
    ].

pids_references_ports_and_funs_round_trip(_Config) ->
    [?assertEqual({ok, Handle}, identity(Handle)) || Handle <- handles()],
    Handles = handles(),
    ?assertEqual({ok, {Handles, maps:from_keys(Handles, 1)}}, identity({Handles, maps:from_keys(Handles, 1)})),
    {ok, Fun} = identity(fun(X) -> X + length(Handles) end),
    ?assertEqual(10, Fun(2)),
    ?assertEqual(self(), binary_to_term(term_to_binary(element(2, identity(self()))))).

a_pid_from_before_the_node_had_a_name_is_still_right(Config) ->
    Peer = py_test:peer([]),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [erlang_python]),
    ok = peer:call(Peer, py_test, export_python, [proplists:get_value(data_dir, Config)]),
    ok = peer:call(Peer, erlang, apply, [fun rename/0, []], 20_000),
    ok = py_test:stop_peer(Peer).

rename() ->
    nonode@nohost = node(),
    Before = [self(), make_ref(), fun() -> ok end, hd(erlang:ports())],
    {ok, Before} = py:call(py_convert, keep, [Before]),
    {ok, Self} = py:call(py_convert, keep, [self()]),
    {ok, _} = net_kernel:start(conv_renamed, #{name_domain => shortnames, dist_listen => false}),
    true = is_alive(),
    true = {ok, self()} =:= py:call(py_convert, give_kept, []),
    {ok, none} = py:call(py_convert, send_kept, [hello]),
    ok = py_test:message(<<"hello">>),
    true = Self =:= self(),
    {ok, _} = py:call(py_convert, keep, [[make_ref(), self()]]),
    {ok, [_, Again]} = py:call(py_convert, give_kept, []),
    true = Again =:= self(),
    ok.

handles_cannot_be_made_up(_Config) ->
    ?assertReason({_, _}, py:call(py_convert, make_pid, [])),
    [?assertReason({_, _}, py:call(py_convert, unpickle, [H])) || H <- [self(), make_ref(), fun lists:map/2]],
    [?assertReason({'TypeError', _}, py:call(erlang, Type, [])) || Type <- ['Pid', 'Ref', 'Fun', 'Port']].

%% ---- numpy

numpy_arrays_and_scalars_convert(_Config) ->
    py_test:with_numpy(fun numpy/0).

numpy() ->
    ok = py:exec(<<"import numpy as np">>),
    Arrays = [
        {<<"np.arange(6, dtype='<i8').reshape(2, 3)">>, <<"<i8">>, [2, 3], <<<<N:64/little>> || N <- lists:seq(0, 5)>>},
        {<<"np.array([1.5], dtype='<f4')">>, <<"<f4">>, [1], <<1.5:32/float-little>>},
        {<<"np.zeros((0, 3), dtype='|u1')">>, <<"|u1">>, [0, 3], <<>>},
        {<<"np.array(7, dtype='|u1')">>, <<"|u1">>, [], <<7>>},
        {<<"np.array([True, False])">>, <<"|b1">>, [2], <<1, 0>>},
        {<<"np.arange(6, dtype='|u1').reshape(2, 3).T">>, <<"|u1">>, [3, 2], <<0, 3, 1, 4, 2, 5>>},
        {<<"np.arange(10, dtype='|u1')[::3]">>, <<"|u1">>, [4], <<0, 3, 6, 9>>}
    ],
    [
        begin
            Term = {ndarray, Dtype, Shape, Data},
            ?assertEqual({ok, Term}, py:eval(Code)),
            ?assertEqual({ok, Term}, identity(Term)),
            ?assertEqual({ok, [Term]}, identity([Term]))
        end
     || {Code, Dtype, Shape, Data} <- Arrays
    ],
    Large = binary:copy(<<1.0:64/float-little>>, 200_000),
    ?assertEqual({ok, {ndarray, <<"<f8">>, [200_000], Large}}, py:eval(<<"np.ones(200_000)">>)),
    ?assertEqual({ok, 200_000.0}, py:call(numpy, sum, [{ndarray, <<"<f8">>, [200_000], Large}])),
    ?assertEqual({ok, [1, 1.5, true]}, py:eval(<<"[np.int16(1), np.float32(1.5), np.bool_(True)]">>)),
    [
        ?assertReason({_, _}, identity(Wrong))
     || Wrong <- [
            {ndarray, <<"<i8">>, [3], <<0:64>>},
            {ndarray, <<"nonsense">>, [1], <<0>>},
            {ndarray, <<"|O">>, [1], <<0:64>>},
            {ndarray, <<"<i8">>, [-1, 2], <<0:64>>},
            {ndarray, <<"<i8">>, x, <<0:64>>}
        ]
    ],
    ?assertReason({not_convertible, _}, py:eval(<<"np.array([object()])">>)).
