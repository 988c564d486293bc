#!/usr/bin/env escript
%% Compares the stubs, specs and types of src/py_nif.erl with the Rust functions they stand for, and looks whether
%% both sides know each number of src/py_nif.hrl.
%%
%% Usage: check_nif.escript ROOT. Prints one line per difference; the exit code is 1 if there is any.

-mode(compile).

-record(nif, {file, args, returns}).
-record(rust, {nifs, structs, decoders, text}).
-record(erl, {nifs, stubs, specs, types}).

main([Root]) ->
    Rust = rust(Root),
    Erl = erl(Root),
    Found = missing(Rust, Erl) ++ functions(Rust, Erl) ++ resources(Rust, Erl) ++ numbers(Root, Rust),
    [io:format("~ts~n", [Line]) || Line <- lists:usort(Found)],
    halt(min(1, length(Found))).

say(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).

%% ---- what is there: Rust

rust(Root) ->
    Dir = filename:join(Root, "native/nif/src"),
    Files = [filename:join(Dir, File) || File <- filelib:wildcard("**/*.rs", Dir)],
    [] =/= Files orelse error({no_rust, Dir}),
    Texts = [{string:prefix(File, Root ++ "/"), read(File)} || File <- Files],
    All = lists:append([Text || {_, Text} <- Texts]),
    Aliases = aliases(All),
    #rust{
        nifs = maps:from_list([Nif || {File, Text} <- Texts, Nif <- nifs(File, Text, Aliases)]),
        structs = structs(All, Aliases),
        decoders = [Name || [Name] <- all(All, "\\bDecoder<'\\w+> for (\\w+)")],
        text = All
    }.

%% A file without its comments.
read(File) ->
    {ok, Text} = file:read_file(File),
    re:replace(Text, "(?m)^\\s*//.*$", "", [global, {return, list}]).

all(Text, Pattern) ->
    case re:run(Text, Pattern, [global, dotall, multiline, {capture, all_but_first, list}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

aliases(Text) ->
    Pattern = "^\\s*(?:pub )?type (\\w+)(?:<[^>]*>)? = (.*?);",
    maps:from_list([{Name, plain(Type)} || [Name, Type] <- all(Text, Pattern)]).

%% The keys of each struct that is read from a map, with their types.
structs(Text, Aliases) ->
    Pattern = "derive\\([^)]*\\bNifMap\\b[^)]*\\)\\]\\s*(?:pub )?struct (\\w+)(?:<[^>]*>)? \\{(.*?)\\}",
    maps:from_list([{Name, [typed(Field, Aliases) || Field <- split(Fields)]} || [Name, Fields] <- all(Text, Pattern)]).

nifs(File, Text, Aliases) ->
    Pattern =
        "#\\[rustler::nif(?:\\([^\\]]*\\))?\\]\\s*(?:#\\[(?:[^\\[\\]]|\\[[^\\]]*\\])*\\]\\s*)*"
        "(?:pub )?fn (\\w+)(?:<[^(]*>)?\\((.*?)\\)\\s*(?:-> ([^{]*?))?\\s*\\{",
    [
        {Name, #nif{
            file = File,
            args = [Arg || Part <- split(Args), {_, Type} = Arg <- [typed(Part, Aliases)], Type =/= "Env"],
            returns = alias(plain(Returns), Aliases)
        }}
     || [Name, Args, Returns] <- all(Text, Pattern)
    ].

%% `pub name: Type'
typed(Text, Aliases) ->
    [Name, Type] = string:split(Text, ":"),
    Bare = re:replace(Name, "^\\s*(#\\[.*\\])?\\s*(pub )?\\s*_?", "", [{return, list}, dotall]),
    {string:trim(Bare), alias(plain(Type), Aliases)}.

alias(Type, Aliases) -> maps:get(Type, Aliases, Type).

%% A type without spaces, lifetimes and the modules of its names.
plain(Type) ->
    lists:foldl(
        fun({Pattern, New}, Text) -> re:replace(Text, Pattern, New, [global, {return, list}]) end,
        Type,
        [{"'\\w+", ""}, {"\\w+::", ""}, {"\\s+", ""}, {"<,*>", ""}, {"<,", "<"}]
    ).

%% At commas outside of all brackets.
split(Text) ->
    Parts = split(Text, 0, [], []),
    [Part || Part <- Parts, string:trim(Part) =/= ""].

split([], _, Part, Parts) -> lists:reverse([lists:reverse(Part) | Parts]);
split([$, | Rest], 0, Part, Parts) -> split(Rest, 0, [], [lists:reverse(Part) | Parts]);
split([C | Rest], N, Part, Parts) when C =:= $(; C =:= $<; C =:= $[ -> split(Rest, N + 1, [C | Part], Parts);
split([C | Rest], N, Part, Parts) when C =:= $); C =:= $>; C =:= $] -> split(Rest, N - 1, [C | Part], Parts);
split([C | Rest], N, Part, Parts) -> split(Rest, N, [C | Part], Parts).

%% ---- what is there: Erlang

erl(Root) ->
    {ok, Forms} = epp:parse_file(filename:join(Root, "src/py_nif.erl"), []),
    #erl{
        nifs = [{atom_to_list(N), A} || {attribute, _, nifs, L} <- Forms, {N, A} <- L],
        stubs = maps:from_list([
            {{atom_to_list(Name), Arity}, [variable(Var) || Var <- Vars]}
         || {function, _, Name, Arity, [{clause, _, Vars, [], Body} | _]} <- Forms, is_stub(Body)
        ]),
        specs = maps:from_list([
            {{atom_to_list(Name), Arity}, Types} || {attribute, _, spec, {{Name, Arity}, Types}} <- Forms
        ]),
        types = maps:from_list([{Name, Type} || {attribute, _, type, {Name, Type, []}} <- Forms])
    }.

%% `erlang:nif_error(_)', alone or in a `try'.
is_stub([{'try', _, Body, [], [_], []}]) -> is_stub(Body);
is_stub([{call, _, {remote, _, {atom, _, erlang}, {atom, _, nif_error}}, _}]) -> true;
is_stub(_) -> false.

%% `_MaxQueue' is `max_queue'.
variable({var, _, Name}) ->
    Bare = string:trim(atom_to_list(Name), leading, "_"),
    string:lowercase(re:replace(Bare, "(?<!^)([A-Z])", "_\\1", [global, {return, list}])).

%% ---- functions

missing(#rust{nifs = Nifs}, #erl{nifs = Listed, stubs = Stubs, specs = Specs}) ->
    Unlisted = [{N, File} || {N, #nif{file = File}} <- maps:to_list(Nifs), not lists:keymember(N, 1, Listed)],
    [say("~ts: in ~ts, not in NIFS of py_nif.erl", [N, File]) || {N, File} <- Unlisted] ++
        [say("~ts/~b: in NIFS, but no function of Rust", [N, A]) || {N, A} <- Listed, not is_map_key(N, Nifs)] ++
        [say("~ts/~b: in NIFS, but has no stub", [N, A]) || {N, A} = F <- Listed, not is_map_key(F, Stubs)] ++
        [say("~ts/~b: a stub, not in NIFS", [N, A]) || {N, A} = F <- maps:keys(Stubs), not lists:member(F, Listed)] ++
        [say("~ts/~b: a stub without a spec", [N, A]) || {N, A} = F <- maps:keys(Stubs), not is_map_key(F, Specs)].

functions(#rust{nifs = Nifs} = Rust, #erl{stubs = Stubs, specs = Specs} = Erl) ->
    Both = [
        {Name, Nif, Vars, maps:get(Key, Specs)}
     || {{Name, _} = Key, Vars} <- maps:to_list(Stubs), #{Name := Nif} <- [Nifs], is_map_key(Key, Specs)
    ],
    lists:append([function(Name, Nif, Vars, Types, Rust, Erl) || {Name, Nif, Vars, Types} <- Both]).

function(Name, #nif{file = File, args = Args}, Vars, _Types, _Rust, _Erl) when length(Args) =/= length(Vars) ->
    [say("~ts: ~b arguments in ~ts, ~b in py_nif.erl", [Name, length(Args), File, length(Vars)])];
function(Name, #nif{file = File, args = Args, returns = Returns}, Vars, Types, Rust, Erl) ->
    {ErlArgs, ErlReturns} = signature(Types),
    Named = [
        say("~ts: an argument is ~ts in ~ts, ~ts in py_nif.erl", [Name, Arg, File, Var])
     || {{Arg, _}, Var} <- lists:zip(Args, Vars), Arg =/= Var
    ],
    Typed = [
        say("~ts: ~ts is ~ts in ~ts, ~ts in py_nif.erl", [Name, Arg, Type, File, show(ErlType)])
     || {{Arg, Type}, ErlType} <- lists:zip(Args, ErlArgs), not fits(Type, ErlType, Rust, Erl)
    ],
    Given = [
        say("~ts: returns ~ts in ~ts, ~ts in py_nif.erl", [Name, Returns, File, show(ErlReturns)])
     || not fits(Returns, ErlReturns, Rust, Erl)
    ],
    Named ++ Typed ++ Given.

%% The types of a spec, with the constraints put in their places.
signature([{type, _, bounded_fun, [Fun, Constraints]}]) ->
    Bound = maps:from_list([{Var, Type} || {type, _, constraint, [_, [{var, _, Var}, Type]]} <- Constraints]),
    signature([substitute(Fun, Bound)]);
signature([{type, _, 'fun', [{type, _, product, Args}, Returns]}]) ->
    {Args, Returns}.

substitute({var, _, Name} = Var, Bound) -> substitute_again(maps:get(Name, Bound, Var), Var, Bound);
substitute(Tuple, Bound) when is_tuple(Tuple) -> list_to_tuple(substitute(tuple_to_list(Tuple), Bound));
substitute(List, Bound) when is_list(List) -> [substitute(Item, Bound) || Item <- List];
substitute(Other, _Bound) -> Other.

substitute_again(Same, Same, _Bound) -> Same;
substitute_again(Other, _Var, Bound) -> substitute(Other, Bound).

show(Type) ->
    Text = erl_pp:attribute({attribute, 1, type, {x, Type, []}}),
    re:replace(string:trim(lists:flatten(Text)), "^-type x\\(\\) ::\\s*|\\.$|\\s+(?= )", "", [global, {return, list}]).

%% ---- whether a type of Rust is one of Erlang

fits("Term", _Type, _Rust, _Erl) -> true;
fits("NifResult<" ++ Rest, Type, Rust, Erl) -> fits(lists:droplast(Rest), Type, Rust, Erl);
fits("Result<" ++ Rest, Type, Rust, Erl) ->
    [Good, Bad] = split(lists:droplast(Rest)),
    Of = fun(Word) -> [Value || {type, _, tuple, [{atom, _, W}, Value]} <- members(Type, Erl), W =:= Word] end,
    case {Of(ok), Of(error)} of
        {[Ok], [Error]} -> fits(Good, Ok, Rust, Erl) andalso fits(Bad, Error, Rust, Erl);
        _ -> false
    end;
fits("Vec<" ++ Rest, Type, Rust, Erl) ->
    case members(Type, Erl) of
        [{type, _, list, [Item]}] -> fits(lists:droplast(Rest), Item, Rust, Erl);
        _ -> false
    end;
fits("()", Type, _Rust, Erl) ->
    [{type, tuple, []}] =:= [{type, tuple, Parts} || {type, _, tuple, Parts} <- members(Type, Erl)];
fits("(" ++ Rest, Type, Rust, Erl) ->
    Items = split(lists:droplast(Rest)),
    case members(Type, Erl) of
        [{type, _, tuple, Parts}] when length(Parts) =:= length(Items) ->
            lists:all(fun({Item, Part}) -> fits(Item, Part, Rust, Erl) end, lists:zip(Items, Parts));
        _ ->
            false
    end;
fits(Type, ErlType, #rust{structs = Structs} = Rust, Erl) when is_map_key(Type, Structs) ->
    Keys = maps:get(Type, Structs),
    case members(ErlType, Erl) of
        [{type, _, map, Fields}] -> lists:sort(named(Fields)) =:= lists:sort([Key || {Key, _} <- Keys])
            andalso lists:all(fun({Key, Kind}) -> fits(Kind, field(Key, Fields), Rust, Erl) end, Keys);
        _ -> false
    end;
fits(Type, ErlType, Rust, Erl) ->
    Members = members(ErlType, Erl),
    case resource(Type, Rust) of
        none -> lists:all(fun(Member) -> is_one(Type, Member) end, Members);
        _ -> lists:any(fun(Member) -> is_type(reference, Member) end, Members)
    end.

named(Fields) -> [atom_to_list(Key) || {type, _, map_field_exact, [{atom, _, Key}, _]} <- Fields].

field(Key, Fields) ->
    [Type] = [Type || {type, _, map_field_exact, [{atom, _, Name}, Type]} <- Fields, atom_to_list(Name) =:= Key],
    Type.

%% The types that a union consists of, with the names of types resolved.
members({ann_type, _, [_Var, Type]}, Erl) -> members(Type, Erl);
members({type, _, union, Types}, Erl) -> lists:append([members(Type, Erl) || Type <- Types]);
members({user_type, _, Name, []}, #erl{types = Types} = Erl) when is_map_key(Name, Types) ->
    members(maps:get(Name, Types), Erl);
members(Type, _Erl) -> [Type].

is_one("Atom", {atom, _, _}) -> true;
is_one("Atom", Type) -> is_type(atom, Type);
is_one("bool", {atom, _, Word}) -> is_boolean(Word);
is_one("bool", Type) -> is_type(boolean, Type);
is_one(Text, Type) when Text =:= "String"; Text =:= "Binary" -> is_type(binary, Type);
is_one("LocalPid", Type) -> is_type(pid, Type);
is_one("u" ++ _, {integer, _, _}) -> true;
is_one("u" ++ _, {type, _, range, [{integer, _, Low}, _]}) -> Low >= 0;
is_one("u" ++ _, {remote_type, _, [{atom, _, inet}, {atom, _, port_number}, []]}) -> true;
is_one("u" ++ _, Type) -> is_type(non_neg_integer, Type) orelse is_type(pos_integer, Type);
is_one("i" ++ _, Type) -> is_type(integer, Type) orelse is_one("u64", Type);
is_one("RawFd", Type) -> is_type(integer, Type);
is_one(_, _) -> false.

is_type(Name, {type, _, Name, _}) -> true;
is_type(_, _) -> false.

%% ---- resources: each has one name in Erlang, and the name stands for no other

resource("ResourceArc<" ++ Rest, _Rust) -> lists:droplast(Rest);
resource("&" ++ Name, _Rust) -> Name;
resource(Name, #rust{decoders = Decoders}) ->
    case lists:member(Name, Decoders) of
        true -> Name;
        false -> none
    end.

resources(#rust{nifs = Nifs} = Rust, #erl{specs = Specs}) ->
    Pairs = lists:usort([
        {Resource, Named}
     || {{Name, Arity}, Types} <- maps:to_list(Specs),
        #{Name := #nif{args = Args, returns = Returns}} <- [Nifs],
        length(Args) =:= Arity,
        {ErlArgs, ErlReturns} <- [signature(Types)],
        {Type, ErlType} <- [{Returns, ErlReturns} | lists:zip([Type || {_, Type} <- Args], ErlArgs)],
        Resource <- [resource(Type, Rust)],
        Resource =/= none,
        {user_type, _, Named, []} <- [unannotated(ErlType)]
    ]),
    Two = [{A, B, N, M} || {A, N} <- Pairs, {B, M} <- Pairs, {A, N} < {B, M}],
    [say("~ts() in py_nif.erl is ~ts and ~ts in Rust", [N, A, B]) || {A, B, N, N} <- Two] ++
        [say("~ts in Rust is ~ts() and ~ts() in py_nif.erl", [A, N, M]) || {A, A, N, M} <- Two].

unannotated({ann_type, _, [_Var, Type]}) -> Type;
unannotated(Type) -> Type.

%% ---- numbers: Rust reads them from py_nif.hrl when it is compiled

numbers(Root, #rust{text = Rust}) ->
    {ok, Text} = file:read_file(filename:join(Root, "src/py_nif.hrl")),
    Defined = [{Name, list_to_integer(N)} || [Name, N] <- all(Text, "^-define\\(((?:OP|FLAG)_\\w+), (\\d+)\\)")],
    Used = lists:usort(lists:append(all(Rust, "number\\(\"(\\w+)\"\\)"))),
    Ops = [N || {"OP_" ++ _, N} <- Defined],
    Flags = lists:sort([N || {"FLAG_" ++ _, N} <- Defined]),
    Bits = [1 bsl N || N <- lists:seq(0, length(Flags) - 1)],
    [say("~ts: in py_nif.hrl, unknown to Rust", [Name]) || {Name, _} <- Defined, not lists:member(Name, Used)] ++
        [say("~ts: used by Rust, not in py_nif.hrl", [Name]) || Name <- Used, not lists:keymember(Name, 1, Defined)] ++
        [say("py_nif.hrl: two operations have one number", []) || Ops =/= lists:usort(Ops)] ++
        [say("py_nif.hrl: the flags are not one bit each, from 1 on", []) || Flags =/= Bits].
