defmodule FirstClassTest do
  use ExUnit.Case
  import Py, only: :sigils

  doctest Py.Error
  doctest Py.Ref

  defmodule Order do
    defstruct [:item, :state, price: 0, tags: MapSet.new()]
  end

  setup_all do
    :ok =
      Py.exec("""
      import sys, types
      module = types.ModuleType("first_class")
      sys.modules["first_class"] = module
      exec('''
      closed = []

      def count(name, most=None):
          n = 0
          try:
              while most is None or n < most:
                  yield n
                  n += 1
          finally:
              closed.append(name)

      def fails_late():
          yield "first"
          raise LookupError("no second")

      async def ticks(n):
          import asyncio
          for i in range(n):
              await asyncio.sleep(0)
              yield i

      class Slow:
          def __repr__(self):
              import time
              time.sleep(5)
      ''', vars(module))
      """)

    :ok
  end

  defp eventually(fun, left \\ 1000) do
    cond do
      fun.() -> :ok
      left == 0 -> flunk("never")
      true -> Process.sleep(10) && eventually(fun, left - 1)
    end
  end

  defp closed?(name), do: Py.eval!("name in __import__('first_class').closed", name: name)

  defp mailbox, do: Process.info(self(), :messages)

  # Raising

  test "a form with a ! gives the value, or raises with Python's traceback" do
    assert Py.call!(:math, :sqrt, [16]) == 4.0
    assert Py.exec!("kept = 1") == :ok
    assert Py.eval!("kept + more", more: 1) == 2
    assert Py.await!(Py.spawn_call(:math, :sqrt, [4])) == 2.0
    assert Py.parallel!([{:math, :sqrt, [4]}]) == [2.0]

    :ok = Py.exec("def outer():\n    return inner()\ndef inner():\n    raise ValueError('deep')")
    error = assert_raise Py.Error, fn -> Py.call!(:__main__, :outer, []) end
    assert error.reason == {:ValueError, "deep"}
    assert Py.Error.type(error) == :ValueError
    assert [%{function: "outer"}, %{function: "inner"}] = error.details.traceback
    message = Exception.message(error)
    assert message =~ ~r/^Traceback \(most recent call last\):/
    assert message =~ "in inner"
    assert message =~ "ValueError: deep"
  end

  test "what is no exception of Python raises with its sentence" do
    error = assert_raise Py.Error, ~r/did not finish in time/, fn -> Py.call!(:time, :sleep, [60], %{}, 10) end
    assert error.reason == :timeout
    assert Py.Error.type(error) == nil
    assert error.details == nil
  end

  test "the exception of another call is not taken for that of this one" do
    {:error, _} = Py.eval("1 / 0")
    ref = Py.spawn_call(:builtins, :int, ["no number"])
    error = assert_raise Py.Error, ~r/invalid literal/, fn -> Py.await!(ref) end
    assert Py.Error.type(error) == :ValueError
  end

  # Keyword lists

  test "a keyword list is as good as a map" do
    assert Py.call(:builtins, :sorted, [[3, 1, 2]], reverse: true) == {:ok, [3, 2, 1]}
    assert Py.call(:builtins, :sorted, [[3, 1, 2]], [reverse: true], timeout: 5000) == {:ok, [3, 2, 1]}
    assert Py.call(:builtins, :sorted, [[1]], [], timeout: 5000) == {:ok, [1]}
    assert Py.eval("a + b", [a: 1, b: 2], timeout: 5000) == {:ok, 3}
    {:ok, context} = Py.Context.new(preload: ["json"])
    assert Py.call(context, :builtins, :dict, [[ok: 1]]) == {:ok, %{"ok" => 1}}
    assert Py.call(context, :builtins, :sorted, [[1, 2]], reverse: true) == {:ok, [2, 1]}
    assert Py.eval(context, "a", a: 1) == {:ok, 1}
    assert Py.eval(context, "1 + 1") == {:ok, 2}
    assert Enum.to_list(Py.stream(context, :builtins, :range, [2])) == [0, 1]
    assert Enum.to_list(Py.stream(context, :builtins, :dict, [], a: 1)) == ["a"]
    assert {:error, {:bad_argument, text}} = Py.call(:math, :sqrt, [4], %{}, tiemout: 1)
    assert text =~ "did you mean timeout?"
    :ok = Py.Context.stop(context)
  end

  # Streams

  test "a stream is an Enumerable that begins when it is read, and anew each time" do
    stream = Py.stream(:first_class, :count, ["twice", 3])
    assert inspect(stream) == "#Py.Stream<first_class.count, window: 32>"
    refute closed?("twice")
    assert Enum.to_list(stream) == [0, 1, 2]
    assert Enum.map(stream, &(&1 * 2)) == [0, 2, 4]
    assert Enum.count(stream) == 3
    assert Enum.member?(stream, 2)
    assert Enum.at(stream, 1) == 1
    assert closed?("twice")
  end

  test "halting early closes the generator and leaves no message" do
    for {window, n} <- [{1, 1}, {2, 5}, {32, 40}] do
      name = "halted #{window}"
      stream = Py.stream(:first_class, :count, [name], %{}, window: window)
      assert Enum.take(stream, n) == Enum.to_list(0..(n - 1))
      eventually(fn -> closed?(name) end)
      assert mailbox() == {:messages, []}
    end
  end

  test "a consumer that raises closes the generator" do
    stream = Py.stream(:first_class, :count, ["raised"])
    assert_raise RuntimeError, "enough", fn -> Enum.each(stream, fn 3 -> raise("enough"); _ -> :ok end) end
    eventually(fn -> closed?("raised") end)
    assert mailbox() == {:messages, []}
  end

  test "the generator is never further ahead than its window" do
    :ok = Py.exec("made = []\ndef noting():\n    n = 0\n    while True:\n        made.append(n)\n        yield n\n        n += 1")
    stream = Py.stream(:__main__, :noting, [], %{}, window: 4)

    Enum.reduce_while(stream, 0, fn n, _ ->
      # It goes on as soon as items are acknowledged, and never beyond.
      assert Py.eval!("len(made)") <= n + 1 + 4
      if n < 20, do: {:cont, n}, else: {:halt, n}
    end)
  end

  test "an exception raises after the items before it" do
    test = self()

    error =
      assert_raise Py.Error, ~r/no second/, fn ->
        Enum.each(Py.stream(:first_class, :fails_late, []), &send(test, &1))
      end

    assert_received "first"
    assert Py.Error.type(error) == :LookupError
    assert [%{function: "fails_late"} | _] = error.details.traceback
    assert_raise Py.Error, ~r/no_such_module/, fn -> Enum.to_list(Py.stream(:no_such_module, :f, [])) end
    assert_raise Py.Error, ~r/did not finish in time/, fn -> Enum.to_list(Py.stream(:first_class, :count, ["late"], %{}, 20)) |> length() end
  end

  test "streams are suspended by Stream.zip, and each is closed" do
    zipped = Stream.zip(Py.stream(:first_class, :count, ["left"]), Py.stream(:first_class, :count, ["right", 2]))
    assert Enum.to_list(zipped) == [{0, 0}, {1, 1}]
    eventually(fn -> closed?("left") and closed?("right") end)
    assert mailbox() == {:messages, []}
  end

  test "an asynchronous generator is a stream, too" do
    assert Enum.to_list(Py.stream(:first_class, :ticks, [3])) == [0, 1, 2]
    assert Enum.take(Py.stream(:first_class, :ticks, [1000], %{}, window: 2), 2) == [0, 1]
  end

  test "a stream has no other reader" do
    assert_raise Py.Error, ~r/reply_to/, fn -> Py.stream(:first_class, :ticks, [3], %{}, reply_to: self()) end
  end

  test "a window that is no number is refused as any option is" do
    assert_raise Py.Error, ~r/window/, fn -> Enum.to_list(Py.stream(:first_class, :ticks, [3], %{}, window: :wide)) end
  end

  # Structs

  test "a struct is a dict of its fields and comes back as it was" do
    order = %Order{item: "lamp", state: :paid, tags: MapSet.new(["new", 2])}
    assert Py.eval("order", order: order) == {:ok, order}
    assert Py.eval("(order['item'], order['state'] == 'paid', '__struct__' in order)", order: order) == {:ok, {"lamp", true, false}}
    assert Py.eval("(isinstance(order, dict), order.module)", order: order) == {:ok, {true, "FirstClassTest.Order"}}

    :ok = Py.exec("def sell(order):\n    order['price'] += 5\n    order['state'] = None\n    return [order]")
    assert Py.call!(:__main__, :sell, [order]) == [%Order{order | price: 5, state: nil}]

    for value <- [~D[2024-02-29], ~T[10:00:00.123], ~U[2024-02-29 10:00:00Z], ~N[2024-02-29 10:00:00], 1..3, %URI{host: "h", port: 80}] do
      assert Py.eval("value", value: value) == {:ok, value}
      assert Py.eval("{'in': [value]}", value: value) == {:ok, %{"in" => [value]}}
    end
  end

  test "Python makes structs" do
    code = "__import__('erlang').Struct('Date', {'year': 2024, 'month': 2, 'day': 29}, calendar=__import__('erlang').Atom('Elixir.Calendar.ISO'))"
    assert Py.eval(code) == {:ok, ~D[2024-02-29]}
    assert Py.eval("repr(value)", value: 1..2) |> elem(1) =~ "erlang.Struct('Range', {"
    assert {:error, _} = Py.eval("__import__('erlang').Struct('Date', {1: 2})")
  end

  test "a MapSet is a set and comes back as one; any other set is a list" do
    numbers = MapSet.new([1, 2, 3])
    assert Py.eval("(isinstance(value, set), 2 in value, len(value))", value: numbers) == {:ok, {true, true, 3}}
    assert Py.eval("value", value: numbers) == {:ok, numbers}
    assert Py.eval("value", value: MapSet.new()) == {:ok, MapSet.new()}
    assert {:ok, [1]} = Py.eval("value & {1}", value: numbers)
    assert Py.eval("__import__('erlang').MapSet(value | {4})", value: numbers) == {:ok, MapSet.new([1, 2, 3, 4])}
    assert Py.eval("value", value: MapSet.new([%{}])) |> elem(0) == :error
  end

  test "a struct that only looks like one of Elixir's goes back as it came, and changes no other" do
    odd = %{__struct__: MapSet, map: %{}, odd: 1}
    assert Py.eval("value", value: odd) == {:ok, odd}
    assert Py.eval("__import__('erlang').MapSet([1])") == {:ok, MapSet.new([1])}

    for value <- [%{__struct__: MapSet}, %{__struct__: MapSet, map: 1}, %{__struct__: Py.Ref}] do
      assert Py.eval("value", value: value) == {:ok, value}
    end
  end

  test "a struct has a converter of its own, if one is registered" do
    :ok = Py.register_converter(:to_python, FirstClassTest.Day, {:builtins, :sorted})
    day = %{__struct__: FirstClassTest.Day, year: 2024, month: 2, day: 29}
    assert Py.eval("value", value: day) == {:ok, ["day", "month", "year"]}
  end

  test "a map with a key of that name that is text is a map" do
    assert Py.eval("value", value: %{"__struct__" => 1}) == {:ok, %{"__struct__" => 1}}
  end

  # References

  test "a reference shows what it refers to, and is an argument wherever it stands" do
    {:ok, numbers} = Py.eval("[1, 2]", %{}, return: :ref)
    assert inspect(numbers) == "#Py.Ref<[1, 2]>"
    assert Py.is_ref(numbers)
    assert Py.call(:builtins, :len, [numbers]) == {:ok, 2}
    assert Py.eval("value['in'][0] is other", value: %{"in" => [numbers]}, other: numbers) == {:ok, true}
    assert Py.call_method(numbers, :index, [2]) == {:ok, 1}
    assert Py.to_term(numbers) == {:ok, [1, 2]}
    assert Py.getattr(numbers, :__len__) |> elem(0) == :error
    {:ok, append} = Py.eval("value.append", %{value: numbers}, return: :ref)
    assert inspect(append) =~ "#Py.Ref<<built-in method append of list object"
    {:ok, both} = Py.async_gather([{:builtins, :list, []}, {:builtins, :dict, []}], return: :ref)
    assert inspect(both) == "[#Py.Ref<[]>, #Py.Ref<{}>]"
    {:ok, long} = Py.eval("'x' * 1000", %{}, return: :ref)
    assert String.length(inspect(long)) < 100
  end

  test "a reference whose repr takes long, or raises, is shown without it" do
    {:ok, slow} = Py.call(:first_class, :Slow, [], %{}, return: :ref)
    assert inspect(slow) =~ ~r/#Py.Ref<object \d+ of interpreter 0>/
  end

  # Code in a module

  test "~P runs code with the variables of Elixir that it names" do
    numbers = [1, 2, 6]
    factor = 10

    assert ~P"sum(numbers) * factor" == 90
    assert ~P"[n * factor for n in numbers]" == [10, 20, 60]

    result = ~P"""
    import statistics

    def mean(values):
        return statistics.mean(values)

    mean(numbers)
    """

    assert result == 3
    # Its names stay with the process, those of Elixir do not.
    assert ~P"mean([4])" == 4
    assert Py.eval("'numbers' in globals()") == {:ok, false}
    assert ~P"new = 5" == :none
    assert Py.eval("new") == {:ok, 5}
    assert inspect(~P"{1: 2}"r) == "#Py.Ref<{1: 2}>"
  end

  test "an exception in ~P has the file and the line of the source of Elixir" do
    line = __ENV__.line + 1
    error = assert_raise Py.Error, fn -> ~P"1 / 0" end
    assert [%{file: file, line: ^line}] = error.details.traceback
    assert Path.expand(file) == __ENV__.file

    line = __ENV__.line + 5

    error =
      assert_raise Py.Error, fn ->
        ~P"""
        def broken():
            return [1][5]

        broken()
        """
      end

    assert [%{line: call}, %{line: where, function: "broken"}] = error.details.traceback
    assert {call, where} == {line + 3, line + 1}
    message = Exception.message(error)
    assert message =~ "first_class_test.exs\", line #{where}, in broken\n    return [1][5]"
    refute message =~ "_sigil.py"
    refute message =~ "<py:eval>"

    line = __ENV__.line + 1
    error = assert_raise Py.Error, fn -> ~P"1 +" end
    assert Py.Error.type(error) == :SyntaxError
    assert error.details.syntax.line == line
  end

  if Version.match?(System.version(), ">= 1.15.0") do
    test "~PY is the same" do
      assert Code.eval_string("import Py, only: :sigils\nn = 1\n~PY\"n + 1\"") |> elem(0) == 2
    end
  end

  # Children

  test "children of a supervisor" do
    children = [
      {Py.Context, name: :elixir_context, preload: ["json"]},
      {Py.Pool, name: :elixir_pool, size: 2},
      {Py.EventLoop, name: :elixir_loop, driver: :beam},
      {Py.EventLoop.Pool, name: :elixir_loops, size: 2},
      {Py.EventWorker, :elixir_worker},
      {Py.Asgi, app: "first_class_app:app", name: :elixir_server, port: 0, lifespan: :off}
    ]

    :ok =
      Py.exec("""
      import sys, types
      module = types.ModuleType("first_class_app")
      sys.modules["first_class_app"] = module
      async def app(scope, receive, send):
          await send({"type": "http.response.start", "status": 204, "headers": []})
          await send({"type": "http.response.body"})
      module.app = app
      """)

    {:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
    ids = for {id, _, _, _} <- Supervisor.which_children(supervisor), do: id
    assert Enum.sort(ids) == [:elixir_context, :elixir_loop, :elixir_loops, :elixir_pool, :elixir_server, :elixir_worker]
    assert Py.call(:elixir_context, :json, :dumps, [[1]]) == {:ok, "[1]"}
    assert Py.call(:elixir_pool, :math, :sqrt, [4]) == {:ok, 2.0}
    assert Py.EventLoop.Pool.run(:elixir_loops, :asyncio, :sleep, [0, 1]) == {:ok, 1}
    assert Py.Asgi.port(:elixir_server) > 0
    :ok = Supervisor.stop(supervisor)
    assert {:error, {:bad_argument, {:no_such_pool, :elixir_pool}}} = Py.call(:elixir_pool, :math, :sqrt, [4])
    assert Py.Context.child_spec(%{}).id == Py.Context
  end

  test "a start that fails is an error" do
    assert {:error, {:ModuleNotFoundError, _}} = Py.Context.start_link(preload: ["no_such_module"])
    assert {:error, {:bad_argument, _}} = Py.Pool.start_link(size: 2)
  end
end
