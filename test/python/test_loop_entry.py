"""The ways to a loop: run, Runner, policy, install, threads, and the older names."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING

import pytest

import erlang
import erlang_asyncio
import erlang_loop

if TYPE_CHECKING:
    from collections.abc import Iterator


async def loop_class() -> type:
    return type(asyncio.get_running_loop())


@pytest.fixture
def default_policy() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.set_event_loop_policy(None)


def test_run_runs_on_an_erlang_event_loop() -> None:
    assert erlang.run(loop_class()) is erlang.ErlangEventLoop
    assert erlang.run(loop_class(), debug=True) is erlang.ErlangEventLoop
    with asyncio.Runner(loop_factory=erlang.new_event_loop) as runner:
        assert runner.run(loop_class()) is erlang.ErlangEventLoop


def test_where_there_are_no_policies_install_says_what_to_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("erlang._run.ErlangEventLoopPolicy", type("Nothing", (), {}))
    with pytest.raises(RuntimeError, match=r"use erlang\.run\(main\(\)\)"):
        erlang.install()


def test_the_older_names_do_what_asyncio_does() -> None:
    async def give(value: int, *gates: asyncio.Event) -> int:
        for gate in gates:
            await gate.wait()
        return value

    async def fail() -> None:
        raise KeyError

    async def main() -> None:
        never, module = asyncio.Event(), erlang_asyncio
        tasks = [module.ensure_future(give(1)), module.create_task(give(2, never))]
        done, pending = await module.wait(tasks, return_when=module.FIRST_COMPLETED)
        assert (done, pending) == ({tasks[0]}, {tasks[1]})
        tasks[0] = module.ensure_future(fail())
        done, pending = await module.wait(tasks, return_when=module.FIRST_EXCEPTION)
        assert (done, pending) == ({tasks[0]}, {tasks[1]})
        assert isinstance(tasks[0].exception(), KeyError)
        outer = module.ensure_future(module.shield(tasks[1]))
        await module.sleep(0)
        outer.cancel()
        with pytest.raises(module.CancelledError):
            await outer
        never.set()
        assert await tasks[1] == 2

    erlang_asyncio.run(main())


def test_run_refuses_to_nest() -> None:
    async def main() -> None:
        coroutine = loop_class()
        with pytest.raises(RuntimeError, match="running"):
            erlang.run(coroutine)
        coroutine.close()

    erlang.run(main())


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="asyncio's policies are deprecated")
@pytest.mark.usefixtures("default_policy")
def test_a_policy_gives_asyncio_our_loop() -> None:
    asyncio.set_event_loop_policy(erlang.EventLoopPolicy())
    assert asyncio.run(loop_class()) is erlang.ErlangEventLoop
    assert erlang.EventLoopPolicy is erlang.ErlangEventLoopPolicy
    assert isinstance(erlang_loop.get_event_loop_policy(), erlang.EventLoopPolicy)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="asyncio's policies are deprecated")
@pytest.mark.usefixtures("default_policy")
def test_install_works_and_says_that_it_is_deprecated() -> None:
    if sys.version_info >= (3, 12):
        with pytest.warns(DeprecationWarning, match=r"erlang\.run"):
            erlang.install()
    else:
        erlang.install()
    assert asyncio.run(loop_class()) is erlang.ErlangEventLoop


def test_isolated_is_accepted() -> None:
    for isolated in (True, False):
        erlang.ErlangEventLoop(isolated=isolated).close()
    assert erlang_loop.ErlangEventLoop is erlang.ErlangEventLoop


def test_this_interpreter_shares_its_gil() -> None:
    free = not getattr(sys, "_is_gil_enabled", lambda: True)()
    mode = erlang.ExecutionMode.FREE_THREADED if free else erlang.ExecutionMode.SHARED_GIL
    assert erlang.detect_mode() is mode


def test_loops_run_in_many_threads_at_once() -> None:
    async def main(number: int) -> int:
        for _ in range(100):
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        return number

    results: dict[int, int] = {}

    def run(number: int) -> None:
        results[number] = erlang.run(main(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: number for number in range(10)}


def test_the_older_names_work_and_are_concurrent() -> None:
    async def main() -> list[int]:
        began = time.monotonic()
        results = await erlang_asyncio.gather(
            *(erlang_asyncio.sleep(0.1, result=number) for number in range(100))
        )
        # One after another they would take 10 s.
        assert time.monotonic() - began < 5
        with pytest.raises(erlang_asyncio.TimeoutError):
            await erlang_asyncio.wait_for(erlang_asyncio.sleep(10), timeout=0.01)
        with pytest.raises(erlang_asyncio.TimeoutError):
            async with erlang_asyncio.timeout(0.01):
                await erlang_asyncio.sleep(10)
        tasks = [erlang_asyncio.create_task(erlang_asyncio.sleep(0.001)) for _ in range(3)]
        done, pending = await erlang_asyncio.wait(tasks, return_when=erlang_asyncio.ALL_COMPLETED)
        assert (len(done), len(pending)) == (3, 0)
        assert erlang_asyncio.get_running_loop() is erlang_asyncio.get_event_loop()
        return results

    assert erlang_asyncio.run(main()) == list(range(100))


def test_get_event_loop_makes_one_if_needed() -> None:
    def check() -> None:
        loop = erlang_asyncio.get_event_loop()
        assert isinstance(loop, erlang.ErlangEventLoop)
        assert erlang_asyncio.get_event_loop() is loop
        loop.close()
        other = erlang_asyncio.get_event_loop()
        assert other is not loop
        other.close()
        erlang_asyncio.set_event_loop(None)

    failures: list[BaseException] = []

    def run() -> None:
        try:
            check()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert failures == []


def test_what_needs_a_node_says_so() -> None:
    code = "import erlang; erlang.call('f')"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "NotInNode" in failed.stderr
