"""Attributes that programs set on transports, on asyncio's loop and ours: some replace a method."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import weakref
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import trustme

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Loop = asyncio.AbstractEventLoop

AUTHORITY = trustme.CA()


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.create_default_context()
    AUTHORITY.issue_cert("localhost").configure_cert(server)
    AUTHORITY.configure_trust(client)
    return server, client


async def stream(loop: Loop) -> AsyncIterator[Any]:
    mine, theirs = socket.socketpair()
    with theirs:
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=mine)
        yield transport
        transport.abort()


async def tls(loop: Loop) -> AsyncIterator[Any]:
    at_server, at_client = contexts()
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=at_server)
    async with server:
        transport, _ = await loop.create_connection(
            asyncio.Protocol,
            *server.sockets[0].getsockname(),
            ssl=at_client,
            server_hostname="localhost",
        )
        yield transport
        transport.abort()


async def datagram(loop: Loop) -> AsyncIterator[Any]:
    transport, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
    )
    yield transport
    transport.abort()


async def pipe(loop: Loop) -> AsyncIterator[Any]:
    read, write = os.pipe()
    with open(read, "rb"):
        file = os.fdopen(write, "wb")
        transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, file)
        yield transport
        transport.abort()


KINDS = pytest.mark.parametrize("kind", [stream, tls, datagram, pipe])


def run(loop: Loop, kind: Callable[..., Any], body: Callable[[Any], Awaitable[object]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            async for transport in kind(loop):
                await body(transport)

    loop.run_until_complete(main())


@KINDS
def test_an_attribute_is_kept_and_goes_again(loop: Loop, kind: Callable[..., Any]) -> None:
    async def body(transport: Any) -> None:
        assert not hasattr(transport, "owner")
        transport.owner = "me"
        assert transport.owner == "me"
        del transport.owner
        assert not hasattr(transport, "owner")

    run(loop, kind, body)


@KINDS
def test_a_method_is_replaced_for_a_while(loop: Loop, kind: Callable[..., Any]) -> None:
    async def body(transport: Any) -> None:
        with mock.patch.object(transport, "is_closing", return_value="asked") as asked:
            assert transport.is_closing() == "asked"
        assert transport.is_closing() is False
        asked.assert_called_once_with()

    run(loop, kind, body)


def test_a_stream_writer_writes_by_the_method_that_was_put_in_its_place(loop: Loop) -> None:
    async def main() -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            _, writer = await asyncio.open_connection(sock=mine)
            written: list[bytes] = []
            for _ in range(100):
                writer.write(b"before")
            writer.transport.write = written.append  # type: ignore[method-assign]
            writer.write(b"after")
            assert written == [b"after"]
            writer.transport.abort()

    loop.run_until_complete(main())


@KINDS
def test_attributes_go_with_their_transport_also_in_a_cycle(
    loop: Loop, kind: Callable[..., Any]
) -> None:
    class Value:
        pass

    gone: list[Any] = []

    async def body(transport: Any) -> None:
        value = Value()
        value.transport = transport  # type: ignore[attr-defined]
        transport.value = value
        gone.append(weakref.ref(value))

    run(loop, kind, body)
    # What was aborted hears of it in a later turn.
    for _ in range(100):
        loop.run_until_complete(asyncio.sleep(0.001))
        gc.collect()
        if gone[0]() is None:
            return
    pytest.fail(f"kept by {gc.get_referrers(gone[0]())}")
