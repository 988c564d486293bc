"""uvicorn as its users start it, with `--loop` naming our loop."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import websockets

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
LOOPS = {"asyncio": "_UnixSelectorEventLoop", "erlang:new_event_loop": "ErlangEventLoop"}
LIMIT = 120.0


class Uvicorn:
    """The server in a process of its own."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "uvicorn", "asgi_app:app", "--port", "0", *options]
        self.process = subprocess.Popen(
            [
                *command,
                "--app-dir",
                str(HERE),
                "--no-use-colors",
                "--timeout-graceful-shutdown",
                "5",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        self.said: list[str] = []
        self.watchdog = threading.Timer(LIMIT, self.process.kill)
        self.watchdog.start()

    def lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            yield line

    def address(self) -> str:
        for line in self.lines():
            found = re.search(r"running on https?://(127\.0\.0\.1:\d+)", line)
            if found:
                return found[1]
        raise AssertionError("uvicorn did not start:\n" + "".join(self.said))

    def end(self) -> tuple[int, str]:
        """Stops it as its users do; the status and what it said."""
        self.process.send_signal(signal.SIGTERM)
        for _ in self.lines():
            pass
        status = self.process.wait()
        self.watchdog.cancel()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status, "".join(self.said)


@contextmanager
def uvicorn(*options: str) -> Iterator[str]:
    server = Uvicorn(*options)
    try:
        yield server.address()
    finally:
        status, said = server.end()
    assert "the lifespan ended" in said, said
    assert status in (0, -signal.SIGTERM), said


@pytest.mark.smoke
@pytest.mark.parametrize("http", ["httptools", "h11"])
@pytest.mark.parametrize("loop_name", list(LOOPS))
def test_requests_are_answered_on_the_loop_that_was_named(loop_name: str, http: str) -> None:
    with uvicorn("--loop", loop_name, "--http", http) as address, httpx.Client() as client:
        for _ in range(20):
            response = client.get(f"http://{address}/later", timeout=20)
            assert response.text == LOOPS[loop_name]
        assert len(client.get(f"http://{address}/stream").content) == 600_000


@pytest.mark.parametrize("kind", ["websockets", "websockets-sansio"])
@pytest.mark.parametrize("loop_name", list(LOOPS))
def test_web_sockets(loop_name: str, kind: str) -> None:
    async def main(address: str) -> None:
        async with websockets.connect(f"ws://{address}/", max_size=None) as socket:
            await socket.send("hello")
            assert await socket.recv() == "HELLO"
            data = bytes(range(256)) * 2_000
            await socket.send(data)
            assert await socket.recv() == data[::-1]
            pong = await socket.ping()
            await pong

    options = ("--loop", loop_name, "--ws", kind)
    with uvicorn(*options) as address, asyncio.Runner() as runner:
        runner.run(asyncio.wait_for(main(address), LIMIT))


@pytest.mark.parametrize("loop_name", list(LOOPS))
def test_tls(loop_name: str, tls: Any) -> None:
    options = ("--ssl-certfile", tls.certificate, "--ssl-keyfile", tls.key)
    server = uvicorn("--loop", loop_name, *options)
    with server as address, httpx.Client(verify=tls.client) as client:
        for _ in range(5):
            assert client.get(f"https://{address}/").text == LOOPS[loop_name]
        assert len(client.get(f"https://{address}/stream").content) == 600_000


@pytest.mark.parametrize("loop_name", list(LOOPS))
def test_a_request_that_runs_is_answered_before_the_end(loop_name: str) -> None:
    server = Uvicorn("--loop", loop_name)
    address = server.address()
    with httpx.Client() as client, client.stream("GET", f"http://{address}/later") as response:
        status, said = server.end()
        assert response.read().decode() == LOOPS[loop_name]
    assert "the lifespan ended" in said
    assert status in (0, -signal.SIGTERM), said
