defmodule Py.Wsgi do
  @moduledoc """
  Single requests for WSGI applications. The Erlang module `:py_wsgi`, with Elixir names; see
  `docs/serving-asgi.md`.
  """

  @type environ :: :py_wsgi.environ()

  @doc "One request, on the worker pool."
  @spec run(Py.name(), Py.name(), environ) ::
          {:ok, Py.Asgi.response()} | {:error, Py.Error.reason()}
  defdelegate run(module, callable, environ), to: :py_wsgi

  @doc "The same with a timeout or options as a map."
  @spec run(Py.name(), Py.name(), environ, :py.timeout_or_opts()) ::
          {:ok, Py.Asgi.response()} | {:error, Py.Error.reason()}
  defdelegate run(module, callable, environ, timeout_or_opts), to: :py_wsgi
end
