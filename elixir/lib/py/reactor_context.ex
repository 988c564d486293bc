defmodule Py.ReactorContext do
  @moduledoc """
  Connections that the BEAM accepts and Python protocols handle. The Erlang module
  `:py_reactor_context`, with Elixir names; `docs/reactor.md` tells what it does.
  """

  import Py.Face, only: [owned: 1]

  owned :py_reactor_context

  @doc "The descriptor is duplicated: close your own when this has returned."
  @spec handoff(pid, non_neg_integer) :: :ok | {:error, :full | Py.Error.reason()}
  defdelegate handoff(context, descriptor), to: :py_reactor_context

  @doc "How many connections there are, and how many there were."
  @spec info(pid) :: {:ok, map} | {:error, Py.Error.reason()}
  defdelegate info(context), to: :py_reactor_context

  @doc "Every connection is closed, and its protocol told."
  @spec stop(pid) :: :ok
  defdelegate stop(context), to: :py_reactor_context
end
