"""One request for an application, asked for by an Erlang process (``py_asgi:run``)."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import erlang
from erlang.serve._load import as_asgi3, awaited

if TYPE_CHECKING:
    from erlang import Pid, Ref

logger = logging.getLogger("erlang.serve")

# Where Python can, the application starts at once: one that never waits is done then.
_START: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
_DEFAULTS: dict[str, Any] = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.4"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/",
    "raw_path": b"/",
    "query_string": b"",
    "root_path": "",
    "server": None,
    "client": None,
}

# By module and name: what was found there, and its form of ASGI 3.
_apps: dict[tuple[str, str], tuple[Any, Any]] = {}
# asyncio itself keeps no strong references to tasks.
_background: set[asyncio.Task[None]] = set()


class Broken(Exception):
    """The application did not keep to the protocol."""


def find(module_name: str, name: str) -> Any:
    """The application; found anew when its module was reloaded."""
    module = sys.modules.get(module_name) or importlib.import_module(module_name)
    found = getattr(module, name)
    known = _apps.get((module_name, name))
    if known is None or known[0] is not found:
        known = _apps[module_name, name] = found, as_asgi3(found)
    return known[1]


def _is_imported(name: str) -> bool:
    module = sys.modules.get(name)
    # As importlib sees whether another thread is still at it.
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


async def run(
    module: str,
    name: str,
    given: dict[str, Any],
    body: bytes | None,
    runner: Pid | None = None,
    ref: Ref | None = None,
    streams: bool = False,
) -> tuple[Any, ...]:
    """``(status, headers, body)``; ``("broken", why)`` if the application broke the protocol."""
    if not _is_imported(module):
        # In a thread: the loop does not wait for an import, and half a module is never asked.
        await asyncio.to_thread(importlib.import_module, module)
    app = find(module, name)
    scope = {**_DEFAULTS, "headers": [], **given}
    for key in ("path", "root_path"):
        if isinstance(scope[key], bytes):
            scope[key] = scope[key].decode("utf-8", "replace")
    exchange = Exchange(body, runner, ref, streams)
    loop = asyncio.get_running_loop()
    coroutine = app(scope, exchange.receive, exchange.send)
    if type(coroutine) is not CoroutineType:
        coroutine = awaited(coroutine)
    task: asyncio.Task[None] = asyncio.Task(coroutine, loop=loop, **_START)
    try:
        if not task.done():
            # What the application does after its response is nobody's wait.
            await exchange.completed(loop, task)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        exchange.leave()
    if not exchange.done:
        try:
            task.result()
        except Broken as error:
            return "broken", str(error)
        return "broken", "the application returned before its response was complete"
    if not task.done():
        _background.add(task)
        task.add_done_callback(_ended)
    elif task.exception() is not None:
        _ended(task)
    return exchange.status, exchange.headers, b"".join(exchange.pieces)


def _ended(task: asyncio.Task[None]) -> None:
    _background.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the application raised after its response", exc_info=error)


class Exchange:
    """``receive`` and ``send`` of one request."""

    __slots__ = (
        "_asked",
        "_body",
        "_gone",
        "_ref",
        "_runner",
        "_streams",
        "_waits",
        "done",
        "headers",
        "pieces",
        "status",
    )

    def __init__(
        self, body: bytes | None, runner: Pid | None, ref: Ref | None, streams: bool
    ) -> None:
        self._runner, self._ref, self._streams = runner, ref, streams
        # What is left of it; in a streamed one that is unknown. `None`: it was read.
        self._body: bytes | None = b"" if body is None else body
        self._waits: asyncio.Future[None] | None = None
        self._asked: asyncio.Future[Any] | None = None
        self._gone = False
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self.done = False
        if body is not None:
            # Nothing to ask for.
            self._runner = runner if streams else None

    async def receive(self) -> dict[str, Any]:
        body = self._body
        if body is None:
            if not (self.done or self._gone):
                await self._wait()
            return {"type": "http.disconnect"}
        if self._runner is None or body:
            self._body = None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._asked is None:
            asked = erlang.async_call("$asgi", self._runner, self._ref, "body")
            self._asked = asyncio.ensure_future(asked)
        # Cancelled, it has lost nothing: the next one gets what comes.
        answer = await asyncio.shield(self._asked)
        self._asked = None
        if answer == "gone":
            self._body, self._gone = None, True
            return {"type": "http.disconnect"}
        what, data = answer
        if what == "done":
            self._body = None
        return {"type": "http.request", "body": data, "more_body": what == "more"}

    async def send(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if self._gone:
            raise OSError("the client is gone")
        if kind == "http.response.body":
            if not self.status:
                raise Broken("http.response.body came before http.response.start")
            if self.done:
                raise Broken("http.response.body came after the end of the response")
            body = message.get("body", b"")
            if self._streams:
                if body:
                    await self._stream(body)
            elif body:
                self.pieces.append(body)
            if not message.get("more_body", False):
                self.done = True
                self.leave()
        elif kind == "http.response.start":
            if self.status:
                raise Broken("http.response.start came twice")
            status, headers = message["status"], message.get("headers", ())
            self.headers = [(bytes(name).lower(), bytes(value)) for name, value in headers]
            self.status = int(status)
            if self._streams:
                await self._stream((self.status, self.headers))
        else:
            raise Broken(f"{kind} was not expected")

    async def _stream(self, event: object) -> None:
        if await erlang.async_call("$asgi", self._runner, self._ref, event) != "sent":
            self._gone = True
            raise OSError("the client is gone")

    async def _wait(self) -> None:
        if self._waits is None or self._waits.done():
            self._waits = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waits)

    async def completed(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
        """Until the response is complete, or the application over."""
        if self.done:
            return
        if self._waits is None:
            self._waits = loop.create_future()
        await asyncio.wait((task, self._waits), return_when=asyncio.FIRST_COMPLETED)

    def leave(self) -> None:
        """Whoever waits for the end of the response hears of it."""
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)
