defmodule Py.EventWorker do
  @moduledoc """
  A loop of `:py_nif` with a process that tells who asked of its events. The Erlang module
  `:py_event_worker`, with Elixir names; `docs/raw-loops.md` tells what it does.
  """

  @type id :: :py_nif.event_id()

  @doc "An atom is registered; a binary only tells workers apart."
  @spec start_link(atom | binary) :: GenServer.on_start()
  defdelegate start_link(name), to: :py_event_worker

  @doc "The same; there are no options yet."
  @spec start_link(atom | binary, map) :: GenServer.on_start()
  defdelegate start_link(name, opts), to: :py_event_worker

  @doc "For a supervisor: `{Py.EventWorker, :timers}`."
  @spec child_spec(atom | binary) :: Supervisor.child_spec()
  defdelegate child_spec(name), to: :py_event_worker

  @doc "Ends the worker, and the loop with it."
  @spec stop(GenServer.server()) :: :ok
  defdelegate stop(worker), to: :py_event_worker

  @doc "The loop of `:py_nif`."
  @spec loop(GenServer.server()) :: {:ok, :py_nif.raw_loop()}
  defdelegate loop(worker), to: :py_event_worker

  @doc "`{:py_event, worker, id, :read}` comes once, when there is something to read."
  @spec add_reader(GenServer.server(), non_neg_integer) :: {:ok, id} | {:error, Py.Error.reason()}
  defdelegate add_reader(worker, descriptor), to: :py_event_worker

  @doc "`{:py_event, worker, id, :write}` comes once, when there is room."
  @spec add_writer(GenServer.server(), non_neg_integer) :: {:ok, id} | {:error, Py.Error.reason()}
  defdelegate add_writer(worker, descriptor), to: :py_event_worker

  @doc "The event is not wanted any more."
  @spec remove(GenServer.server(), id) :: :ok
  defdelegate remove(worker, id), to: :py_event_worker

  @doc "`{:py_event, worker, id, :timer}` comes once."
  @spec call_later(GenServer.server(), non_neg_integer) :: {:ok, id} | {:error, Py.Error.reason()}
  defdelegate call_later(worker, milliseconds), to: :py_event_worker

  @doc "The same for a timer."
  @spec cancel_timer(GenServer.server(), id) :: :ok
  defdelegate cancel_timer(worker, id), to: :py_event_worker
end
