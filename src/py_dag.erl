%% Graphs of nodes that wait for each other: functions of Python, functions of Erlang, commands of
%% Redis. What may run at once does; hundreds of reads wait on one thread.
%%
%% Process: the caller's own waits; functions of Erlang run in processes of `py_dag_runner'.
-module(py_dag).

-export([run/2, run/3, start/2, start/3, await/1, cancel/1, new/2, limit/1, more/3]).

-export_type([graph/0, node_name/0, node_spec/0, command/0, opts/0, report/0, event/0, run_ref/0]).
-export_type([limit/0, more/0]).

-include("py_nif.hrl").

-type node_name() :: term().
-type word() ::
    binary() | atom() | number() | string() | {input, node_name()} | {join, [word()]}.
-type command() :: [word()].
-type node_spec() :: #{
    run := {py, py_call:name(), py_call:name()}
    | {module(), Function :: atom()}
    | fun(([term()]) -> term())
    | command()
    | [command()]
    | {input, node_name()},
    kind => cpu | io | redis,
    inputs => [node_name() | {optional, node_name()}],
    timeout => non_neg_integer(),
    retries => non_neg_integer(),
    backoff => non_neg_integer(),
    hedge => non_neg_integer(),
    default => term(),
    optional => boolean(),
    condition => node_name(),
    weight => number(),
    limit => limit(),
    %% The native side has the table of all keys, and checks them.
    atom() => term()
}.
-opaque limit() :: py_nif:dag_limit().
-opaque more() :: {'$py_dag_more', graph(), #{node_name() => term()}, node_name()}.
-type graph() :: #{nodes := #{node_name() => node_spec()}} | py_dag_graph:compiled().
-type opts() :: py_options:given().
%% Times in nanoseconds since the run began; `none' for what did not come so far.
-type event() :: #{
    %% Of a node that was asked for by another: the name that pictures show, <<"asking/asked">>.
    node := node_name(),
    outcome := done | failed | skipped | cancelled,
    lane := python | erlang | io | cpu | none,
    queued := non_neg_integer() | none,
    started := non_neg_integer() | none,
    ended := non_neg_integer() | none,
    reason => py_error:reason()
}.
-type report() :: #{
    results := #{node_name() => term()},
    timeline := [event()],
    critical_path := [node_name()],
    pictures => #{dot | svg | chrome_trace => binary()},
    error => py_error:reason()
}.
-type answer() :: {ok, report()} | {error, py_error:reason()}.

-record(run, {
    key :: reference(),
    native :: py_nif:dag_run(),
    names :: tuple(),
    runner :: pid() | undefined,
    pictures :: [dot | svg | chrome_trace],
    %% References to objects of Python in them live as long as the run.
    inputs :: map()
}).
-opaque run_ref() :: #run{}.

%% Checks and builds a graph once, for many runs. `Inputs' are the names its runs are given.
-spec new(graph(), Inputs :: [node_name()]) ->
    {ok, py_dag_graph:compiled()} | {error, py_error:reason()}.
new(Graph, Inputs) -> py_dag_graph:compile(Graph, Inputs).

-spec run(graph(), Inputs :: #{node_name() => term()}) -> answer().
run(Graph, Inputs) -> run(Graph, Inputs, #{}).

-spec run(graph(), Inputs :: #{node_name() => term()}, timeout() | opts()) -> answer().
run(Graph, Inputs, Opts) ->
    case start(Graph, Inputs, Opts) of
        {ok, Run} -> await(Run);
        {error, _} = Error -> Error
    end.

-spec start(graph(), Inputs :: #{node_name() => term()}) ->
    {ok, run_ref()} | {error, py_error:reason()}.
start(Graph, Inputs) -> start(Graph, Inputs, #{}).

%% The run ends with the process that started it, which is also the one to await it.
-spec start(graph(), Inputs :: #{node_name() => term()}, timeout() | opts()) ->
    {ok, run_ref()} | {error, py_error:reason()}.
start(Graph, Inputs, Timeout) when ?IS_TIMEOUT(Timeout) ->
    start(Graph, Inputs, #{timeout => Timeout});
start(Graph, Inputs, Opts) when is_map(Inputs), is_map(Opts) ->
    case py_dag_graph:compile(Graph, maps:keys(Inputs)) of
        {ok, Compiled} -> with_options(Compiled, Inputs, Opts);
        {error, _} = Error -> Error
    end;
start(_Graph, Inputs, _Opts) when not is_map(Inputs) ->
    {error, {bad_argument, inputs}};
start(_Graph, _Inputs, _Opts) ->
    {error, {bad_argument, opts}}.

with_options(Compiled, Inputs, Opts) ->
    case py_dag_graph:options(Compiled, Opts) of
        {ok, Options} -> begin_run(Compiled, Inputs, Options);
        {error, _} = Error -> Error
    end.

begin_run(Compiled, Inputs, #{pool := Pool, native := Native} = Options) ->
    #{pictures := Pictures} = Options,
    #{graph := Graph, names := Names, functions := Functions} = Compiled,
    Encoded = py_dag_graph:encoded(Inputs),
    Key = make_ref(),
    Runner = py_dag_runner:start(Functions, Pool),
    case native_run(Key, Graph, Pool, Runner, Encoded, Native) of
        {ok, Run} ->
            ok = py_dag_runner:serve(Runner, Run),
            {ok, #run{
                key = Key,
                native = Run,
                names = Names,
                runner = Runner,
                pictures = Pictures,
                inputs = Inputs
            }};
        {error, _} = Error ->
            ok = py_dag_runner:stop(Runner),
            Error
    end.

native_run(Key, Graph, Pool, Runner, Inputs, #{redis := Url} = Native) ->
    case py_nif:dag_run(py_call:slot(), Key, Graph, Pool, Runner, Inputs, Native) of
        {ok, Run} ->
            {ok, Run};
        no_client ->
            case py_nif:dag_redis(Url) of
                {ok, _} -> native_run(Key, Graph, Pool, Runner, Inputs, Native);
                {error, Text} -> {error, {bad_argument, Text}}
            end;
        {error, Text} ->
            {error, {bad_argument, Text}};
        context_died ->
            {error, {context_died, stopped}};
        Refusal ->
            {error, Refusal}
    end.

%% A bound on how many nodes run at once: those that have it as their `limit', in whatever graphs.
-spec limit(AtOnce :: pos_integer()) -> limit() | {error, not_running | {bad_argument, at_once}}.
limit(AtOnce) when is_integer(AtOnce), AtOnce > 0, AtOnce < 1 bsl 32 ->
    case py_nif:is_loaded() of
        true -> py_nif:dag_limit(AtOnce);
        false -> {error, not_running}
    end;
limit(_AtOnce) ->
    {error, {bad_argument, at_once}}.

%% What a function of Erlang gives that asks for more nodes: `Graph' is run with `Inputs', and the
%% value of its node `Result' becomes that of the function's own.
-spec more(graph(), Inputs :: #{node_name() => term()}, Result :: node_name()) -> more().
more(Graph, Inputs, Result) when is_map(Graph), is_map(Inputs) ->
    {'$py_dag_more', Graph, Inputs, Result}.

%% Waits for the end of the run. Its time is bounded by the option `timeout' it was started with.
-spec await(run_ref()) -> answer().
await(#run{key = Key, runner = Runner} = Run) ->
    receive
        {Key, Answer} ->
            ok = py_dag_runner:stop(Runner),
            decoded(Run, py_term:decode(Answer))
    end.

decoded(Run, {ok, Answer}) -> answer(Run, Answer);
decoded(#run{inputs = Inputs}, {error, _} = Error) when is_map(Inputs) -> Error.

%% Every node that has not ended ends now; who awaits the run is told `{error, cancelled}'.
-spec cancel(run_ref()) -> ok.
cancel(#run{native = Native}) -> py_nif:dag_cancel(Native, false).

answer(#run{names = Names, pictures = Wanted} = Run, {ok, Results, Timeline, Path, Error, Drawn}) ->
    true = is_map(Run#run.inputs),
    Report = #{
        results => maps:from_list([{name(Names, Index), Value} || {Index, Value} <- Results]),
        timeline => [event(Names, Event) || Event <- Timeline],
        critical_path => [name(Names, Index) || Index <- Path]
    },
    All = [dot, svg, chrome_trace],
    Pictures = maps:with(Wanted, maps:from_list(lists:zip(All, Drawn))),
    {ok, with_error(Names, Error, with_pictures(Pictures, Report))};
answer(#run{names = Names} = Run, {error, Why}) ->
    true = is_map(Run#run.inputs),
    {error, reason(Names, Why)}.

with_pictures(Pictures, Report) when Pictures =:= #{} -> Report;
with_pictures(Pictures, Report) -> Report#{pictures => Pictures}.

with_error(_Names, none, Report) -> Report;
with_error(Names, Why, Report) -> Report#{error => reason(Names, Why)}.

reason(Names, {node, Index, Reason}) -> {dag, name(Names, Index), Reason};
reason(_Names, Reason) -> Reason.

event(Names, {Node, Outcome, Reason, Lane, Queued, Started, Ended}) ->
    Event = #{
        node => name(Names, Node),
        outcome => Outcome,
        lane => Lane,
        queued => Queued,
        started => Started,
        ended => Ended
    },
    with_reason(Event, Reason).

with_reason(Event, none) -> Event;
with_reason(Event, Reason) -> Event#{reason => Reason}.

name(Names, Index) when is_integer(Index) -> element(Index + 1, Names);
name(_Names, Asked) -> Asked.
