"""Serves an application in the test's own loop, and talks to it byte by byte.

The cases of the ASGI specification run against our server on both loops and against uvicorn.
"""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import uvicorn

import erlang
from erlang.serve import Options, Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

LIMIT = 60.0


class Response(NamedTuple):
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


class Wire:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def ask(self, data: bytes, head: bool = False) -> Response:
        self.send(data)
        return await self.response(head)

    async def get(self, path: str, *headers: str) -> Response:
        lines = [f"GET {path} HTTP/1.1", "Host: test", *headers, "", ""]
        return await self.ask("\r\n".join(lines).encode())

    async def head(self) -> tuple[int, list[tuple[str, str]]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = [line.partition(":") for line in lines[1:] if line]
        return int(lines[0].split()[1]), [(name.lower(), text.strip()) for name, _, text in pairs]

    async def response(self, head: bool = False) -> Response:
        status, headers = await self.head()
        fields = dict(headers)
        if head or status in (204, 304) or status < 200:
            body = b""
        elif "chunked" in fields.get("transfer-encoding", ""):
            body = b"".join([piece async for piece in self.chunks()])
        elif "content-length" in fields:
            body = await self.reader.readexactly(int(fields["content-length"]))
        else:
            body = await self.reader.read()
        return Response(status, headers, body)

    async def chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readline(), 16):
            yield await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"

    async def is_closed(self) -> bool:
        """Waits for the server to end the connection; nothing may come before that."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    async def is_closed_or_answered(self) -> bytes:
        """All that comes until the server ends the connection."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


class Peer:
    """A server under test."""

    def __init__(self, port: int, server: Any) -> None:
        self.port, self.server = port, server
        self.wires: list[Wire] = []

    async def connect(self) -> Wire:
        wire = Wire(*await asyncio.open_connection("127.0.0.1", self.port))
        self.wires.append(wire)
        return wire

    async def close(self) -> None:
        for wire in self.wires:
            await wire.close()


@asynccontextmanager
async def ours(app: Any, **options: Any) -> AsyncIterator[Peer]:
    server = Server(app, Options(port=0, **options))
    await server.start()
    peer = Peer(server.port, server)
    try:
        yield peer
    finally:
        await peer.close()
        await server.stop(5.0)


@asynccontextmanager
async def uvicorns(app: Any, **options: Any) -> AsyncIterator[Peer]:
    config = uvicorn.Config(app, port=0, log_config=None, http="httptools", **options)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    peer = Peer(server.servers[0].sockets[0].getsockname()[1], server)
    try:
        yield peer
    finally:
        await peer.close()
        await server.shutdown()


BOTH = {
    "ours": (erlang.new_event_loop, ours),
    "ours-on-asyncio": (asyncio.new_event_loop, ours),
    "uvicorn": (asyncio.new_event_loop, uvicorns),
}


class Host:
    """A kind of server and the loop for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.new_loop, self.serve = BOTH[name]

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(LIMIT):
                return await main()

        with closing(self.new_loop()) as loop:
            try:
                return loop.run_until_complete(limited())
            finally:
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())


@pytest.fixture(params=BOTH)
def host(request: pytest.FixtureRequest) -> Host:
    """Our server on both loops, and uvicorn: for what the specification says."""
    return Host(request.param)


@pytest.fixture(params=["ours", "ours-on-asyncio"])
def our_host(request: pytest.FixtureRequest) -> Host:
    """Our server on both loops: for what is stricter, or our own."""
    return Host(request.param)


async def narrow_client(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client whose kernel keeps little of what comes."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=client, limit=4096)
    # The stream reads only when it is asked to.
    writer.transport.pause_reading()
    return reader, writer


@pytest.fixture
def narrow() -> Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Makes such clients."""
    return narrow_client


class EchoSocket:
    """An application that accepts a WebSocket, echoes, and keeps what it heard."""

    def __init__(self, accept: dict[str, Any] | None = None) -> None:
        self.accept = accept or {}
        self.scopes: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        while True:
            event = await receive()
            self.events.append(event)
            if event["type"] == "websocket.connect":
                await send({"type": "websocket.accept", **self.accept})
            elif event["type"] == "websocket.disconnect":
                return
            elif event.get("text") is not None:
                await send({"type": "websocket.send", "text": event["text"]})
            else:
                await send({"type": "websocket.send", "bytes": event["bytes"]})

    async def heard(self, kind: str) -> dict[str, Any]:
        while self.events[-1:] == [] or self.events[-1]["type"] != kind:
            await asyncio.sleep(0)
        return self.events[-1]


@pytest.fixture
def echo_socket() -> Callable[..., EchoSocket]:
    """Makes such applications."""
    return EchoSocket


@pytest.fixture
def url() -> Callable[..., str]:
    """The address of a WebSocket of a server under test."""

    def url(peer: Peer, path: str = "/") -> str:
        return f"ws://127.0.0.1:{peer.port}{path}"

    return url


def command_line(folder: Path, *arguments: str) -> list[str]:
    # -P: the package is the installed one.
    given = ["--app-dir", str(folder), "--port", "0", *arguments]
    return [sys.executable, "-P", "-m", "erlang.serve", *given]


@contextmanager
def run_command(folder: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        command_line(folder, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"serving on (http[^ ,\n]+)", line):
                yield found[1], process
                break
        else:
            pytest.fail("".join(said))
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def command() -> Callable[..., list[str]]:
    """The command line that serves what is in a folder."""
    return command_line


@pytest.fixture
def served() -> Callable[..., Any]:
    """Runs the command; gives the address it tells, and its process."""
    return run_command
