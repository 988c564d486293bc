"""A loop that other threads use, too: the same on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Callable

    Hammer = Callable[..., list[BaseException]]

Loop = asyncio.AbstractEventLoop


def test_call_soon_threadsafe_wakes_a_loop_that_sleeps(loop: Loop) -> None:
    threads = [
        threading.Timer(0.01, loop.call_soon_threadsafe, (loop.stop,)),
        threading.Thread(target=lambda: [loop.call_soon_threadsafe(int) for _ in range(1000)]),
    ]
    loop.call_later(30, pytest.fail, "nobody woke the loop")
    for thread in threads:
        thread.start()
    loop.run_forever()
    for thread in threads:
        thread.join()


def test_many_threads_lose_no_callback(loop: Loop) -> None:
    count, ran = 2000, 0

    def one() -> None:
        nonlocal ran
        ran += 1
        if ran == 4 * count:
            loop.stop()

    def post() -> None:
        for _ in range(count):
            loop.call_soon_threadsafe(one)

    threads = [threading.Thread(target=post) for _ in range(4)]
    for thread in threads:
        thread.start()
    loop.run_forever()
    for thread in threads:
        thread.join()
    assert ran == 4 * count


def test_call_soon_from_a_foreign_thread_is_safe_without_debug() -> None:
    loop = erlang.new_event_loop()
    ran: list[int] = []

    def elsewhere() -> None:
        for number in range(100):
            loop.call_soon(ran.append, number)
            loop.call_later(60, ran.append, number).cancel()
        loop.call_later(0.001, loop.stop)

    thread = threading.Thread(target=elsewhere)
    loop.call_later(0.001, thread.start)
    loop.run_forever()
    thread.join()
    assert ran == list(range(100))
    loop.close()


def test_handles_are_cancelled_looked_at_and_run_by_several_threads_at_once(
    loop: Loop, hammer: Hammer
) -> None:
    handles: list[asyncio.Handle] = []
    ran: list[int] = []

    def post() -> None:
        for _ in range(20):
            handles.append(loop.call_soon_threadsafe(ran.append, 1))

    def look() -> None:
        for handle in handles[-20:]:
            repr(handle)
            handle.cancelled()
            handle.cancel()

    async def main() -> list[BaseException]:
        return await asyncio.to_thread(hammer, post, look, rounds=300)

    assert loop.run_until_complete(main()) == []
    assert len(handles) == 2 * 300 * 20
    assert all(handle.cancelled() for handle in handles) or ran


class Echo(asyncio.Protocol):
    transport: Any

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


def test_a_transport_in_use_may_be_asked_by_other_threads(loop: Loop, hammer: Hammer) -> None:
    async def main() -> list[BaseException]:
        mine, theirs = socket.socketpair()
        transport, _ = await loop.create_connection(Echo, sock=mine)
        reader, writer = await asyncio.open_connection(sock=theirs)
        used = asyncio.create_task(use(reader, writer))

        def ask() -> None:
            assert transport.is_closing() is False
            assert transport.get_extra_info("socket") is not None
            assert transport.get_extra_info("no such thing", 7) == 7
            assert transport.get_write_buffer_size() >= 0
            assert transport.get_write_buffer_limits()[0] > 0
            assert transport.is_reading() is True
            assert isinstance(transport.get_protocol(), Echo)
            assert repr(transport)

        failures = await asyncio.to_thread(hammer, ask, rounds=300)
        used.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await used
        transport.close()
        writer.close()
        await writer.wait_closed()
        return failures

    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x" * 10_000)
            await reader.readexactly(10_000)

    assert loop.run_until_complete(main()) == []


def test_closing_from_another_thread_loses_the_connection_once(hammer: Hammer) -> None:
    # asyncio's transports are not made for that.
    loop = erlang.new_event_loop()
    lost: list[BaseException | None] = []

    class Counting(asyncio.Protocol):
        def connection_lost(self, error: BaseException | None) -> None:
            lost.append(error)

    async def main() -> list[BaseException]:
        failures = []
        for _ in range(20):
            mine, theirs = socket.socketpair()
            transport, _ = await loop.create_connection(Counting, sock=mine)
            with theirs:
                failures += await asyncio.to_thread(hammer, transport.close, rounds=3)
                theirs.setblocking(False)
                assert await loop.sock_recv(theirs, 1) == b""
        return failures

    assert loop.run_until_complete(asyncio.wait_for(main(), 60)) == []
    assert lost == [None] * 20
    loop.close()


@pytest.mark.parametrize("method", ["close", "abort"])
def test_closing_from_another_thread_wakes_a_loop_that_sleeps(method: str) -> None:
    # asyncio's transports are not made for that.
    loop = erlang.new_event_loop()
    late: list[int] = []

    class Tells(asyncio.Protocol):
        def connection_lost(self, error: BaseException | None) -> None:
            loop.stop()

    mine, theirs = socket.socketpair()
    with theirs:
        transport, _ = loop.run_until_complete(loop.create_connection(Tells, sock=mine))
        # Not by the loop's executor: that would wake the loop, too.
        thread = threading.Timer(0.01, getattr(transport, method))
        loop.call_soon(thread.start)
        loop.call_later(20, late.append, 1)
        loop.call_later(20, loop.stop)
        loop.run_forever()
        thread.join()
    assert late == []
    loop.close()


STREAM = {
    "write": [b"x"],
    "writelines": [[b"x"]],
    "write_eof": [],
    "pause_reading": [],
    "resume_reading": [],
    "set_protocol": [asyncio.Protocol()],
    "set_write_buffer_limits": [1],
}


@pytest.mark.parametrize("method", STREAM)
def test_a_stream_in_use_refuses_other_threads(method: str) -> None:
    # asyncio's own does what it is told, at some time or other.
    loop = erlang.new_event_loop()

    async def main() -> None:
        mine, theirs = socket.socketpair()
        transport, _ = await loop.create_connection(Echo, sock=mine)
        reader, writer = await asyncio.open_connection(sock=theirs)
        with pytest.raises(RuntimeError, match="Non-thread-safe operation"):
            await asyncio.to_thread(getattr(transport, method), *STREAM[method])
        # Nothing has come of it.
        writer.write(b"question")
        assert await reader.readexactly(8) == b"question"
        writer.close()
        await writer.wait_closed()
        transport.close()

    loop.run_until_complete(asyncio.wait_for(main(), 30))
    loop.close()


@pytest.mark.parametrize("method", ["sendto", "set_protocol", "set_write_buffer_limits"])
def test_an_endpoint_in_use_refuses_other_threads(method: str) -> None:
    loop = erlang.new_event_loop()
    args: dict[str, list[Any]] = {"sendto": [b"x", ("127.0.0.1", 9)], "set_protocol": [None]}

    async def main() -> None:
        made = loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0))
        transport, _ = await made
        with pytest.raises(RuntimeError, match="Non-thread-safe operation"):
            await asyncio.to_thread(getattr(transport, method), *args.get(method, [1]))
        transport.close()

    loop.run_until_complete(asyncio.wait_for(main(), 30))
    loop.close()


def test_a_transport_whose_loop_rests_is_for_any_thread() -> None:
    loop = erlang.new_event_loop()
    mine, theirs = socket.socketpair()
    with theirs:
        transport, _ = loop.run_until_complete(loop.create_connection(Echo, sock=mine))
        refused: list[BaseException] = []

        def use() -> None:
            try:
                for method, args in STREAM.items():
                    getattr(transport, method)(*args)
                transport.close()
            except BaseException as error:
                refused.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert refused == []
        loop.run_until_complete(asyncio.sleep(0))
        assert theirs.recv(10) == b"xx"
        loop.close()


def test_one_of_several_threads_runs_a_loop_and_the_others_are_told() -> None:
    # With asyncio's loop the first that is told makes it run in all the others.
    loop = erlang.new_event_loop()
    refused: list[RuntimeError] = []
    begun = threading.Event()
    loop.call_soon(begun.set)

    def run() -> None:
        try:
            loop.run_forever()
        except RuntimeError as error:
            refused.append(error)

    first = threading.Thread(target=run)
    first.start()
    begun.wait(20)
    others = [threading.Thread(target=run) for _ in range(4)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    with pytest.raises(RuntimeError, match="running"):
        loop.close()
    # The one that runs it has not noticed: it still goes by the inbox.
    loop.call_soon_threadsafe(loop.stop)
    first.join()
    assert len(refused) == 4
    assert not loop.is_running()
    loop.close()


def test_loops_in_several_threads_at_once_have_nothing_in_common(hammer: Hammer) -> None:
    def one() -> None:
        async def main() -> None:
            mine, theirs = socket.socketpair()
            transport, _ = await asyncio.get_running_loop().create_connection(Echo, sock=mine)
            reader, writer = await asyncio.open_connection(sock=theirs)
            for _ in range(20):
                writer.write(b"x" * 1000)
                assert await reader.readexactly(1000) == b"x" * 1000
                await asyncio.sleep(0)
            writer.close()
            transport.close()
            await writer.wait_closed()

        erlang.run(main())

    assert hammer(one, one, rounds=10) == []
