"""Trio as a guest of asyncio's loop and of ours: both run in one thread, each wakes the other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import trio

import erlang
from erlang import _trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Loop = asyncio.AbstractEventLoop


def as_guest(loop: Loop, main: Callable[[], Awaitable[Any]]) -> Any:
    """Runs Trio's `main` on the loop until it is done; its result."""

    async def host() -> Any:
        done = loop.create_future()
        trio.lowlevel.start_guest_run(
            main,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=loop.call_soon,
            done_callback=done.set_result,
            host_uses_signal_set_wakeup_fd=True,
        )
        async with asyncio.timeout(120):
            outcome = await done
        return outcome.unwrap()

    return loop.run_until_complete(host())


@pytest.mark.smoke
def test_both_sleep_and_talk_to_each_other(loop: Loop) -> None:
    to_asyncio: asyncio.Queue[int] = asyncio.Queue()
    to_trio, from_asyncio = trio.open_memory_channel[int](100)
    got: list[int] = []

    async def asyncio_side() -> None:
        while (item := await to_asyncio.get()) >= 0:
            await asyncio.sleep(0.001)
            to_trio.send_nowait(item + 1)
        to_trio.close()

    async def trio_side() -> str:
        other = loop.create_task(asyncio_side())
        for item in range(20):
            await trio.sleep(0.001)
            to_asyncio.put_nowait(item)
        to_asyncio.put_nowait(-1)
        async for item in from_asyncio:
            got.append(item)
        while not other.done():
            await trio.sleep(0)
        return "done"

    assert as_guest(loop, trio_side) == "done"
    assert got == list(range(1, 21))


def test_sockets_of_one_are_served_by_the_other(loop: Loop) -> None:
    async def trio_server(task_status: Any) -> None:
        async def answer(stream: trio.SocketStream) -> None:
            async for data in stream:
                await stream.send_all(bytes(data)[::-1])

        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        task_status.started(port)
        await trio.serve_listeners(answer, listeners)

    async def asyncio_client(port: int, number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for size in (1, 10, 1000):
            body = bytes([number]) * size + b"!"
            writer.write(body)
            assert await reader.readexactly(size + 1) == body[::-1]
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            port = await nursery.start(trio_server)
            done = trio.Event()
            clients = loop.create_task(asyncio_clients(port))
            clients.add_done_callback(lambda _: done.set())
            await done.wait()
            clients.result()
            nursery.cancel_scope.cancel()

    async def asyncio_clients(port: int) -> None:
        await asyncio.gather(*(asyncio_client(port, number) for number in range(20)))

    as_guest(loop, main)


def test_an_exception_of_the_guest_reaches_the_host(loop: Loop) -> None:
    async def main() -> None:
        await trio.to_thread.run_sync(lambda: None)
        with trio.move_on_after(0.01):
            await trio.sleep_forever()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        as_guest(loop, main)
    assert loop.run_until_complete(asyncio.sleep(0, "alive")) == "alive"


@pytest.mark.smoke
def test_run_trio_makes_the_loop_and_gives_the_value() -> None:
    async def main(one: int, other: int) -> list[object]:
        await trio.sleep(0.001)
        loop = asyncio.get_running_loop()
        return [one + other, type(loop).__name__, trio.lowlevel.in_trio_task()]

    assert erlang.run_trio(main, 1, 2) == [3, "ErlangEventLoop", True]


def test_run_trio_raises_what_main_raised() -> None:
    async def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        erlang.run_trio(main)


def test_erlang_sleep_is_trios_own_in_a_task_of_trio() -> None:
    async def main() -> None:
        with trio.fail_after(60), trio.move_on_after(0.01) as scope:
            await erlang.sleep(3600)
        assert scope.cancelled_caught

    erlang.run_trio(main)
    trio.run(main)


def test_what_needs_a_node_says_so_to_trio_too() -> None:
    async def main() -> None:
        with pytest.raises(erlang.NotInNode):
            await erlang.async_call("anything")

    erlang.run_trio(main)
    trio.run(main)


@pytest.mark.parametrize("again", [False, True])
def test_cancelled_the_host_cancels_its_guest(again: bool) -> None:
    """Once, or a second time while the guest still cleans up."""
    ended = []

    async def guest() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.01)
            ended.append("guest")

    async def main() -> None:
        task = asyncio.create_task(_trio._host(guest, ()))
        for _ in range(1 + again):
            await asyncio.sleep(0.002)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    erlang.run(main())
    assert ended == ["guest"]


def test_a_guest_spawns_tasks_of_asyncio() -> None:
    async def other() -> str:
        await asyncio.sleep(0.001)
        return type(asyncio.current_task()).__name__

    async def main() -> object:
        done = trio.Event()
        task = erlang.spawn_task(other())
        task.add_done_callback(lambda _: done.set())
        await done.wait()
        return task.result()

    assert erlang.run_trio(main) == "Task"
