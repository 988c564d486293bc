defmodule Py.EventLoop.Pool do
  @moduledoc """
  The event loops of the node, `num_loops` of them. The Erlang module `:py_event_loop_pool`, with Elixir
  names; see `docs/async.md`.
  """

  @doc "A pool of loops that belongs to the calling process."
  @spec start_link() :: GenServer.on_start()
  defdelegate start_link(), to: :py_event_loop_pool

  @spec start_link(map) :: GenServer.on_start()
  defdelegate start_link(config), to: :py_event_loop_pool

  @doc "The loop of the calling process."
  @spec get_loop() :: {:ok, Py.EventLoop.event_loop()} | {:error, Py.Error.reason()}
  defdelegate get_loop(), to: :py_event_loop_pool

  defdelegate get_loop(pool), to: :py_event_loop_pool
  defdelegate get_stats(pool), to: :py_event_loop_pool
  defdelegate create_task(pool, module, function, args, kwargs), to: :py_event_loop_pool
  defdelegate run(pool, module, function, args, timeout_or_opts), to: :py_event_loop_pool
  defdelegate child_spec(opts), to: :py_event_loop_pool

  @doc "What each loop has to do."
  @spec get_stats() :: [map]
  defdelegate get_stats(), to: :py_event_loop_pool

  @spec create_task(Py.name(), Py.name(), [term]) :: reference
  defdelegate create_task(module, function, args), to: :py_event_loop_pool

  @spec create_task(Py.name(), Py.name(), [term], map) :: reference
  defdelegate create_task(module, function, args, kwargs), to: :py_event_loop_pool

  @spec run(Py.name(), Py.name(), [term]) :: Py.result()
  defdelegate run(module, function, args), to: :py_event_loop_pool

  @spec run(Py.name(), Py.name(), [term], timeout | map) :: Py.result()
  defdelegate run(module, function, args, timeout_or_opts), to: :py_event_loop_pool

  @spec await(reference) :: Py.result()
  defdelegate await(ref), to: :py_event_loop_pool

  @spec await(reference, timeout) :: Py.result()
  defdelegate await(ref, timeout), to: :py_event_loop_pool
end
