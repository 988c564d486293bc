"""The application of `./dev soak http`: every answer is made of the nonce of its request.

The path is `/KIND/NONCE/SIZE`. The nonce comes back in a header, and the body repeats it, so that
a byte of another answer is seen wherever it stands. `$SOAK_PLANT` puts a defect in, for the tests
of the harness.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

PLANT = os.environ.get("SOAK_PLANT", "")
FILES = 32
FILE_UNIT = 4099
HOST = "127.0.0.1"

served = 0
planned = 0
previous = b"0" * 16
leaked: list[Any] = []


def pattern(nonce: bytes, size: int) -> bytes:
    unit = nonce + b"\n"
    return (unit * (size // len(unit) + 1))[:size]


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        _, kind, nonce, size = scope["path"].split("/")
        await KINDS[kind](scope, receive, send, planted(nonce.encode()), int(size))
    elif scope["type"] == "websocket":
        await websocket(scope, receive, send)
    else:
        await lifespan(scope, receive, send)


def planted(nonce: bytes) -> bytes:
    """The nonce to answer with, which is that of the request unless a defect is planted."""
    global served, previous
    served += 1
    if PLANT == "swap" and served % 500 == 0:
        nonce, previous = previous, nonce
    else:
        previous = nonce
    if PLANT == "leak" and served % 10 == 0:
        leaked.append(socket.socket())
    return nonce


def head(nonce: bytes, size: int | None) -> dict[str, Any]:
    headers = [(b"x-nonce", nonce), (b"content-type", b"text/plain")]
    if size is not None:
        headers.append((b"content-length", b"%d" % size))
    return {"type": "http.response.start", "status": 200, "headers": headers}


async def whole(send: Any, nonce: bytes, body: bytes) -> None:
    await send(head(nonce, len(body)))
    await send({"type": "http.response.body", "body": body})


async def length(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    global planned
    planned += 1
    # Often enough that not all of their clients leave by themselves.
    if PLANT == "hang" and planned % 10 == 0:
        await asyncio.get_running_loop().create_future()
    await whole(send, nonce, pattern(nonce, size))


async def chunked(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    """In three pieces, each after a turn of the loop."""
    body = pattern(nonce, size)
    await send(head(nonce, None))
    third = size // 3 + 1
    for begin in range(0, size, third):
        await asyncio.sleep(0)
        piece = body[begin : begin + third]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def slow(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    """Answers though the client may have left long ago."""
    await asyncio.sleep(size % 20 / 1000)
    await whole(send, nonce, pattern(nonce, size))


async def threaded(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    await asyncio.to_thread(time.sleep, 0.001)
    await whole(send, nonce, pattern(nonce, size))


async def echo(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    """The body of the request, which must be made of the nonce as well."""
    pieces, more = [], True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        pieces.append(event["body"])
        more = event.get("more_body", False)
    body = b"".join(pieces)
    asked = scope["path"].split("/")[2].encode()
    if body != pattern(asked, size):
        nonce = b"the-wrong-body!!"
    await whole(send, nonce, body)


async def early(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    """Does not read the body."""
    await whole(send, nonce, pattern(nonce, size))


async def file(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    number = int(nonce, 16) % FILES
    path = Path(scope["state"]["files"]) / str(number)
    await send(head(nonce, number * FILE_UNIT))
    if "http.response.pathsend" in scope.get("extensions", ()):
        await send({"type": "http.response.pathsend", "path": str(path)})
    else:
        await send({"type": "http.response.body", "body": path.read_bytes()})


async def by_socket(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    """Asks another server by `loop.sock_*`. A read is given up right before the socket closes."""
    loop = asyncio.get_running_loop()
    with closing(socket.socket()) as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, (HOST, scope["state"]["backend"]))
        await loop.sock_sendall(sock, pattern(nonce, size))
        got = b""
        while len(got) < size:
            got += await loop.sock_recv(sock, size)
        given_up = loop.create_task(loop.sock_recv(sock, 1))
        await asyncio.sleep(0)
        given_up.cancel()
        with suppress(asyncio.CancelledError):
            await given_up
    await whole(send, nonce, got)


class Asks(asyncio.Protocol):
    def __init__(self, question: bytes) -> None:
        self.question = question
        self.got = b""
        self.answer = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self.question)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.got += data
        if len(self.got) >= len(self.question) and not self.answer.done():
            self.answer.set_result(self.got)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_result(self.got)


async def by_transport(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    """Asks another server by a transport over a socket of ours (`sock=`), which is closed twice."""
    loop = asyncio.get_running_loop()
    with closing(socket.socket()) as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, (HOST, scope["state"]["backend"]))
        question = pattern(nonce, size)
        transport, asks = await loop.create_connection(lambda: Asks(question), sock=sock)
        try:
            got = await asks.answer
        finally:
            transport.abort()
        # The descriptor is closed by now, and its number may be another connection's.
        await asyncio.sleep(0)
    await whole(send, nonce, got)


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)  # type: ignore[attr-defined]


async def websocket(scope: Any, receive: Any, send: Any) -> None:
    assert (await receive())["type"] == "websocket.connect"
    nonce = planted(scope["path"].split("/")[2].encode())
    await send({"type": "websocket.accept", "headers": [(b"x-nonce", nonce)]})
    while (event := await receive())["type"] == "websocket.receive":
        data = event.get("bytes")
        reply = {"bytes": data} if data is not None else {"text": event["text"]}
        await send({"type": "websocket.send", **reply})


async def stats(scope: Any, receive: Any, send: Any, nonce: bytes, size: int) -> None:
    """What there is in this process now, as lines of a name and a number."""
    gc.collect()
    objects = Counter(type(item).__qualname__ for item in gc.get_objects())
    numbers = {"descriptors": len(os.listdir("/proc/self/fd")), "memory": resident(), **of_node()}
    lines = [f"{name} {number}" for name, number in numbers.items()]
    lines += [f"object:{name} {number}" for name, number in objects.items() if " " not in name]
    await whole(send, nonce, "\n".join(lines).encode())


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def of_node() -> dict[str, int]:
    """Processes, ports, atoms: inside a node."""
    import erlang

    try:
        numbers: dict[str, int] = erlang.call("soak_numbers")
    except (erlang.NotInNode, erlang.ErlangError):
        return {}
    return numbers


KINDS = {
    "len": length,
    "chk": chunked,
    "slow": slow,
    "thr": threaded,
    "echo": echo,
    "early": early,
    "file": file,
    "sock": by_socket,
    "conn": by_transport,
    "stats": stats,
}


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    backend = await asyncio.get_running_loop().create_server(Echo, HOST, 0)
    with tempfile.TemporaryDirectory() as files:
        for number in range(FILES):
            content = pattern(b"%016x" % number, number * FILE_UNIT)
            (Path(files) / str(number)).write_bytes(content)
        scope["state"]["backend"] = backend.sockets[0].getsockname()[1]
        scope["state"]["files"] = files
        await send({"type": "lifespan.startup.complete"})
        await receive()
    backend.close()
    await send({"type": "lifespan.shutdown.complete"})
