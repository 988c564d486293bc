"""A WSGI application as an ASGI one: it runs in a thread, and streams both ways."""

from __future__ import annotations

import asyncio
import importlib
import io
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


# What PEP 3333 wants to be there.
_DEFAULTS: dict[str, Any] = {
    "REQUEST_METHOD": "GET",
    "SCRIPT_NAME": "",
    "PATH_INFO": "/",
    "QUERY_STRING": "",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
}


class Wsgi:
    """``Wsgi(app)`` serves a WSGI application; at most `threads` requests run at a time."""

    def __init__(self, app: Any, threads: int = 32) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="wsgi")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            # Before the accept: a 403.
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            raise RuntimeError(f"a WSGI application has no {scope['type']}")
        loop = asyncio.get_running_loop()

        def wait_for(coroutine: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

        body = io.BufferedReader(_Body(lambda: wait_for(receive())))
        answer = _Answer(lambda event: wait_for(send(event)))
        run = loop.run_in_executor(self._pool, self._run, environment(scope, body), answer)
        await run

    def _run(self, environ: dict[str, Any], answer: _Answer) -> None:
        _respond(self._app, environ, answer)


def _respond(app: Any, environ: dict[str, Any], answer: _Answer) -> None:
    pieces: Iterable[bytes] = app(environ, answer.start)
    try:
        for piece in pieces:
            if piece:
                answer.write(piece)
        answer.end()
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


class _Body(io.RawIOBase):
    """The body of a request, read when it is wanted."""

    def __init__(self, receive: Callable[[], dict[str, Any]]) -> None:
        self._receive = receive
        self._rest = b""
        self._more = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and self._more:
            event = self._receive()
            if event["type"] == "http.disconnect":
                raise ConnectionResetError("the client left")
            self._rest, self._more = event.get("body", b""), event.get("more_body", False)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


class _Answer:
    """``start_response`` and what follows it."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._head: dict[str, Any] | None = None
        self._sent = False

    def start(self, status: str, headers: Any, exc_info: Any = None) -> Callable[[bytes], None]:
        if exc_info is not None:
            if self._sent:
                raise exc_info[1].with_traceback(exc_info[2])
        elif self._head is not None:
            raise AssertionError("start_response was called twice")
        pairs = [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in headers]
        number = int(status.split(" ", 1)[0])
        self._head = {"type": "http.response.start", "status": number, "headers": pairs}
        return self.write

    def write(self, data: bytes) -> None:
        self._send_head()
        self._send({"type": "http.response.body", "body": data, "more_body": True})

    def end(self) -> None:
        self._send_head()
        self._send({"type": "http.response.body", "body": b""})

    def _send_head(self) -> None:
        if self._head is None:
            raise AssertionError("start_response was not called")
        if not self._sent:
            self._sent = True
            self._send(self._head)


def environment(scope: dict[str, Any], body: Any) -> dict[str, Any]:
    """What PEP 3333 says about a request."""
    root = scope.get("root_path", "")
    path = scope["path"].removeprefix(root)
    server, client = scope.get("server") or ("localhost", 80), scope.get("client")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": root.encode().decode("latin-1"),
        "PATH_INFO": path.encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1] or 0),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if client:
        environ["REMOTE_ADDR"], environ["REMOTE_PORT"] = client[0], str(client[1])
    for raw_name, raw_value in scope["headers"]:
        # With an underscore it could pose as another one: proxies check the one with a dash.
        if b"_" in raw_name:
            continue
        name, value = (
            raw_name.decode("latin-1").upper().replace("-", "_"),
            raw_value.decode("latin-1"),
        )
        if name not in ("CONTENT_LENGTH", "CONTENT_TYPE"):
            name = f"HTTP_{name}"
        environ[name] = f"{environ[name]},{value}" if name in environ else value
    return environ


def run(module: str, name: str, given: dict[str, Any], body: bytes) -> tuple[Any, ...]:
    """One request, asked for by an Erlang process (``py_wsgi:run``): ``(status, headers, body)``;
    ``("broken", why)`` if the application broke the protocol."""
    found = getattr(importlib.import_module(module), name)
    environ: dict[str, Any] = {**_DEFAULTS, "wsgi.input": io.BytesIO(body), **given}
    environ.setdefault("wsgi.errors", sys.stderr)
    if body:
        environ.setdefault("CONTENT_LENGTH", str(len(body)))
    for key, value in environ.items():
        if isinstance(value, bytes):
            environ[key] = value.decode("latin-1")
    events: list[dict[str, Any]] = []
    try:
        _respond(found, environ, _Answer(events.append))
    except AssertionError as error:
        return "broken", str(error)
    head = events[0]
    return head["status"], head["headers"], b"".join(event["body"] for event in events[1:])
