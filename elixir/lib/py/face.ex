defmodule Py.Face do
  @moduledoc false
  # How the functions of `Py` are made of those of `:py`: keyword lists where Erlang has maps, and the forms that raise.

  @doc false
  # A keyword list stands for a map.
  def map([{key, _} | _] = keywords) when is_atom(key), do: Map.new(keywords)
  def map([]), do: %{}
  def map(other), do: other

  @doc false
  # The same for what comes after the arguments. Behind a context the arguments themselves are in this place, after
  # the name of a function.
  def kwargs(args, kwargs) when is_list(args), do: map(kwargs)
  def kwargs(_function, args), do: args

  @doc false
  # References show what they refer to.
  def wrap({:ok, {:"$py_ref", _, _, _, _} = object}), do: {:ok, %Py.Ref{object: object}}
  def wrap(answer), do: answer

  @doc false
  # The same for the answers of several calls.
  def wrap_all({:ok, values}, %{return: :ref}), do: {:ok, Enum.map(values, &elem(wrap({:ok, &1}), 1))}
  def wrap_all(answer, _opts), do: answer

  @doc false
  def object(%Py.Ref{object: object}), do: object
  def object(object), do: object

  @doc false
  def ok!(:ok), do: :ok
  def ok!({:ok, value}), do: value
  def ok!({:error, reason}), do: raise(Py.Error, reason: reason)

  # `name(module, function, args, kwargs, timeout_or_opts)`, and the same behind a context.
  defmacro calls(name, result) do
    quote do
      @spec unquote(name)(name, name, args) :: unquote(result)
      @spec unquote(name)(name | context, name, args | name, kwargs | args) :: unquote(result)
      @spec unquote(name)(name | context, name, args | name, kwargs | args, opts | kwargs) ::
              unquote(result)
      def unquote(name)(module, function, args, kwargs \\ %{}, timeout_or_opts \\ %{}) do
        kwargs = Py.Face.kwargs(args, kwargs)
        Py.Face.wrap(:py.unquote(name)(module, function, args, kwargs, Py.Face.map(timeout_or_opts)))
      end

      @doc "The same in a context or a pool, whose pid or name comes first."
      @spec unquote(name)(context, name, name, args, kwargs, opts) :: unquote(result)
      def unquote(name)(context, module, function, args, kwargs, timeout_or_opts) do
        {kwargs, opts} = {Py.Face.map(kwargs), Py.Face.map(timeout_or_opts)}
        Py.Face.wrap(:py.unquote(name)(context, module, function, args, kwargs, opts))
      end
    end
  end

  # `name(code, locals, timeout_or_opts)`, and the same behind a context.
  defmacro evals(name, result) do
    quote do
      @spec unquote(name)(iodata) :: unquote(result)
      @spec unquote(name)(iodata | context, kwargs | iodata) :: unquote(result)
      @spec unquote(name)(iodata | context, kwargs | iodata, opts | kwargs) :: unquote(result)
      def unquote(name)(code, locals \\ %{}, timeout_or_opts \\ %{}) do
        Py.Face.wrap(:py.unquote(name)(code, Py.Face.locals(locals), Py.Face.map(timeout_or_opts)))
      end

      @doc "The same in a context or a pool, whose pid or name comes first."
      @spec unquote(name)(context, iodata, kwargs, opts) :: unquote(result)
      def unquote(name)(context, code, locals, timeout_or_opts) do
        {locals, opts} = {Py.Face.map(locals), Py.Face.map(timeout_or_opts)}
        Py.Face.wrap(:py.unquote(name)(context, code, locals, opts))
      end
    end
  end

  @doc false
  # Behind a context this is the code.
  def locals([{key, _} | _] = keywords) when is_atom(key), do: Map.new(keywords)
  def locals(other), do: other

  # `start_link/1` and `child_spec/1`, for a list of children.
  defmacro owned(erlang) do
    quote do
      @doc "One that belongs to the calling process. The options may be a keyword list."
      @spec start_link(map | keyword) ::
              {:ok, pid} | {:error, Py.Error.reason() | {:already_started, pid}}
      def start_link(opts), do: unquote(erlang).start_link(Py.Face.map(opts))

      @doc "For a supervisor. The `id` is the `name` of the options, else this module."
      @spec child_spec(map | keyword) :: Supervisor.child_spec()
      def child_spec(opts) do
        opts = Py.Face.map(opts)
        %{unquote(erlang).child_spec(opts) | id: Map.get(opts, :name, __MODULE__)}
      end
    end
  end

  # `name!` for each of the arities of `name`, with the value itself.
  defmacro raising(name, arities, value \\ quote(do: term)) do
    for arity <- arities do
      args = Macro.generate_arguments(arity, __MODULE__)
      types = List.duplicate(quote(do: term), arity)
      raising = :"#{name}!"

      quote do
        @doc "As `#{unquote(name)}/#{unquote(arity)}`, with the value itself; raises `Py.Error`."
        @spec unquote(raising)(unquote_splicing(types)) :: unquote(value)
        def unquote(raising)(unquote_splicing(args)) do
          Py.Face.ok!(unquote(name)(unquote_splicing(args)))
        end
      end
    end
  end
end
