"""Bad input: the right status, nothing leaked, and the server goes on."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

START = {"type": "http.response.start", "status": 200, "headers": []}
HEAD = b"POST / HTTP/1.1\r\nHost: test\r\n"
GOOD = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    while (event := await receive())["type"] == "http.request" and event["more_body"]:
        pass
    if event["type"] == "http.disconnect":
        return
    await send(START)
    await send({"type": "http.response.body", "body": b"fine"})


REFUSED = {
    "no words": (b"nonsense\r\n\r\n", 400),
    "control character": (b"GET /\x01 HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "CONNECT": (b"CONNECT test:443 HTTP/1.1\r\nHost: t\r\n\r\n", 501),
    "CONNECT with a path": (b"CONNECT / HTTP/1.1\r\nHost: t\r\n\r\n", 501),
    "CONNECT in lower case": (b"connect / HTTP/1.1\r\nHost: t\r\n\r\n", 501),
    "CONNECT with a body": (b"CONNECT / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\na", 501),
    "authority form": (b"GET test:443 HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    "asterisk form": (b"GET * HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    "HEAD in lower case": (b"head / HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    "target with a space": (b"GET /a b HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    "two versions": (b"GET / HTTP/1.1 HTTP/2.0\r\nHost: t\r\n\r\n", 400),
    "long version": (b"GET / HTTP/1.10\r\nHost: t\r\n\r\n", 400),
    "HTTP/0.9": (b"GET / HTTP/0.9\r\nHost: t\r\n\r\n", 505),
    "no authority": (b"GET http:///a HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    "user in a target": (b"GET http://u@t/a HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    "bare line feeds": (b"GET / HTTP/1.1\nHost: t\n\n", 400),
    "folded header": (b"GET / HTTP/1.1\r\nHost: t\r\nX: a\r\n b\r\n\r\n", 400),
    "space before colon": (b"GET / HTTP/1.1\r\nHost: t\r\nX : a\r\n\r\n", 400),
    "NUL in a value": (b"GET / HTTP/1.1\r\nHost: t\r\nX: a\x00b\r\n\r\n", 400),
    "two lengths": (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "list of lengths": (HEAD + b"Content-Length: 1, 1\r\n\r\n", 400),
    "signed length": (HEAD + b"Content-Length: +1\r\n\r\n", 400),
    "hexadecimal length": (HEAD + b"Content-Length: 0x1\r\n\r\n", 400),
    "huge length": (HEAD + b"Content-Length: 99999999999999999999\r\n\r\n", 400),
    "length and chunked": (HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    "chunked and length": (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400),
    "chunked twice": (
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    ),
    "unknown coding": (HEAD + b"Transfer-Encoding: xchunked\r\n\r\n", 501),
    "chunked in 1.0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    "bad chunk size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    "chunk longer than said": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
    "chunk with line feed": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\na\r\n", 400),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_request_that_is_not_one_is_refused(our_host, name):
    data, status = REFUSED[name]

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            # What follows must not be taken for a request.
            response = await wire.ask(data + GOOD)
            assert await wire.is_closed()
            assert (await (await peer.connect()).get("/")).body == b"fine"
            return response

    response = our_host.run(main)
    assert response.status == status
    assert response.header("connection") == "close"


# Limits


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /" + b"a" * 3000, 414),
        (b"GET / HTTP/1.1\r\nHost: t\r\nX: " + b"a" * 3000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: t\r\n" + b"X: a\r\n" * 11 + b"\r\n", 431),
        (HEAD + b"Content-Length: 1001\r\n\r\n", 413),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"a" * 1001, 413),
    ],
)
def test_what_is_too_large_is_refused(our_host, data, status):
    async def main():
        limits = {"max_header_size": 2000, "max_headers": 10, "max_body_size": 1000}
        async with our_host.serve(app, lifespan="off", **limits) as peer:
            refused = await (await peer.connect()).ask(data)
            just = HEAD + b"Content-Length: 1000\r\n\r\n" + b"a" * 1000
            assert (await (await peer.connect()).ask(just)).body == b"fine"
            return refused.status

    assert our_host.run(main) == status


def test_the_answer_to_a_body_that_is_too_large_can_be_read(our_host):
    async def main():
        async with our_host.serve(app, lifespan="off", max_body_size=1000) as peer:
            wire = await peer.connect()
            wire.send(HEAD + b"Content-Length: 8000000\r\n\r\n" + b"a" * 8_000_000)
            return (await wire.response()).status

    assert our_host.run(main) == 413


def test_a_connection_beyond_the_limit_is_503(our_host):
    async def main():
        async with our_host.serve(app, lifespan="off", max_connections=2) as peer:
            kept = [await peer.connect(), await peer.connect()]
            for wire in kept:
                assert (await wire.get("/")).status == 200
            surplus = (await (await peer.connect()).get("/")).status
            await kept[0].close()
            while peer.server.info()["connections"] > 1:
                await asyncio.sleep(0)
            return surplus, (await (await peer.connect()).get("/")).status

    assert our_host.run(main) == (503, 200)


def test_a_request_beyond_the_limit_is_503(our_host):
    async def main():
        go, started = asyncio.Event(), asyncio.Event()

        async def slow(scope, receive, send):
            started.set()
            await go.wait()
            await app(scope, receive, send)

        async with our_host.serve(slow, lifespan="off", max_in_flight=1) as peer:
            first = await peer.connect()
            first.send(GOOD)
            await started.wait()
            surplus = (await (await peer.connect()).get("/")).status
            go.set()
            assert (await first.response()).status == 200
            return surplus, (await (await peer.connect()).get("/")).status

    assert our_host.run(main) == (503, 200)


# Time


def test_a_head_that_does_not_end_is_408(our_host):
    async def main():
        async with our_host.serve(app, lifespan="off", header_timeout=0.1) as peer:
            wire = await peer.connect()
            wire.send(b"GET / HTTP/1.1\r\nHo")
            return (await wire.response()).status, await wire.is_closed()

    assert our_host.run(main) == (408, True)


@pytest.mark.parametrize("sent", [b"", GOOD, HEAD + b"Content-Length: 5\r\n\r\nab"])
def test_a_client_that_says_nothing_more_is_left(our_host, sent):
    async def main():
        async with our_host.serve(app, lifespan="off", idle_timeout=0.1) as peer:
            wire = await peer.connect()
            wire.send(sent)
            if sent == GOOD:
                await wire.response()
            return await wire.is_closed()

    assert our_host.run(main)


async def large(scope, receive, send):
    await send(START)
    await send({"type": "http.response.body", "body": b"x" * 20_000_000})


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
def test_a_client_that_does_not_read_a_complete_answer_is_left(our_host, last):
    async def main():
        async with our_host.serve(large, lifespan="off", idle_timeout=0.2) as peer:
            wire = await peer.connect()
            wire.writer.transport.pause_reading()
            wire.send(HEAD + last + b"\r\n")
            while not peer.server.info()["served"]:
                await asyncio.sleep(0.01)
            while peer.server.info()["connections"]:
                await asyncio.sleep(0.01)

    our_host.run(main)


def test_a_client_that_reads_slowly_gets_it_all(our_host):
    async def main():
        async with our_host.serve(large, lifespan="off", idle_timeout=0.5) as peer:
            reader, writer = await asyncio.open_connection("127.0.0.1", peer.port, limit=4096)
            writer.write(HEAD + b"Connection: close\r\n\r\n")
            read, begun = 0, time.monotonic()
            while piece := await reader.read(50_000):
                read += len(piece)
                # For longer than a client may be idle twice.
                await asyncio.sleep(0.01 if time.monotonic() < begun + 2 else 0)
            writer.close()
            await writer.wait_closed()
            return read

    assert our_host.run(main) > 20_000_000


def test_a_client_that_reads_nothing_is_left(our_host):
    async def main():
        ended = asyncio.get_running_loop().create_future()

        async def endless(scope, receive, send):
            await send(START)
            try:
                while True:
                    event = {"type": "http.response.body", "body": b"x" * 99999, "more_body": True}
                    await send(event)
            except OSError:
                ended.set_result(True)

        async with our_host.serve(endless, lifespan="off", idle_timeout=0.2) as peer:
            (await peer.connect()).send(GOOD)
            return await ended

    assert our_host.run(main)
