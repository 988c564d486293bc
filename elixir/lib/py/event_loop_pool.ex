defmodule Py.EventLoop.Pool do
  @moduledoc """
  The event loops of the node, `num_loops` of them, and pools of loops of your own. The Erlang module
  `:py_event_loop_pool`, with Elixir names; see `docs/async.md`. Without a pool as the first argument, the functions use
  the loops of the node.

      children = [
        {Py.EventLoop.Pool, name: :crawlers, size: 2}
      ]

      Py.EventLoop.Pool.run(:crawlers, :asyncio, :sleep, [0, "slept"])
  """

  import Py.Face, only: [owned: 1]

  @typedoc "The process of a pool of your own, or its name."
  @type pool :: pid | atom

  @doc "One loop, which belongs to the calling process."
  @spec start_link() :: {:ok, pid} | {:error, Py.Error.reason()}
  defdelegate start_link(), to: :py_event_loop_pool

  owned :py_event_loop_pool

  @doc "The loop of the calling process."
  @spec get_loop() :: {:ok, Py.EventLoop.event_loop()} | {:error, Py.Error.reason()}
  defdelegate get_loop(), to: :py_event_loop_pool

  @doc "The loop of the calling process in a pool of your own."
  @spec get_loop(pool) :: {:ok, Py.EventLoop.event_loop()} | {:error, Py.Error.reason()}
  defdelegate get_loop(pool), to: :py_event_loop_pool

  @doc "What each loop has to do."
  @spec get_stats() :: [map]
  defdelegate get_stats(), to: :py_event_loop_pool

  @doc "What each loop of a pool of your own has to do."
  @spec get_stats(pool) :: [map] | {:error, Py.Error.reason()}
  defdelegate get_stats(pool), to: :py_event_loop_pool

  @doc "`{:async_result, ref, answer}` will come, or `await/1` gives the answer."
  @spec create_task(Py.name(), Py.name(), [term]) :: reference
  defdelegate create_task(module, function, args), to: :py_event_loop_pool

  @doc "The same with keyword arguments as a map; or a pool first."
  @spec create_task(Py.name() | pool, Py.name(), [term] | Py.name(), map | [term]) :: reference
  defdelegate create_task(module_or_pool, function, args, kwargs), to: :py_event_loop_pool

  @doc "The same in a pool of your own."
  @spec create_task(pool, Py.name(), Py.name(), [term], map) :: reference
  defdelegate create_task(pool, module, function, args, kwargs), to: :py_event_loop_pool

  @doc "Waits for the value."
  @spec run(Py.name(), Py.name(), [term]) :: Py.result()
  defdelegate run(module, function, args), to: :py_event_loop_pool

  @doc "The same with a timeout or options as a map; or a pool first."
  @spec run(Py.name() | pool, Py.name(), [term] | Py.name(), timeout | map | [term]) :: Py.result()
  defdelegate run(module_or_pool, function, args, timeout_or_opts), to: :py_event_loop_pool

  @doc "The same in a pool of your own."
  @spec run(pool, Py.name(), Py.name(), [term], timeout | map) :: Py.result()
  defdelegate run(pool, module, function, args, timeout_or_opts), to: :py_event_loop_pool

  @doc "The answer of a task."
  @spec await(reference) :: Py.result()
  defdelegate await(ref), to: :py_event_loop_pool

  @doc "The same; after the timeout the task is cancelled."
  @spec await(reference, timeout) :: Py.result()
  defdelegate await(ref, timeout), to: :py_event_loop_pool
end
