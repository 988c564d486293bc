"""aiohttp, client and server, on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

Run = Any
PIECES = [bytes([number]) * 40_000 for number in range(20)]


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read(), headers={"x-method": request.method})


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in PIECES:
        await response.write(piece)
    await response.write_eof()
    return response


async def forever(request: web.Request) -> web.Response:
    try:
        await asyncio.Event().wait()
    finally:
        request.app[GONE].set()
    return web.Response()


async def chat(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is aiohttp.WSMsgType.TEXT:
            await socket.send_str(message.data.upper())
        elif message.type is aiohttp.WSMsgType.BINARY:
            await socket.send_bytes(message.data[::-1])
    return socket


GONE = web.AppKey("gone", asyncio.Event)


@asynccontextmanager
async def served(
    tls: Any = None, cancel: bool = False, client_tls: Any = None
) -> AsyncIterator[tuple[aiohttp.ClientSession, str, web.Application]]:
    app = web.Application(client_max_size=2**24)
    app[GONE] = asyncio.Event()
    app.router.add_route("*", "/echo", echo)
    app.router.add_get("/stream", stream)
    app.router.add_get("/forever", forever)
    app.router.add_get("/chat", chat)
    runner = web.AppRunner(app, handler_cancellation=cancel, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    connector = aiohttp.TCPConnector(ssl=client_tls if client_tls is not None else True)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session, f"{'https' if tls else 'http'}://127.0.0.1:{port}", app
    await runner.cleanup()
    # Transports of TLS connections are closed a turn later.
    await asyncio.sleep(0)


@pytest.mark.smoke
def test_requests_of_any_size_are_answered(run: Run) -> None:
    async def main() -> None:
        async with served() as (session, url, _app):
            for body in (b"", b"small", b"x" * 1_000_000):
                async with session.post(url + "/echo", data=body) as response:
                    assert response.status == 200
                    assert response.headers["x-method"] == "POST"
                    assert await response.read() == body
            async with session.get(url + "/nothing") as response:
                assert response.status == 404

    run(main)


def test_many_requests_at_once(run: Run) -> None:
    async def main() -> None:
        async with served() as (session, url, _app):

            async def one(number: int) -> None:
                async with session.put(url + "/echo", data=b"%d" % number) as response:
                    assert await response.read() == b"%d" % number

            await asyncio.gather(*(one(number) for number in range(300)))

    run(main)


def test_bodies_stream_both_ways(run: Run, tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in PIECES:
            yield piece
            await asyncio.sleep(0)

    async def main() -> None:
        path = tmp_path / "body"
        path.write_bytes(b"".join(PIECES))
        async with served() as (session, url, _app):
            async with session.get(url + "/stream") as response:
                got = [chunk async for chunk, _ in response.content.iter_chunks()]
                assert b"".join(got) == b"".join(PIECES)
            async with session.post(url + "/echo", data=pieces()) as response:
                assert await response.read() == b"".join(PIECES)
            with path.open("rb") as file:
                async with session.post(url + "/echo", data=file) as response:
                    assert await response.read() == b"".join(PIECES)

    run(main)


def test_a_client_that_gives_up_is_noticed(run: Run) -> None:
    async def main() -> None:
        async with served(cancel=True) as (session, url, app):
            limit = aiohttp.ClientTimeout(total=0.05)
            with pytest.raises(asyncio.TimeoutError):
                await session.get(url + "/forever", timeout=limit)
            await app[GONE].wait()

    run(main)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_web_sockets(run: Run, tls: Any, secure: bool) -> None:
    async def main() -> None:
        contexts: dict[str, Any] = {"tls": tls.server, "client_tls": tls.client} if secure else {}
        async with served(**contexts) as (session, url, _app):
            async with session.ws_connect(url + "/chat", max_msg_size=0) as socket:
                await socket.send_str("hello")
                assert await socket.receive_str() == "HELLO"
                data = bytes(range(256)) * 2_000
                await socket.send_bytes(data)
                assert await socket.receive_bytes() == data[::-1]
            assert socket.close_code == aiohttp.WSCloseCode.OK

    run(main)


@pytest.mark.smoke
def test_tls(run: Run, tls: Any) -> None:
    async def main() -> None:
        async with served(tls.server, client_tls=tls.client) as (session, url, _app):
            body = b"x" * 1_000_000
            for _ in range(3):
                async with session.post(url + "/echo", data=body) as response:
                    assert await response.read() == body
            async with session.get(url + "/stream") as response:
                assert await response.read() == b"".join(PIECES)

    run(main)


def test_a_certificate_that_is_not_trusted_is_refused(loop: Any, run: Run, tls: Any) -> None:
    async def main() -> None:
        async with served(tls.server) as (session, url, _app):
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.get(url + "/echo")

    loop.set_exception_handler(lambda _loop, _context: None)
    run(main)


def test_unix_sockets(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        app = web.Application()
        app.router.add_route("*", "/echo", echo)
        runner = web.AppRunner(app)
        await runner.setup()
        path = str(tmp_path / "socket")
        await web.UnixSite(runner, path).start()
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session,
            session.post("http://unix/echo", data=b"hello") as response,
        ):
            assert await response.read() == b"hello"
        await runner.cleanup()

    run(main)
