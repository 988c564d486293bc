"""Servers of one process that accept from one socket."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import ssl
from contextlib import suppress

import pytest
import trustme

from erlang.serve import Options, Server

numbers = itertools.count(1 << 40)


async def app(scope, receive, send):
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


class Servers:
    """Three servers on one socket, and connections to it."""

    def __init__(self, certificate: str | None, trusting: ssl.SSLContext | None) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.certificate, self.trusting = certificate, trusting
        self.share = next(numbers)
        self.servers: list[Server] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        for _ in range(3):
            fd = os.dup(self.listener.fileno())
            options = Options(fd=fd, lifespan="off", certificate=self.certificate)
            server = Server(app, options, self.share)
            await server.start()
            self.servers.append(server)

    async def ask(self) -> None:
        """A connection that stays, with one answer."""
        port = self.listener.getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=self.trusting)
        writer.write(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        self.writers.append(writer)

    async def close(self, count: int) -> None:
        for writer in self.writers[:count]:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        del self.writers[:count]

    def open(self) -> list[int]:
        return [server.info()["connections"] for server in self.servers]

    async def stop(self) -> None:
        await self.close(len(self.writers))
        for server in self.servers:
            await server.stop(0.0)


@pytest.fixture(params=["plain", "TLS"])
def servers(request, tmp_path):
    certificate, trusting = None, None
    if request.param == "TLS":
        authority = trustme.CA()
        certificate = str(tmp_path / "pem")
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
    servers = Servers(certificate, trusting)
    yield servers
    servers.listener.close()


@pytest.fixture
def run(host):
    if host.name != "ours":
        pytest.skip("on our loop only")
    return host.run


def test_a_connection_goes_to_the_server_with_the_fewest(run, servers):
    async def main():
        await servers.start()
        for _ in range(9):
            await servers.ask()
        before = servers.open()
        await servers.close(4)
        while sum(servers.open()) > 5:
            await asyncio.sleep(0.01)
        for _ in range(4):
            await servers.ask()
        after = servers.open()
        await servers.stop()
        return before, after

    assert run(main) == ([3, 3, 3], [3, 3, 3])


def test_many_at_once_are_spread(run, servers):
    async def main():
        await servers.start()
        await asyncio.gather(*(servers.ask() for _ in range(30)))
        opened = servers.open()
        await servers.stop()
        return opened

    opened = run(main)
    assert sum(opened) == 30
    assert min(opened) >= 5


def test_a_server_that_stops_gets_no_more(run, servers):
    async def main():
        await servers.start()
        await servers.servers[0].stop(0.0)
        for _ in range(6):
            await servers.ask()
        opened = servers.open()
        await servers.stop()
        return opened

    assert run(main) == [0, 3, 3]


def test_a_handshake_that_fails_is_forgotten_wherever_it_was(run, servers):
    if servers.certificate is None:
        pytest.skip("there is no handshake")

    async def fail(data: bytes) -> None:
        port = servers.listener.getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        # Without data it is the client that leaves.
        with suppress(OSError):
            while data and await reader.read(1000):
                pass
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def main():
        await servers.start()
        await servers.ask()
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05wrong", b""):
            await asyncio.gather(*(fail(data) for _ in range(9)))
        while sum(servers.open()) > 1:
            await asyncio.sleep(0.01)
        for _ in range(8):
            await servers.ask()
        opened = servers.open()
        await servers.stop()
        return opened

    assert run(main) == [3, 3, 3]


def test_other_loops_are_refused(host):
    if host.name != "ours-on-asyncio":
        pytest.skip("what another loop can't do")

    async def main():
        servers = Servers(None, None)
        try:
            with pytest.raises(TypeError, match="loops of this package"):
                await servers.start()
        finally:
            servers.listener.close()

    host.run(main)
