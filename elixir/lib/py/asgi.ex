defmodule Py.Asgi do
  @moduledoc """
  ASGI applications in the node, served over HTTP/1.1 and WebSocket. The Erlang module `:py_asgi`, with
  Elixir names; `docs/serving-asgi.md` tells what it does.

  In a list of children a server is started with the application, and stopped when its requests are answered:

      children = [
        {Py.Asgi, app: "main:app", name: :web, port: 8000}
      ]
  """

  import Py.Face, only: [owned: 1]

  @type app :: :py_asgi_options.app()
  @type scope :: :py_asgi_scope.scope()
  @type body :: :py_asgi_run.body()
  @type response :: :py_asgi_run.response()
  @type opts :: timeout | :py_asgi_run.opts()

  @typedoc "What `serve` gave, or the `name` of its options."
  @type server :: :py_asgi.server()

  @doc "One request, for those who have a server of their own."
  @spec run(Py.name(), Py.name(), scope, body) :: {:ok, response} | {:error, Py.Error.reason()}
  defdelegate run(module, callable, scope, body), to: :py_asgi

  @doc "The same with a timeout or options as a map."
  @spec run(Py.name(), Py.name(), scope, body, opts) ::
          {:ok, response} | {:error, Py.Error.reason()}
  defdelegate run(module, callable, scope, body, timeout_or_opts), to: :py_asgi

  @doc "`{:asgi_response, ref, result}` will come."
  @spec run_async(Py.name(), Py.name(), scope, body) :: {:ok, reference}
  defdelegate run_async(module, callable, scope, body), to: :py_asgi

  @doc "The same with a timeout or options as a map."
  @spec run_async(Py.name(), Py.name(), scope, body, opts) :: {:ok, reference}
  defdelegate run_async(module, callable, scope, body, timeout_or_opts), to: :py_asgi

  @doc "On timeout the request is cancelled, and no message stays behind."
  @spec await_response(reference) :: {:ok, response} | {:error, Py.Error.reason()}
  defdelegate await_response(ref), to: :py_asgi

  @doc "The same, for so many milliseconds."
  @spec await_response(reference, timeout) :: {:ok, response} | {:error, Py.Error.reason()}
  defdelegate await_response(ref, timeout), to: :py_asgi

  @doc "So many more pieces of a streamed response may come."
  @spec ack(reference, pos_integer) :: :ok
  defdelegate ack(ref, count), to: :py_asgi

  owned :py_asgi

  @doc "Returns when the application has started and the server listens."
  @spec serve(app) :: {:ok, pid} | {:error, Py.Error.reason()}
  defdelegate serve(app), to: :py_asgi

  @doc "The same with options, a map or a keyword list."
  @spec serve(app, :py_asgi_options.given() | keyword) :: {:ok, pid} | {:error, Py.Error.reason()}
  def serve(app, opts), do: :py_asgi.serve(app, Py.Face.map(opts))

  @doc "Listens no more, lets requests be answered, ends the rest."
  @spec stop(server) :: :ok | {:error, :not_running}
  defdelegate stop(server), to: :py_asgi

  @doc "The same with other milliseconds, or `:infinity`."
  @spec stop(server, timeout) :: :ok | {:error, :not_running}
  defdelegate stop(server, timeout), to: :py_asgi

  @doc "The port it listens on; a Unix socket has none."
  @spec port(server) :: :inet.port_number() | :undefined | {:error, :not_running}
  defdelegate port(server), to: :py_asgi

  @doc "The application is imported anew and takes the requests from now on."
  @spec reload(server) :: :ok | {:error, Py.Error.reason()}
  defdelegate reload(server), to: :py_asgi

  @doc "Where it listens, and the numbers of this moment."
  @spec info(server) :: {:ok, map} | {:error, :not_running}
  defdelegate info(server), to: :py_asgi
end
