"""Threads in the methods of one transport at the same time: one after another, or refused."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Callable

    Hammer = Callable[..., list[BaseException]]

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
HERE = Path(__file__).parent
ROUNDS = 1000
CHUNK = b"x" * 5000


class Echo(asyncio.Protocol):
    transport: Any

    def __init__(self) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def datagram_received(self, data: bytes, _address: object) -> None:
        self.transport.sendto(data)

    def error_received(self, error: OSError) -> None:
        raise error

    def connection_lost(self, _error: BaseException | None) -> None:
        self.lost.set_result(None)


class Client:
    """The other end of an echo, by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def talk(self) -> None:
        self.writer.write(CHUNK)
        assert await self.reader.readexactly(len(CHUNK)) == CHUNK

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


class Packets:
    """The same with datagrams."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)

    async def talk(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.sock, CHUNK)
        assert await loop.sock_recv(self.sock, 10_000) == CHUNK

    async def close(self) -> None:
        self.sock.close()


async def plain(secure: bool = False) -> tuple[Any, Any]:
    loop = asyncio.get_running_loop()
    mine, theirs = socket.socketpair()
    given: list[dict[str, Any]] = [{}, {}]
    if secure:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(HERE / "tls" / "server.pem")
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        given = [{"ssl": server}, {"ssl": client, "server_hostname": "localhost"}]
    (transport, _), ends = await asyncio.gather(
        loop.connect_accepted_socket(Echo, mine, **given[0]),
        asyncio.open_connection(sock=theirs, **given[1]),
    )
    return transport, Client(*ends)


async def tls() -> tuple[Any, Any]:
    return await plain(secure=True)


async def datagrams() -> tuple[Any, Any]:
    mine, theirs = socket.socketpair(type=socket.SOCK_DGRAM)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Echo, sock=mine)  # type: ignore[arg-type,type-var]
    return transport, Packets(theirs)


def changes(transport: Any) -> list[Callable[[], object]]:
    """What changes a transport, but not so that its peer would notice."""
    protocol = transport.get_protocol()
    works: list[Callable[[], object]] = [
        transport.set_write_buffer_limits,
        lambda: transport.set_protocol(protocol),
    ]
    if hasattr(transport, "write"):
        works += [
            lambda: transport.write(b""),
            lambda: transport.writelines([]),
            transport.resume_reading,
        ]
    return works


def looks(transport: Any) -> list[Callable[[], object]]:
    """What any thread may ask of a transport."""
    works: list[Callable[[], object]] = [
        transport.is_closing,
        transport.get_protocol,
        transport.get_write_buffer_size,
        transport.get_write_buffer_limits,
        lambda: transport.get_extra_info("sockname"),
        lambda: transport.get_extra_info("cipher"),
        lambda: repr(transport),
    ]
    return works + ([transport.is_reading] if hasattr(transport, "is_reading") else [])


async def end(transport: Any, client: Any) -> None:
    lost = transport.get_protocol().lost
    transport.abort()
    await lost
    await client.close()


def only_refused(raised: list[BaseException]) -> None:
    assert {type(error) for error in raised} <= {RuntimeError}
    assert {"Non-thread-safe" in str(error) for error in raised} <= {True}


class Counted:
    """Writes a piece, and counts those that were not refused."""

    piece = b"y" * 100

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.write = write
        self.lock, self.count = threading.Lock(), 0

    def __call__(self) -> None:
        self.write(self.piece)
        with self.lock:
            self.count += 1

    @property
    def data(self) -> bytes:
        return self.count * self.piece


@pytest.mark.parametrize("connect", [plain, tls, datagrams])
def test_looking_at_a_transport_in_use_does_no_harm(connect: Any, hammer: Hammer) -> None:
    async def main() -> list[BaseException]:
        transport, client = await connect()
        work = asyncio.ensure_future(asyncio.to_thread(hammer, *looks(transport)))
        while not work.done():
            await client.talk()
        await end(transport, client)
        return await work

    assert erlang.run(asyncio.wait_for(main(), 60)) == []


@pytest.mark.parametrize("connect", [plain, tls, datagrams])
def test_changing_a_transport_in_use_is_refused_or_does_no_harm(
    connect: Any, hammer: Hammer
) -> None:
    async def main() -> list[BaseException]:
        transport, client = await connect()
        works = changes(transport)
        work = asyncio.ensure_future(asyncio.to_thread(hammer, *works))
        while not work.done():
            await client.talk()
        raised = await work
        if not HAS_GIL:
            assert len(raised) == 2 * len(works) * ROUNDS
        await end(transport, client)
        return raised

    only_refused(erlang.run(asyncio.wait_for(main(), 60)))


@pytest.mark.parametrize("connect", [plain, tls])
def test_a_transport_in_use_is_closed_by_any_thread(connect: Any, hammer: Hammer) -> None:
    async def main() -> None:
        for _ in range(20):
            transport, client = await connect()
            lost = transport.get_protocol().lost
            closed = asyncio.ensure_future(asyncio.to_thread(hammer, transport.close, rounds=3))
            with suppress(asyncio.IncompleteReadError, OSError):
                while True:
                    await client.talk()
            assert await closed == []
            await lost
            await client.close()

    erlang.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("connect", [plain, tls, datagrams])
def test_a_transport_whose_loop_rests_loses_nothing_of_what_threads_write(
    connect: Any, hammer: Hammer
) -> None:
    with closing(erlang.new_event_loop()) as loop:
        transport, client = loop.run_until_complete(connect())
        write = Counted(getattr(transport, "write", None) or transport.sendto)
        only_refused(hammer(write, *changes(transport)))
        assert write.count

        async def read() -> None:
            if isinstance(client, Packets):
                got = b"".join([await loop.sock_recv(client.sock, 200) for _ in range(write.count)])
            else:
                got = await client.reader.readexactly(len(write.data))
            assert got == write.data
            await end(transport, client)

        loop.run_until_complete(asyncio.wait_for(read(), 60))


def test_a_pipe_whose_loop_rests_loses_nothing_of_what_threads_write(hammer: Hammer) -> None:
    with closing(erlang.new_event_loop()) as loop:
        reading, writing = os.pipe()
        file = open(writing, "wb", 0)  # noqa: SIM115
        transport, _ = loop.run_until_complete(loop.connect_write_pipe(asyncio.BaseProtocol, file))
        write = Counted(transport.write)
        only_refused(hammer(write, transport.get_write_buffer_size))

        async def read() -> None:
            left = len(write.data)
            while left:
                left -= len(await asyncio.to_thread(os.read, reading, left))
            transport.close()

        loop.run_until_complete(asyncio.wait_for(read(), 60))
        loop.run_until_complete(loop.shutdown_default_executor())
        os.close(reading)


@pytest.mark.skipif(HAS_GIL, reason="with a GIL every thread may")
def test_a_loop_is_not_run_while_another_thread_is_inside_a_transport_of_it() -> None:
    inside, go = threading.Event(), threading.Event()

    class Slow(asyncio.Protocol):
        def pause_writing(self) -> None:
            inside.set()
            go.wait(20)

    with closing(erlang.new_event_loop()) as loop:
        mine, theirs = socket.socketpair()
        transport, _ = loop.run_until_complete(loop.create_connection(Slow, sock=mine))
        thread = threading.Thread(target=transport.write, args=(b"x" * 10_000_000,))
        thread.start()
        assert inside.wait(20)
        assert not loop.is_running()
        with pytest.raises(RuntimeError, match="Non-thread-safe"):
            loop.run_forever()
        with pytest.raises(RuntimeError, match="Non-thread-safe"):
            transport.write(b"x")
        # It is called when the loop runs again.
        transport.abort()
        go.set()
        thread.join()
        assert not transport.is_closing()
        loop.run_until_complete(asyncio.sleep(0))
        assert transport.is_closing()
        theirs.close()
