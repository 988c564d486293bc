defmodule Py do
  @moduledoc """
  Python inside the BEAM, with Elixir names.

  Every function is the one of the same name in the Erlang module `:py`; the pages in `docs/` tell
  what they do. Answers are `{:ok, value}` or `{:error, reason}`; `Py.Error.format/1` makes a
  sentence of a reason. A function with a `!` gives the value itself and raises `Py.Error`, whose message has
  Python's traceback.

      iex> Py.call(:math, :sqrt, [16])
      {:ok, 4.0}

      iex> Py.call!(:builtins, :sorted, [[3, 1, 2]], reverse: true)
      [3, 2, 1]

      iex> Py.eval("a + b", a: 1, b: 2)
      {:ok, 3}

      iex> Py.stream(:itertools, :count, [10]) |> Stream.map(&(&1 * 2)) |> Enum.take(3)
      [20, 22, 24]

  Where Erlang has a map of keyword arguments, variables or options, a keyword list is as good. Without a map behind
  it, a first argument that is a pid or the name of a pool is the context, and the rest follows, as in Erlang.

  `import Py, only: :sigils` brings `~PY`, for code that stands in a module of Elixir: see `sigil_PY/2`.

  ## Types

  Values cross as the page "Types" of the documentation says: `nil` is `None` and `None` is `:none`, an atom is a `str`
  and comes back as a binary. A struct is a dict with the names of its fields as keys (`erlang.Struct`), and a `MapSet`
  is a set (`erlang.MapSet`); both come back as what they were.

      iex> Py.eval("(type(date).__mro__[1].__name__, date['year'], date)", date: ~D[2024-02-29])
      {:ok, {"dict", 2024, ~D[2024-02-29]}}

      iex> Py.eval("3 in numbers, numbers", numbers: MapSet.new([1, 3]))
      {:ok, {true, MapSet.new([1, 3])}}
  """

  import Py.Face, only: [calls: 2, evals: 2, raising: 2, raising: 3]

  @typedoc "A name: atom, binary or charlist, dotted or not."
  @type name :: atom | binary | charlist

  @typedoc "A context's process, a bound handle, or the name of a pool."
  @type context :: :py.context()

  @typedoc "The arguments of a function, also when there is only one."
  @type args :: [term]

  @typedoc "Keyword arguments, or variables."
  @type kwargs :: map | keyword

  @typedoc "A timeout, or the options of the page \"Options\" of the documentation."
  @type opts :: timeout | map | keyword

  @typedoc "An object that stays in Python."
  @type object :: Py.Ref.t() | :py.object()

  @type result :: {:ok, term} | {:error, Py.Error.reason()}

  @typedoc "All the items, or the first error."
  @type results :: {:ok, [term]} | {:error, Py.Error.reason()}

  @type done :: :ok | {:error, Py.Error.reason()}

  # Calling

  @doc """
  Calls a function of Python and waits for its value.

      iex> Py.call("os.path", "join", ["a", "b"])
      {:ok, "a/b"}
      iex> Py.call(:time, :sleep, [60], %{}, timeout: 10)
      {:error, :timeout}
  """
  calls :call, result

  @doc "The value of an expression; variables may follow."
  evals :eval, result

  @doc "Runs statements, in the names of the calling process."
  @spec exec(iodata) :: done
  defdelegate exec(code), to: :py

  @doc "The same in a context or a pool."
  @spec exec(context, iodata) :: done
  defdelegate exec(context, code), to: :py

  @doc "Calls a function and waits for nothing; a failure is logged."
  calls :cast, :ok

  @doc "Gives a reference at once; `{:py_response, ref, result}` will come, or `await/2` gives the result."
  calls :spawn_call, reference

  @doc """
  A coroutine function runs on an event loop, any other on the workers. Gives a reference at once;
  `{:async_result, ref, result}` will come, or `await/2` gives the result.

      iex> Py.async_call(:asyncio, :sleep, [0, "slept"]) |> Py.await()
      {:ok, "slept"}
  """
  calls :async_call, reference

  @doc "All calls at once, `{module, function, args}` or with keyword arguments as a fourth element; their values in order."
  @spec async_gather([tuple], opts) :: results
  @spec async_gather([tuple]) :: results
  def async_gather(calls, timeout_or_opts \\ %{}) do
    opts = Py.Face.map(timeout_or_opts)
    Py.Face.wrap_all(:py.async_gather(calls, opts), opts)
  end

  @doc "All items of a generator, asynchronous or not, as a list. `stream/5` reads one item after another."
  calls :async_stream, results

  @doc "The result of `spawn_call/5` or `async_call/5`. After the timeout the work is cancelled."
  @spec await(reference, timeout) :: result
  @spec await(reference) :: result
  def await(ref, timeout \\ :py_call.default_timeout()) do
    Py.Face.wrap(:py.await(ref, timeout))
  end

  @doc "The same as `await/2`."
  @spec async_await(reference, timeout) :: result
  @spec async_await(reference) :: result
  def async_await(ref, timeout \\ :py_call.default_timeout()), do: await(ref, timeout)

  @doc "Gives up a call. Nothing is sent for it any more."
  @spec cancel(reference) :: done
  defdelegate cancel(ref), to: :py

  # Streams

  @doc """
  The items of anything that Python can iterate over, asynchronous generators too, as an `Enumerable`.

  The generator begins when the stream is enumerated. At most `window` items (32, unless the options say so) are ahead of
  the reader, so that an endless generator is fine; if the enumeration is halted, the generator is closed. An exception
  raises `Py.Error` after the items before it. The other options are those of `stream_start/5`.

      iex> Py.stream(:builtins, :range, [3]) |> Stream.zip(Py.stream(:itertools, :count, [5])) |> Enum.to_list()
      [{0, 5}, {1, 6}, {2, 7}]
  """
  @spec stream(name, name, args) :: Py.Stream.t()
  @spec stream(name | context, name, args | name, kwargs | args) :: Py.Stream.t()
  @spec stream(name | context, name, args | name, kwargs | args, opts | kwargs) :: Py.Stream.t()
  def stream(module, function, args, kwargs \\ %{}, timeout_or_opts \\ %{})

  def stream(module, function, args, kwargs, opts) when is_map(kwargs) or is_list(args) do
    Py.Stream.new([module, function, args, Py.Face.map(kwargs)], Py.Face.map(opts))
  end

  def stream(context, module, function, args, kwargs) do
    stream(context, module, function, args, kwargs, %{})
  end

  @doc "The same in a context or a pool, whose pid or name comes first."
  @spec stream(context, name, name, args, kwargs, opts) :: Py.Stream.t()
  def stream(context, module, function, args, kwargs, timeout_or_opts) do
    args = [context, module, function, args, Py.Face.map(kwargs)]
    Py.Stream.new(args, Py.Face.map(timeout_or_opts))
  end

  @doc "All items of what an expression gives, as a list."
  evals :stream_eval, results

  @doc "The items come as messages: `{:py_stream, ref, {:data, item} | :done | {:error, reason}}`."
  calls :stream_start, {:ok, reference} | {:error, Py.Error.reason()}

  @doc "So many more items of a stream with a window have been read."
  @spec stream_ack(reference, pos_integer) :: done
  defdelegate stream_ack(ref, count), to: :py

  @doc "Stops a stream; nothing is sent any more."
  @spec stream_cancel(reference) :: done
  defdelegate stream_cancel(ref), to: :py

  # Threads and names

  @doc "Many calls at once on every core; the values in the order of the calls, or the first error."
  @spec parallel([tuple], opts) :: results
  @spec parallel([tuple]) :: results
  def parallel(calls, timeout_or_opts \\ %{}) do
    opts = Py.Face.map(timeout_or_opts)
    Py.Face.wrap_all(:py.parallel(calls, opts), opts)
  end

  @doc """
  The function of each item, on every core.

      iex> Py.map({:math, :sqrt}, [1, 4, 9])
      {:ok, [1.0, 2.0, 3.0]}
  """
  @spec map({name, name}, [term], opts) :: results
  @spec map({name, name}, [term]) :: results
  def map(function, list, timeout_or_opts \\ %{}) do
    :py.map(function, list, Py.Face.map(timeout_or_opts))
  end

  @doc "The same, with the names of module and function."
  @spec map(name, name, [term], opts) :: results
  def map(module, function, list, timeout_or_opts) do
    :py.map(module, function, list, Py.Face.map(timeout_or_opts))
  end

  @doc "Keeps one thread of Python for the calling process."
  @spec bind() :: done
  defdelegate bind(), to: :py

  @doc "`bind(:new)` gives a handle with a thread and names of its own."
  @spec bind(:new) :: {:ok, context} | {:error, Py.Error.reason()}
  defdelegate bind(new), to: :py

  @doc "Gives the thread of the calling process back."
  @spec unbind() :: :ok
  defdelegate unbind(), to: :py

  @doc "Gives the thread of a handle back."
  @spec unbind(context) :: :ok
  defdelegate unbind(handle), to: :py

  @doc "Whether the calling process keeps a thread."
  @spec is_bound() :: boolean
  defdelegate is_bound(), to: :py

  @doc "Runs the function with the process bound, or with a handle; gives the thread back also when it crashes."
  @spec with_context((-> value) | (context -> value)) :: value | {:error, Py.Error.reason()}
        when value: term
  defdelegate with_context(fun), to: :py

  @doc "As `call/5` in a bound handle or a context; one that is not bound raises."
  @spec ctx_call(context, name, name, args, kwargs, opts) :: result
  @spec ctx_call(context, name, name, args, kwargs) :: result
  @spec ctx_call(context, name, name, args) :: result
  def ctx_call(context, module, function, args, kwargs \\ %{}, timeout_or_opts \\ %{}) do
    {kwargs, opts} = {Py.Face.map(kwargs), Py.Face.map(timeout_or_opts)}
    Py.Face.wrap(:py.ctx_call(context, module, function, args, kwargs, opts))
  end

  @doc "As `eval/3` in a bound handle or a context; one that is not bound raises."
  @spec ctx_eval(context, iodata, kwargs, opts) :: result
  @spec ctx_eval(context, iodata, kwargs) :: result
  @spec ctx_eval(context, iodata) :: result
  def ctx_eval(context, code, locals \\ %{}, timeout_or_opts \\ %{}) do
    {locals, opts} = {Py.Face.map(locals), Py.Face.map(timeout_or_opts)}
    Py.Face.wrap(:py.ctx_eval(context, code, locals, opts))
  end

  @doc "As `exec/2` in a bound handle or a context; one that is not bound raises."
  @spec ctx_exec(context, iodata) :: done
  defdelegate ctx_exec(context, code), to: :py

  @doc "A context that needs no stopping: the same one for the same scheduler."
  @spec context() :: pid | {:error, Py.Error.reason()}
  defdelegate context(), to: :py

  @doc "The n-th of these contexts."
  @spec context(pos_integer) :: pid | {:error, Py.Error.reason()}
  defdelegate context(number), to: :py

  @doc "A pool of threads or interpreters under a name. `Py.Pool` is one for a supervisor of yours."
  @spec register_pool(atom, map | keyword) :: done
  def register_pool(name, opts), do: :py.register_pool(name, Py.Face.map(opts))

  @doc "Ends a pool of `register_pool/2`."
  @spec unregister_pool(atom) :: done
  defdelegate unregister_pool(name), to: :py

  @doc "Stops what a context runs at this moment; its caller hears `:interrupted`."
  @spec interrupt(context) :: :ok | :not_running
  defdelegate interrupt(context), to: :py

  # Callbacks, shared state

  @doc """
  A function that Python may call, with a list of its arguments.

      iex> Py.register_function(:shout, fn [text] -> String.upcase(text) end)
      :ok
      iex> Py.eval("__import__('erlang').shout('hi')")
      {:ok, "HI"}
      iex> Py.unregister_function(:shout)
      :ok
  """
  @spec register_function(name, ([term] -> term) | {module, atom}) :: done
  defdelegate register_function(name, function), to: :py

  @doc "The same for a function of a module."
  @spec register_function(name, module, atom) :: done
  defdelegate register_function(name, module, function), to: :py

  @doc "Python may call it no more."
  @spec unregister_function(name) :: :ok
  defdelegate unregister_function(name), to: :py

  @doc "A value of the table that Elixir and Python share."
  @spec state_fetch(term) :: {:ok, term} | {:error, :not_found | :not_running}
  defdelegate state_fetch(key), to: :py

  @doc "Stores a value in the table that Elixir and Python share."
  @spec state_store(term, term) :: :ok | {:error, :full | Py.Error.reason()}
  defdelegate state_store(key, value), to: :py

  @doc "Removes a key of the shared table."
  @spec state_remove(term) :: done
  defdelegate state_remove(key), to: :py

  @doc "The keys of the shared table."
  @spec state_keys() :: [term] | {:error, Py.Error.reason()}
  defdelegate state_keys(), to: :py

  @doc "Empties the shared table."
  @spec state_clear() :: done
  defdelegate state_clear(), to: :py

  @doc "Adds to a counter of the shared table, at once for all who look."
  @spec state_incr(term, integer) :: integer | {:error, term}
  @spec state_incr(term) :: integer | {:error, term}
  def state_incr(key, by \\ 1), do: :py.state_incr(key, by)

  @doc "Subtracts from a counter of the shared table."
  @spec state_decr(term, integer) :: integer | {:error, term}
  @spec state_decr(term) :: integer | {:error, term}
  def state_decr(key, by \\ 1), do: :py.state_decr(key, by)

  @doc "A dictionary that every interpreter of the node shares."
  @spec shared_dict_new(map | keyword) :: {:ok, term} | {:error, Py.Error.reason()}
  @spec shared_dict_new() :: {:ok, term} | {:error, Py.Error.reason()}
  def shared_dict_new(opts \\ %{}), do: :py.shared_dict_new(Py.Face.map(opts))

  @doc "Ends a shared dictionary."
  @spec shared_dict_close(term) :: done
  defdelegate shared_dict_close(dict), to: :py

  @doc "The value of a key."
  @spec shared_dict_get(term, term) :: {:ok, term} | {:error, term}
  defdelegate shared_dict_get(dict, key), to: :py

  @doc "Stores a value."
  @spec shared_dict_put(term, term, term) :: :ok | {:error, term}
  defdelegate shared_dict_put(dict, key, value), to: :py

  @doc "Stores a value if the key is not there."
  @spec shared_dict_put_new(term, term, term) :: term
  defdelegate shared_dict_put_new(dict, key, value), to: :py

  @doc "Stores a value if the one there is the old one."
  @spec shared_dict_swap(term, term, term, term) :: term
  defdelegate shared_dict_swap(dict, key, old, new), to: :py

  @doc "Adds to a counter."
  @spec shared_dict_incr(term, term, integer) :: {:ok, integer} | {:error, term}
  @spec shared_dict_incr(term, term) :: {:ok, integer} | {:error, term}
  def shared_dict_incr(dict, key, by \\ 1), do: :py.shared_dict_incr(dict, key, by)

  @doc "Removes a key and gives its value."
  @spec shared_dict_take(term, term) :: {:ok, term} | {:error, term}
  defdelegate shared_dict_take(dict, key), to: :py

  @doc "The keys."
  @spec shared_dict_keys(term) :: term
  defdelegate shared_dict_keys(dict), to: :py

  @doc "The keys with their values."
  @spec shared_dict_to_list(term) :: term
  defdelegate shared_dict_to_list(dict), to: :py

  @doc "How many keys there are."
  @spec shared_dict_size(term) :: term
  defdelegate shared_dict_size(dict), to: :py

  @doc "Removes all keys."
  @spec shared_dict_clear(term) :: term
  defdelegate shared_dict_clear(dict), to: :py

  # Objects and types

  @doc """
  Calls a method of an object that stays in Python.

      iex> {:ok, counter} = Py.call(:collections, :Counter, ["hello"], %{}, return: :ref)
      iex> Py.call_method(counter, :most_common, [1])
      {:ok, [{"l", 2}]}
  """
  @spec call_method(object, name, args, kwargs) :: result
  @spec call_method(object, name, args) :: result
  def call_method(ref, name, args, kwargs \\ %{}) do
    Py.Face.wrap(:py.call_method(Py.Face.object(ref), name, args, Py.Face.map(kwargs)))
  end

  @doc "An attribute of an object that stays in Python."
  @spec getattr(object, name) :: result
  def getattr(ref, name), do: Py.Face.wrap(:py.getattr(Py.Face.object(ref), name))

  @doc "Converts an object that stays in Python after all."
  @spec to_term(object) :: result
  def to_term(ref), do: :py.to_term(Py.Face.object(ref))

  @doc "Whether it is a reference to an object that stays in Python."
  @spec is_ref(term) :: boolean
  def is_ref(term), do: :py.is_ref(Py.Face.object(term))

  @doc "A reference that came in a message, as those that the functions of `Py` give; see `Py.Ref`."
  @spec ref(object) :: Py.Ref.t()
  def ref(%Py.Ref{} = ref), do: ref
  def ref({:"$py_ref", _, _, _, _} = object), do: %Py.Ref{object: object}

  @doc """
  A function of Python that converts: `:to_erlang` the instances of a class, `:to_python` tuples that begin with an
  atom, or structs of a module.

      iex> :ok = Py.exec("import datetime\\ndef date(fields):\\n    return datetime.date(*map(fields.get, ('year', 'month', 'day')))")
      iex> Py.call(:__main__, :date, [%{year: 2024, month: 2, day: 29}])
      {:ok, "2024-02-29"}
  """
  @spec register_converter(:to_python | :to_erlang, name, {name, name}) :: done
  defdelegate register_converter(direction, what, function), to: :py

  # About the node's Python

  @doc "The version of Python."
  @spec version() :: {:ok, binary} | {:error, :not_running}
  defdelegate version(), to: :py

  @doc "What the pools, loops and interpreters do at this moment."
  @spec stats() :: map | {:error, :not_running}
  defdelegate stats(), to: :py

  @doc "What Python says about its memory."
  @spec memory_stats() :: map | {:error, Py.Error.reason()}
  defdelegate memory_stats(), to: :py

  @doc "Runs Python's garbage collector; how many objects it found."
  @spec gc() :: {:ok, non_neg_integer} | {:error, Py.Error.reason()}
  defdelegate gc(), to: :py

  @doc "Imports a module anew."
  @spec reload(name) :: done
  defdelegate reload(module), to: :py

  @doc "The best way to use every core that this node has."
  @spec execution_mode() ::
          :free_threaded | :subinterp | :multi_executor | {:error, Py.Error.reason()}
  defdelegate execution_mode(), to: :py

  @doc "The last exception that the calling process was told, with its traceback."
  @spec last_error() :: :py_error.details() | :undefined
  defdelegate last_error(), to: :py

  @doc "Prints what of the installation was found, and what is missing."
  @spec doctor() :: :ok | {:wrong, pos_integer}
  defdelegate doctor(), to: :py

  @doc "Puts the packages of a virtual environment first; it must be of the Python version that is running."
  @spec activate_venv(Path.t()) :: done
  defdelegate activate_venv(path), to: :py

  @doc "Takes the packages of the active virtual environment away again."
  @spec deactivate_venv() :: done
  defdelegate deactivate_venv(), to: :py

  @doc "Copies the environment of the node to `os.environ`."
  @spec export_env() :: done
  defdelegate export_env(), to: :py

  @doc "The same for these variables."
  @spec export_env([binary | charlist]) :: done
  defdelegate export_env(names), to: :py

  @doc "The virtual environment in use."
  @spec venv_info() :: {:ok, map} | {:error, Py.Error.reason()}
  defdelegate venv_info(), to: :py

  @doc """
  Makes a virtual environment if it is missing, installs if the requirements have changed, and activates it.

  The requirements are a list such as `["numpy>=2"]`, the path of a requirements file, `{:requirements, file}` or
  `{:pyproject, file}`; the options are `installer`, `timeout` and `extra_args`.

      :ok = Py.ensure_venv(Path.expand("~/.cache/my_app"), ["numpy>=2"])
  """
  @spec ensure_venv(Path.t(), term, map | keyword) :: done
  @spec ensure_venv(Path.t(), term) :: done
  def ensure_venv(path, requirements, options \\ %{}) do
    :py.ensure_venv(path, requirements, Py.Face.map(options))
  end

  # The same, raising

  raising :call, [3, 4, 5, 6]
  raising :eval, [1, 2, 3, 4]
  raising :exec, [1, 2], :ok
  raising :async_gather, [1, 2], [term]
  raising :async_stream, [3, 4, 5, 6], [term]
  raising :await, [1, 2]
  raising :async_await, [1, 2]
  raising :stream_eval, [1, 2, 3, 4], [term]
  raising :parallel, [1, 2], [term]
  raising :map, [2, 3, 4], [term]
  raising :ctx_call, [4, 5, 6]
  raising :ctx_eval, [2, 3, 4]
  raising :ctx_exec, [2], :ok
  raising :call_method, [3, 4]
  raising :getattr, [2]
  raising :to_term, [1]
  raising :state_fetch, [1]
  raising :reload, [1], :ok
  raising :activate_venv, [1], :ok
  raising :ensure_venv, [2, 3], :ok

  # Code in a module of Elixir

  @doc ~S'''
  Code of Python where it is used: runs the statements, and gives the value of an expression at the end.

      import Py, only: :sigils

      def mean(numbers) do
        ~PY"""
        import statistics
        statistics.mean(numbers)
        """
      end

  A variable of Elixir that the code names is a variable of Python of that name, while the code runs. Names that the
  code itself makes are those of the calling process, as with `Py.exec/1`: functions and imports stay. An exception
  raises `Py.Error`; its traceback has the file and the line of the Elixir source. With the modifier `r` the value is a
  reference to the object.

  Names of more than one letter are for Elixir 1.15 and newer; `~P` is the same.
  '''
  defmacro sigil_PY(source, modifiers), do: Py.Sigil.quoted(source, modifiers, __CALLER__)

  @doc "The same as `~PY`, for Elixir 1.14."
  defmacro sigil_P(source, modifiers), do: Py.Sigil.quoted(source, modifiers, __CALLER__)
end
