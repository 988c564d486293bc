defmodule ErlangPythonElixir.MixProject do
  use Mix.Project

  # The Erlang application `erlang_python` comes from ERL_LIBS (./dev build makes it), so that
  # nothing is fetched.
  def project do
    [
      app: :erlang_python_elixir,
      version: "0.1.0",
      elixir: "~> 1.14",
      description: "Elixir names for erlang_python: Python inside the BEAM",
      elixirc_options: [warnings_as_errors: true],
      # Mix remembers which modules an application had; the tests compare with what it has.
      xref: [
        exclude: [
          :py,
          :py_asgi,
          :py_channel,
          :py_context,
          :py_dag,
          :py_error,
          :py_event_loop,
          :py_event_loop_pool,
          :py_event_router,
          :py_event_worker,
          :py_nif,
          :py_pg,
          :py_reactor_context,
          :py_wsgi
        ]
      ],
      deps: []
    ]
  end

  def application do
    [extra_applications: [:erlang_python]]
  end
end
