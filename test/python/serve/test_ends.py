"""What holds up the end of a server or of an application, and what clients see of it."""

from __future__ import annotations

import asyncio
import logging
import stat
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from erlang.serve import Options, Server, Wsgi

START = {"type": "http.response.start", "status": 200, "headers": []}
GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"


class Lasting:
    """An application with a lifespan that notes what happens."""

    def __init__(self, ends: bool = True) -> None:
        self.ends = ends
        self.events: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await getattr(self, scope["type"])(scope, receive, send)

    async def lifespan(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if not self.ends:
            await asyncio.get_running_loop().create_future()
        self.events.append("shutdown")
        await send({"type": "lifespan.shutdown.complete"})

    async def http(self, scope: Any, receive: Any, send: Any) -> None:
        self.events.append("asked")
        await asyncio.get_running_loop().create_future()

    async def websocket(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        self.events.append(f"left {(await receive())['code']}")


def test_a_shutdown_that_hangs_is_left(our_host, caplog):
    app = Lasting(ends=False)

    async def main():
        server = Server(app, Options(port=0, stop_timeout=0.1))
        await server.start()
        await server.stop()

    our_host.run(main)
    assert "did not end its lifespan" in caplog.text
    assert app.events == []


def test_a_reload_does_not_wait_for_ever_for_the_old_lifespan(our_host, caplog):
    async def main():
        async with our_host.serve(Lasting(ends=False), stop_timeout=0.1) as peer:
            await peer.server.reload(Lasting())

    our_host.run(main)
    assert "did not end its lifespan" in caplog.text


def test_a_request_that_does_not_end_in_time_is_a_500(our_host):
    app = Lasting()

    async def main():
        server = Server(app, Options(port=0, stop_timeout=0.05))
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(GET)
        while not app.events:
            await asyncio.sleep(0)
        await server.stop()
        got = await reader.read()
        writer.close()
        return got

    head, _, body = our_host.run(main).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 ")
    assert b"connection: close" in head
    assert body == b"Internal Server Error"
    assert app.events == ["asked", "shutdown"]


def test_websockets_of_the_old_application_are_closed_before_its_lifespan(our_host, url):
    old = Lasting()

    async def main():
        async with our_host.serve(old, stop_timeout=0.05) as peer:
            async with connect(url(peer)) as client:
                await peer.server.reload(Lasting())
                # The new application's is not meant.
                async with connect(url(peer)) as other:
                    with pytest.raises(ConnectionClosed) as closed:
                        await client.recv()
                    while "shutdown" not in old.events:
                        await asyncio.sleep(0)
                    await (await other.ping())
            return closed.value.rcvd.code

    assert our_host.run(main) == 1012
    assert old.events == ["left 1012", "shutdown"]


def test_a_websocket_is_not_for_a_wsgi_application(our_host, caplog):
    def old(environ, start_response):
        raise AssertionError

    async def main():
        async with our_host.serve(Wsgi(old), lifespan="off") as peer:
            wire = await peer.connect()
            upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            return await wire.ask(GET[:-2] + upgrade + key)

    assert our_host.run(main).status == 403
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_an_application_that_raises_at_its_start_is_served_with_a_word(our_host, caplog):
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            raise ValueError("no database")
        await send(START)
        await send({"type": "http.response.body", "body": b"fine"})

    async def main():
        async with our_host.serve(app) as peer:
            return (await (await peer.connect()).get("/")).body

    assert our_host.run(main) == b"fine"
    assert "raised at its start" in caplog.text
    assert "ValueError: no database" in caplog.text


@pytest.mark.parametrize(("options", "mode"), [({}, 0o666), ({"uds_mode": 0o600}, 0o600)])
def test_a_unix_socket_is_for_whom_it_says(our_host, tmp_path, options, mode):
    path = tmp_path / "socket"

    async def main():
        server = Server(Lasting(), Options(uds=str(path), **options))
        await server.start()
        found = stat.S_IMODE(path.stat().st_mode)
        await server.stop()
        return found

    assert our_host.run(main) == mode


@pytest.mark.parametrize("wanted", [False, True])
def test_pathsend_is_announced_where_it_is_asked_for(our_host, wanted):
    """Middleware that changes bodies can't see a file: who uses such must not be told of it."""

    async def app(scope, receive, send):
        await send(START)
        told = "http.response.pathsend" in scope["extensions"]
        await send({"type": "http.response.body", "body": str(told).encode()})

    async def main():
        options = {"pathsend": True} if wanted else {}
        async with our_host.serve(app, lifespan="off", **options) as peer:
            return (await (await peer.connect()).get("/")).body

    assert our_host.run(main) == str(wanted).encode()


def test_a_client_has_for_ever_to_answer_a_ping(our_host, echo_socket):
    """The two times are added, and a number has an end."""

    async def main():
        times = {"ws_ping_interval": 0.05, "ws_ping_timeout": float("inf")}
        async with our_host.serve(echo_socket(), lifespan="off", **times) as peer:
            wire = await peer.connect()
            wire.send(
                GET[:-2] + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            assert (await wire.head())[0] == 101
            assert await wire.reader.readexactly(2) == b"\x89\x00"
            # Many looks at the time later it is still there.
            await asyncio.sleep(0.3)
            wire.send(b"\x81\x82\0\0\0\0hi")
            return await wire.reader.readexactly(4)

    assert our_host.run(main) == b"\x81\x02hi"
