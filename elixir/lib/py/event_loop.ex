defmodule Py.EventLoop do
  @moduledoc """
  Coroutines on event loops of the node. The Erlang module `:py_event_loop`, with Elixir names;
  `docs/async.md` tells what it does.

      iex> Py.EventLoop.run(:asyncio, :sleep, [0, "slept"])
      {:ok, "slept"}
  """

  import Py.Face, only: [owned: 1]

  @type event_loop :: :py_event_loop.event_loop()

  @doc "A loop of one's own, which ends with the calling process."
  @spec start_link() :: {:ok, pid} | {:error, term}
  defdelegate start_link(), to: :py_event_loop

  owned :py_event_loop

  @doc "A loop of the pool."
  @spec get_loop() :: {:ok, event_loop} | {:error, Py.Error.reason()}
  defdelegate get_loop(), to: :py_event_loop

  @doc "What the process of a loop stands for."
  @spec loop(event_loop) :: event_loop
  defdelegate loop(loop), to: :py_event_loop

  @doc "`{:async_result, ref, answer}` goes to the caller."
  @spec run_async(event_loop, :py_event_loop.request()) ::
          {:ok, reference} | {:error, Py.Error.reason()}
  defdelegate run_async(loop, request), to: :py_event_loop

  @doc "Waits for the value."
  @spec run(Py.name(), Py.name(), [term]) :: Py.result()
  defdelegate run(module, function, args), to: :py_event_loop

  @doc "The same with a timeout or options as a map; the keyword arguments are an option."
  @spec run(Py.name(), Py.name(), [term], timeout | map) :: Py.result()
  defdelegate run(module, function, args, timeout_or_opts), to: :py_event_loop

  @doc "`{:async_result, ref, answer}` will come, or `await/1` gives the answer."
  @spec create_task(Py.name(), Py.name(), [term]) :: reference
  defdelegate create_task(module, function, args), to: :py_event_loop

  @doc "The same with keyword arguments as a map."
  @spec create_task(Py.name(), Py.name(), [term], map) :: reference
  defdelegate create_task(module, function, args, kwargs), to: :py_event_loop

  @doc "The answer of a task."
  @spec await(reference) :: Py.result()
  defdelegate await(ref), to: :py_event_loop

  @doc "The same; after the timeout the task is cancelled."
  @spec await(reference, timeout) :: Py.result()
  defdelegate await(ref, timeout), to: :py_event_loop

  @doc "Nobody waits; a failure is logged."
  @spec spawn_task(Py.name(), Py.name(), [term]) :: :ok | {:error, Py.Error.reason()}
  defdelegate spawn_task(module, function, args), to: :py_event_loop

  @doc "The same with keyword arguments as a map."
  @spec spawn_task(Py.name(), Py.name(), [term], map) :: :ok | {:error, Py.Error.reason()}
  defdelegate spawn_task(module, function, args, kwargs), to: :py_event_loop
end
