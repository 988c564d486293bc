%% Dictionaries that Erlang and every Python interpreter of the node share.
%%
%% Place: behind `py:shared_dict_*' and, by way of callbacks, behind Python's `erlang.SharedDict'.
%% Process: the server makes the tables and ends them, with their owner or by `close/1'; every other
%% operation runs in the process that asks.
%% Never: holds more than `max_entries' entries in a dictionary, or more than 1000 dictionaries (I8).
%%
%% Each operation on one key is one step for everybody: it replaces an entry only if nobody has changed
%% it since it was read, which its version tells. Values are copied in and out. Keys are those of
%% `py_state'.
-module(py_shared_dict).

-behaviour(gen_server).

-export([start_link/0, new/1, close/1]).
-export([get/2, put/3, put_new/3, swap/4, replace/4, incr/3, take/2, versioned/2]).
-export([keys/1, size/1, to_list/1, clear/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([dict/0, opts/0, gone/0]).

%% Its name: `erlang.SharedDict(Name)' is the same one in Python.
-type dict() :: binary().
-type opts() :: py_options:given().
-type gone() :: no_such_dict | not_running.

-define(INDEX, ?MODULE).
-define(MAX_DICTS, 1000).

%% Counts entries in 1 and versions in 2.
-record(dict, {
    name :: dict(),
    table :: ets:table(),
    counts :: atomics:atomics_ref(),
    max :: pos_integer()
}).
%% The other types are those of patterns.
-record(entry, {id :: binary() | '_', key :: term(), value :: term(), version :: integer() | '_'}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Without a name it ends with the process that made it; with one it stays, unless it has an owner.
-spec new(opts()) ->
    {ok, dict()} | {error, exists | full | not_running | {bad_argument, term()}}.
new(Opts) ->
    case check(Opts) of
        {ok, Checked} -> ask({new, Checked});
        {error, _} = Error -> Error
    end.

-spec close(dict()) -> ok | {error, gone()}.
close(Name) -> ask({close, name(Name)}).

check(Opts) ->
    case py_options:check(shared_dict, Opts) of
        {ok, Checked} -> {ok, made(Checked)};
        {error, _} = Error -> Error
    end.

made(#{name := Name, max_entries := Max} = Opts) -> {name(Name), Max, maps:get(owner, Opts, default)};
made(#{max_entries := Max} = Opts) -> {none, Max, maps:get(owner, Opts, self())}.

ask(Request) -> py_ask:server(?MODULE, Request, {error, not_running}).

%%% In the process that asks

-spec get(dict(), term()) -> {ok, term()} | {error, not_found | gone()}.
get(Name, Key) ->
    case versioned(Name, Key) of
        {ok, Value, _Version} -> {ok, Value};
        {error, _} = Error -> Error
    end.

%% The value and its version, for `replace/4'.
-spec versioned(dict(), term()) -> {ok, term(), integer()} | {error, not_found | gone()}.
versioned(Name, Key) ->
    with(Name, fun(#dict{table = Table}) ->
        case ets:lookup(Table, id(Key)) of
            [#entry{value = Value, version = Version}] -> {ok, Value, Version};
            [] -> {error, not_found}
        end
    end).

-spec put(dict(), term(), term()) -> ok | {error, full | gone()}.
put(Name, Key, Value) ->
    with(Name, fun(Dict) -> put_entry(Dict, entry(Dict, Key, Value)) end).

%% `false': the key is there, and keeps its value.
-spec put_new(dict(), term(), term()) -> boolean() | {error, full | gone()}.
put_new(Name, Key, Value) ->
    with(Name, fun(Dict) ->
        case insert(Dict, entry(Dict, Key, Value)) of
            ok -> true;
            taken -> false;
            full -> {error, full}
        end
    end).

%% `New' instead of `Old'. `false': the value is another one, or there is none. Compared as Python sees
%% them: an atom is the binary of its name.
-spec swap(dict(), term(), term(), term()) -> boolean() | {error, gone()}.
swap(Name, Key, Old, New) ->
    with(Name, fun(Dict) -> swap_entry(Dict, entry(Dict, Key, New), plain(Old)) end).

%% `New' instead of the value that had `Version'. `false': it was changed since.
-spec replace(dict(), term(), integer(), term()) -> boolean() | {error, gone()}.
replace(Name, Key, Version, New) ->
    with(Name, fun(Dict) -> replace_entry(Dict, entry(Dict, Key, New), Version) end).

%% A key that is not there counts from 0.
-spec incr(dict(), term(), integer()) ->
    integer() | {error, full | gone() | {bad_argument, not_an_integer}}.
incr(Name, Key, By) when is_integer(By) ->
    with(Name, fun(Dict) -> incr_entry(Dict, entry(Dict, Key, By), By) end);
incr(_Name, _Key, _By) ->
    {error, {bad_argument, not_an_integer}}.

%% The value, which is there no more.
-spec take(dict(), term()) -> {ok, term()} | {error, not_found | gone()}.
take(Name, Key) ->
    with(Name, fun(#dict{table = Table} = Dict) ->
        case ets:take(Table, id(Key)) of
            [#entry{value = Value}] ->
                ok = release(Dict, 1),
                {ok, Value};
            [] ->
                {error, not_found}
        end
    end).

%% In no particular order, as are the pairs of `to_list/1'. A key that is there all the time is given
%% once; what others change meanwhile is seen or not.
-spec keys(dict()) -> [term()] | {error, gone()}.
keys(Name) ->
    with(Name, fun(#dict{table = Table}) ->
        ets:select(Table, [{#entry{key = '$1', _ = '_'}, [], ['$1']}])
    end).

-spec to_list(dict()) -> [{term(), term()}] | {error, gone()}.
to_list(Name) ->
    with(Name, fun(#dict{table = Table}) ->
        ets:select(Table, [{#entry{key = '$1', value = '$2', _ = '_'}, [], [{{'$1', '$2'}}]}])
    end).

-spec size(dict()) -> non_neg_integer() | {error, gone()}.
size(Name) ->
    with(Name, fun(#dict{table = Table}) ->
        case ets:info(Table, size) of
            undefined -> {error, no_such_dict};
            Size -> Size
        end
    end).

-spec clear(dict()) -> ok | {error, gone()}.
clear(Name) ->
    with(Name, fun(#dict{table = Table} = Dict) ->
        release(Dict, ets:select_delete(Table, [{'_', [], [true]}]))
    end).

with(Name, Operation) ->
    try ets:lookup(?INDEX, name(Name)) of
        [Dict] -> run(Dict, Operation);
        [] -> {error, no_such_dict}
    catch
        error:badarg -> {error, not_running}
    end.

run(#dict{table = Table} = Dict, Operation) ->
    try
        Operation(Dict)
    catch
        error:badarg:Stack ->
            case ets:info(Table, id) of
                undefined -> {error, no_such_dict};
                _ -> erlang:raise(error, badarg, Stack)
            end
    end.

entry(#dict{counts = Counts}, Key, Value) ->
    Version = atomics:add_get(Counts, 2, 1),
    #entry{id = id(Key), key = py_state:normal(Key), value = Value, version = Version}.

put_entry(#dict{table = Table} = Dict, #entry{id = Id, value = Value, version = Version} = Entry) ->
    Fields = [{#entry.value, Value}, {#entry.version, Version}],
    case ets:update_element(Table, Id, Fields) of
        true ->
            ok;
        false ->
            case insert(Dict, Entry) of
                ok -> ok;
                %% Another process stored it since.
                taken -> put_entry(Dict, Entry);
                full -> {error, full}
            end
    end.

swap_entry(#dict{table = Table} = Dict, #entry{id = Id} = Entry, Old) ->
    case ets:lookup(Table, Id) of
        [#entry{value = Value, version = Version}] ->
            case plain(Value) =:= Old of
                true -> replace_entry(Dict, Entry, Version) orelse swap_entry(Dict, Entry, Old);
                false -> false
            end;
        [] ->
            false
    end.

incr_entry(#dict{table = Table} = Dict, #entry{id = Id} = Entry, By) ->
    case ets:lookup(Table, Id) of
        [#entry{value = Value, version = Version}] when is_integer(Value) ->
            case replace_entry(Dict, Entry#entry{value = Value + By}, Version) of
                true -> Value + By;
                false -> incr_entry(Dict, Entry, By)
            end;
        [_] ->
            {error, {bad_argument, not_an_integer}};
        [] ->
            case insert(Dict, Entry) of
                ok -> By;
                taken -> incr_entry(Dict, Entry, By);
                full -> {error, full}
            end
    end.

%% The id is a binary and the version an integer: nothing of a user's gets into the pattern.
replace_entry(#dict{table = Table}, #entry{id = Id, key = Key, value = Value} = New, Version) ->
    Pattern = #entry{id = Id, version = Version, _ = '_'},
    Body = New#entry{key = {const, Key}, value = {const, Value}},
    ets:select_replace(Table, [{Pattern, [], [{Body}]}]) =:= 1.

%% A place is taken before the entry is there, so the table never outgrows its bound.
insert(#dict{table = Table, counts = Counts, max = Max} = Dict, #entry{id = Id} = Entry) ->
    case atomics:add_get(Counts, 1, 1) =< Max of
        true ->
            case ets:insert_new(Table, Entry) of
                true ->
                    ok;
                false ->
                    ok = release(Dict, 1),
                    taken
            end;
        false ->
            ok = release(Dict, 1),
            case ets:member(Table, Id) of
                true -> taken;
                false -> full
            end
    end.

release(#dict{counts = Counts}, Count) -> atomics:sub(Counts, 1, Count).

id(Key) -> term_to_binary(py_state:normal(Key), [deterministic, {minor_version, 2}]).

name(Name) when is_atom(Name) -> atom_to_binary(Name);
name(Name) -> Name.

%% A value as Python would give it back.
plain(Map) when is_map(Map) ->
    maps:from_list([{plain(Key), plain(Value)} || {Key, Value} <- maps:to_list(Map)]);
plain([Head | Tail]) ->
    [plain(Head) | plain(Tail)];
plain(Tuple) when is_tuple(Tuple) -> list_to_tuple(plain(tuple_to_list(Tuple)));
plain(Other) ->
    py_state:normal(Other).

%%% The server: who owns what

-type state() :: #{reference() => dict()}.

-spec init([]) -> {ok, state()}.
init([]) ->
    ?INDEX = ets:new(?INDEX, [named_table, protected, {keypos, #dict.name}, {read_concurrency, true}]),
    {ok, #{}}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call({new, {Wanted, Max, Owner}}, _From, State) when
    Wanted =:= none orelse is_binary(Wanted),
    is_integer(Max) orelse Max =:= infinity,
    Owner =:= default orelse is_pid(Owner)
->
    Name =
        case Wanted of
            none -> iolist_to_binary(["#", integer_to_binary(erlang:unique_integer([positive]))]);
            _ -> Wanted
        end,
    case {ets:member(?INDEX, Name), ets:info(?INDEX, size) >= ?MAX_DICTS} of
        {true, _} -> {reply, {error, exists}, State};
        {false, true} -> {reply, {error, full}, State};
        {false, false} -> {reply, {ok, Name}, owned(Owner, make(Name, Max), State)}
    end;
handle_call({close, Name}, _From, State) ->
    Monitors = [Monitor || {Monitor, Owned} <- maps:to_list(State), Owned =:= Name],
    _ = [demonitor(Monitor, [flush]) || Monitor <- Monitors],
    {reply, drop(Name), maps:without(Monitors, State)};
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'DOWN', Monitor, process, _Pid, _Why}, State) ->
    case maps:take(Monitor, State) of
        {Name, Rest} ->
            _ = drop(Name),
            {noreply, Rest};
        error ->
            {noreply, State}
    end;
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

make(Name, Max) ->
    Table = ets:new(?MODULE, [
        public, set, {keypos, #entry.id}, {read_concurrency, true}, {write_concurrency, true}
    ]),
    Dict = #dict{name = Name, table = Table, counts = atomics:new(2, []), max = Max},
    true = ets:insert(?INDEX, Dict),
    Name.

owned(default, _Name, State) -> State;
owned(Owner, Name, State) -> State#{monitor(process, Owner) => Name}.

drop(Name) ->
    case ets:take(?INDEX, Name) of
        [#dict{table = Table}] ->
            true = ets:delete(Table),
            ok;
        [] ->
            {error, no_such_dict}
    end.
