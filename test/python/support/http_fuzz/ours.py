"""What our server understands of the bytes of a connection: the protocol itself, over a transport in memory."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

from erlang._native import HttpServer
from erlang.serve import Options

from .readers import Request, Seen


class Recorder:
    """An application that keeps what it was asked, and answers."""

    def __init__(self, echo: bool = True) -> None:
        self.seen: list[tuple[str, bytes, bytes]] = []
        self.headers: list[tuple[tuple[bytes, bytes], ...]] = []
        self.echo = echo

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            body += event["body"]
            more = event["more_body"]
        target = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        self.seen.append((scope["method"], target, body))
        self.headers.append(tuple(scope["headers"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body if self.echo else b""})


class Memory(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.written = b""
        self.over: asyncio.Future[None] = loop.create_future()
        self.loop = loop
        self.protocol: Any = None

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def writelines(self, parts: Any) -> None:
        self.written += b"".join(parts)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """The server has said all; the client has ended, too."""
        self.close()

    def is_closing(self) -> bool:
        return self.over.done()

    def close(self) -> None:
        if not self.over.done():
            self.over.set_result(None)
            self.loop.call_soon(self.protocol.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


async def turns() -> None:
    """Before Python 3.12 an application begins some turns of the loop after its request."""
    for _ in range(1 if sys.version_info >= (3, 12) else 5):
        await asyncio.sleep(0)


class Ours:
    """Our server, without a socket."""

    def __init__(self) -> None:
        self.app = Recorder(echo=False)
        self.core = HttpServer()
        options = {**Options(lifespan="off").native(), "access_log": False}
        self.core.start(asyncio.get_running_loop(), self.app, None, self, options)

    async def read(self, parts: list[bytes]) -> Seen:
        """What is understood of the bytes of one connection, which come in these parts."""
        self.app.seen.clear()
        self.app.headers.clear()
        transport = Memory(asyncio.get_running_loop())
        protocol = transport.protocol = self.core.connection()
        protocol.connection_made(transport)
        for part in parts:
            if not transport.is_closing() and part:
                protocol.data_received(part)
                await turns()
        if not transport.is_closing() and not protocol.eof_received():
            transport.close()
        await transport.over
        while self.core.info()["connections"]:
            await asyncio.sleep(0)
        return self.seen(transport.written)

    def seen(self, answers: bytes) -> Seen:
        heads = [head for head in answers.split(b"\r\n\r\n") if head.startswith(b"HTTP/1.1 ")]
        final = [head for head in heads if not head.startswith(b"HTTP/1.1 1")]
        seen = Seen()
        for index, (asked, headers) in enumerate(zip(self.app.seen, self.app.headers, strict=True)):
            method, target, body = asked
            goes_on = not re.search(rb"\r\nconnection: close", final[index])
            seen.requests.append(Request(method, target, headers, body, goes_on))
        rest = final[len(seen.requests) :]
        assert len(rest) <= 1, answers
        if rest:
            seen.end, seen.why = "refused", rest[0].split(b" ")[1].decode()
        elif seen.requests and not seen.requests[-1].goes_on:
            seen.end = "closed"
        return seen
