defmodule Py.Sigil do
  @moduledoc false
  # What `~PY` becomes: the source with the variables that it names, and the place where it stands.

  @doc false
  def quoted({:<<>>, meta, [source]}, modifiers, env) when is_binary(source) do
    line = Keyword.get(meta, :line, env.line)
    # The text of a heredoc begins in the line after its quotes.
    line = if Keyword.has_key?(meta, :indentation), do: line + 1, else: line
    opts = options(modifiers)
    file = Path.relative_to_cwd(env.file)
    names = for name <- names(source, env), do: {to_string(name), Macro.var(name, nil)}

    quote do
      Py.Sigil.run(
        unquote(source),
        %{unquote_splicing(names)},
        unquote(file),
        unquote(line),
        unquote(Macro.escape(opts))
      )
    end
  end

  defp options([]), do: %{traceback: true}
  defp options([?r]), do: %{traceback: true, return: :ref}

  defp options(modifiers) do
    raise ArgumentError, "~PY takes the modifier r (a reference to the object), not #{modifiers}"
  end

  # An identifier that is none in Python, as a word in a text, only makes a name too many.
  defp names(source, env) do
    known = for {name, nil} <- Macro.Env.vars(env), into: MapSet.new(), do: to_string(name)

    ~r/(?<![\w.])[A-Za-z_]\w*/u
    |> Regex.scan(source)
    |> List.flatten()
    |> Enum.uniq()
    |> Enum.filter(&(&1 in known))
    |> Enum.map(&String.to_existing_atom/1)
  end

  @doc false
  def run(source, names, file, line, opts) do
    # The names of the calling process.
    space = Py.Face.ok!(:py.call(:builtins, :globals, [], %{}, %{return: :ref}))

    case :py.call("erlang._sigil", :run, [space, source, names, file, line], %{}, opts) do
      {:error, {type, message, %{traceback: frames} = details}} ->
        details = %{details | traceback: Enum.reject(frames, &is_ours/1)}
        raise Py.Error, reason: {type, message, details}

      answer ->
        answer |> Py.Face.wrap() |> Py.Face.ok!()
    end
  end

  defp is_ours(%{file: file}), do: String.ends_with?(file, "erlang/_sigil.py")
end
