"""The number of a descriptor is not the descriptor: whose it was does not reach whose it is now."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Loop = asyncio.AbstractEventLoop


class Echo(asyncio.Protocol):
    def __init__(self) -> None:
        self.lost: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.made = False
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.made = transport, True

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)


def run(loop: Loop, main: Callable[[Loop, ExitStack], Awaitable[None]]) -> None:
    async def limited() -> None:
        with ExitStack() as stack:
            async with asyncio.timeout(60):
                await main(loop, stack)

    loop.run_until_complete(limited())


def pair(stack: ExitStack, kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    mine, theirs = socket.socketpair(socket.AF_UNIX, kind)
    for end in (mine, theirs):
        end.setblocking(False)
        stack.enter_context(end)
    return mine, theirs


@pytest.mark.parametrize(
    "kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["stream", "datagram"]
)
def test_a_socket_that_its_owner_closes_sends_nothing_to_the_next_of_its_number(
    loop: Loop, kind: int
) -> None:
    async def main(loop: Loop, stack: ExitStack) -> None:
        mine, theirs = pair(stack, kind)
        number = mine.fileno()
        transport: Any
        if kind == socket.SOCK_STREAM:
            transport, protocol = await loop.create_connection(Echo, sock=mine)
            write = transport.write
        else:
            transport, protocol = await loop.create_datagram_endpoint(Echo, sock=mine)  # type: ignore[type-var]
            protocol.error_received = lambda error: None  # type: ignore[attr-defined]
            write = transport.sendto
        mine.close()
        strangers = [pair(stack, kind) for _ in range(3)]
        write(b"secret")
        write(b"secret")
        await asyncio.sleep(0)
        for ends in strangers:
            for end in ends:
                with pytest.raises(BlockingIOError):
                    end.recv(100)
        if isinstance(loop, erlang.ErlangEventLoop):
            # As uvloop: the transport has a reference of its own to the socket.
            assert await loop.sock_recv(theirs, 6) == b"secret"
        transport.close()
        await protocol.lost
        if kind == socket.SOCK_STREAM and isinstance(loop, erlang.ErlangEventLoop):
            assert await loop.sock_recv(theirs, 100) == b"secret"
            assert await loop.sock_recv(theirs, 100) == b""
        assert mine.fileno() == -1
        assert number not in [end.fileno() for end in (mine, theirs)]

    run(loop, main)


def test_a_socket_whose_transport_ended_with_its_loop_can_be_closed(loop: Loop) -> None:
    with ExitStack() as stack:
        mine, theirs = pair(stack)
        transport, _ = loop.run_until_complete(loop.create_connection(asyncio.Protocol, sock=mine))
        loop.close()
        mine.close()
        theirs.setblocking(True)
        assert theirs.recv(1) == b""
        with pytest.warns(ResourceWarning) if hasattr(transport, "__del__") else ExitStack():
            del transport
            gc.collect()


def test_a_lost_number_is_left_to_the_connection_that_has_it_now() -> None:
    async def main(loop: Loop, stack: ExitStack) -> None:
        made: asyncio.Queue[Echo] = asyncio.Queue()

        class Served(Echo):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                made.put_nowait(self)

        server = await loop.create_server(Served, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        client = stack.enter_context(socket.socket())
        client.setblocking(False)
        mine, _theirs = pair(stack)
        old, protocol = await loop.create_connection(Echo, sock=mine)
        # Closed as no owner should: nobody can know.
        number = mine.detach()
        os.close(number)
        await loop.sock_connect(client, address)
        new = await made.get()
        assert new.transport.get_extra_info("socket").fileno() == number
        old.write(b"secret")
        old.abort()
        await protocol.lost
        for word in (b"one", b"two"):
            await loop.sock_sendall(client, word)
            assert await loop.sock_recv(client, 100) == word
        # It never was written to the new one, nor did the old one close it.
        assert not new.lost.done()
        server.close()
        new.transport.close()
        await new.lost
        assert await loop.sock_recv(client, 100) == b""

    with closing(erlang.new_event_loop()) as loop:
        run(loop, main)


def test_a_connection_has_one_socket_object_whoever_asks_meanwhile(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Served(Echo):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            asked.append(transport.get_extra_info("socket"))
            gc.collect()

    class Nosy(socket.socket):
        """Another thread, or a hook of audit, asks while the object is made."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if kwargs.get("fileno") is not None and not asked:
                asked.append(self)
                protocols[0].transport.get_extra_info("socket")

    protocols: list[Served] = []

    def factory() -> Served:
        protocols.append(Served())
        return protocols[-1]

    async def main(loop: Loop, stack: ExitStack) -> None:
        server = await loop.create_server(factory, "127.0.0.1", 0)
        client = stack.enter_context(socket.socket())
        client.setblocking(False)
        await loop.sock_connect(client, server.sockets[0].getsockname())
        monkeypatch.setattr(socket, "socket", Nosy)
        for word in (b"one", b"two"):
            await loop.sock_sendall(client, word)
            assert await loop.sock_recv(client, 100) == word
        monkeypatch.undo()
        if isinstance(loop, erlang.ErlangEventLoop):
            assert isinstance(asked[0], Nosy)
        asked.clear()
        server.close()
        protocols[0].transport.close()
        await protocols[0].lost

    run(loop, main)


def test_a_listener_that_its_factory_closes_accepts_no_more() -> None:
    """Its number is another listener's by then. A connection that no server has is dropped."""

    async def main(loop: Loop, stack: ExitStack) -> None:
        protocols: list[Echo] = []
        others: list[socket.socket] = []
        reports: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: reports.append(context))
        listener = socket.create_server(("127.0.0.1", 0))
        number, address = listener.fileno(), listener.getsockname()

        def factory() -> Echo:
            protocols.append(Echo())
            server.close()
            other = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            assert other.fileno() == number
            other.setblocking(False)
            others.append(other)
            late.connect(other.getsockname())
            return protocols[-1]

        server = await loop.create_server(factory, sock=listener, start_serving=False)
        late, *early = (stack.enter_context(socket.socket()) for _ in range(3))
        for client in early:
            client.connect(address)
        await server.start_serving()
        for client in early:
            client.setblocking(False)
            with suppress(ConnectionResetError):
                assert await loop.sock_recv(client, 100) == b""
        connection, peer = others[0].accept()
        stack.enter_context(connection)
        assert peer == late.getsockname()
        assert len(protocols) == 1
        assert not protocols[0].made
        assert [str(context["message"]) for context in reports] == [
            "Error on transport creation for incoming connection"
        ]

    with closing(erlang.new_event_loop()) as loop:
        run(loop, main)
