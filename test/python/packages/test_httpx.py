"""httpx on asyncio's loop and ours, by itself and inside AnyIO; uvicorn answers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest
import uvicorn

import erlang

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Run = Any


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Gives the body back, piece by piece."""
    assert scope["type"] == "http"
    headers = [(b"x-path", scope["path"].encode()), (b"x-http", scope["http_version"].encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        body = {"type": "http.response.body", "body": message.get("body", b""), "more_body": more}
        await send(body)


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[str]:
    config = uvicorn.Config(app, port=0, lifespan="off", log_level="warning", **options)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"{'https' if options.get('ssl_certfile') else 'http'}://127.0.0.1:{port}"
    finally:
        await server.shutdown()


async def use(url: str, verify: Any = True) -> None:
    async with httpx.AsyncClient(verify=verify, base_url=url, timeout=20) as client:
        for body in (b"", b"hello", b"x" * 500_000):
            response = await client.post("/a path", content=body)
            assert response.status_code == 200
            assert response.headers["x-path"] == "/a path"
            assert response.content == body
        async with client.stream("POST", "/s", content=pieces()) as response:
            got = [piece async for piece in response.aiter_bytes()]
        assert b"".join(got) == b"".join([piece async for piece in pieces()])


async def pieces() -> AsyncIterator[bytes]:
    for number in range(10):
        yield bytes([number]) * 30_000


@pytest.mark.smoke
@pytest.mark.parametrize("http", ["h11", "httptools"])
def test_a_client_of_asyncio(run: Run, http: str) -> None:
    async def main() -> None:
        async with served(http=http) as url:
            await use(url)
            async with httpx.AsyncClient(base_url=url, timeout=20) as client:
                answers = await asyncio.gather(*(client.get(f"/{n}") for n in range(50)))
            assert [answer.headers["x-path"] for answer in answers] == [f"/{n}" for n in range(50)]

    run(main)


def test_tls(run: Run, tls: Any) -> None:
    async def main() -> None:
        async with served(ssl_certfile=tls.certificate, ssl_keyfile=tls.key) as url:
            await use(url, tls.client)

    run(main)


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, erlang.new_event_loop])
def test_a_client_inside_anyio(factory: Any, tls: Any) -> None:
    async def main() -> None:
        with anyio.fail_after(120):
            async with served() as url, anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(use, url)
            async with served(ssl_certfile=tls.certificate, ssl_keyfile=tls.key) as url:
                await use(url, tls.client)

    anyio.run(main, backend_options={"loop_factory": factory})


def test_a_timeout_leaves_the_client_usable(run: Run) -> None:
    async def main() -> None:
        async def silent(reader: Any, writer: Any) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with served() as url, httpx.AsyncClient() as client:
            with pytest.raises(httpx.ReadTimeout):
                await client.get(f"http://127.0.0.1:{port}/", timeout=0.05)
            assert (await client.get(url, timeout=20)).status_code == 200
        server.close()
        await server.wait_closed()

    run(main)
