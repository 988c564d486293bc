defmodule Py.EventRouter do
  @moduledoc """
  Drives loops of `:py_nif` by messages. The Erlang module `:py_event_router`, with Elixir names;
  `docs/raw-loops.md` tells what it does.
  """

  @doc "Drives a loop, which ends with it."
  @spec start_link(:py_nif.raw_loop()) :: GenServer.on_start()
  defdelegate start_link(loop), to: :py_event_router

  @doc "`notify`: this process gets `{:py_events, loop, events}`."
  @spec start_link(:py_nif.raw_loop(), :py_event_router.opts()) :: GenServer.on_start()
  defdelegate start_link(loop, opts), to: :py_event_router

  @doc "Ends the router."
  @spec stop(pid) :: :ok
  defdelegate stop(router), to: :py_event_router
end
