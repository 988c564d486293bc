%% The event loops of the node: `num_loops' of them, started when first needed. A process always
%% gets the same one, so what it starts starts in that order. `start_link/1' makes another pool, which belongs to its
%% starter (`py_event_loops'); a first argument `Pool' is one of those.
-module(py_event_loop_pool).

-behaviour(gen_server).

-export([start_link/0, start_link/1, child_spec/1, get_loop/0, get_loop/1, get_stats/0, get_stats/1]).
-export([create_task/3, create_task/4, create_task/5, run/3, run/4, run/5, await/1, await/2]).
-export([start_main/1, loop_of/1, is_up/2, is_down/1, stats/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% A tuple of loops, once they are started.
-define(LOOPS, py_event_loops).

-include("py_nif.hrl").

-record(state, {size :: pos_integer()}).

%% The process of a pool, or its name.
-type pool() :: pid() | atom().
-type stats() :: #{queued | waiting | started => non_neg_integer()}.

-spec start_link() -> py_owned:start_ret().
start_link() ->
    start_link(#{}).

%% A pool of loops that belongs to the calling process: `size' of them, which nobody else uses.
-spec start_link(py_options:given()) -> py_owned:start_ret().
start_link(Opts) ->
    case py_options:check(loop_pool, Opts) of
        {ok, Checked} ->
            case py_owned:services() of
                ok -> py_event_loops:start_link(Checked);
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% For a supervisor of the user's.
-spec child_spec(py_options:given()) -> supervisor:child_spec().
child_spec(Opts) -> py_owned:child_spec(?MODULE, Opts).

%% That of the node.
-spec start_main(#{num_loops := pos_integer(), _ => _}) -> gen_server:start_ret().
start_main(#{num_loops := Size}) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Size, []).

%% The loop of the calling process.
-spec get_loop() -> {ok, py_nif:event_loop()} | {error, py_error:reason()}.
get_loop() ->
    loop_of(self()).

-spec get_loop(pool()) -> {ok, py_nif:event_loop()} | {error, py_error:reason()}.
get_loop(Pool) ->
    py_event_loops:loop(Pool, self()).

%% The loop of that process.
-spec loop_of(pid()) -> {ok, py_nif:event_loop()} | {error, py_error:reason()}.
loop_of(Pid) ->
    case persistent_term:get(?LOOPS, undefined) of
        {Loop} -> {ok, Loop};
        undefined -> start(Pid);
        Loops -> {ok, element(1 + erlang:phash2(Pid, tuple_size(Loops)), Loops)}
    end.

start(Pid) ->
    case py_ask:server(?MODULE, start, {error, not_running}) of
        ok -> loop_of(Pid);
        {error, _} = Error -> Error
    end.

%% The N-th loop has a new thread.
-spec is_up(pos_integer(), py_nif:event_loop()) -> ok.
is_up(N, Loop) ->
    gen_server:cast(?MODULE, {is_up, N, Loop}).

%% The N-th loop can't be started again. The next one who needs a loop tries anew, and hears why not.
-spec is_down(pos_integer()) -> ok.
is_down(N) ->
    gen_server:cast(?MODULE, {is_down, N}).

%% What each loop has to do.
-spec get_stats() -> [stats()].
get_stats() ->
    case persistent_term:get(?LOOPS, undefined) of
        undefined -> [];
        Loops -> [stats(Loop) || Loop <- tuple_to_list(Loops)]
    end.

-spec get_stats(pool()) -> [stats()] | {error, py_error:reason()}.
get_stats(Pool) ->
    case py_event_loops:loops(Pool) of
        {ok, Loops} -> [stats(Loop) || Loop <- tuple_to_list(Loops)];
        {error, _} = Error -> Error
    end.

-spec stats(py_nif:event_loop()) -> stats().
stats(Loop) ->
    {Queued, Waiting, Started} = py_nif:loop_info(Loop),
    #{queued => Queued, waiting => Waiting, started => Started}.

-spec create_task(py_call:name(), py_call:name(), [term()]) -> reference().
create_task(M, F, A) -> py_event_loop:create_task(M, F, A).

-spec create_task(py_call:name() | pool(), py_call:name(), [term()] | py_call:name(), py_call:kwargs() | [term()]) ->
    reference().
create_task(M, F, A, Kw) when is_map(Kw) -> py_event_loop:create_task(M, F, A, Kw);
create_task(Pool, M, F, A) -> create_task(Pool, M, F, A, #{}).

%% `{async_result, Ref, Result}' will come, as of `py:async_call'.
-spec create_task(pool(), py_call:name(), py_call:name(), [term()], py_call:kwargs()) -> reference().
create_task(Pool, M, F, A, Kw) ->
    case {py_call:payload(M, F, A, Kw), get_loop(Pool)} of
        {{ok, Payload}, {ok, Loop}} ->
            py_call:spawn(self(), async_result, Loop, ?OP_ASYNC, py_about:flags(), Payload);
        {{error, _} = Error, _} ->
            refused(Error);
        {_, Error} ->
            refused(Error)
    end.

refused(Error) ->
    Ref = make_ref(),
    _ = self() ! {async_result, Ref, Error},
    Ref.

-spec run(py_call:name(), py_call:name(), [term()]) -> py:result().
run(M, F, A) -> py_event_loop:run(M, F, A).

-spec run(py_call:name() | pool(), py_call:name(), [term()] | py_call:name(), timeout() | map() | [term()]) ->
    py:result().
run(Pool, M, F, A) when is_list(A) -> run(Pool, M, F, A, #{});
run(M, F, A, Opts) -> py_event_loop:run(M, F, A, Opts).

%% Waits for the value. The keyword arguments are an option.
-spec run(pool(), py_call:name(), py_call:name(), [term()], timeout() | map()) -> py:result().
run(Pool, M, F, A, Opts) ->
    case {py_call:payload(M, F, A, kwargs(Opts)), options(Opts), get_loop(Pool)} of
        {{ok, Payload}, {ok, #{flags := Flags, timeout := Timeout}}, {ok, Loop}} ->
            py_call:sync(Loop, ?OP_ASYNC, Flags, Payload, Timeout);
        {{error, _} = Error, _, _} ->
            Error;
        {_, {error, _} = Error, _} ->
            Error;
        {_, _, {error, _} = Error} ->
            Error
    end.

%% Those of `py_event_loop:run/4', which name no other place.
options(#{context := _}) ->
    {error, {bad_argument, <<"the option context means nothing here: the first argument is the pool">>}};
options(Opts) ->
    py_options:read(loop_run, Opts).

kwargs(#{kwargs := Kw}) -> Kw;
kwargs(_) -> #{}.

-spec await(reference()) -> py:result().
await(Ref) -> py:await(Ref).

-spec await(reference(), timeout()) -> py:result().
await(Ref, Timeout) -> py:await(Ref, Timeout).

-spec init(pos_integer()) -> {ok, #state{}}.
init(Size) ->
    process_flag(trap_exit, true),
    _ = persistent_term:erase(?LOOPS),
    {ok, #state{size = Size}}.

-spec handle_call(start | term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(start, _From, #state{size = Size} = State) ->
    case persistent_term:get(?LOOPS, undefined) of
        undefined -> {reply, begin_loops(Size), State};
        _ -> {reply, ok, State}
    end;
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

begin_loops(Size) ->
    case py_event_loop_sup:can_begin() of
        ok -> start_loops(Size);
        {error, _} = Error -> Error
    end.

start_loops(Size) ->
    Started = [py_event_loop_sup:start_loop(N) || N <- lists:seq(1, Size)],
    case [Reason || {error, Reason} <- Started] of
        [] -> persistent_term:put(?LOOPS, list_to_tuple([Loop || {ok, Loop} <- Started]));
        [Reason | _] -> {error, {context_died, Reason}}
    end.

-spec handle_cast({is_up, pos_integer(), py_nif:event_loop()} | {is_down, pos_integer()} | term(), #state{}) ->
    {noreply, #state{}}.
handle_cast({is_up, N, Loop}, #state{size = Size} = State) when is_integer(N), N >= 1, N =< Size, is_reference(Loop) ->
    _ =
        case persistent_term:get(?LOOPS, undefined) of
            undefined -> ok;
            Loops when element(N, Loops) =:= Loop -> ok;
            Loops -> persistent_term:put(?LOOPS, setelement(N, Loops, Loop))
        end,
    {noreply, State};
handle_cast({is_down, N}, #state{size = Size} = State) when is_integer(N), N >= 1, N =< Size ->
    _ = persistent_term:erase(?LOOPS),
    {noreply, State};
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, _State) ->
    _ = persistent_term:erase(?LOOPS),
    ok.
