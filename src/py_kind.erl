%% Kinds of values that settings and options have: the check of each, and the words for what is wanted.
%%
%% Place: behind the tables of `py_config' and `py_options'.
%% Process: the one that asks; pure.
-module(py_kind).

-export([value/2, wanted/2, nearest/2]).

-export_type([kind/0]).

-type kind() ::
    {integer, Least :: non_neg_integer(), Most :: pos_integer()}
    %% A positive number of things, or none too; a number of threads.
    | count
    | count_or_0
    | threads
    %% Milliseconds or `infinity'.
    | {time, Least :: 0 | 1}
    | boolean
    | {one_of, [atom(), ...]}
    %% A list of these.
    | {each_of, [atom(), ...]}
    %% One of these, for the number it stands for.
    | {flags, #{atom() => non_neg_integer()}}
    | atom
    | name
    | {path, Of :: binary()}
    | {path_or, Of :: binary(), [atom(), ...]}
    | text
    | {text_or, [atom(), ...]}
    | texts
    | {names, What :: binary()}
    | {directories, What :: binary()}
    | audit_events
    %% Where a call runs.
    | context
    | pid
    | local_pid
    | list
    | map
    | {pair, What :: binary()}
    | term.

-include("py_nif.hrl").

%% Far beyond any useful one: processes of a node, threads of an operating system process.
-define(MAX_COUNT, 1_000_000_000).
-define(MAX_THREADS, 4096).

%% The value as it is used, if it is of that kind; or what is wrong, where `wanted/2' does not say it.
-spec value(kind(), term()) -> {ok, term()} | error | {error, unicode:chardata()}.
value({integer, Least, Most}, N) -> found(is_integer(N) andalso N >= Least andalso N =< Most, N);
value(count, N) -> value({integer, 1, ?MAX_COUNT}, N);
value(count_or_0, N) -> value({integer, 0, ?MAX_COUNT}, N);
value(threads, N) -> value({integer, 1, ?MAX_THREADS}, N);
value({time, _}, infinity) -> {ok, infinity};
value({time, Least}, N) -> found(is_integer(N) andalso N >= Least andalso N =< ?MAX_TIMEOUT, N);
value(boolean, B) -> found(is_boolean(B), B);
value({one_of, Choices}, Choice) -> found(lists:member(Choice, Choices), Choice);
value({each_of, Choices}, List) -> found(is_proper(List) andalso List -- Choices =:= [], List);
value({flags, Bits}, Choice) -> maps:find(Choice, Bits);
value(atom, Atom) -> found(is_atom(Atom) andalso Atom =/= undefined, Atom);
value(name, Name) -> found(is_atom(Name) orelse is_binary(Name), Name);
value({text_or, Words}, Word) when is_atom(Word) -> found(lists:member(Word, Words), Word);
value({text_or, _Words}, Text) -> py_text:one(Text);
value({path_or, _Of, Words}, Word) when is_atom(Word) -> found(lists:member(Word, Words), Word);
value({path_or, _Of, _Words}, Path) -> py_text:one(Path);
value({path, _Of}, Path) -> py_text:one(Path);
value(text, Text) -> py_text:one(Text);
value(texts, Texts) -> py_text:all(Texts);
value({names, _What}, Names) -> names(Names, []);
value({directories, _What}, Places) -> directories(Places, []);
value(audit_events, Names) -> audit_events(names(Names, []));
value(context, Where) -> found(is_pid(Where) orelse is_reference(Where) orelse is_atom(Where), Where);
value(pid, Pid) -> found(is_pid(Pid), Pid);
value(local_pid, Pid) -> found(is_pid(Pid) andalso node(Pid) =:= node(), Pid);
value(list, List) -> found(is_proper(List), List);
value(map, Map) -> found(is_map(Map), Map);
value({pair, _What}, Pair) -> found(is_tuple(Pair) andalso tuple_size(Pair) =:= 2, Pair);
value(term, Term) -> {ok, Term}.

found(true, Value) -> {ok, Value};
found(false, _Value) -> error.

is_proper([]) -> true;
is_proper([_ | Rest]) -> is_proper(Rest);
is_proper(_) -> false.

names([], Done) ->
    {ok, lists:reverse(Done)};
names([Name | Rest], Done) when is_atom(Name) ->
    names([atom_to_binary(Name) | Rest], Done);
names([Name | Rest], Done) when is_binary(Name); is_list(Name) ->
    case py_text:one(Name) of
        {ok, Text} -> names(Rest, [Text | Done]);
        error -> error
    end;
names(_, _) ->
    error.

%% The type of what is in the list is `py_path:place()'.
directories([], Done) ->
    {ok, lists:reverse(Done)};
directories([{priv, App, Dir} | Rest], Done) when is_atom(App) ->
    case py_text:one(Dir) of
        {ok, Text} -> directories(Rest, [{priv, App, Text} | Done]);
        error -> error
    end;
directories([Dir | Rest], Done) ->
    case py_text:one(Dir) of
        {ok, Text} -> directories(Rest, [Text | Done]);
        error -> error
    end;
directories(_, _) ->
    error.

audit_events({ok, Names}) ->
    case py_audit_events:check(Names) of
        ok -> {ok, Names};
        {error, _} = Error -> Error
    end;
audit_events(error) ->
    error.

%% What is wanted in place of this value, in words that follow "must be".
-spec wanted(kind(), term()) -> io_lib:chars().
wanted({integer, _, Most}, N) when is_integer(N), N > Most -> io_lib:format("at most ~b", [Most]);
wanted({integer, 1, _}, _) -> "a positive integer";
wanted({integer, Least, _}, _) -> io_lib:format("an integer of ~b or more", [Least]);
wanted(count, N) -> wanted({integer, 1, ?MAX_COUNT}, N);
wanted(count_or_0, N) -> wanted({integer, 0, ?MAX_COUNT}, N);
wanted(threads, N) -> wanted({integer, 1, ?MAX_THREADS}, N);
wanted({time, 1}, _) -> "a time in milliseconds greater than 0, or infinity";
wanted({time, 0}, _) -> "a time in milliseconds, or infinity";
wanted(boolean, _) -> "true or false";
wanted({one_of, Choices}, _) -> either(Choices);
wanted({each_of, Choices}, _) -> ["a list of ", either(Choices)];
wanted({flags, Bits}, _) -> either(lists:reverse(lists:sort(maps:keys(Bits))));
wanted(atom, _) -> "an atom";
wanted(name, _) -> "an atom or a binary";
wanted({path, Of}, _) -> io_lib:format("the path of ~ts, as a string or binary", [Of]);
wanted({path_or, Of, Words}, Value) -> [wanted({path, Of}, Value), ", or ", either(Words)];
wanted(text, _) -> "a non-empty string or binary";
wanted({text_or, Words}, _) -> ["a non-empty string or binary, or ", either(Words)];
wanted(texts, _) -> "a list of strings or binaries";
wanted({names, What}, _) -> io_lib:format("a list of ~ts (atoms, strings or binaries)", [What]);
wanted({directories, What}, _) -> io_lib:format("a list of ~ts, each a string, a binary or {priv, App, Dir}", [What]);
wanted(audit_events, _) -> "a list of names (atoms, strings or binaries)";
wanted(context, _) -> "a pid, a handle or a name";
wanted(pid, _) -> "a pid";
wanted(local_pid, _) -> "a pid of this node";
wanted(list, _) -> "a list";
wanted(map, _) -> "a map";
wanted({pair, What}, _) -> io_lib:format("~ts", [What]);
wanted(term, _) -> "a term".

either([Choice]) -> atom_to_list(Choice);
either([One, Other]) -> [atom_to_list(One), " or ", atom_to_list(Other)];
either([Choice | Rest]) -> [atom_to_list(Choice), ", ", either(Rest)].

%% The known name with the fewest edits, if these are few enough to be a slip of the fingers.
-spec nearest(string(), [string()]) -> {ok, string()} | none.
nearest(_Name, []) ->
    none;
nearest(Name, Known) ->
    {Edits, Nearest} = lists:min([{edits(Name, Each), Each} || Each <- Known]),
    case Edits =< max(2, length(Name) div 3) of
        true -> {ok, Nearest};
        false -> none
    end.

%% Levenshtein distance, one row of the table at a time.
-spec edits(string(), string()) -> non_neg_integer().
edits(A, B) ->
    lists:last(lists:foldl(fun(C, Row) -> next_row(C, B, Row) end, lists:seq(0, length(B)), A)).

next_row(C, B, [Corner | Above]) -> next_row(C, B, Corner, Above, [Corner + 1]).

next_row(_, [], _, [], Row) ->
    lists:reverse(Row);
next_row(C, [D | B], Corner, [Up | Above], [Left | _] = Row) ->
    Cost =
        case C of
            D -> Corner;
            _ -> Corner + 1
        end,
    next_row(C, B, Up, Above, [lists:min([Cost, Up + 1, Left + 1]) | Row]).
