"""What goes wrong outside of a loop stays with the connection it went wrong for."""

from __future__ import annotations

import asyncio
import platform
import socket
import struct
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Loop = asyncio.AbstractEventLoop

# What a connection may be told of a peer that is gone.
GONE = (ConnectionResetError, BrokenPipeError)


class Peer(asyncio.Protocol):
    """Notes how a connection went."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.got = bytearray()
        self.lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self.paused = asyncio.Event()
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data

    def eof_received(self) -> bool:
        self.ended.set()
        return True

    def pause_writing(self) -> None:
        self.paused.set()

    def connection_lost(self, error: BaseException | None) -> None:
        self.lost.set_result(error)


def run(loop: Loop, main: Callable[[Loop], Awaitable[None]]) -> None:
    heard: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: heard.append(context))

    async def limited() -> None:
        async with asyncio.timeout(120):
            await main(loop)

    loop.run_until_complete(limited())
    assert heard == []


def reset(sock: socket.socket) -> None:
    """Closes it so that the peer gets a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


async def accepted(loop: Loop) -> tuple[Peer, socket.socket]:
    """A connection of a server of ours, and the other end as a plain socket."""
    made: asyncio.Future[Peer] = loop.create_future()

    class Accepted(Peer):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            made.set_result(self)

    server = await loop.create_server(Accepted, "127.0.0.1", 0)
    theirs = socket.create_connection(server.sockets[0].getsockname())
    peer = await made
    server.close()
    return peer, theirs


def test_a_reset_before_the_connection_is_accepted(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        made: list[Peer] = []

        def factory() -> Peer:
            made.append(Peer())
            return made[-1]

        server = await loop.create_server(factory, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        for _ in range(20):
            reset(socket.create_connection(address))
        # The server goes on: this one comes after them.
        with socket.create_connection(address) as good:
            good.send(b"x")
            while not any(peer.got for peer in made):
                await asyncio.sleep(0.001)
        for peer in made:
            if not peer.got:
                assert isinstance(await peer.lost, (*GONE, type(None)))
        server.close()
        for peer in made:
            peer.transport.abort()
            await peer.lost

    run(loop, main)


def test_a_reset_while_reading_is_paused_is_heard_of_when_writing(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        peer, theirs = await accepted(loop)
        peer.transport.pause_reading()
        reset(theirs)
        peer.transport.write(b"x")
        peer.transport.write(b"y")
        assert isinstance(await peer.lost, GONE)

    run(loop, main)


def test_a_reset_while_much_is_queued_drops_it(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        peer, theirs = await accepted(loop)
        peer.transport.write(b"x" * 20_000_000)
        assert peer.paused.is_set()
        reset(theirs)
        assert isinstance(await peer.lost, GONE)
        assert peer.transport.get_write_buffer_size() == 0
        assert peer.transport.is_closing()

    run(loop, main)


def test_a_reset_after_the_peer_has_half_closed(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        peer, theirs = await accepted(loop)
        theirs.shutdown(socket.SHUT_WR)
        await peer.ended.wait()
        reset(theirs)
        while not peer.lost.done():
            peer.transport.write(b"x")
            await asyncio.sleep(0.001)
        assert isinstance(peer.lost.result(), GONE)

    run(loop, main)


def test_a_reset_while_closing_ends_it(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        peer, theirs = await accepted(loop)
        peer.transport.write(b"x" * 20_000_000)
        peer.transport.close()
        assert not peer.lost.done()
        reset(theirs)
        assert isinstance(await peer.lost, (*GONE, type(None)))

    run(loop, main)


def test_a_peer_that_is_gone_without_reading_is_heard_of(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        peer, theirs = await accepted(loop)
        peer.transport.write(b"never read")
        while not theirs.recv(1, socket.MSG_PEEK):
            await asyncio.sleep(0)
        # Closed with unread data: the system resets.
        theirs.close()
        assert isinstance(await peer.lost, GONE)

    run(loop, main)


def test_a_peer_that_neither_reads_nor_closes_can_be_given_up(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        peer, theirs = await accepted(loop)
        with theirs:
            peer.transport.write(b"x" * 20_000_000)
            await asyncio.wait([peer.lost], timeout=0.05)
            assert not peer.lost.done()
            assert peer.paused.is_set()
            peer.transport.abort()
            assert await peer.lost is None
            assert peer.transport.get_write_buffer_size() == 0

    run(loop, main)


def test_a_stream_hears_of_a_reset_in_read_and_in_drain(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            theirs, _ = listening.accept()
            reset(theirs)
            with pytest.raises(ConnectionResetError):
                await reader.read()

            async def write_on() -> None:
                while True:
                    writer.write(b"x" * 100_000)
                    await writer.drain()

            with pytest.raises(ConnectionError):
                await write_on()
            writer.close()
            with pytest.raises(ConnectionError):
                await writer.wait_closed()

    run(loop, main)


class Unusual(BaseException):
    """Neither an Exception nor one that ends a loop."""


@pytest.mark.parametrize(
    "kind", [Unusual, GeneratorExit, asyncio.CancelledError, ZeroDivisionError]
)
def test_whatever_a_callback_raises_the_loop_goes_on(loop: Loop, kind: type[BaseException]) -> None:
    heard: list[Any] = []
    loop.set_exception_handler(lambda _, context: heard.append(type(context["exception"])))
    ran: list[str] = []
    mine, theirs = socket.socketpair()

    def fail(name: str) -> None:
        ran.append(name)
        raise kind

    with mine, theirs:
        theirs.send(b"x")
        loop.call_soon(fail, "soon")
        loop.call_at(loop.time() - 1, fail, "timer")
        loop.add_reader(mine, fail, "reader")
        loop.call_soon_threadsafe(fail, "posted")
        loop.stop()
        loop.run_forever()
        loop.remove_reader(mine)
    assert ran == ["soon", "posted", "reader", "timer"]
    assert heard == [kind] * 4


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["soon", "timer", "reader", "data"])
def test_what_ends_a_program_ends_run_forever_wherever_it_is_raised(
    loop: Loop, kind: type[BaseException], where: str
) -> None:
    mine, theirs = socket.socketpair()

    def fail(*_: Any) -> None:
        raise kind

    class Failing(asyncio.Protocol):
        data_received = fail

    async def connect() -> asyncio.BaseTransport:
        return (await loop.create_connection(Failing, sock=mine))[0]

    transport = None
    with theirs:
        if where == "soon":
            loop.call_soon(fail)
        elif where == "timer":
            loop.call_at(loop.time() - 1, fail)
        elif where == "reader":
            loop.add_reader(mine, fail)
        else:
            transport = loop.run_until_complete(connect())
        theirs.send(b"x")
        with pytest.raises(kind):
            loop.run_forever()
        assert not loop.is_running()
        if where == "reader":
            loop.remove_reader(mine)
        # It may be run again.
        assert loop.run_until_complete(asyncio.sleep(0, "alive")) == "alive"
        if transport is not None:
            transport.close()
            loop.run_until_complete(asyncio.sleep(0))
        mine.close()


def test_an_exception_handler_that_raises_is_reported_and_the_loop_goes_on(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(_loop: Loop, _context: dict[str, Any]) -> None:
        raise ValueError("in the handler")

    loop.set_exception_handler(handler)
    loop.call_soon(lambda: 1 / 0)
    assert loop.run_until_complete(asyncio.sleep(0, "alive")) == "alive"
    assert "Unhandled error in exception handler" in caplog.text


# Makes the system refuse what is sent to one descriptor; can't be undone, so it has a process.
REFUSING = """
    import asyncio, ctypes, errno, os, socket, struct, sys
    import erlang

    SENDS = {"x86_64": (44, 46, 1, 20), "aarch64": (206, 211, 64, 66)}[os.uname().machine]

    def refuse(fd, number):
        allow, load, equal, answer = 0x7FFF0000, 0x20, 0x15, 0x06
        rules = [(load, 0, 0, 0)]                    # the number of the call
        rules += [(equal, 4 - i, 0, call) for i, call in enumerate(SENDS)]
        rules += [(answer, 0, 0, allow), (load, 0, 0, 16), (equal, 1, 0, fd)]
        rules += [(answer, 0, 0, allow), (answer, 0, 0, 0x00050000 | number)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
        program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(38, 1, 0, 0, 0) == 0       # no new privileges
        assert libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())

    class Datagrams(asyncio.DatagramProtocol):
        def __init__(self):
            self.errors = []
        def error_received(self, error):
            self.errors.append(error.errno)

    class Stream(asyncio.Protocol):
        def __init__(self):
            self.lost = asyncio.get_running_loop().create_future()
        def connection_lost(self, error):
            self.lost.set_result(error)

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: print("handler", context["message"]))
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", 0))
        address = sock.getsockname()
        os.dup2(sock.detach(), 100)
        endpoint, datagrams = await loop.create_datagram_endpoint(
            Datagrams, sock=socket.socket(fileno=100))
        mine, theirs = socket.socketpair()
        os.dup2(mine.detach(), 101)
        transport, stream = await loop.create_connection(Stream, sock=socket.socket(fileno=101))
        refuse(100, errno.ENOBUFS)
        refuse(101, errno.ENOBUFS)
        for _ in range(3):
            endpoint.sendto(b"x", address)
        await asyncio.sleep(0)
        assert datagrams.errors == [errno.ENOBUFS] * 3, datagrams.errors
        assert not endpoint.is_closing()
        transport.write(b"x")
        error = await asyncio.wait_for(stream.lost, 60)
        assert error.errno == errno.ENOBUFS, error
        endpoint.close()
        await asyncio.sleep(0)
        print("done")

    with asyncio.Runner(loop_factory=FACTORY) as runner:
        runner.run(main())
"""


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="the numbers of system calls differ"
)
@pytest.mark.parametrize("factory", ["asyncio.new_event_loop", "erlang.new_event_loop"])
def test_no_buffers_is_an_error_of_a_datagram_and_the_end_of_a_stream(factory: str) -> None:
    script = textwrap.dedent(REFUSING).replace("FACTORY", factory)
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines()[-1:] == ["done"], done.stdout + done.stderr
