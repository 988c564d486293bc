"""hypercorn on asyncio's loop and ours: HTTP/1.1, HTTP/2 over TLS, web sockets."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import websockets
from hypercorn.asyncio import serve
from hypercorn.config import Config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Run = Any


def application() -> Any:
    spec = importlib.util.spec_from_file_location("asgi", Path(__file__).parent / "asgi_app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


@asynccontextmanager
async def served(tls: Any = None) -> AsyncIterator[str]:
    """The address; hypercorn itself listens on a socket that is given to it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        config = Config()
        config.bind = [f"fd://{listening.detach()}"]
    config.loglevel = "WARNING"
    config.graceful_timeout = 2
    if tls is not None:
        config.certfile, config.keyfile = tls.certificate, tls.key
    stop = asyncio.Event()
    running = asyncio.create_task(
        serve(application(), config, shutdown_trigger=stop.wait)  # type: ignore[arg-type]
    )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        stop.set()
        await running


@pytest.mark.smoke
def test_requests_are_answered(loop: Any, run: Run) -> None:
    async def main() -> None:
        async with served() as address, httpx.AsyncClient(timeout=20) as client:
            for _ in range(5):
                response = await client.get(f"http://{address}/later")
                assert response.text == type(loop).__name__
            body = (await client.get(f"http://{address}/stream")).content
            assert len(body) == 600_000

    run(main)


def test_http_2_over_tls(loop: Any, run: Run, tls: Any) -> None:
    async def main() -> None:
        client = httpx.AsyncClient(http2=True, verify=tls.client, timeout=20)
        async with served(tls) as address, client:
            urls = [f"https://{address}/later"] * 20 + [f"https://{address}/stream"] * 3
            answers = await asyncio.gather(*(client.get(url) for url in urls))
        assert {answer.http_version for answer in answers} == {"HTTP/2"}
        assert answers[0].text == type(loop).__name__
        assert len(answers[-1].content) == 600_000

    run(main)


def test_web_sockets(run: Run) -> None:
    async def main() -> None:
        async with (
            served() as address,
            websockets.connect(f"ws://{address}/") as web_socket,
        ):
            await web_socket.send("hello")
            assert await web_socket.recv() == "HELLO"

    run(main)
