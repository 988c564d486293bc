defmodule Py.Error do
  @moduledoc "The reasons in `{:error, reason}`, with Elixir names. See `:py_error`."

  @type reason :: :py_error.reason()

  @doc "One sentence or more: what happened, and what to do about it."
  defdelegate format(reason), to: :py_error

  @doc "Whether the term belongs to the closed list of reasons."
  defdelegate is_reason(term), to: :py_error

  @doc "Whether Python has an exception of that name built in."
  @spec is_builtin_exception(term) :: boolean
  defdelegate is_builtin_exception(type), to: :py_error
end
