"""TCP and Unix connections: transports, flow control, half-close; on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import weakref
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Loop = asyncio.AbstractEventLoop


class Recorder(asyncio.Protocol):
    """Notes what happens to a connection."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.got = bytearray()
        self.events: list[str] = []
        self.lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.keep_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        assert type(data) is bytes
        self.got += data
        self.events.append("data")

    def eof_received(self) -> bool:
        self.events.append("eof")
        self.ended.set()
        return self.keep_open

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, error: BaseException | None) -> None:
        self.events.append("lost")
        self.lost.set_result(error)


class Echo(Recorder):
    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def run(loop: Loop, main: Callable[[Loop], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await main(loop)

    loop.run_until_complete(limited())


async def connected(
    loop: Loop, protocol: type[Recorder] = Recorder
) -> tuple[Recorder, socket.socket]:
    """A protocol on one end of a socket pair, and the other end."""
    mine, theirs = socket.socketpair()
    theirs.setblocking(False)
    _, made = await loop.create_connection(protocol, sock=mine)
    return made, theirs


def test_an_echo_server_gives_back_what_it_gets(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        server = await loop.create_server(Echo, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        transport, client = await loop.create_connection(Recorder, *address)
        sent = os.urandom(3_000_000)
        for start in range(0, len(sent), 70_000):
            transport.write(sent[start : start + 70_000])
        await until(lambda: len(client.got) == len(sent))
        assert bytes(client.got) == sent
        assert transport.get_extra_info("peername") == address
        assert transport.get_extra_info("sockname")[0] == "127.0.0.1"
        assert transport.get_extra_info("socket").fileno() > 0
        assert transport.get_extra_info("no such thing", 7) == 7
        transport.close()
        assert await client.lost is None
        server.close()
        await server.wait_closed()

    run(loop, main)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_written_and_changed_afterwards(loop: Loop, kind: type) -> None:
    async def main(loop: Loop) -> None:
        protocol, theirs = await connected(loop)
        memory = bytearray(b"abc")
        protocol.transport.write(kind(memory))
        protocol.transport.write(kind(memory))
        memory[:] = b"xyz"
        protocol.transport.close()
        with theirs:
            got = b""
            while piece := await loop.sock_recv(theirs, 100):
                got += piece
        assert got == b"abcabc"

    run(loop, main)


def test_what_is_no_buffer_is_refused(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        protocol, theirs = await connected(loop)
        with theirs:
            with pytest.raises(TypeError, match="bytes"):
                protocol.transport.write("text")  # type: ignore[arg-type]
            protocol.transport.write(b"")
            assert protocol.transport.get_write_buffer_size() == 0
            protocol.transport.abort()
            await protocol.lost

    run(loop, main)


def test_writing_pauses_above_the_high_mark_and_resumes_at_the_low_one(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        protocol, theirs = await connected(loop)
        transport = protocol.transport
        transport.set_write_buffer_limits(high=1000, low=500)
        assert transport.get_write_buffer_limits() == (500, 1000)
        total = 0
        while "pause" not in protocol.events:
            transport.write(b"x" * 100_000)
            total += 100_000
        assert transport.get_write_buffer_size() > 1000
        assert protocol.events.count("pause") == 1
        with theirs:
            got = 0
            while got < total:
                got += len(await loop.sock_recv(theirs, 1 << 20))
            await until(lambda: "resume" in protocol.events)
            assert transport.get_write_buffer_size() == 0
            transport.close()
            await protocol.lost
        with pytest.raises(ValueError, match="must be >="):
            transport.set_write_buffer_limits(high=1, low=2)

    run(loop, main)


def test_the_pieces_of_one_turn_arrive_in_order(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        protocol, theirs = await connected(loop)
        transport, expected = protocol.transport, b""
        for turn in range(20):
            for piece in range(turn):
                data = b"%d.%d;" % (turn, piece)
                transport.write(data)
                expected += data
            transport.writelines([b"a", bytearray(b"b"), memoryview(b"c")] * 50)
            expected += b"abc" * 50
            await asyncio.sleep(0)
        transport.close()
        with theirs:
            got = b""
            while piece := await loop.sock_recv(theirs, 1 << 16):
                got += piece
        assert got == expected

    run(loop, main)


def test_what_was_ready_before_runs_before_the_data_that_came(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        protocol, theirs = await connected(loop)
        with theirs:
            theirs.send(b"x")
            loop.call_soon(protocol.events.append, "ready")
            await until(lambda: "data" in protocol.events)
            assert protocol.events == ["made", "ready", "data"]
            protocol.transport.close()
            await protocol.lost

    run(loop, main)


def test_half_close_keeps_the_way_back_open(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        protocol, theirs = await connected(loop)
        transport = protocol.transport
        assert transport.can_write_eof()
        transport.write(b"question")
        transport.write_eof()
        with pytest.raises(RuntimeError, match="write_eof"):
            transport.write(b"more")
        with theirs:
            assert await loop.sock_recv(theirs, 100) == b"question"
            assert await loop.sock_recv(theirs, 100) == b""
            theirs.send(b"answer")
            await until(lambda: protocol.got == b"answer")
            assert not transport.is_closing()
        assert await protocol.lost is None
        assert protocol.events[-2:] == ["eof", "lost"]

    run(loop, main)


def test_a_protocol_that_keeps_open_may_answer_after_the_end(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        protocol, theirs = await connected(loop)
        protocol.keep_open = True
        with theirs:
            theirs.send(b"question")
            theirs.shutdown(socket.SHUT_WR)
            await protocol.ended.wait()
            protocol.transport.write(b"answer")
            assert await loop.sock_recv(theirs, 100) == b"answer"
            protocol.transport.close()
            assert await loop.sock_recv(theirs, 100) == b""
        assert await protocol.lost is None

    run(loop, main)


def test_close_sends_what_is_queued_and_abort_does_not(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        size = 10_000_000
        for end, whole in (("close", True), ("abort", False)):
            protocol, theirs = await connected(loop)
            protocol.transport.write(bytes(size))
            assert protocol.transport.get_write_buffer_size() > 0
            getattr(protocol.transport, end)()
            assert protocol.transport.is_closing()
            got = 0
            with theirs:
                while piece := await loop.sock_recv(theirs, 1 << 20):
                    got += len(piece)
            assert (got == size) is whole
            assert await protocol.lost is None

    run(loop, main)


def test_reading_can_be_paused(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        protocol, theirs = await connected(loop)
        transport = protocol.transport
        assert transport.is_reading()
        transport.pause_reading()
        transport.pause_reading()
        assert not transport.is_reading()
        with theirs:
            theirs.send(b"x")
            for _ in range(10):
                await asyncio.sleep(0.001)
            assert protocol.got == b""
            transport.resume_reading()
            await until(lambda: protocol.got == b"x")
            transport.close()
            await protocol.lost
            assert not transport.is_reading()

    run(loop, main)


def test_a_peer_that_resets_is_an_error_of_the_connection_only(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        made: list[Recorder] = []

        def factory() -> Recorder:
            made.append(Recorder())
            return made[-1]

        server = await loop.create_server(factory, "127.0.0.1", 0)
        peer = socket.create_connection(server.sockets[0].getsockname())
        await until(lambda: made and made[0].events)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()
        assert isinstance(await made[0].lost, ConnectionResetError)
        for _ in range(10):
            made[0].transport.write(b"into the void")
        server.close()
        await server.wait_closed()

    run(loop, main)


def test_a_protocol_that_raises_loses_its_connection_and_the_loop_goes_on(loop: Loop) -> None:
    class Faulty(Recorder):
        def data_received(self, data: bytes) -> None:
            raise ValueError("on purpose")

    async def main(loop: Loop) -> None:
        heard: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: heard.append(context))
        protocol, theirs = await connected(loop, Faulty)
        with theirs:
            theirs.send(b"x")
            assert isinstance(await protocol.lost, ValueError)
        [context] = heard
        assert isinstance(context["exception"], ValueError)
        assert context["protocol"] is protocol
        assert context["transport"] is protocol.transport

    run(loop, main)


def test_a_buffered_protocol_is_given_data_in_its_own_memory(loop: Loop) -> None:
    class Buffered(asyncio.BufferedProtocol):
        def __init__(self) -> None:
            self.memory, self.got = bytearray(10), b""
            self.lost = loop.create_future()

        def get_buffer(self, sizehint: int) -> bytearray:
            return self.memory

        def buffer_updated(self, nbytes: int) -> None:
            self.got += self.memory[:nbytes]

        def connection_lost(self, error: BaseException | None) -> None:
            self.lost.set_result(error)

    async def main(loop: Loop) -> None:
        mine, theirs = socket.socketpair()
        _, protocol = await loop.create_connection(Buffered, sock=mine)
        with theirs:
            theirs.send(b"0123456789abcdef")
            await until(lambda: protocol.got == b"0123456789abcdef")
        assert await protocol.lost is None

    run(loop, main)


def test_a_protocol_can_be_exchanged(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        first, theirs = await connected(loop)
        second = Recorder()
        first.transport.set_protocol(second)
        assert first.transport.get_protocol() is second
        with theirs:
            theirs.send(b"x")
            await until(lambda: second.got == b"x")
        assert await second.lost is None
        assert first.events == ["made"]

    run(loop, main)


def test_a_connection_leaves_nothing_behind(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        alive = []
        for _ in range(20):
            protocol, theirs = await connected(loop)
            alive.append(weakref.ref(protocol))
            protocol.transport.close()
            await protocol.lost
            theirs.close()
            del protocol
        await asyncio.sleep(0)
        gc.collect()
        assert [ref() for ref in alive] == [None] * 20
        assert len(os.listdir("/proc/self/fd")) <= before

    run(loop, main)


def test_marks_beyond_all_numbers_are_the_largest(loop: Loop) -> None:
    async def main() -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=mine)
            for high, low in ((2**63, 0), (2**100, 2**90), (None, 2**62)):
                transport.set_write_buffer_limits(high, low)
                got_low, got_high = transport.get_write_buffer_limits()
                assert got_high >= 2**63 - 1
                assert got_low >= min(low, 2**63 - 1)
            with pytest.raises(ValueError, match="must be >= 0"):
                transport.set_write_buffer_limits(10, -(2**70))
            transport.close()
            await asyncio.sleep(0)

    loop.run_until_complete(main())
