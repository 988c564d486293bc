defmodule Py.Stream do
  @moduledoc """
  The items of a generator of Python, as `Py.stream/5` gives them: an `Enumerable`.

  The generator begins when the stream is enumerated, in the process that does so, and anew each time. At most `window`
  items are on their way or unread; in between the generator does not run. If the enumeration is halted, the generator is
  closed and its `finally` blocks run. An exception in it raises `Py.Error`, after the items before it.
  """

  # As many as hide the way of an item, and few enough to throw away.
  @window 32

  @enforce_keys [:start, :what, :window]
  defstruct [:start, :what, :window]

  @opaque t :: %__MODULE__{
            start: (-> {:ok, reference} | {:error, Py.Error.reason()}),
            what: binary,
            window: pos_integer
          }

  @doc false
  @spec new([term], timeout | map) :: t
  def new(args, opts) do
    opts = if is_map(opts), do: opts, else: %{timeout: opts}

    if Map.has_key?(opts, :reply_to) do
      raise Py.Error, reason: {:bad_argument, "a stream is read by the process that enumerates it: no reply_to"}
    end

    opts = Map.merge(%{window: @window, traceback: true}, opts)
    start = fn -> apply(:py, :stream_start, args ++ [opts]) end
    %__MODULE__{start: start, what: what(args), window: opts.window}
  end

  defp what([module, function, args, %{}]) when is_list(args), do: name(module, function)
  defp what([_context, module, function | _]), do: name(module, function)

  defp name(module, function), do: "#{module}.#{function}"

  defimpl Enumerable do
    def count(_stream), do: {:error, __MODULE__}
    def member?(_stream, _item), do: {:error, __MODULE__}
    def slice(_stream), do: {:error, __MODULE__}

    def reduce(stream, acc, fun) do
      # What has been read is acknowledged in portions: half of the window is on its way meanwhile.
      portion = portion(stream.window)

      Stream.resource(
        fn -> {Py.Face.ok!(stream.start.()), 0} end,
        fn {ref, read} -> next(ref, read, portion) end,
        fn {ref, _read} -> stop(ref) end
      ).(acc, fun)
    end

    defp portion(window) when is_integer(window), do: max(1, div(window, 2))
    # The start refuses it.
    defp portion(_window), do: 1

    defp next(ref, read, portion) do
      read = acknowledged(ref, read, portion)

      receive do
        {:py_stream, ^ref, {:data, item}} -> {[item], {ref, read + 1}}
        {:py_stream, ^ref, :done} -> {:halt, {ref, read}}
        {:py_stream, ^ref, {:error, reason}} -> raise Py.Error, reason: reason
      end
    end

    # The next item is asked for: those before it have been dealt with.
    defp acknowledged(ref, read, portion) when read >= portion do
      _ = :py.stream_ack(ref, read)
      0
    end

    defp acknowledged(_ref, read, _portion), do: read

    defp stop(ref) do
      _ = :py.stream_cancel(ref)
      forget(ref)
    end

    # Nothing is sent any more.
    defp forget(ref) do
      receive do
        {:py_stream, ^ref, _} -> forget(ref)
      after
        0 -> :ok
      end
    end
  end

  defimpl Inspect do
    def inspect(stream, _opts), do: "#Py.Stream<#{stream.what}, window: #{stream.window}>"
  end
end
