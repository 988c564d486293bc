%% A pool of event loops that a user owns: `py_event_loop_pool:start_link/1'. A process always gets the same loop.
%%
%% Process: one per pool, linked to its loops. One of those that ends is replaced.
-module(py_event_loops).

-behaviour(gen_server).

-export([new_pools/0, start_link/1, loop/2, loops/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% The loops of each pool, by its process.
-define(POOLS, py_event_loops).

%% More ends than that within the milliseconds, and the pool ends itself: its supervisor decides what comes then.
-define(MOST_ENDS, 10).
-define(PERIOD, 10_000).

-record(state, {
    driver :: py_options:given(),
    loops :: [{pid(), py_nif:event_loop()}],
    %% When loops have ended, the last one first.
    ends = [] :: [integer()]
}).

%% Makes the table; its owner is the calling process.
-spec new_pools() -> ok.
new_pools() ->
    ?POOLS = ets:new(?POOLS, [named_table, public, {read_concurrency, true}]),
    ok.

-spec start_link(py_options:given()) -> py_owned:start_ret().
start_link(Opts) ->
    py_owned:start_link(Opts, ?MODULE, Opts).

%% The loop of a process.
-spec loop(pid() | atom(), pid()) -> {ok, py_nif:event_loop()} | {error, not_running | {bad_argument, {atom(), term()}}}.
loop(Pool, Pid) ->
    case loops(Pool) of
        {ok, Loops} -> {ok, element(1 + erlang:phash2(Pid, tuple_size(Loops)), Loops)};
        {error, _} = Error -> Error
    end.

-spec loops(pid() | atom()) -> {ok, tuple()} | {error, not_running | {bad_argument, {atom(), term()}}}.
loops(Pool) ->
    try ets:lookup_element(?POOLS, found(Pool), 2) of
        Loops -> {ok, Loops}
    catch
        error:badarg ->
            case py_registry:is_running() of
                true -> {error, {bad_argument, {no_such_loop_pool, Pool}}};
                false -> {error, not_running}
            end
    end.

found(Pid) when is_pid(Pid) -> Pid;
found(Name) when is_atom(Name) -> whereis(Name);
found(_Other) -> undefined.

-spec init({py_owned:starter(), py_options:given()}) -> {ok, #state{}} | ignore.
init({Starter, Opts}) ->
    process_flag(trap_exit, true),
    ok = py_owned:watch(),
    ok = forget_killed(),
    case py_event_loop_sup:can_begin() of
        ok -> begin_loops(Starter, Opts);
        {error, Reason} -> py_owned:refuse(Starter, Reason)
    end.

%% A pool that was killed has left its entry.
forget_killed() ->
    Gone = [Pid || {Pid, _} <- ets:tab2list(?POOLS), not is_process_alive(Pid)],
    lists:foreach(fun(Pid) -> ets:delete(?POOLS, Pid) end, Gone).

begin_loops(Starter, Opts) ->
    Driver = maps:with([driver], Opts),
    case fill(maps:get(size, Opts), Driver, []) of
        {ok, Loops} -> {ok, published(#state{driver = Driver, loops = Loops})};
        {error, Reason} -> py_owned:refuse(Starter, Reason)
    end.

fill(0, _Driver, Loops) ->
    {ok, Loops};
fill(Missing, Driver, Loops) ->
    case py_event_loop:start_link(Driver) of
        {ok, Pid} ->
            fill(Missing - 1, Driver, [{Pid, py_event_loop:loop(Pid)} | Loops]);
        {error, Reason} ->
            ok = stop(Loops),
            {error, Reason}
    end.

stop(Loops) ->
    lists:foreach(fun({Pid, _}) -> py_ask:otherwise(fun() -> gen_server:stop(Pid) end, ok) end, Loops).

published(#state{loops = Loops} = State) ->
    true = ets:insert(?POOLS, {self(), list_to_tuple([Loop || {_, Loop} <- Loops])}),
    State.

-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown}, State}.
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_info({'EXIT', Pid, Why}, #state{loops = Loops} = State) ->
    case lists:keymember(Pid, 1, Loops) of
        true -> ended(Pid, Why, State);
        false -> py_stray:info(?MODULE, {'EXIT', Pid, Why}, State)
    end;
handle_info({py_owned_down, _, process, _, _}, State) ->
    {stop, {shutdown, not_running}, State};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

%% The others keep their processes.
ended(Pid, Why, #state{loops = Loops, driver = Driver, ends = Ends} = State) ->
    Now = erlang:monotonic_time(millisecond),
    Recent = [Now | [At || At <- Ends, Now - At < ?PERIOD]],
    case length(Recent) =< ?MOST_ENDS andalso fill(1, Driver, []) of
        false ->
            {stop, {shutdown, {context_died, Why}}, State};
        {ok, [New]} ->
            Replaced = State#state{loops = lists:keyreplace(Pid, 1, Loops, New), ends = Recent},
            {noreply, published(Replaced)};
        {error, Reason} ->
            {stop, {shutdown, Reason}, State}
    end.

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{loops = Loops}) ->
    ok = stop(Loops),
    try ets:delete(?POOLS, self()) of
        true -> ok
    catch
        %% The application has ended before.
        error:badarg -> ok
    end.
