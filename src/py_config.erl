%% The configuration of the application: read once, checked once, closed.
%%
%% Place: before everything; the application starts only with a map made here.
%% Process: the one that starts the application. Pure but for reading the application's environment.
%% Never: passes on an unknown key or a value it has not checked.
-module(py_config).

-export([load/0, check/1, defaults/0]).

-export_type([config/0, audit_name/0]).

%% A Python audit event (`<<"subprocess.Popen">>') or the part before its dot (`<<"subprocess">>').
-type audit_name() :: binary().

-type config() :: #{
    num_workers := pos_integer(),
    num_subinterp_workers := pos_integer(),
    subinterp_idle_ms := timeout(),
    num_loops := pos_integer(),
    max_threads := pos_integer(),
    driver := thread | beam,
    python := undefined | binary(),
    preload := [binary()],
    max_queue := pos_integer(),
    max_bound := pos_integer(),
    max_callbacks := pos_integer(),
    call_timeout := timeout(),
    max_depth := pos_integer(),
    atom_quota := non_neg_integer(),
    asyncio_policy := boolean(),
    slow_callback_ms := timeout(),
    switch_interval_us := pos_integer(),
    stop_timeout := non_neg_integer(),
    redis_url := undefined | binary(),
    log_stdout := boolean(),
    audit := [audit_name()]
}.

-type kind() ::
    {integer, Least :: non_neg_integer(), Most :: pos_integer()}
    | timeout
    | boolean
    | {one_of, [atom()]}
    | path
    | text
    | names.

%% The conversion recurses on the C stack of the interpreter threads, so there is an upper end.
-define(MAX_DEPTH, 100_000).
%% Processes of a node and threads of an operating system process: far beyond any useful setting.
-define(MAX_COUNT, 1_000_000_000).
-define(MAX_THREADS, 4096).
%% The longest wait `receive ... after' takes.
-define(MAX_TIMEOUT, 16#FFFFFFFF).

-spec load() -> {ok, config()} | {error, binary()}.
load() ->
    check(application:get_all_env(erlang_python)).

%% The same for settings from anywhere: what is not given keeps its default.
-spec check([{atom(), term()}]) -> {ok, config()} | {error, binary()}.
check(Settings) ->
    %% Kept in every application's environment by OTP itself.
    Own = lists:keydelete(included_applications, 1, Settings),
    case check(Own, defaults()) of
        {ok, Config} -> check_together(Config);
        {error, _} = Error -> Error
    end.

check([], Config) ->
    {ok, Config};
check([{Key, Value} | Rest], Config) ->
    case kinds() of
        #{Key := Kind} ->
            case value(Kind, Value) of
                {ok, Checked} -> check(Rest, Config#{Key := Checked});
                error -> {error, refuse(Key, Kind, Value)}
            end;
        #{} ->
            {error, unknown(Key)}
    end.

check_together(#{num_workers := Workers, max_threads := Threads}) when Workers > Threads ->
    {error,
        sentence("num_workers (~b) must not be greater than max_threads (~b)", [Workers, Threads])};
check_together(Config) ->
    {ok, Config}.

-spec defaults() -> config().
defaults() ->
    #{
        num_workers => 4,
        num_subinterp_workers => 4,
        subinterp_idle_ms => 30_000,
        num_loops => 1,
        max_threads => 256,
        driver => thread,
        python => undefined,
        preload => [],
        max_queue => 10_000,
        max_bound => 64,
        max_callbacks => 10_000,
        call_timeout => 30_000,
        max_depth => 1_000,
        atom_quota => 10_000,
        asyncio_policy => true,
        slow_callback_ms => 100,
        switch_interval_us => 500,
        stop_timeout => 5_000,
        redis_url => undefined,
        log_stdout => false,
        audit => []
    }.

-spec kinds() -> #{atom() => kind()}.
kinds() ->
    #{
        num_workers => {integer, 1, ?MAX_THREADS},
        num_subinterp_workers => {integer, 1, ?MAX_THREADS},
        subinterp_idle_ms => timeout,
        num_loops => {integer, 1, ?MAX_THREADS},
        max_threads => {integer, 1, ?MAX_THREADS},
        driver => {one_of, [thread, beam]},
        python => path,
        preload => names,
        max_queue => {integer, 1, ?MAX_COUNT},
        max_bound => {integer, 1, ?MAX_THREADS},
        max_callbacks => {integer, 1, ?MAX_COUNT},
        call_timeout => timeout,
        max_depth => {integer, 1, ?MAX_DEPTH},
        atom_quota => {integer, 0, ?MAX_COUNT},
        asyncio_policy => boolean,
        slow_callback_ms => timeout,
        switch_interval_us => {integer, 1, ?MAX_COUNT},
        stop_timeout => {integer, 0, ?MAX_TIMEOUT},
        redis_url => text,
        log_stdout => boolean,
        audit => names
    }.

-spec value(kind(), term()) -> {ok, term()} | error.
value({integer, Least, Most}, N) when is_integer(N), N >= Least, N =< Most -> {ok, N};
value({integer, _, _}, _) -> error;
value(timeout, infinity) -> {ok, infinity};
value(timeout, N) when is_integer(N), N > 0, N =< ?MAX_TIMEOUT -> {ok, N};
value(timeout, _) -> error;
value(boolean, B) when is_boolean(B) -> {ok, B};
value(boolean, _) -> error;
value({one_of, Choices}, Choice) ->
    case lists:member(Choice, Choices) of
        true -> {ok, Choice};
        false -> error
    end;
value(path, undefined) -> {ok, undefined};
value(path, Path) -> py_text:one(Path);
value(text, undefined) -> {ok, undefined};
value(text, Text) -> py_text:one(Text);
value(names, Names) -> names(Names, []).

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

refuse(Key, Kind, Value) ->
    sentence("~ts must be ~ts, got ~0tp", [Key, wanted(Key, Kind, Value), Value]).

wanted(_, {integer, _, Most}, N) when is_integer(N), N > Most -> io_lib:format("at most ~b", [Most]);
wanted(_, {integer, 1, _}, _) -> "a positive integer";
wanted(_, {integer, 0, _}, _) -> "an integer of 0 or more";
wanted(_, timeout, _) -> "a time in milliseconds greater than 0, or infinity";
wanted(_, boolean, _) -> "true or false";
wanted(_, {one_of, Choices}, _) -> lists:join(" or ", [atom_to_list(C) || C <- Choices]);
wanted(_, path, _) -> "the path of a Python executable, as a string or binary";
wanted(_, text, _) -> "a non-empty string or binary";
wanted(preload, names, _) -> "a list of module names (atoms, strings or binaries)";
wanted(_, names, _) -> "a list of names (atoms, strings or binaries)".

unknown(Key) ->
    Known = lists:sort(maps:keys(kinds())),
    Hint =
        case nearest(Key, Known) of
            {ok, Nearest} -> io_lib:format("; did you mean ~ts?", [Nearest]);
            none -> "."
        end,
    Names = lists:join(", ", [atom_to_list(K) || K <- Known]),
    sentence("unknown configuration key ~0tp~ts Known keys: ~ts", [Key, Hint, Names]).

%% The known key with the fewest edits, if these are few enough to be a slip of the fingers.
-spec nearest(atom(), [atom(), ...]) -> {ok, atom()} | none.
nearest(Key, Known) ->
    Name = atom_to_list(Key),
    {Edits, Nearest} = lists:min([{edits(Name, atom_to_list(K)), K} || K <- Known]),
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

-spec sentence(io:format(), [term()]) -> unicode:unicode_binary().
sentence(Format, Args) ->
    Text = unicode:characters_to_binary(["erlang_python: ", io_lib:format(Format, Args)]),
    true = is_binary(Text),
    Text.
