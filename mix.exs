# For Elixir: one dependency gives the Erlang application and the modules of elixir/lib (`Py`, `Py.Asgi`, …).
# No Hex package is needed. What the application is called, needs and registers stands in src/erlang_python.app.src.

defmodule ErlangPython.MixProject do
  use Mix.Project

  {:ok, [{:application, :erlang_python, described}]} = :file.consult("src/erlang_python.app.src")
  @described described

  def project do
    [
      app: :erlang_python,
      version: to_string(@described[:vsn]),
      description: to_string(@described[:description]),
      elixir: "~> 1.14",
      erlc_paths: ["src"],
      erlc_options: [:debug_info],
      elixirc_paths: ["elixir/lib"],
      # A warning is an error in our own tests, not in the builds of users: every release of Elixir knows new ones.
      elixirc_options: [warnings_as_errors: Mix.env() == :test],
      test_paths: ["elixir/test"],
      # rebar3 has _build/PROFILE. As a dependency, the application is built where the project says.
      build_path: "_build/mix/#{Mix.env()}",
      deps: []
    ]
  end

  def application do
    [mod: @described[:mod], registered: @described[:registered]]
  end
end
