defmodule Py.Context do
  @moduledoc "Contexts, with Elixir names: one thread, one namespace, one process. See `:py_context`."

  @spec new(:py_context.opts()) :: {:ok, pid} | {:error, Py.Error.reason()}
  defdelegate new(opts), to: :py_context

  @spec stop(pid) :: :ok
  defdelegate stop(context), to: :py_context

  @doc "One that belongs to the calling process."
  defdelegate start_link(opts), to: :py_context

  @doc "For a supervisor."
  defdelegate child_spec(opts), to: :py_context
end
