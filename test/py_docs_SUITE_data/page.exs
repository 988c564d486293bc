# Runs the Elixir blocks of a page: `elixir page.exs ROOT BLOCKS`, where BLOCKS is a file with the
# line numbers and texts of the blocks. `# => pattern` after an expression says what it gives.
defmodule Page do
  def run(blocks) do
    # Variables and imports of one step are there in the next ones.
    start = {[], Code.env_for_eval([])}

    Enum.reduce(blocks, start, fn {line, text}, names ->
      text |> String.split("\n") |> steps([], line, []) |> Enum.reduce(names, &step/2)
    end)
  end

  # {first line, code, pattern or nil}
  defp steps([], code, line, done), do: Enum.reverse([{line, join(code), nil} | done])

  defp steps([text | rest], code, line, done) do
    case String.split(text, "# => ", parts: 2) do
      [before, pattern] ->
        next = line + length(code) + 1
        steps(rest, [], next, [{line, join([before | code]), pattern} | done])

      [_] ->
        steps(rest, [text | code], line, done)
    end
  end

  defp join(code), do: code |> Enum.reverse() |> Enum.join("\n")

  # Names of sigils have one letter before Elixir 1.15.
  @sigil if Version.match?(System.version(), ">= 1.15.0"), do: "~PY", else: "~P"

  defp step({line, code, pattern}, {names, env}) do
    code = String.replace(code, "~PY", @sigil)
    quoted = Code.string_to_quoted!(code, line: line)
    {value, names, env} = Code.eval_quoted_with_env(quoted, names, env)

    if pattern do
      try do
        Code.eval_string("#{pattern} = value", [value: value] ++ names)
      rescue
        MatchError -> raise "line #{line}: gave #{inspect(value)} instead of #{pattern}"
      end
    end

    {names, env}
  end
end

[root, file] = System.argv()
# Each waits for what it needs of the others.
{:ok, _, _} = Kernel.ParallelCompiler.compile(Path.wildcard(Path.join(root, "elixir/lib/**/*.ex")))
{:ok, _} = Application.ensure_all_started(:erlang_python)
Page.run(file |> File.read!() |> :erlang.binary_to_term())
