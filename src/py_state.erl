%% State that Erlang and Python share: one ETS table with atomic counters.
%%
%% Place: behind `py:state_*' and, by way of callbacks, behind Python's `erlang.state_*'.
%% Process: the server only owns the table; every operation runs in the process that asks.
%% Never: holds more than `max_entries/0' entries, whoever stores them (I8).
%%
%% Keys are any term. Python has no atoms, so both sides meet on binaries: an atom in a key, at any
%% depth of its lists and tuples, counts as the binary of its name (`hits' and `<<"hits">>' are the
%% same key, `{user, 1}' is Python's `("user", 1)'), except `true', `false' and the spellings of
%% None (`none', `nil', `undefined'), which are one key. Maps in keys are taken as they are.
%% A string such as "hits" is a list of integers, and stays one.
-module(py_state).

-behaviour(gen_server).

-export([start_link/0, max_entries/0, normal/1]).
-export([state_fetch/1, state_store/2, state_remove/1, state_keys/0, state_clear/0]).
-export([state_incr/1, state_incr/2, state_decr/1, state_decr/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([key/0]).

-type key() :: term().

-define(TABLE, ?MODULE).
-define(MAX_ENTRIES, 100_000).
%% The number of entries: `ets:info(_, size)' and an insert would not be one step.
-define(SLOTS, {?MODULE, slots}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec max_entries() -> pos_integer().
max_entries() -> ?MAX_ENTRIES.

-spec state_fetch(key()) -> {ok, term()} | {error, not_found | not_running}.
state_fetch(Key) ->
    with_table(fun() ->
        case ets:lookup(?TABLE, normal(Key)) of
            [{_, Value}] -> {ok, Value};
            [] -> {error, not_found}
        end
    end).

-spec state_store(key(), term()) -> ok | {error, full | not_running}.
state_store(Key, Value) ->
    Normal = normal(Key),
    with_table(fun() -> store_normal(Normal, Value) end).

-spec state_remove(key()) -> ok | {error, not_running}.
state_remove(Key) ->
    with_table(fun() ->
        case ets:take(?TABLE, normal(Key)) of
            [_] -> release(1);
            [] -> ok
        end
    end).

%% In no particular order; entries stored meanwhile may be there or not.
-spec state_keys() -> [key()] | {error, not_running}.
state_keys() ->
    with_table(fun() -> ets:select(?TABLE, [{{'$1', '_'}, [], ['$1']}]) end).

-spec state_clear() -> ok | {error, not_running}.
state_clear() ->
    with_table(fun() -> release(ets:select_delete(?TABLE, [{'_', [], [true]}])) end).

-spec state_incr(key()) -> integer() | {error, full | not_running | {bad_argument, binary()}}.
state_incr(Key) -> state_incr(Key, 1).

%% Atomic; a key that is not there counts from 0.
-spec state_incr(key(), integer()) -> integer() | {error, full | not_running | {bad_argument, binary()}}.
state_incr(Key, By) when is_integer(By) ->
    Normal = normal(Key),
    with_table(fun() -> incr_normal(Normal, By) end);
state_incr(_Key, By) ->
    {error, {bad_argument, py_text:format("a counter moves by an integer, not by ~0tP", [By, 10])}}.

-spec state_decr(key()) -> integer() | {error, full | not_running | {bad_argument, binary()}}.
state_decr(Key) -> state_incr(Key, -1).

-spec state_decr(key(), integer()) -> integer() | {error, full | not_running | {bad_argument, binary()}}.
state_decr(Key, By) when is_integer(By) -> state_incr(Key, -By);
state_decr(Key, By) -> state_incr(Key, By).

%%% In the process that asks

store_normal(Key, Value) ->
    case ets:update_element(?TABLE, Key, {2, Value}) of
        true ->
            ok;
        false ->
            case insert(Key, Value) of
                ok -> ok;
                %% Another process stored it since.
                taken -> store_normal(Key, Value);
                full -> {error, full}
            end
    end.

incr_normal(Key, By) ->
    case ets:lookup(?TABLE, Key) of
        [{_, Value}] when is_integer(Value) ->
            add(Key, By);
        [{_, _}] ->
            {error, {bad_argument, py_text:format("the value of ~0tP is not an integer", [Key, 10])}};
        [] ->
            case insert(Key, By) of
                ok -> By;
                taken -> incr_normal(Key, By);
                full -> {error, full}
            end
    end.

add(Key, By) ->
    try
        ets:update_counter(?TABLE, Key, {2, By})
    catch
        %% Removed, or changed to something else, since it was looked up.
        error:badarg -> incr_normal(Key, By)
    end.

%% A slot is taken before the entry is there, so the table never outgrows its bound.
insert(Key, Value) ->
    Slots = persistent_term:get(?SLOTS),
    case atomics:add_get(Slots, 1, 1) =< ?MAX_ENTRIES of
        true ->
            case ets:insert_new(?TABLE, {Key, Value}) of
                true ->
                    ok;
                false ->
                    ok = release(1),
                    taken
            end;
        false ->
            ok = release(1),
            case ets:member(?TABLE, Key) of
                true -> taken;
                false -> full
            end
    end.

release(Count) -> atomics:sub(persistent_term:get(?SLOTS), 1, Count).

with_table(Operation) ->
    try
        Operation()
    catch
        error:badarg:Stack ->
            case ets:whereis(?TABLE) of
                undefined -> {error, not_running};
                _ -> erlang:raise(error, badarg, Stack)
            end
    end.

%% A key in the form that both sides meet on.
-spec normal(key()) -> key().
normal(Atom) when is_boolean(Atom) -> Atom;
normal(Atom) when Atom =:= none; Atom =:= nil; Atom =:= undefined -> none;
normal(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
normal([Head | Tail]) -> [normal(Head) | normal(Tail)];
normal(Tuple) when is_tuple(Tuple) -> list_to_tuple(normal(tuple_to_list(Tuple)));
normal(Other) -> Other.

%%% The owner of the table

-spec init([]) -> {ok, []}.
init([]) ->
    %% The counter is there before the table: who finds the table finds the counter.
    ok = persistent_term:put(?SLOTS, atomics:new(1, [])),
    ?TABLE = ets:new(?TABLE, [
        named_table, public, set, {read_concurrency, true}, {write_concurrency, true}
    ]),
    {ok, []}.

-spec handle_call(term(), gen_server:from(), []) -> {reply, {error, unknown}, []}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), []) -> {noreply, []}.
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).
