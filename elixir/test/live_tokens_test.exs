defmodule LiveTokensTest do
  use ExUnit.Case

  @compile {:no_warn_undefined, LiveTokens}

  @example Path.expand("../../examples/live_tokens", __DIR__)

  setup_all do
    [{LiveTokens, _}] = Code.require_file(Path.join(@example, "live_tokens.ex"))
    {:ok, _} = Py.call(:sys, :"path.append", [@example])
    :ok
  end

  defp writing, do: Py.eval!("__import__('model').writing")

  defp eventually(fun, left \\ 1000) do
    cond do
      fun.() -> :ok
      left == 0 -> flunk("never")
      true -> Process.sleep(10) && eventually(fun, left - 1)
    end
  end

  defp texts(live, n) do
    for _ <- 1..n do
      assert_receive {:live_tokens, ^live, {:token, token}}, 5000
      token
    end
  end

  test "tokens come one after another, and another question takes the place of the first" do
    live = start_supervised!({LiveTokens, self()})
    LiveTokens.ask(live, "one")
    assert ["one?", " " <> _] = texts(live, 2)
    LiveTokens.ask(live, "two")
    # What was sent before is behind us when the second answer begins.
    eventually(fn -> texts(live, 1) == ["two?"] end)
    eventually(fn -> writing() == 1 end)
    stop_supervised!(LiveTokens)
    eventually(fn -> writing() == 0 end)
  end

  test "the generator is closed when the subscriber goes" do
    test = self()

    subscriber =
      spawn(fn ->
        {:ok, live} = LiveTokens.start_link(self())
        LiveTokens.ask(live, "gone")
        send(test, {:first, live, texts(live, 1)})
      end)

    Process.monitor(subscriber)
    assert_receive {:first, live, ["gone?"]}, 5000
    monitor = Process.monitor(live)
    assert_receive {:DOWN, _, :process, ^subscriber, :normal}
    assert_receive {:DOWN, ^monitor, :process, ^live, _}, 5000
    eventually(fn -> writing() == 0 end)
  end

  test "an exception is a sentence for the subscriber" do
    live = start_supervised!({LiveTokens, self()})
    LiveTokens.ask(live, [1])
    assert texts(live, 1) == ["[1]?"]
    assert_receive {:live_tokens, ^live, {:error, sentence}}, 5000
    assert sentence =~ "TypeError"
  end
end
