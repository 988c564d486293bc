# For Elixir: one dependency gives the Erlang application and the modules of elixir/lib (`Py`, `Py.Asgi`, …).
# No Hex package is needed. What the application is called, needs and registers stands in src/erlang_python.app.src.

defmodule Mix.Tasks.Compile.ErlangPythonNative do
  @moduledoc "Puts the native libraries and the Python package into priv/, by scripts/install.sh."
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    # The tree itself, which is built where it says below, has its libraries from ./dev.
    app_path = Mix.Project.app_path()
    own = Path.expand("_build/mix")
    if String.starts_with?(app_path, own), do: {:noop, []}, else: install(app_path)
  end

  # The script writes there if it can't write to the source.
  defp install(app_path) do
    File.mkdir_p!(app_path)
    options = [into: IO.stream(), stderr_to_stdout: true]

    case System.cmd("sh", ["scripts/install.sh", app_path], options) do
      {_, 0} ->
        # Links priv/ of the source, which was not there when mix made the links.
        Mix.Project.build_structure()
        File.mkdir_p!(Path.join(app_path, "ebin"))
        File.cp!("ebin/erlang_python.appup", Path.join(app_path, "ebin/erlang_python.appup"))
        {:ok, []}

      {_, _} ->
        Mix.raise("erlang_python has no native library: the line above says why")
    end
  end
end

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
      compilers: [:erlang_python_native | Mix.compilers()],
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
