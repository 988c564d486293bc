"""A response is as long as it says; one that can't be ends so that its client sees it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest

GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
BODY = "http.response.body"


def start(length: int | None = None, status: int = 200) -> dict[str, Any]:
    headers = [] if length is None else [(b"content-length", b"%d" % length)]
    return {"type": "http.response.start", "status": status, "headers": headers}


def all_of(our_host: Any, app: Any, request: bytes = GET) -> bytes:
    """What a client gets until the server ends the connection."""

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(request)
            return await wire.is_closed_or_answered()

    return our_host.run(main)


@pytest.mark.parametrize("more", [True, False])
def test_a_body_that_is_longer_than_said_is_a_500(our_host, more):
    async def app(scope, receive, send):
        await send(start(3))
        await send({"type": BODY, "body": b"abcdef", "more_body": more})

    head, _, body = all_of(our_host, app).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 ")
    assert body == b"Internal Server Error"


def test_a_body_that_is_shorter_than_said_is_a_500(our_host):
    async def app(scope, receive, send):
        await send(start(3))
        await send({"type": BODY, "body": b"ab"})

    assert all_of(our_host, app).startswith(b"HTTP/1.1 500 ")


def test_a_piece_that_does_not_fit_changes_nothing(our_host):
    """An application that goes on after the error can still answer, and nothing else."""

    async def app(scope, receive, send):
        await send(start(3))
        for piece in (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"abcd"):
            with pytest.raises(RuntimeError, match="longer than its content-length"):
                await send({"type": BODY, "body": piece})
        await send({"type": BODY, "body": b"abc"})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            return [await wire.get("/") for _ in range(2)]

    assert [(one.status, one.body) for one in our_host.run(main)] == [(200, b"abc")] * 2


def test_a_body_that_becomes_too_long_ends_the_connection(our_host):
    async def app(scope, receive, send):
        await send(start(3))
        await send({"type": BODY, "body": b"ab", "more_body": True})
        with suppress(RuntimeError):
            await send({"type": BODY, "body": b"cdef"})

    head, _, body = all_of(our_host, app, GET * 2).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body == b"ab"


@pytest.mark.parametrize("length", [None, 100])
def test_what_was_sent_before_the_application_raised_arrives(our_host, length):
    async def app(scope, receive, send):
        await send(start(length, 201))
        await send({"type": BODY, "body": b"one ", "more_body": True})
        await send({"type": BODY, "body": b"two ", "more_body": True})
        raise ValueError("on purpose")

    head, _, body = all_of(our_host, app, GET * 2).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 201 ")
    assert body == (b"4\r\none \r\n4\r\ntwo \r\n" if length is None else b"one two ")


def test_what_was_sent_before_the_application_raised_arrives_though_a_body_is_sent(our_host):
    """A socket that is closed while its peer sends is reset, with all that waits in it."""

    async def app(scope, receive, send):
        await send(start(100))
        await send({"type": BODY, "body": b"one ", "more_body": True})
        raise ValueError("on purpose")

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n")
            status, _ = await wire.head()
            with suppress(OSError):
                for _ in range(100):
                    wire.send(b"x" * 1000)
                    await wire.writer.drain()
            return status, await wire.reader.read()

    assert our_host.run(main) == (200, b"one ")


# http.response.pathsend

# More than the kernel keeps for a connection.
LARGE = 16_000_000


def test_a_file_that_is_cut_while_it_is_sent_ends_the_connection(our_host, narrow, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * LARGE)
    raised = []

    async def app(scope, receive, send):
        await send(start())
        try:
            await send({"type": "http.response.pathsend", "path": str(file)})
        except Exception as error:
            raised.append(error)
            raise

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            reader, writer = await narrow(peer.port)
            writer.write(GET * 2)
            writer.transport.resume_reading()
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"content-length: %d\r\n" % LARGE in head
            os.truncate(file, 0)
            got = await reader.read()
            writer.close()
            return got

    got = our_host.run(main)
    assert got == b"x" * len(got)
    assert 0 < len(got) < LARGE
    assert len(raised) == 1
