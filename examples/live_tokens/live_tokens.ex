defmodule LiveTokens do
  @moduledoc """
  A process with the shape of a LiveView: it has a subscriber (there, the browser), takes its events, and sends what has
  changed. A generator of Python writes the answer, never more than a few tokens ahead of what has been sent.

  It never waits: tokens are messages. If the subscriber goes, or asks something else, the generator is closed.
  """

  use GenServer

  # Tokens that may be on their way.
  @window 4

  @doc "For the subscriber, who gets `{:live_tokens, pid, change}` with `{:token, text}`, `:done` or `{:error, sentence}`."
  def start_link(subscriber), do: GenServer.start_link(__MODULE__, subscriber)

  def child_spec(subscriber) do
    # As a LiveView: with its subscriber gone, there is nothing to start again.
    %{id: __MODULE__, start: {__MODULE__, :start_link, [subscriber]}, restart: :temporary}
  end

  def ask(live, prompt), do: GenServer.cast(live, {:ask, prompt})

  @impl true
  def init(subscriber) do
    Process.monitor(subscriber)
    {:ok, %{subscriber: subscriber, stream: nil}}
  end

  @impl true
  def handle_cast({:ask, prompt}, state) do
    state = forget(state)

    case Py.stream_start(:model, :answer, [prompt], %{}, window: @window) do
      {:ok, stream} -> {:noreply, %{state | stream: stream}}
      {:error, reason} -> {:noreply, tell(state, {:error, Py.Error.format(reason)})}
    end
  end

  @impl true
  def handle_info({:py_stream, stream, {:data, token}}, %{stream: stream} = state) do
    state = tell(state, {:token, token})
    :ok = Py.stream_ack(stream, 1)
    {:noreply, state}
  end

  def handle_info({:py_stream, stream, :done}, %{stream: stream} = state) do
    {:noreply, tell(%{state | stream: nil}, :done)}
  end

  def handle_info({:py_stream, stream, {:error, reason}}, %{stream: stream} = state) do
    {:noreply, tell(%{state | stream: nil}, {:error, Py.Error.format(reason)})}
  end

  # Of a stream that was given up.
  def handle_info({:py_stream, _other, _}, state), do: {:noreply, state}

  # Its streams end with this process.
  def handle_info({:DOWN, _, :process, subscriber, _}, %{subscriber: subscriber} = state) do
    {:stop, :normal, state}
  end

  defp forget(%{stream: nil} = state), do: state

  defp forget(%{stream: stream} = state) do
    :ok = Py.stream_cancel(stream)
    %{state | stream: nil}
  end

  defp tell(state, change) do
    send(state.subscriber, {:live_tokens, self(), change})
    state
  end
end
