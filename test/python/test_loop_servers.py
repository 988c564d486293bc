"""What servers accept, and what they do when they can't: on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from typing import TYPE_CHECKING, Any

import erlang

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    import pytest

Loop = asyncio.AbstractEventLoop


class Accepted(asyncio.Protocol):
    """Gives back what it gets, and notes it."""

    transport: Any = None

    def __init__(self) -> None:
        self.got = bytearray()
        self.ended = asyncio.Event()
        self.lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.transport.write(data)

    def eof_received(self) -> None:
        self.ended.set()

    def connection_lost(self, error: BaseException | None) -> None:
        self.lost.set_result(error)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def run(loop: Loop, main: Callable[[Loop], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await main(loop)

    loop.run_until_complete(limited())


def test_an_accepted_connection_knows_its_peer_and_its_socket(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        made: list[Accepted] = []

        def factory() -> Accepted:
            made.append(Accepted())
            return made[-1]

        server = await loop.create_server(factory, "127.0.0.1", 0)
        for asked in ((), ("socket",), ("peername", "socket"), ("sockname", "peername")):
            with socket.create_connection(server.sockets[0].getsockname()) as peer:
                await until(lambda: made and made[-1].transport)
                protocol, transport = made[-1], made[-1].transport
                known = {name: transport.get_extra_info(name) for name in asked}
                assert known.get("peername", peer.getsockname()) == peer.getsockname()
                assert known.get("sockname", peer.getpeername()) == peer.getpeername()
                peer.sendall(b"x")
                await until(lambda: made[-1].got == b"x")
                transport.close()
                await protocol.lost
                assert peer.recv(2) == b"x"
                assert peer.recv(1) == b""
            made.clear()
        server.close()
        await server.wait_closed()

    run(loop, main)


def test_a_factory_that_raises_closes_the_one_connection() -> None:
    # asyncio's loop leaves it open until the garbage collector comes.
    loop = erlang.new_event_loop()

    async def main(loop: Loop) -> None:
        heard: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: heard.append(context))

        def factory() -> asyncio.Protocol:
            raise ValueError("on purpose")

        server = await loop.create_server(factory, "127.0.0.1", 0)
        peer = socket.create_connection(server.sockets[0].getsockname())
        peer.setblocking(False)
        with peer:
            assert await loop.sock_recv(peer, 1) == b""
        assert isinstance(heard[0]["exception"], ValueError)
        server.close()

    run(loop, main)
    loop.close()


def test_unix_sockets_and_streams(loop: Loop, tmp_path: Path) -> None:
    async def main(loop: Loop) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async for line in reader:
                writer.write(line.upper())
                await writer.drain()
            writer.close()
            await writer.wait_closed()

        path = str(tmp_path / "socket")
        server = await asyncio.start_unix_server(serve, path)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"one\n")
        assert await reader.readline() == b"ONE\n"
        writer.writelines([b"two\n", b"three\n"])
        writer.write_eof()
        assert await reader.read() == b"TWO\nTHREE\n"
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    run(loop, main)


def test_a_server_out_of_descriptors_waits_and_goes_on(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(loop: Loop) -> None:
        heard: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: heard.append(context))
        monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.01)
        listener = socket.create_server(("127.0.0.1", 0))
        address, refusals = listener.getsockname(), [1]

        class Full(socket.socket):
            def accept(self) -> Any:
                if refusals:
                    refusals.pop()
                    raise OSError(errno.EMFILE, "Too many open files")
                return super().accept()

        listener = Full(fileno=listener.detach())
        server = await loop.create_server(Accepted, sock=listener)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        assert "out of system resource" in heard[0]["message"]
        writer.close()
        await writer.wait_closed()
        server.close()

    run(loop, main)


def test_out_of_descriptors_a_server_says_so_and_serves_later(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real thing: no descriptor is left when the connections come."""
    monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.02)
    heard: list[dict[str, Any]] = []

    async def main(loop: Loop) -> None:
        made: list[Accepted] = []

        def factory() -> Accepted:
            made.append(Accepted())
            return made[-1]

        server = await loop.create_server(factory, "127.0.0.1", 0)
        loop.set_exception_handler(lambda _, context: heard.append(context))
        clients = [socket.socket() for _ in range(5)]
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        fill = [os.dup(0)]
        while fill[-1] <= highest:
            fill.append(os.dup(0))
        os.close(fill.pop())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
        try:
            for client in clients:
                client.connect(server.sockets[0].getsockname())
            while not heard:
                await asyncio.sleep(0.001)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for descriptor in fill:
                os.close(descriptor)
        while len(made) < 5:
            await asyncio.sleep(0.001)
        assert server.is_serving()
        for client, peer in zip(clients, made, strict=True):
            client.close()
            await peer.ended.wait()
            peer.transport.close()
            await peer.lost
        server.close()
        await server.wait_closed()
        loop.set_exception_handler(None)

    loop.run_until_complete(asyncio.wait_for(main(loop), 120))
    assert all("out of system resource" in context["message"] for context in heard)
    assert all(context["exception"].errno == errno.EMFILE for context in heard)
