"""The end of a server under TLS, with clients that never say close_notify themselves."""

from __future__ import annotations

import asyncio
import logging
import ssl

import pytest
import trustme

START = {"type": "http.response.start", "status": 200, "headers": []}
LARGE = b"x" * 8_000_000

# asyncio's own loop waits for the peer, as long as `stop_timeout` lets it.
pytestmark = pytest.mark.parametrize("our_host", ["ours"], indirect=True)


class Silent:
    """A client with an engine of its own, which reads and never answers the server's end."""

    def __init__(self, reader, writer, context):
        self.reader, self.writer = reader, writer
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.engine = context.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")
        self.got = b""
        self.has_ended = False

    @classmethod
    async def connect(cls, port, context):
        client = cls(*await asyncio.open_connection("127.0.0.1", port), context)
        while True:
            try:
                client.engine.do_handshake()
            except ssl.SSLWantReadError:
                client.flush()
                client.incoming.write(await client.reader.read(65536))
            else:
                client.flush()
                return client

    def flush(self):
        self.writer.write(self.outgoing.read())

    def send(self, data):
        self.engine.write(data)
        self.flush()

    async def until(self, part):
        """Reads up to this part of what comes, or up to the end of the connection."""
        while part is None or part not in self.got:
            try:
                data = self.engine.read(1 << 20)
            except ssl.SSLWantReadError:
                raw = await self.reader.read(65536)
                if not raw:
                    break
                self.incoming.write(raw)
                continue
            except ssl.SSLZeroReturnError:
                data = b""
            if not data:
                self.has_ended = True
                break
            self.got += data

    async def end(self):
        """Reads to the end of the connection; whether the server said close_notify before it."""
        await self.until(None)
        assert await self.reader.read() == b""
        self.writer.close()
        return self.has_ended


@pytest.fixture
def secure(tmp_path):
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context, {"lifespan": "off", "certificate": str(tmp_path / "both.pem")}


@pytest.mark.parametrize("header", ["keep-alive", "close"])
def test_a_client_that_never_says_its_end_does_not_hold_up_the_servers(
    our_host, secure, header, caplog
):
    context, options = secure

    async def app(scope, receive, send):
        await send(START)
        await send({"type": "http.response.body", "body": b"answer"})

    async def main():
        async with our_host.serve(app, **options) as peer:
            client = await Silent.connect(peer.port, context)
            client.send(f"GET / HTTP/1.1\r\nHost: a\r\nConnection: {header}\r\n\r\n".encode())
            await client.until(b"answer")
            await peer.server.stop(10.0)
            return await client.end()

    with caplog.at_level(logging.WARNING, "erlang.serve"):
        assert our_host.run(main)
    assert caplog.records == []


def test_what_is_written_comes_before_the_end(our_host, secure, caplog):
    context, options = secure
    asked, go = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        asked.set()
        await go.wait()
        length = (b"content-length", str(len(LARGE)).encode())
        await send({**START, "headers": [length]})
        await send({"type": "http.response.body", "body": LARGE})

    async def main():
        async with our_host.serve(app, **options) as peer:
            client = await Silent.connect(peer.port, context)
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await asked.wait()
            stopping = asyncio.create_task(peer.server.stop(10.0))
            go.set()
            ended = await client.end()
            await stopping
            return ended, client.got.partition(b"\r\n\r\n")[2]

    with caplog.at_level(logging.WARNING, "erlang.serve"):
        ended, body = our_host.run(main)
    assert ended
    assert body == LARGE
    assert caplog.records == []
