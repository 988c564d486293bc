defmodule PyTest do
  use ExUnit.Case
  doctest Py
  doctest Py.Dag

  test "every function of :py has its name in Py, with every arity" do
    erlang = :py.module_info(:exports) -- [module_info: 0, module_info: 1]
    assert erlang -- Py.__info__(:functions) == []
    assert Py.__info__(:functions) -- erlang == []
  end

  test "an exception of Python is an error tuple, and its traceback is kept" do
    assert {:error, {:ZeroDivisionError, "division by zero"}} = Py.eval("1 / 0")
    assert %{formatted: "Traceback" <> _} = Py.last_error()
    assert Py.Error.format({:ZeroDivisionError, "division by zero"}) =~ "ZeroDivisionError"
  end

  test "Elixir's own terms come back in their normal form" do
    assert Py.eval("value", %{value: %{"list" => [1, 2.5, nil, true, :atom]}}) ==
             {:ok, %{"list" => [1, 2.5, :none, true, "atom"]}}
  end

  test "Python calls a function written in Elixir" do
    :ok = Py.register_function(:shout, fn [text] -> String.upcase(text) end)
    assert Py.eval("__import__('erlang').shout('hi')") == {:ok, "HI"}
    :ok = Py.unregister_function(:shout)
  end

  test "a stream arrives as messages" do
    {:ok, ref} = Py.stream_start(:builtins, :range, [2])
    assert_receive {:py_stream, ^ref, {:data, 0}}
    assert_receive {:py_stream, ^ref, {:data, 1}}
    assert_receive {:py_stream, ^ref, :done}
  end

  test "a call that takes too long ends on time" do
    assert Py.call(:time, :sleep, [60], %{}, 50) == {:error, :timeout}
  end

  test "a context keeps its names until it is stopped" do
    {:ok, context} = Py.Context.new(%{})
    :ok = Py.exec(context, "x = 1")
    assert Py.eval(context, "x") == {:ok, 1}
    :ok = Py.Context.stop(context)
    assert {:error, {:context_died, _}} = Py.eval(context, "x")
  end
end
