defmodule Py.Error do
  @moduledoc """
  The reasons in `{:error, reason}`, with Elixir names, and the exception that the functions with a `!` raise.

  The exception has the `reason` and, if Python has raised, the `details` that `Py.last_error/0` gives; its message is
  Python's own traceback.

      iex> Py.eval!("1 / 0")
      ** (Py.Error) Traceback (most recent call last):
        File "<py:eval>", line 1, in <module>
      ZeroDivisionError: division by zero

      iex> try do
      ...>   Py.call!(:json, :loads, ["[1 2]"])
      ...> rescue
      ...>   error in Py.Error -> {Py.Error.type(error), error.details.message}
      ...> end
      {"json.decoder.JSONDecodeError", "Expecting ',' delimiter: line 1 column 4 (char 3)"}
  """

  @typedoc "See `:py_error`."
  @type reason :: :py_error.reason()

  @type t :: %__MODULE__{reason: reason, details: :py_error.details() | nil}

  defexception [:reason, :details]

  @impl true
  def exception(fields) do
    reason = Keyword.fetch!(fields, :reason)
    details = Keyword.get_lazy(fields, :details, fn -> details(reason) end)
    %__MODULE__{reason: reason, details: details}
  end

  @impl true
  def message(%__MODULE__{reason: {type, message}, details: %{} = details}) do
    :py_error.format({type, message, details})
  end

  def message(%__MODULE__{reason: reason}), do: :py_error.format(reason)

  # The last exception of this process, if it is the one in question.
  defp details({_type, _message, %{} = details}), do: details

  defp details({type, message}) when is_binary(message) do
    case :py.last_error() do
      %{type: ^type, message: ^message} = details -> details
      _ -> nil
    end
  end

  defp details(_reason), do: nil

  @doc "The class of Python's exception: an atom if it is built in, else its qualified name; `nil` if it is none."
  @spec type(t) :: atom | binary | nil
  def type(%__MODULE__{reason: {type, message, %{}}}) when is_binary(message), do: type

  def type(%__MODULE__{reason: {type, message}}) when is_binary(message) and is_binary(type),
    do: type

  def type(%__MODULE__{reason: {type, message}}) when is_binary(message) do
    if :py_error.is_builtin_exception(type), do: type
  end

  def type(%__MODULE__{}), do: nil

  @doc "One sentence or more: what happened, and what to do about it."
  @spec format(reason) :: binary
  defdelegate format(reason), to: :py_error

  @doc "Whether the term belongs to the closed list of reasons."
  @spec is_reason(term) :: boolean
  defdelegate is_reason(term), to: :py_error

  @doc "Whether Python has an exception of that name built in."
  @spec is_builtin_exception(term) :: boolean
  defdelegate is_builtin_exception(type), to: :py_error
end
