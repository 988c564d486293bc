"""sock_recv, sock_sendall, sock_accept and their relatives, on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
from typing import TYPE_CHECKING

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

Loop = asyncio.AbstractEventLoop
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.setblocking(False)
        theirs.setblocking(False)
        yield mine, theirs


LARGE = 1_000_000


async def drain(loop: Loop, sock: socket.socket) -> None:
    left = LARGE
    while left:
        left -= len(await loop.sock_recv(sock, left))


def run(loop: Loop, main: Callable[[Loop], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await main(loop)

    loop.run_until_complete(limited())


def test_data_that_is_there_and_data_that_comes_later(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        theirs.send(b"there")
        assert await loop.sock_recv(mine, 100) == b"there"
        later = asyncio.create_task(loop.sock_recv(mine, 3))
        await asyncio.sleep(0.001)
        theirs.send(b"later")
        assert await later == b"lat"
        memory = bytearray(10)
        assert await loop.sock_recv_into(mine, memory) == 2
        waiting = asyncio.create_task(loop.sock_recv_into(mine, memory))
        await asyncio.sleep(0)
        theirs.send(b"into")
        assert await waiting == 4
        assert memory[:4] == b"into"
        theirs.close()
        assert await loop.sock_recv(mine, 100) == b""

    run(loop, main)


def test_a_buffer_that_grows_while_it_is_received_into_is_filled(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        memory = bytearray(b"....")
        waiting = asyncio.create_task(loop.sock_recv_into(mine, memory))
        await asyncio.sleep(0)
        try:
            # Far more than there is room for: it moves.
            memory.extend(b"more" * 100_000)
            grown = b"more" * 100_000
        except BufferError:
            grown = b""
        theirs.send(b"into")
        assert await waiting == 4
        assert memory == b"into" + grown

    run(loop, main)


def test_more_than_the_system_takes_is_sent_in_the_end(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair
    data = os.urandom(3_000_000)

    async def main(loop: Loop) -> None:
        async def collect() -> bytes:
            got = b""
            while len(got) < 2 * len(data):
                got += await loop.sock_recv(theirs, 1 << 20)
            return got

        collecting = asyncio.create_task(collect())
        await loop.sock_sendall(mine, data)
        await loop.sock_sendall(mine, memoryview(data))
        assert await collecting == data * 2

    run(loop, main)


def test_a_cancelled_receive_takes_no_data(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        for _ in range(3):
            task = asyncio.create_task(loop.sock_recv(mine, 10))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        theirs.send(b"for the next")
        await asyncio.sleep(0.005)
        assert await loop.sock_recv(mine, 100) == b"for the next"

    run(loop, main)


def test_reading_and_writing_wait_at_the_same_time(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        reading = asyncio.create_task(loop.sock_recv(mine, 10))
        writing = asyncio.create_task(loop.sock_sendall(mine, bytes(2_000_000)))
        await asyncio.sleep(0.001)
        theirs.send(b"x")
        assert await reading == b"x"
        got = 0
        while got < 2_000_000:
            got += len(await loop.sock_recv(theirs, 1 << 20))
        await writing

    run(loop, main)


def test_a_number_used_again_is_a_new_socket(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        for number in range(5):
            mine, theirs = socket.socketpair()
            with mine, theirs:
                mine.setblocking(False)
                waiting = asyncio.create_task(loop.sock_recv(mine, 10))
                await asyncio.sleep(0)
                theirs.send(b"%d" % number)
                assert await waiting == b"%d" % number

    run(loop, main)


def test_callbacks_may_watch_what_was_waited_for(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        waiting = asyncio.create_task(loop.sock_recv(mine, 10))
        await asyncio.sleep(0)
        theirs.send(b"x")
        assert await waiting == b"x"
        called = loop.create_future()
        loop.add_reader(mine, lambda: called.done() or called.set_result(mine.recv(10)))
        theirs.send(b"y")
        assert await called == b"y"
        loop.remove_reader(mine)
        waiting = asyncio.create_task(loop.sock_recv(mine, 10))
        await asyncio.sleep(0)
        theirs.send(b"z")
        assert await waiting == b"z"

    run(loop, main)


def test_callbacks_of_one_way_leave_alone_who_waits_the_other_way(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        receiving = asyncio.create_task(loop.sock_recv(mine, 10))
        await asyncio.sleep(0)
        writable, readable = asyncio.Event(), asyncio.Event()
        loop.add_writer(mine, writable.set)
        await writable.wait()
        assert loop.remove_writer(mine)
        theirs.send(b"data")
        assert await receiving == b"data"

        def read() -> None:
            assert mine.recv(10) == b"more"
            readable.set()

        for _ in range(2):
            loop.add_reader(mine, read)
            sending = asyncio.create_task(loop.sock_sendall(mine, bytes(LARGE)))
            await asyncio.sleep(0)
            theirs.send(b"more")
            await readable.wait()
            readable.clear()
            assert not sending.done()
            await drain(loop, theirs)
            await sending
            theirs.send(b"more")
            await readable.wait()
            readable.clear()
            assert loop.remove_reader(mine)
            assert not loop.remove_reader(mine)

    run(loop, main)


def test_who_sends_takes_the_place_of_a_writer(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                mine.send(bytes(LARGE))
        loop.add_writer(mine, pytest.fail, "it was replaced")
        sending = asyncio.create_task(loop.sock_sendall(mine, b"end"))
        await asyncio.sleep(0)
        while not sending.done():
            await loop.sock_recv(theirs, LARGE)
        await sending
        assert not loop.remove_writer(mine)

    run(loop, main)


def futures() -> int:
    gc.collect()
    return sum(type(found) is asyncio.Future for found in gc.get_objects())


def test_who_was_cancelled_leaves_nothing_behind(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
            listener.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    mine.send(bytes(LARGE))
            waits: list[Callable[[], Awaitable[object]]] = [
                lambda: loop.sock_accept(listener),
                lambda: loop.sock_recv(mine, 1),
                lambda: loop.sock_recv_into(mine, bytearray(1)),
                lambda: loop.sock_sendall(mine, b"x"),
            ]
            # One of them waits on: the others are told from it.
            stays = asyncio.create_task(loop.sock_recv(mine, 1))
            await asyncio.sleep(0)
            before = futures()
            for wait in waits[: 4 if isinstance(loop, erlang.ErlangEventLoop) else 1]:
                tasks = [asyncio.ensure_future(wait()) for _ in range(50)]
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                del task, tasks
                assert futures() <= before + 2
            # Also where the socket was closed meanwhile.
            other, end = (stack.enter_context(side) for side in socket.socketpair())
            other.setblocking(False)
            closed = asyncio.create_task(loop.sock_recv(other, 1))
            await asyncio.sleep(0)
            other.close()
            end.close()
            closed.cancel()
            await asyncio.wait([closed])
            del closed
            assert futures() <= before + 2
            theirs.send(b"x")
            if isinstance(loop, erlang.ErlangEventLoop):
                assert await stays == b"x"

    run(loop, main)


def test_connect_and_accept(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            listener.setblocking(False)
            client.setblocking(False)
            accepting = asyncio.create_task(loop.sock_accept(listener))
            await asyncio.sleep(0)
            await loop.sock_connect(client, listener.getsockname())
            connection, address = await accepting
            with connection:
                assert address == client.getsockname()
                assert connection.gettimeout() == 0
                await loop.sock_sendall(connection, b"hello")
                assert await loop.sock_recv(client, 10) == b"hello"

    run(loop, main)


def test_errors_of_the_system_arrive(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair

    async def main(loop: Loop) -> None:
        theirs.close()
        with pytest.raises(BrokenPipeError):
            await loop.sock_sendall(mine, b"x")
        with socket.socket() as unconnected:
            unconnected.setblocking(False)
            with pytest.raises(OSError, match="not connected"):
                await loop.sock_recv(unconnected, 10)

    run(loop, main)


def test_datagrams_of_a_socket(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        kind = (socket.AF_INET, socket.SOCK_DGRAM)
        with socket.socket(*kind) as one, socket.socket(*kind) as two:
            for sock in (one, two):
                sock.bind(("127.0.0.1", 0))
                sock.setblocking(False)
            waiting = asyncio.create_task(loop.sock_recvfrom(one, 100))
            await asyncio.sleep(0)
            await loop.sock_sendto(two, b"x", one.getsockname())
            assert await waiting == (b"x", two.getsockname())

    run(loop, main)


def test_a_socket_that_blocks_is_refused_in_debug_mode(loop: Loop) -> None:
    loop.set_debug(True)

    async def main(loop: Loop) -> None:
        with socket.socket() as sock, pytest.raises(ValueError, match="non-blocking"):
            await loop.sock_recv(sock, 1)

    run(loop, main)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_socket_connects_to_a_number_and_to_a_name(loop: Loop, host: str) -> None:
    async def main(loop: Loop) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as mine:
            mine.setblocking(False)
            listener.setblocking(False)
            accepted = asyncio.create_task(loop.sock_accept(listener))
            await loop.sock_connect(mine, (host, listener.getsockname()[1]))
            theirs, address = await accepted
            with theirs:
                assert address == mine.getsockname()
                assert mine.getpeername() == theirs.getsockname()

    run(loop, main)


def test_a_port_that_nobody_listens_to_refuses(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = closed.getsockname()
            with socket.socket() as mine:
                mine.setblocking(False)
                with pytest.raises(ConnectionRefusedError, match="Connect call failed"):
                    await loop.sock_connect(mine, address)

    run(loop, main)


def test_a_unix_socket_connects(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        # An abstract name: nothing is left in the file system.
        name = b"\0erlang-test-%d" % os.getpid()
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as mine:
            listener.bind(name)
            listener.listen()
            mine.setblocking(False)
            await loop.sock_connect(mine, name)
            theirs, _ = listener.accept()
            theirs.close()
            assert await loop.sock_recv(mine, 1) == b""

    run(loop, main)


def test_datagrams_go_between_sockets(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        kind = (socket.AF_INET, socket.SOCK_DGRAM)
        with socket.socket(*kind) as mine, socket.socket(*kind) as theirs:
            for sock in (mine, theirs):
                sock.bind(("127.0.0.1", 0))
                sock.setblocking(False)
            here, there = mine.getsockname(), theirs.getsockname()
            later = asyncio.create_task(loop.sock_recvfrom(theirs, 100))
            await asyncio.sleep(0)
            assert await loop.sock_sendto(mine, b"later", there) == 5
            assert await later == (b"later", here)
            assert await loop.sock_sendto(mine, b"", there) == 0
            assert await loop.sock_recvfrom(theirs, 100) == (b"", here)
            memory = bytearray(10)
            into = asyncio.create_task(loop.sock_recvfrom_into(theirs, memory, 4))
            await asyncio.sleep(0)
            await loop.sock_sendto(mine, b"longer", there)
            assert await into == (4, here)
            await loop.sock_sendto(mine, b"all of it", there)
            assert await loop.sock_recvfrom_into(theirs, memory) == (9, here)
            assert memory == b"all of it\0"

    run(loop, main)


def test_who_waits_for_a_datagram_may_be_cancelled(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with first, second:
            second.setblocking(False)
            waiting = [asyncio.create_task(loop.sock_recvfrom(second, 100)) for _ in range(1)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting[0]
            first.send(b"for the next")
            data, _ = await loop.sock_recvfrom(second, 100)
            assert data == b"for the next"

    run(loop, main)


def test_a_full_datagram_socket_waits(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        name = b"\0erlang-datagrams-%d" % os.getpid()
        kind = (socket.AF_UNIX, socket.SOCK_DGRAM)
        with socket.socket(*kind) as mine, socket.socket(*kind) as theirs:
            theirs.bind(name)
            for sock in (mine, theirs):
                sock.setblocking(False)

            async def send() -> None:
                for number in range(500):
                    await loop.sock_sendto(mine, b"%d" % number, name)

            sending = asyncio.create_task(send())
            for number in range(500):
                data, _ = await loop.sock_recvfrom(theirs, 100)
                assert data == b"%d" % number
            await sending

    run(loop, main)


def test_a_numeric_address_is_looked_up_without_a_thread(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        for host, port in [("127.0.0.1", 80), ("::1", "80"), (None, 80), ("127.0.0.1", None)]:
            expected = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            assert await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM) == expected
        if isinstance(loop, erlang.ErlangEventLoop):
            assert loop._default_executor is None  # type: ignore[attr-defined]
        with pytest.raises(socket.gaierror):
            await loop.getaddrinfo("127.0.0.1", 80, family=socket.AF_INET6)
        names = await loop.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
        assert ("127.0.0.1", 80) in [name[4] for name in names]

    run(loop, main)
