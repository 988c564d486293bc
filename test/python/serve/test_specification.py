"""Sentences of the ASGI specification that the other files do not come to, in its order.

HTTP and WebSocket 2.5, lifespan 2.0, the extensions. Where uvicorn does otherwise, a case is ours.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from erlang.serve import LifespanFailed, Options, Server

START = {"type": "http.response.start", "status": 200, "headers": []}
END = {"type": "http.response.body", "body": b"ok"}


def ask(host: Any, app: Any, data: bytes | None = None) -> Any:
    async def main():
        async with host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            return await (wire.ask(data) if data else wire.get("/"))

    return host.run(main)


# HTTP: connection scope


def test_the_version_of_the_specification_is_told(our_host):
    seen = []

    async def app(scope, receive, send):
        seen.append(scope)
        await send(START)
        await send(END)

    ask(our_host, app)
    # 2.4 means for Starlette that it need not look whether the client of a stream is still there.
    assert seen[0]["asgi"] == {"version": "3.0", "spec_version": "2.3"}


def test_a_method_is_in_upper_case(our_host):
    async def app(scope, receive, send):
        await send(START)
        await send({"type": "http.response.body", "body": scope["method"].encode()})

    assert ask(our_host, app, b"purge / HTTP/1.1\r\nHost: a\r\n\r\n").body == b"PURGE"


def test_an_old_version_and_an_empty_query_are_told(host):
    async def app(scope, receive, send):
        await send(START)
        body = scope["http_version"].encode() + scope["query_string"]
        await send({"type": "http.response.body", "body": body})

    assert ask(host, app, b"GET /? HTTP/1.0\r\nHost: a\r\n\r\n").body == b"1.0"


def test_header_values_are_the_bytes_that_came(host):
    seen = []

    async def app(scope, receive, send):
        seen.extend(scope["headers"])
        await send(START)
        await send(END)

    ask(host, app, b"GET / HTTP/1.1\r\nHost: a\r\nX-Latin: caf\xe9\r\nX-Empty:\r\n\r\n")
    assert [tuple(pair) for pair in seen[1:]] == [(b"x-latin", b"caf\xe9"), (b"x-empty", b"")]


# HTTP: receive


def test_a_request_without_a_body_is_one_event_and_then_the_end(host):
    events = []

    async def app(scope, receive, send):
        events.append(await receive())
        await send(START)
        await send(END)
        # As often as it is asked.
        events.append(await receive())
        events.append(await receive())

    ask(host, app)
    assert events[0] == {"type": "http.request", "body": b"", "more_body": False}
    assert events[1:] == [{"type": "http.disconnect"}] * 2


# HTTP: send


def test_what_is_optional_has_its_default(host):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "more_body": True})
        await send({"type": "http.response.body"})

    response = ask(host, app)
    assert (response.status, response.body) == (200, b"")


@pytest.mark.parametrize("form", [list, tuple, iter])
def test_headers_may_be_any_iterable_of_pairs(host, form):
    async def app(scope, receive, send):
        headers = form([[b"x-one", b"1"], (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")])
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(END)

    response = ask(host, app)
    own = [pair for pair in response.headers if pair[0] in ("x-one", "set-cookie")]
    assert own == [("x-one", "1"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]


def test_the_head_waits_for_the_body_so_that_an_error_can_replace_it(our_host, caplog):
    async def app(scope, receive, send):
        await send(START)
        raise ZeroDivisionError

    assert ask(our_host, app).status == 500
    assert "ZeroDivisionError" in caplog.text


def test_transfer_encoding_is_the_business_of_the_server(our_host):
    async def app(scope, receive, send):
        headers = [(b"transfer-encoding", b"gzip"), (b"x-kept", b"yes")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(END)

    response = ask(our_host, app)
    assert response.body == b"ok"
    assert response.header("transfer-encoding") is None
    assert response.header("x-kept") == "yes"


def test_what_comes_after_the_response_is_ignored(our_host, caplog):
    async def app(scope, receive, send):
        for event in (START, END, END, START, {"type": "http.response.trailers"}):
            await send(event)

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            return [(await wire.get("/")).body for _ in range(2)]

    assert our_host.run(main) == [b"ok", b"ok"]
    assert not caplog.records


@pytest.mark.parametrize("event", [{"type": "no.such.type"}, {"type": "http.response.trailers"}])
def test_an_unknown_event_raises(host, event):
    raised = []

    async def app(scope, receive, send):
        try:
            await send(event)
        except Exception as error:
            raised.append(error)
        await send(START)
        await send(END)

    assert ask(host, app).body == b"ok"
    assert raised


# WebSocket


def test_the_scope_of_a_websocket_has_no_method_but_a_state(host, url, echo_socket):
    class App:
        async def __call__(self, scope, receive, send):
            if scope["type"] == "lifespan":
                scope["state"]["kept"] = 1
                await receive()
                await send({"type": "lifespan.startup.complete"})
                await receive()
                await send({"type": "lifespan.shutdown.complete"})
                return
            self.scope = scope
            await echo_socket()(scope, receive, send)

    app = App()

    async def main():
        async with host.serve(app) as peer, connect(url(peer, "/a%20b?q")) as client:
            await client.send("x")
            assert await client.recv() == "x"

    host.run(main)
    scope = app.scope
    assert "method" not in scope
    assert scope["state"] == {"kept": 1}
    assert (scope["http_version"], scope["scheme"]) == ("1.1", "ws")
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/a b", b"/a%20b", b"q")


@pytest.mark.parametrize(
    ("event", "heard"),
    [
        ({"text": "t"}, "t"),
        ({"bytes": b"b"}, b"b"),
        ({"text": "t", "bytes": None}, "t"),
        ({"text": None, "bytes": b"b"}, b"b"),
        ({"text": ""}, ""),
        ({"bytes": b""}, b""),
    ],
)
def test_exactly_one_of_text_and_bytes_is_sent(host, event, heard, url):
    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", **event})
        await receive()

    async def main():
        async with (
            host.serve(app, lifespan="off") as peer,
            connect(url(peer)) as client,
        ):
            return await client.recv()

    assert host.run(main) == heard


def test_close_has_its_default_and_the_application_hears_of_it(host, url):
    events = []

    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        events.append(await receive())

    async def main():
        async with (
            host.serve(app, lifespan="off") as peer,
            connect(url(peer)) as client,
        ):
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            while not events:
                await asyncio.sleep(0)
            return closed.value.rcvd.code, closed.value.rcvd.reason

    assert host.run(main) == (1000, "")
    assert events[0]["type"] == "websocket.disconnect"
    assert events[0]["code"] == 1000


def test_a_disconnect_has_a_reason_as_the_version_says(our_host, url, echo_socket):
    app = echo_socket()

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            async with connect(url(peer)) as client:
                await client.close(4001, "that is all")
            return await app.heard("websocket.disconnect")

    heard = our_host.run(main)
    assert app.scopes[0]["asgi"] == {"version": "3.0", "spec_version": "2.5"}
    assert heard == {"type": "websocket.disconnect", "code": 4001, "reason": "that is all"}


# Lifespan


def test_an_application_that_returns_at_once_has_no_lifespan(host):
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await send(START)
            await send(END)

    async def main():
        async with host.serve(app) as peer:
            return (await (await peer.connect()).get("/")).body

    assert host.run(main) == b"ok"


def test_a_failed_shutdown_is_told(our_host):
    async def app(scope, receive, send):
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.failed", "message": "could not flush"})

    async def main():
        server = Server(app, Options(port=0))
        await server.start()
        with pytest.raises(LifespanFailed, match="could not flush"):
            await server.stop()

    our_host.run(main)


# Extensions


def test_what_is_advertised_is_what_there_is(our_host, url, echo_socket):
    seen = {}

    async def app(scope, receive, send):
        seen[scope["type"]] = scope["extensions"]
        if scope["type"] == "websocket":
            await echo_socket()(scope, receive, send)
            return
        await send(START)
        await send(END)

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            await (await peer.connect()).get("/")
            async with connect(url(peer)):
                pass

    our_host.run(main)
    # Each has tests of its own.
    assert seen == {
        "http": {
            "http.response.early_hint": {},
            "http.response.trailers": {},
        },
        "websocket": {"websocket.http.response": {}},
    }
