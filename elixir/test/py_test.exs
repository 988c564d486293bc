defmodule PyTest do
  use ExUnit.Case
  doctest Py
  doctest Py.Channel
  doctest Py.Dag
  doctest Py.EventLoop
  doctest Py.Pg

  # What OTP and the application itself call.
  @behaviours [module_info: 0, module_info: 1, init: 1, terminate: 2] ++
                [handle_call: 3, handle_cast: 2, handle_info: 2]
  @pairs [
    {Py, :py, []},
    {Py.Asgi, :py_asgi, []},
    {Py.Channel, :py_channel,
     [new: 2, await_value: 2, forget: 2, give_back: 2, new_table: 0, start_link: 2]},
    {Py.Context, :py_context, [default: 1, interrupt: 1, begin_link: 1, subinterp_link: 0]},
    {Py.Dag, :py_dag, []},
    {Py.Error, :py_error, [format_error: 2]},
    {Py.EventLoop, :py_event_loop, [begin_link: 0]},
    {Py.EventLoop.Pool, :py_event_loop_pool,
     [start_main: 1, loop_of: 1, is_up: 2, is_down: 1, stats: 1]},
    {Py.EventRouter, :py_event_router, []},
    {Py.EventWorker, :py_event_worker, []},
    {Py.Pg, :py_pg, [scope: 1, start_link: 0]},
    {Py.Pool, :py_pool, [begin_link: 2, begin_link: 3, register: 2, unregister: 1]},
    {Py.ReactorContext, :py_reactor_context, []},
    {Py.Wsgi, :py_wsgi, []}
  ]

  # What Elixir has for itself.
  @own %{
    Py => [ref: 1],
    Py.Error => [__struct__: 0, __struct__: 1, exception: 1, message: 1, type: 1]
  }

  for {elixir, erlang, internal} <- @pairs do
    own = Map.get(@own, elixir, [])

    test "every function of #{inspect(erlang)} has its name in #{inspect(elixir)}, with every arity" do
      public = unquote(erlang).module_info(:exports) -- @behaviours
      assert unquote(internal) -- public == []

      {raising, plain} =
        Enum.split_with(unquote(elixir).__info__(:functions), fn {name, _} ->
          String.ends_with?(to_string(name), "!")
        end)

      assert Enum.sort(public -- unquote(internal)) ==
               Enum.sort(plain -- unquote(own))

      for {name, arity} <- raising do
        assert {:"#{String.trim_trailing(to_string(name), "!")}", arity} in plain
      end
    end
  end

  test "everything public has a doc and a spec" do
    {:ok, modules} = :application.get_key(:erlang_python, :modules)
    elixir = Enum.filter(modules, &String.starts_with?(to_string(&1), "Elixir.Py"))
    assert Py in elixir

    for module <- elixir, {:docs_v1, _, _, _, doc, _, docs} = Code.fetch_docs(module), doc != :hidden do
      refute doc == :none, "#{inspect(module)} has no moduledoc"
      {:ok, specs} = Code.Typespec.fetch_specs(module)
      specified = Enum.map(specs, &elem(&1, 0))

      documented =
        for {{:function, name, arity}, _, _, doc, meta} <- docs,
            doc != :none,
            fewer <- 0..Map.get(meta, :defaults, 0),
            do: {name, arity - fewer}

      public = module.__info__(:functions) -- [__struct__: 0, __struct__: 1, exception: 1, message: 1]
      assert {module, public -- documented} == {module, []}
      assert {module, public -- specified} == {module, []}
    end
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

  # A module of Python that can be imported.
  defp python_module(name, code) do
    :ok =
      Py.exec("""
      import sys, types
      sys.modules['#{name}'] = types.ModuleType('#{name}')
      """)

    {:ok, _} = Py.eval("exec(code, vars(sys.modules[name]))", %{name: name, code: code})
    name
  end

  test "an ASGI application answers one request, and is served" do
    module =
      python_module("elixir_asgi", """
      async def app(scope, receive, send):
          await send({"type": "http.response.start", "status": 200, "headers": []})
          await send({"type": "http.response.body", "body": scope["path"].encode()})
      """)

    assert Py.Asgi.run(module, :app, %{path: "/a"}, "") == {:ok, {200, [], "/a"}}
    {:ok, ref} = Py.Asgi.run_async(module, :app, %{path: "/b"}, "")
    assert Py.Asgi.await_response(ref) == {:ok, {200, [], "/b"}}

    {:ok, server} = Py.Asgi.serve("elixir_asgi:app", %{port: 0, lifespan: :off})
    assert Py.Asgi.port(server) > 0
    assert {:ok, %{connections: 0}} = Py.Asgi.info(server)
    assert Py.Asgi.stop(server) == :ok
  end

  test "a WSGI application answers" do
    assert {:ok, {200, _, "Hello world!" <> _}} =
             Py.Wsgi.run(:"wsgiref.simple_server", :demo_app, %{})
  end

  test "a loop of one's own runs a coroutine, and the pool another" do
    {:ok, loop} = Py.EventLoop.start_link()
    request = %{module: :asyncio, func: :sleep, args: [0, 1]}
    {:ok, ref} = Py.EventLoop.run_async(loop, request)
    assert Py.EventLoop.await(ref) == {:ok, 1}

    task = Py.EventLoop.Pool.create_task(:asyncio, :sleep, [0, 2])
    assert Py.EventLoop.Pool.await(task) == {:ok, 2}
    assert [%{started: _} | _] = Py.EventLoop.Pool.get_stats()
  end

  test "a raw loop tells of its timers, by a router and by a worker" do
    {:ok, loop} = :py_nif.event_loop_new()
    {:ok, router} = Py.EventRouter.start_link(loop, %{notify: self()})
    {:ok, _} = :py_nif.call_later(loop, 0, 7)
    assert_receive {:py_events, ^loop, [{7, :timer}]}, 5000
    assert Py.EventRouter.stop(router) == :ok
    :ok = :py_nif.event_loop_destroy(loop)

    {:ok, worker} = Py.EventWorker.start_link("timers")
    {:ok, id} = Py.EventWorker.call_later(worker, 0)
    assert_receive {:py_event, ^worker, ^id, :timer}, 5000
    assert Py.EventWorker.stop(worker) == :ok
  end

  test "a reactor context counts its connections" do
    module =
      python_module("elixir_reactor", """
      import erlang.reactor

      class Silent(erlang.reactor.Protocol):
          pass
      """)

    {:ok, context} = Py.ReactorContext.start_link(%{protocol: {module, :Silent}})
    assert {:ok, %{"connections" => 0}} = Py.ReactorContext.info(context)
    assert Py.ReactorContext.stop(context) == :ok
  end
end
