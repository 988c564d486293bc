defmodule Py.Ref do
  @moduledoc """
  An object that stays in Python, as `Py.ref/1` wraps it: where it is inspected, Python's `repr` of it is shown.

  Erlang's own form of a reference, which `Py.call/5` gives with `return: :ref`, is a tuple that says nothing. Both are
  arguments like any other, also within lists, maps and structs, and the functions of `Py` for objects take both.

      iex> {:ok, fraction} = Py.call(:fractions, :Fraction, [1, 3], %{}, return: :ref)
      iex> Py.ref(fraction)
      #Py.Ref<Fraction(1, 3)>
      iex> Py.call(:builtins, :str, [Py.ref(fraction)])
      {:ok, "1/3"}
  """

  @enforce_keys [:object]
  defstruct [:object]

  @typedoc "`object` is Erlang's own form of it."
  @type t :: %__MODULE__{object: :py.object()}

  defimpl Inspect do
    # Who inspects does not want to wait: for an interpreter that is busy, or a `repr` that takes long.
    @patience 200
    @most 80

    def inspect(%{object: object}, _opts), do: "#Py.Ref<#{shown(object)}>"

    defp shown({:"$py_ref", interpreter, index, _, _} = object) do
      case :py_object.repr(object, @patience) do
        {:ok, text} when is_binary(text) -> cut(text)
        {:error, _reason} -> "object #{index} of interpreter #{interpreter}"
      end
    end

    defp cut(text) do
      text = String.replace(text, ~r/\s+/u, " ")
      if String.length(text) > @most, do: String.slice(text, 0, @most) <> "…", else: text
    end
  end
end
