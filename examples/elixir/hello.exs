# Elixir: the same from Elixir. The module Py (elixir/lib) has a name for every function of :py.
#
# Run: ./dev build, then
#      mix run examples/elixir/hello.exs

{:ok, _} = Application.ensure_all_started(:erlang_python)

{:ok, mean} = Py.call(:statistics, :mean, [[1, 2, 6]])
IO.puts("mean: #{mean}")

# Python calls a function written in Elixir.
:ok = Py.register_function(:slug, fn [text] -> text |> String.downcase() |> String.replace(" ", "-") end)
:ok = Py.exec("import erlang")
{:ok, slugs} = Py.eval("[erlang.slug(title) for title in titles]", %{titles: ["First Post", "Second Post"]})
IO.puts(Enum.join(slugs, ", "))

# An error is a value, and there is a sentence for it.
{:error, reason} = Py.eval("1 / 0")
IO.puts(Py.Error.format(reason))
