defmodule Py.Channel do
  @moduledoc """
  Bounded queues between processes and Python code. The Erlang module `:py_channel`, with Elixir names;
  `docs/channels.md` tells what it does.

      iex> {:ok, channel} = Py.Channel.new(%{max: 1})
      iex> {Py.Channel.send(channel, 1), Py.Channel.send(channel, 2)}
      {:ok, :busy}
      iex> Py.Channel.recv(channel)
      {:ok, 1}
  """

  import Kernel, except: [send: 2]

  @type channel :: :py_channel.channel()
  @type received :: {:ok, term} | {:error, :closed | :timeout}

  @doc "A channel that 1000 values may wait in."
  @spec new() :: {:ok, channel} | {:error, Py.Error.reason()}
  defdelegate new(), to: :py_channel

  @doc "`max`: so many values wait in it."
  @spec new(%{optional(:max) => pos_integer}) :: {:ok, channel} | {:error, Py.Error.reason()}
  defdelegate new(opts), to: :py_channel

  @doc "Never waits: a full channel is `:busy`."
  @spec send(channel, term) :: :ok | :busy | {:error, :closed}
  defdelegate send(channel, value), to: :py_channel

  @doc "Waits for room."
  @spec put(channel, term) :: :ok | {:error, :closed}
  defdelegate put(channel, value), to: :py_channel

  @doc "Waits for a value."
  @spec recv(channel) :: received
  defdelegate recv(channel), to: :py_channel

  @doc "The same, for so many milliseconds."
  @spec recv(channel, timeout) :: received
  defdelegate recv(channel, timeout), to: :py_channel

  @doc "What is in it can still be received."
  @spec close(channel) :: :ok
  defdelegate close(channel), to: :py_channel

  @doc "How many values wait in it, and who waits for it."
  @spec info(channel) :: map | {:error, :closed}
  defdelegate info(channel), to: :py_channel
end
