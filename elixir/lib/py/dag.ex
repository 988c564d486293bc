defmodule Py.Dag do
  @moduledoc """
  Graphs of nodes that wait for each other: functions of Python, functions of Elixir, commands of
  Redis. The Erlang module `:py_dag`, with Elixir names; `docs/dag.md` tells what it does.

      iex> graph = %{nodes: %{root: %{run: {:py, :math, :sqrt}, inputs: [:n]}}}
      iex> {:ok, %{results: results}} = Py.Dag.run(graph, %{n: 16})
      iex> results
      %{root: 4.0}
  """

  defdelegate run(graph, inputs), to: :py_dag
  defdelegate run(graph, inputs, timeout_or_opts), to: :py_dag
  defdelegate start(graph, inputs), to: :py_dag
  defdelegate start(graph, inputs, timeout_or_opts), to: :py_dag
  defdelegate await(run), to: :py_dag
  defdelegate cancel(run), to: :py_dag
  defdelegate new(graph, inputs), to: :py_dag
  defdelegate limit(at_once), to: :py_dag
  defdelegate more(graph, inputs, result), to: :py_dag
end
