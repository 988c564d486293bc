%% What the suites about graphs share.
%%
%% Process: the test's own.
-module(py_dag_test).

-export([cases/1, hear_notes/1]).
-export([run/2, results/2, results/3, python/2, key/0]).

-spec run(#{term() => py_dag:node_spec()}, map()) -> {ok, py_dag:report()} | {error, term()}.
run(Nodes, Inputs) -> py_dag:run(#{nodes => Nodes}, Inputs).

-spec results(#{term() => py_dag:node_spec()}, map()) -> map().
results(Nodes, Inputs) -> results(Nodes, Inputs, #{}).

-spec results(#{term() => py_dag:node_spec()}, map(), py_dag:opts()) -> map().
results(Nodes, Inputs, Opts) ->
    {ok, #{results := Results}} = py_dag:run(#{nodes => Nodes}, Inputs, Opts),
    Results.

%% A node that calls a function of py_graphs.py.
-spec python(atom(), [term()]) -> py_dag:node_spec().
python(Function, Inputs) -> #{run => {py, py_graphs, Function}, inputs => Inputs}.

%% One that nobody else uses.
-spec key() -> binary().
key() -> integer_to_binary(erlang:unique_integer([positive])).

%% The cases of a suite: all that it exports for them.
-spec cases(module()) -> [atom()].
cases(Suite) ->
    Known = [module_info, init_per_suite, end_per_suite],
    [Name || {Name, 1} <- Suite:module_info(exports), not lists:member(Name, Known)].

%% What Python notes comes as `{note, Text}'.
-spec hear_notes(ct_suite:ct_config()) -> ct_suite:ct_config().
hear_notes(Config) ->
    Self = self(),
    Note = fun([Text]) ->
        Self ! {note, Text},
        none
    end,
    ok = py:register_function(note, Note),
    Config.
