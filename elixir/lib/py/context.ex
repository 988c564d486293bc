defmodule Py.Context do
  @moduledoc "Contexts, with Elixir names: one thread, one namespace, one process. See `:py_context`."

  defdelegate new(opts), to: :py_context
  defdelegate stop(context), to: :py_context
end
