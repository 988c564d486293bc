"""The http part of the ASGI specification, section by section; the same cases against uvicorn."""

from __future__ import annotations

import asyncio
import email.utils
import logging
from typing import Any

import pytest

START = {"type": "http.response.start", "status": 200, "headers": []}


async def read_body(receive: Any) -> bytes:
    body = b""
    while (event := await receive())["type"] == "http.request":
        body += event["body"]
        if not event["more_body"]:
            return body
    raise ConnectionError(event["type"])


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = await read_body(receive)
    await send(START)
    await send({"type": "http.response.body", "body": body})


class Seen:
    """An application that keeps what it was called with."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise RuntimeError("no lifespan")
        self.scopes.append(scope)
        await send(START)
        await send({"type": "http.response.body", "body": b"ok"})


# Connection scope


def test_the_scope_has_what_the_specification_says(host):
    seen = Seen()

    async def main():
        async with host.serve(seen) as peer:
            wire = await peer.connect()
            client = wire.writer.get_extra_info("sockname")
            request = (
                b"GET /a%20b/caf%C3%A9?q=1%202&x HTTP/1.1\r\nHost: test\r\n"
                b"X-Two: 1\r\nX-Two: 2\r\nUPPER: Case\r\n\r\n"
            )
            assert (await wire.ask(request)).body == b"ok"
            return peer.port, client

    port, client = host.run(main)
    (scope,) = seen.scopes
    assert scope["type"] == "http"
    assert scope["asgi"]["version"] == "3.0"
    assert scope["http_version"] == "1.1"
    assert scope["method"] == "GET"
    assert scope["scheme"] == "http"
    assert scope["path"] == "/a b/café"
    assert scope["raw_path"] == b"/a%20b/caf%C3%A9"
    assert scope["query_string"] == b"q=1%202&x"
    assert scope["root_path"] == ""
    assert scope["headers"] == [
        (b"host", b"test"),
        (b"x-two", b"1"),
        (b"x-two", b"2"),
        (b"upper", b"Case"),
    ]
    assert tuple(scope["server"]) == ("127.0.0.1", port)
    assert tuple(scope["client"]) == client[:2]


def test_a_root_path_is_part_of_the_path(host):
    seen = Seen()

    async def main():
        async with host.serve(seen, root_path="/api") as peer:
            await (await peer.connect()).get("/users")

    host.run(main)
    (scope,) = seen.scopes
    assert (scope["root_path"], scope["path"]) == ("/api", "/api/users")
    assert scope["raw_path"] == b"/api/users"


def test_scopes_of_one_connection_share_nothing_that_changes(host):
    seen = Seen()

    async def main():
        async with host.serve(seen) as peer:
            wire = await peer.connect()
            await wire.get("/1")
            seen.scopes[0]["headers"].append((b"x", b"y"))
            seen.scopes[0]["path"] = "changed"
            await wire.ask(b"POST /2 HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n")

    host.run(main)
    first, second = seen.scopes
    assert first is not second
    assert (second["method"], second["path"]) == ("POST", "/2")
    assert second["headers"] == [(b"host", b"test"), (b"content-length", b"0")]


# Request: http.request


@pytest.mark.parametrize("size", [0, 1, 65_536, 1_000_000])
def test_a_body_comes_whole(host, size):
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    async def main():
        async with host.serve(echo) as peer:
            wire = await peer.connect()
            head = f"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {size}\r\n\r\n"
            assert (await wire.ask(head.encode() + body)).body == body
            return await wire.ask(head.encode() + body)

    assert host.run(main).body == body


def test_a_chunked_body_comes_whole(host):
    async def main():
        async with host.serve(echo) as peer:
            wire = await peer.connect()
            head = b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
            pieces = [head, b"5;ext=1\r\nhel", b"lo\r\n", b"A\r\n0123456789\r\n0\r\n", b"\r\n"]
            for piece in pieces:
                wire.send(piece)
                await wire.writer.drain()
            return await wire.response()

    assert host.run(main).body == b"hello0123456789"


def test_receive_waits_for_more_of_the_body(host):
    events = []

    async def app(scope, receive, send):
        events.append(await receive())
        events.append(await receive())
        await send(START)
        await send({"type": "http.response.body", "body": b"ok"})

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nab")
            while not events:
                await asyncio.sleep(0)
            return await wire.ask(b"cd")

    assert host.run(main).status == 200
    assert events[0] == {"type": "http.request", "body": b"ab", "more_body": True}
    assert events[1] == {"type": "http.request", "body": b"cd", "more_body": False}


# Response: http.response.start and http.response.body


def test_every_header_is_sent_and_none_is_lost(host):
    headers = [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"x-text", b"caf\xe9")]

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": b"made"})

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            return await (await peer.connect()).get("/")

    response = host.run(main)
    assert (response.status, response.body) == (201, b"made")
    cookies = [value for name, value in response.headers if name == "set-cookie"]
    assert cookies == ["a=1", "b=2"]
    assert response.header("x-text") == "café"


def test_a_response_has_a_date_unless_the_application_gives_one(our_host):
    async def app(scope, receive, send):
        headers = [(b"date", b"mine")] if scope["path"] == "/mine" else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            return await wire.get("/mine"), await wire.get("/")

    mine, ours = our_host.run(main)
    assert [value for name, value in mine.headers if name == "date"] == ["mine"]
    assert email.utils.parsedate_to_datetime(ours.header("date")).tzinfo is not None


def test_a_body_in_pieces_is_chunked(host):
    async def app(scope, receive, send):
        await send(START)
        for piece in (b"one", b"", b"two"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            first = await wire.get("/")
            return first, await wire.get("/")

    first, second = host.run(main)
    assert first.header("transfer-encoding") == "chunked"
    assert first.header("content-length") is None
    assert first.body == second.body == b"onetwo"


def test_a_piece_is_sent_before_the_next_one_is_there(host):
    async def main():
        more = asyncio.Event()

        async def app(scope, receive, send):
            await send(START)
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            await more.wait()
            await send({"type": "http.response.body", "body": b"second"})

        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            await wire.head()
            pieces = []
            async for piece in wire.chunks():
                pieces.append(piece)
                more.set()
            return pieces

    assert host.run(main) == [b"first", b"second"]


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_has_none(host, status):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            first = await wire.get("/")
            return first, await wire.get("/")

    first, second = host.run(main)
    assert (first.status, second.status) == (status, status)
    assert first.header("transfer-encoding") is None


def test_head_is_answered_without_the_body(host):
    async def app(scope, receive, send):
        headers = [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else b"body"
        await send({"type": "http.response.body", "body": body})

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            first = await wire.ask(b"HEAD / HTTP/1.1\r\nHost: test\r\n\r\n", head=True)
            return first, await wire.get("/")

    first, second = host.run(main)
    assert first.header("content-length") == "4"
    assert second.body == b"body"


# Disconnected client


def test_receive_tells_when_the_client_leaves(host):
    async def main():
        events = asyncio.Queue()

        async def app(scope, receive, send):
            if scope["path"] == "/other":
                await echo(scope, receive, send)
                return
            await read_body(receive)
            events.put_nowait("read")
            events.put_nowait((await receive())["type"])
            events.put_nowait((await receive())["type"])

        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            assert await events.get() == "read"
            # It waits meanwhile.
            assert (await (await peer.connect()).get("/other")).status == 200
            assert events.empty()
            await wire.close()
            return [await events.get(), await events.get()]

    assert host.run(main) == ["http.disconnect", "http.disconnect"]


def test_receive_tells_that_the_response_is_complete(host):
    async def main():
        after = asyncio.get_running_loop().create_future()

        async def app(scope, receive, send):
            await echo(scope, receive, send)
            after.set_result(await receive())

        async with host.serve(app, lifespan="off") as peer:
            assert (await (await peer.connect()).get("/")).status == 200
            return await after

    assert host.run(main) == {"type": "http.disconnect"}


def test_a_client_that_leaves_within_its_body_is_told(host):
    async def main():
        events = asyncio.Queue()

        async def app(scope, receive, send):
            while (event := await receive())["type"] != "http.disconnect":
                events.put_nowait(event["body"])
            events.put_nowait("left")

        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\nabc")
            assert await events.get() == b"abc"
            await wire.close()
            return await events.get()

    assert host.run(main) == "left"


# Errors


def test_an_exception_is_500_with_its_traceback_in_the_log(host, caplog):
    async def app(scope, receive, send):
        if scope["path"] == "/fine":
            return await echo(scope, receive, send)
        raise ZeroDivisionError("on purpose")

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            first = await (await peer.connect()).get("/")
            return first, await (await peer.connect()).get("/fine")

    with caplog.at_level(logging.ERROR):
        first, second = host.run(main)
    assert (first.status, second.status) == (500, 200)
    assert first.body == b"Internal Server Error"
    records = [record for record in caplog.records if record.exc_info]
    assert [record.exc_info[0] for record in records] == [ZeroDivisionError]


def test_an_exception_within_the_body_ends_the_connection(host, caplog):
    async def app(scope, receive, send):
        await send(START)
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ZeroDivisionError("on purpose")

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            # The head may be lost with the connection; the end of the body never comes.
            try:
                return await wire.reader.read()
            except ConnectionResetError:
                return b""

    assert not host.run(main).endswith(b"0\r\n\r\n")
    assert "ZeroDivisionError" in caplog.text


def test_a_response_that_never_starts_is_500(host, caplog):
    async def app(scope, receive, send):
        await receive()

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            return await (await peer.connect()).get("/")

    assert host.run(main).status == 500
    assert caplog.records
