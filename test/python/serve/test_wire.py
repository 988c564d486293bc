"""HTTP/1.1 on the wire: connections that are kept, pipelines, expectations, back-pressure."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

START = {"type": "http.response.start", "status": 200, "headers": []}
GET = b"GET %b HTTP/1.1\r\nHost: test\r\n\r\n"


async def path(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": scope["raw_path"]})


async def later(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(0)
    await path(scope, receive, send)


@pytest.mark.parametrize("app", [path, later])
def test_pipelined_requests_are_answered_in_their_order(host, app):
    async def main():
        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"".join(GET % b"/%d" % number for number in range(50)))
            return [(await wire.response()).body for _ in range(50)]

    assert host.run(main) == [b"/%d" % number for number in range(50)]


def test_a_request_may_come_byte_by_byte(our_host):
    async def main():
        async with our_host.serve(path, lifespan="off") as peer:
            wire = await peer.connect()
            for byte in GET % b"/slow":
                wire.send(bytes([byte]))
                await wire.writer.drain()
                await asyncio.sleep(0)
            return (await wire.response()).body

    assert our_host.run(main) == b"/slow"


@pytest.mark.parametrize(
    ("version", "header", "stays"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: keep-alive\r\n", True),
    ],
)
def test_a_connection_is_kept_as_the_client_says(our_host, version, header, stays):
    async def main():
        async with our_host.serve(path, lifespan="off") as peer:
            wire = await peer.connect()
            request = f"GET / HTTP/{version}\r\nHost: test\r\n{header}\r\n".encode()
            response = await wire.ask(request)
            if stays:
                return response, (await wire.ask(request)).body == b"/"
            return response, await wire.is_closed()

    response, as_said = our_host.run(main)
    assert as_said
    assert (response.header("connection") == "close") is not stays


def test_an_old_client_gets_a_stream_that_ends_with_the_connection(our_host):
    async def app(scope, receive, send):
        await send(START)
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": b"b"})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            return await (await peer.connect()).ask(b"GET / HTTP/1.0\r\n\r\n")

    response = our_host.run(main)
    assert response.body == b"ab"
    assert response.header("transfer-encoding") is None


# 100-continue

EXPECT = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"


def test_a_client_that_expects_it_is_told_to_go_on(host):
    async def app(scope, receive, send):
        body = (await receive())["body"]
        await send(START)
        await send({"type": "http.response.body", "body": body})

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(EXPECT)
            assert (await wire.head())[0] == 100
            return await wire.ask(b"ok")

    response = host.run(main)
    assert (response.status, response.body) == (200, b"ok")


def test_a_client_is_not_told_to_go_on_if_the_body_is_not_wanted(our_host):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 403, "headers": []})
        await send({"type": "http.response.body", "body": b"no"})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(EXPECT)
            response = await wire.response()
            return response.status, await wire.is_closed()

    assert our_host.run(main) == (403, True)


def test_a_body_that_nobody_reads_does_not_become_the_next_request(our_host):
    async def main():
        async with our_host.serve(path, lifespan="off") as peer:
            wire = await peer.connect()
            body = GET % b"/smuggled"
            head = b"POST /first HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % len(body)
            wire.send(head)
            first = await wire.response()
            second = await wire.ask(body + GET % b"/second")
            return first.body, second.body

    assert our_host.run(main) == (b"/first", b"/second")


# Back-pressure


def test_send_waits_for_a_client_that_does_not_read(host):
    async def main():
        sent, stop = 0, asyncio.Event()

        async def app(scope, receive, send):
            nonlocal sent
            await send(START)
            for _ in range(2000):
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                sent += 1
            await send({"type": "http.response.body"})
            stop.set()

        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(GET % b"/")
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.05)
            assert sent < 1000
            await wire.head()
            total = 0
            async for piece in wire.chunks():
                total += len(piece)
            await stop.wait()
            return total

    assert host.run(main) == 2000 * 65536


def test_a_body_waits_for_an_application_that_does_not_read(host):
    async def main():
        go = asyncio.Event()
        size = 64 * 1024 * 1024

        async def app(scope, receive, send):
            await go.wait()
            total, more = 0, True
            while more:
                event = await receive()
                assert len(event["body"]) < 4 * 1024 * 1024
                total, more = total + len(event["body"]), event["more_body"]
            await send(START)
            await send({"type": "http.response.body", "body": b"%d" % total})

        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % size)
            wire.send(b"x" * size)
            left = -1
            while left != wire.writer.transport.get_write_buffer_size():
                left = wire.writer.transport.get_write_buffer_size()
                await asyncio.sleep(0.05)
            assert left > size // 2
            go.set()
            return (await wire.response()).body

    assert host.run(main) == b"67108864"


def test_a_cancelled_receive_loses_nothing(our_host):
    async def main():
        waiting = asyncio.Event()

        async def app(scope, receive, send):
            first = asyncio.create_task(receive())
            await asyncio.sleep(0)
            waiting.set()
            # The body wakes the task, which is cancelled before it runs.
            while not body_sent:
                await asyncio.sleep(0)
            first.cancel()
            event = await receive()
            await send(START)
            await send({"type": "http.response.body", "body": event["body"]})

        body_sent = False
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n")
            await waiting.wait()
            wire.send(b"ok")
            body_sent = True
            return (await wire.response()).body

    assert our_host.run(main) == b"ok"


# What an application may not do


def outcome(our_host: Any, app: Any) -> Any:
    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            return await (await peer.connect()).get("/")

    return our_host.run(main)


@pytest.mark.parametrize(
    "header",
    [
        (b"x", b"a\r\nset-cookie: b"),
        (b"x", b"a\nb"),
        (b"x", b"a\x00b"),
        (b"x: y", b"z"),
        (b"", b"z"),
        ("x", "y"),
        (b"content-length", b"-1"),
    ],
)
def test_a_header_that_would_change_the_response_is_refused(our_host, header, caplog):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [header]})
        await send({"type": "http.response.body", "body": b""})

    assert outcome(our_host, app).status == 500
    assert "header" in caplog.text or "content-length" in caplog.text


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "http.response.body", "body": b""}],
        [START, START],
        [{"type": "http.response.start", "status": 99}],
        [{"type": "http.response.start"}],
        [{"type": "websocket.accept"}],
        [{}],
        [[]],
    ],
)
def test_an_event_out_of_place_raises_in_the_application(our_host, events, caplog):
    raised = []

    async def app(scope, receive, send):
        try:
            for event in events:
                await send(event)
        except Exception as error:
            raised.append(error)
            raise

    assert outcome(our_host, app).status == 500
    assert len(raised) == 1


def test_a_body_that_does_not_fit_its_length_never_looks_complete(our_host, caplog):
    def app_of(body):
        async def app(scope, receive, send):
            headers = [(b"content-length", b"3")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        return app

    for body in (b"ab", b"abcd"):

        async def main(body=body):
            async with our_host.serve(app_of(body), lifespan="off") as peer:
                wire = await peer.connect()
                wire.send(GET % b"/")
                try:
                    return await wire.reader.read()
                except ConnectionResetError:
                    return b""

        got = our_host.run(main)
        assert b"abc" not in got


def test_sending_to_a_client_that_left_is_an_oserror_and_no_noise(our_host, caplog):
    async def main():
        ended = asyncio.get_running_loop().create_future()

        async def app(scope, receive, send):
            await send(START)
            try:
                while True:
                    await send({"type": "http.response.body", "body": b"x", "more_body": True})
                    await asyncio.sleep(0)
            except OSError as error:
                ended.set_result(error)
                raise

        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(GET % b"/")
            await wire.head()
            wire.writer.transport.abort()
            return await ended

    with caplog.at_level(logging.INFO):
        assert isinstance(our_host.run(main), OSError)
    # The access log has it, as any other request.
    assert [record.name for record in caplog.records] == ["erlang.serve.access"]


async def hosts(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the version, and all that is said of the host."""
    own = [value for name, value in scope["headers"] if name == b"host"]
    text = f"{scope['http_version']} {scope['path']} {own}"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text.encode()})


@pytest.mark.parametrize(
    ("request_line", "headers", "seen"),
    [
        (b"GET http://one:81/a HTTP/1.1", b"Host: two\r\n", b"1.1 /a [b'one:81']"),
        (b"GET HTTPS://[::1]?q HTTP/1.1", b"Host: two\r\n", b"1.1 / [b'[::1]']"),
        (b"GET http://one HTTP/1.0", b"", b"1.0 / [b'one']"),
        (b"GET /a HTTP/1.1", b"Host: two\r\n", b"1.1 /a [b'two']"),
        (b"OPTIONS * HTTP/1.1", b"Host: two\r\n", b"1.1 * [b'two']"),
        # A later minor version is read as the one that is known.
        (b"GET /a HTTP/1.2", b"Host: two\r\n", b"1.1 /a [b'two']"),
        (b"GET http://one/ HTTP/1.9", b"Host: two\r\n", b"1.1 / [b'one']"),
    ],
)
def test_a_request_line_is_read_as_the_standard_says(our_host, request_line, headers, seen):
    async def main():
        async with our_host.serve(hosts, lifespan="off") as peer:
            wire = await peer.connect()
            data = request_line + b"\r\n" + headers + b"\r\n"
            whole = await wire.ask(data)
            # The same, however it comes.
            wire = await peer.connect()
            for byte in data:
                wire.send(bytes([byte]))
                await wire.writer.drain()
                await asyncio.sleep(0)
            return whole, await wire.response()

    whole, slow = our_host.run(main)
    assert (whole.status, whole.body) == (200, seen)
    assert (slow.status, slow.body) == (200, seen)
