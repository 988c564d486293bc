%% The interpreters that `py:parallel' works with: started when first needed, replaced when one dies.
%%
%% Where Python has no own-GIL sub-interpreters (3.11), or needs none (free-threaded), the main
%% pool's threads do the work.
-module(py_subinterp_pool).

-behaviour(gen_server).

-export([start_link/1, workers/0, new_path/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([worker/0]).

%% `default' stands for one thread of the main pool.
-type worker() :: py_nif:pool() | default.

-record(state, {
    size :: pos_integer(),
    threads :: pos_integer(),
    contexts = [] :: [{pid(), py_nif:pool()}]
}).

-spec start_link(py_config:config()) -> gen_server:start_ret().
start_link(#{num_subinterp_workers := Size, num_workers := Threads}) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, {Size, Threads}, []).

%% Those that work is given to, one call at a time each.
-spec workers() -> {ok, [worker(), ...]} | {error, py_error:reason()}.
workers() -> py_ask:server(?MODULE, workers, {error, not_running}).

%% The main interpreter finds modules elsewhere now: so do those of the pool, from their next call on.
-spec new_path() -> ok.
new_path() ->
    gen_server:cast(?MODULE, new_path).

-spec init({pos_integer(), pos_integer()}) -> {ok, #state{}}.
init({Size, Threads}) ->
    {ok, #state{size = Size, threads = Threads}}.

-spec handle_call(workers | term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(workers, _From, #state{threads = Threads} = State) ->
    case py_stats:execution_mode() of
        subinterp ->
            case fill(State) of
                {ok, #state{contexts = Contexts} = Filled} ->
                    {reply, {ok, free([Pool || {_, Pool} <- Contexts])}, Filled};
                {error, _} = Error ->
                    {reply, Error, State}
            end;
        _ ->
            {reply, {ok, lists:duplicate(Threads, default)}, State}
    end;
handle_call(Request, _From, State) ->
    py_stray:call(?MODULE, Request, State).

%% Those that have nothing to do, if there are any: one may hang in a call that nobody waits for.
free(Pools) ->
    case [Pool || Pool <- Pools, not py_nif:pool_busy(Pool)] of
        [] -> Pools;
        Free -> Free
    end.

%% One after another, as CPython wants it.
fill(#state{size = Size, contexts = Contexts} = State) when length(Contexts) >= Size ->
    {ok, State};
fill(#state{contexts = Contexts} = State) ->
    case py_context:new(#{mode => subinterp, timeout => infinity}) of
        {ok, Pid} ->
            _ = monitor(process, Pid),
            {ok, Pool} = py_registry:pool(Pid),
            fill(State#state{contexts = [{Pid, Pool} | Contexts]});
        {error, _} = Error ->
            Error
    end.

-spec handle_cast(new_path | term(), #state{}) -> {noreply, #state{}}.
handle_cast(new_path, #state{contexts = [_ | _] = Contexts} = State) ->
    _ =
        case py:call('erlang._boot', before_subinterpreters, []) of
            {ok, {Path, _Converters}} ->
                [py:cast(Pid, 'erlang._boot', inherit, [Path]) || {Pid, _Pool} <- Contexts];
            {error, _} ->
                []
        end,
    {noreply, State};
handle_cast(Request, State) ->
    py_stray:cast(?MODULE, Request, State).

%% The next one that asks gets a full pool again.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', _Monitor, process, Pid, _Why}, #state{contexts = Contexts} = State) ->
    {noreply, State#state{contexts = lists:keydelete(Pid, 1, Contexts)}};
handle_info(Message, State) ->
    py_stray:info(?MODULE, Message, State).
