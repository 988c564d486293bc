# Live tokens: a process streams the tokens of a generator to a subscriber, which goes away in the middle of it.
#
# Run: ./dev build, then
#      mix run -r examples/live_tokens/live_tokens.ex examples/live_tokens/live_tokens.exs

defmodule Demo do
  # The browser: shows ten tokens, and is closed.
  def browser(supervisor) do
    {:ok, live} = DynamicSupervisor.start_child(supervisor, {LiveTokens, self()})
    LiveTokens.ask(live, "Why Erlang")
    Enum.each(1..10, fn _ -> show(live) end)
    live
  end

  defp show(live) do
    receive do
      {:live_tokens, ^live, {:token, token}} -> IO.write(token)
    end
  end

  def wait_for_end(live) do
    monitor = Process.monitor(live)

    receive do
      {:DOWN, ^monitor, :process, ^live, _reason} -> :ok
    end
  end

  # A generator is closed as soon as it gives its thread away.
  def wait_for_generator do
    if Py.eval!("__import__('model').writing") > 0 do
      Process.sleep(10)
      wait_for_generator()
    end
  end
end

{:ok, _} = Application.ensure_all_started(:erlang_python)
{:ok, _} = Py.call(:sys, :"path.append", [__DIR__])
{:ok, supervisor} = DynamicSupervisor.start_link(strategy: :one_for_one)

live = Task.await(Task.async(fn -> Demo.browser(supervisor) end))
:ok = Demo.wait_for_end(live)
IO.puts("\nthe process ended with its subscriber")
Demo.wait_for_generator()
IO.puts("nobody writes any more")
