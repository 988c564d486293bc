defmodule Py.Pg do
  @moduledoc """
  Groups of processes and Python tasks, on all nodes. The Erlang module `:py_pg`, with Elixir names;
  `docs/channels.md` tells what it does.

      iex> :ok = Py.Pg.join(:doctest)
      iex> Py.Pg.broadcast(:doctest, :hello)
      1
      iex> Py.Pg.leave(:doctest)
      :ok
  """

  @doc "The calling process receives what is sent to the group from now on."
  @spec join(term) :: :ok
  defdelegate join(group), to: :py_pg

  @doc "The same for another process, in another scope of `:pg`."
  @spec join(atom, term, pid) :: :ok
  defdelegate join(scope, group, pid), to: :py_pg

  @doc "It receives nothing more of the group."
  @spec leave(term) :: :ok | :not_joined
  defdelegate leave(group), to: :py_pg

  @doc "The same for another process, in another scope."
  @spec leave(atom, term, pid) :: :ok | :not_joined
  defdelegate leave(scope, group, pid), to: :py_pg

  @doc "The processes of the group, on all nodes."
  @spec members(term) :: [pid]
  defdelegate members(group), to: :py_pg

  @doc "The same in another scope."
  @spec members(atom, term) :: [pid]
  defdelegate members(scope, group), to: :py_pg

  @doc "To how many it was sent."
  @spec broadcast(term, term) :: non_neg_integer
  defdelegate broadcast(group, message), to: :py_pg

  @doc "The same in another scope."
  @spec broadcast(atom, term, term) :: non_neg_integer
  defdelegate broadcast(scope, group, message), to: :py_pg
end
