"""Records cut into packets in every way: nothing is lost, doubled or late; on both loops."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from typing import Any

import pytest


class Engine:
    """The other end, which decides itself how its records are cut into packets."""

    def __init__(self, tls: Any, sock: socket.socket, version: ssl.TLSVersion) -> None:
        context = tls.server_context()
        context.maximum_version = version
        self.loop, self.sock = tls.loop, sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.ssl = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    async def more(self) -> None:
        self.incoming.write(await self.loop.sock_recv(self.sock, 100_000))

    async def handshake(self) -> None:
        while True:
            try:
                self.ssl.do_handshake()
            except ssl.SSLWantReadError:
                await self.loop.sock_sendall(self.sock, self.outgoing.read())
                await self.more()
            else:
                return

    async def receive(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            try:
                got += self.ssl.read(count - len(got))
            except ssl.SSLWantReadError:
                await self.more()
        return got


async def connected(tls: Any, version: ssl.TLSVersion, client: Any) -> tuple[Engine, Any]:
    mine, theirs = socket.socketpair()
    theirs.setblocking(False)
    engine = Engine(tls, theirs, version)
    connecting = tls.loop.create_connection(
        client, sock=mine, ssl=tls.client_context(), server_hostname="localhost"
    )
    connection = asyncio.ensure_future(connecting)
    await engine.handshake()
    # What ends the handshake goes with what follows it: session tickets, and the first data.
    engine.ssl.write(b"first")
    await tls.loop.sock_sendall(theirs, engine.outgoing.read())
    return engine, (await connection)[1]


def packets(chance: random.Random, stream: bytes) -> Any:
    """The stream in parts of a size that changes from single bytes to many records."""
    start = 0
    while start < len(stream):
        size = chance.choice([1, 2, 5, 6, 100, 1000, 16_000, 16_406, 40_000, 200_000])
        yield stream[start : start + size]
        start += size


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["plain", "buffered"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_any_packets_bring_the_same_data(
    tls: Any, version: ssl.TLSVersion, kind: str, seed: int
) -> None:
    chance = random.Random(seed)

    class Lends(tls.Recorder, asyncio.BufferedProtocol):
        def get_buffer(self, hint: int) -> memoryview:
            self.memory = memoryview(bytearray(chance.choice([1000, 16_384, 100_000])))
            return self.memory

        def buffer_updated(self, count: int) -> None:
            self.got += self.memory[:count]

    async def main() -> None:
        factory = tls.Recorder if kind == "plain" else Lends
        engine, client = await connected(tls, version, factory)
        expected = bytearray(b"first")
        for _ in range(5):
            for _ in range(chance.randrange(1, 20)):
                data = chance.randbytes(chance.choice([1, 10, 500, 16_384, 50_000]))
                engine.ssl.write(data)
                expected += data
            for packet in packets(chance, engine.outgoing.read()):
                await tls.loop.sock_sendall(engine.sock, packet)
                if chance.random() < 0.1:
                    await asyncio.sleep(0)
            # Everything is there without a further packet.
            size = len(expected)
            await tls.until(lambda size=size: len(client.got) == size)
        assert client.got == expected
        # And the other way.
        client.transport.write(b"answer")
        assert await engine.receive(6) == b"answer"
        client.transport.abort()
        await client.lost
        engine.sock.close()

    tls.run(main)


def test_the_end_comes_with_the_last_data(tls: Any) -> None:
    async def main() -> None:
        engine, client = await connected(tls, ssl.TLSVersion.TLSv1_3, tls.Recorder)
        await tls.until(lambda: client.got == b"first")
        for size in (1000, 50_000):
            engine.ssl.write(bytes(size))
        with pytest.raises(ssl.SSLWantReadError):
            engine.ssl.unwrap()
        await tls.loop.sock_sendall(engine.sock, engine.outgoing.read())
        await tls.until(lambda: "eof" in client.events)
        assert len(client.got) == 51_005
        await engine.more()
        engine.ssl.unwrap()
        engine.sock.close()
        assert await client.lost is None

    tls.run(main)
