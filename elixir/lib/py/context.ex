defmodule Py.Context do
  @moduledoc """
  Contexts, with Elixir names: one thread, one namespace, one process. See `:py_context`.

      children = [
        {Py.Context, name: :reports, preload: ["json"]}
      ]

      Py.call(:reports, :json, :dumps, [[1, 2]])
  """

  import Py.Face, only: [owned: 1]

  @doc "A context that the application supervises, and does not start again."
  @spec new(:py_context.opts() | keyword) :: {:ok, pid} | {:error, Py.Error.reason()}
  def new(opts), do: :py_context.new(Py.Face.map(opts))

  @doc "Ends it. One in a supervisor of yours is started again: there, `Supervisor.terminate_child/2` stops it."
  @spec stop(pid) :: :ok | {:error, Py.Error.reason()}
  defdelegate stop(context), to: :py_context

  owned :py_context
end
