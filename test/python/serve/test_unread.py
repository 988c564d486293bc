"""Clients that do not read what is sent to them, longer than `idle_timeout`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import erlang
from erlang.serve import Options, Server

GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
START = {"type": "http.response.start", "status": 200, "headers": []}
# More than the kernel keeps for a connection.
LARGE = 16_000_000


class Sender:
    """An application that answers by `messages`; `ended` has what became of it."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = messages
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            for message in self.messages:
                await send(message)
        except Exception as error:
            self.ended.set_result(error)
            raise
        self.ended.set_result(None)


def whole(path: Any) -> dict[str, Any]:
    return {"type": "http.response.pathsend", "path": str(path)}


def test_a_client_that_does_not_read_a_file_is_left(our_host, narrow, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * LARGE)

    async def main():
        app = Sender(START, whole(file))
        async with our_host.serve(app, lifespan="off", idle_timeout=0.1) as peer:
            _, writer = await narrow(peer.port)
            writer.write(GET)
            error = await app.ended
            while peer.server.info()["connections"]:
                await asyncio.sleep(0)
            writer.close()
            return error

    # Where the file goes as a body the send returns, as for any body.
    assert isinstance(our_host.run(main), (OSError, type(None)))


def test_a_client_that_sends_and_does_not_read_is_left(our_host, narrow):
    """What it sends waits, too: the application does not want it."""

    async def main():
        piece = {"type": "http.response.body", "body": b"x" * LARGE, "more_body": True}
        app = Sender(START, piece, piece)
        async with our_host.serve(app, lifespan="off", idle_timeout=0.1) as peer:
            _, writer = await narrow(peer.port)
            head = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % LARGE
            writer.write(head + b"x" * LARGE)
            error = await app.ended
            writer.transport.abort()
            while peer.server.info()["connections"]:
                await asyncio.sleep(0)
            return error

    assert isinstance(our_host.run(main), OSError)


def test_a_client_that_reads_slowly_gets_the_whole_file(tmp_path):
    """Each time that the patience is over, something was read: it goes on from there."""
    file = tmp_path / "file"
    file.write_bytes(b"0123456789" * 3)
    asked = []

    class Loop(erlang.ErlangEventLoop):
        """Sends ten bytes and stands still."""

        async def sendfile(self, transport, file, offset=0, count=None, *, fallback=True):
            asked.append((offset, count))
            # Without a wait, so that no patience is too short for it.
            file.seek(offset)
            transport.write(file.read(10))
            return await self.create_future()

    async def main():
        server = Server(Sender(START, whole(file)), Options(port=0, idle_timeout=0.05))
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(GET)
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(30)
        writer.close()
        await server.stop(5.0)
        return head, body

    with asyncio.Runner(loop_factory=Loop) as runner:
        head, body = runner.run(asyncio.wait_for(main(), 60))
    assert b"content-length: 30\r\n" in head
    assert body == file.read_bytes()
    assert asked == [(0, 30), (10, 20), (20, 10)]


@pytest.mark.parametrize("size", [0, 30])
def test_trailers_are_not_mixed_into_a_file(our_host, tmp_path, size):
    file = tmp_path / "file"
    file.write_bytes(b"x" * size)

    async def main():
        app = Sender({**START, "trailers": True}, whole(file))
        async with our_host.serve(app, lifespan="off") as peer:
            return await (await peer.connect()).get("/")

    assert our_host.run(main).body == file.read_bytes()
