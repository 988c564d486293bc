defmodule Py.Dag do
  @moduledoc """
  Graphs of nodes that wait for each other: functions of Python, functions of Elixir, commands of
  Redis. The Erlang module `:py_dag`, with Elixir names; `docs/dag.md` tells what it does.

      iex> graph = %{nodes: %{root: %{run: {:py, :math, :sqrt}, inputs: [:n]}}}
      iex> {:ok, %{results: results}} = Py.Dag.run(graph, %{n: 16})
      iex> results
      %{root: 4.0}
  """

  @type graph :: :py_dag.graph()
  @type inputs :: map
  @type answer :: {:ok, :py_dag.report()} | {:error, Py.Error.reason()}

  @doc "Runs a graph and waits for its report."
  @spec run(graph, inputs) :: answer
  defdelegate run(graph, inputs), to: :py_dag

  @doc "The same with a timeout or options, a map or a keyword list."
  @spec run(graph, inputs, Py.opts()) :: answer
  def run(graph, inputs, timeout_or_opts),
    do: :py_dag.run(graph, inputs, Py.Face.map(timeout_or_opts))

  @doc "Begins to run a graph; `await/1` gives its report."
  @spec start(graph, inputs) :: {:ok, :py_dag.run_ref()} | {:error, Py.Error.reason()}
  defdelegate start(graph, inputs), to: :py_dag

  @doc "The same with a timeout or options, a map or a keyword list."
  @spec start(graph, inputs, Py.opts()) :: {:ok, :py_dag.run_ref()} | {:error, Py.Error.reason()}
  def start(graph, inputs, timeout_or_opts),
    do: :py_dag.start(graph, inputs, Py.Face.map(timeout_or_opts))

  @doc "The report of a run, in the process that has started it."
  @spec await(:py_dag.run_ref()) :: answer
  defdelegate await(run), to: :py_dag

  @doc "Ends a run."
  @spec cancel(:py_dag.run_ref()) :: :ok
  defdelegate cancel(run), to: :py_dag

  @doc "Checks and builds a graph once, for many runs with inputs of these names."
  @spec new(graph, [term]) :: {:ok, graph} | {:error, Py.Error.reason()}
  defdelegate new(graph, inputs), to: :py_dag

  @doc "At most so many nodes with this limit run at once, in all runs."
  @spec limit(pos_integer) :: :py_dag.limit() | {:error, Py.Error.reason()}
  defdelegate limit(at_once), to: :py_dag

  @doc "The value of a node that is another graph: its nodes run in its place."
  @spec more(graph, inputs, term) :: :py_dag.more()
  defdelegate more(graph, inputs, result), to: :py_dag
end
