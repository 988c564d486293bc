"""Where the access log goes: to a descriptor, written natively; to the logger of a node, many lines
at a time; or through `logging`.

`logging` is for programs that have configured it for these records. The server asks it once, at its
start, which handlers a record would reach. If the only one is the command's own or the node's, the
line goes there without `logging`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from erlang._logging import NodeHandler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from erlang.serve._options import Options

logger = logging.getLogger("erlang.serve.access")
#: As uvicorn has it.
MESSAGE = '%s - "%s %s HTTP/%s" %d'
#: Seconds that a line waits for others.
INTERVAL = 0.1
STREAMS = {"stdout": 1, "stderr": 2}
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class OwnHandler(logging.StreamHandler[Any]):
    """The handler of the command ``python -m erlang.serve``."""

    def __init__(self) -> None:
        super().__init__()
        self._own = logging.Formatter(LOG_FORMAT)
        self.setFormatter(self._own)

    def descriptor(self) -> int | None:
        """Where its stream writes, as long as nobody has changed what it does."""
        if self.formatter is not self._own or self.filters or self.level > logging.INFO:
            return None
        try:
            return int(self.stream.fileno())
        except (AttributeError, OSError, ValueError):
            return None


@contextmanager
def opened(options: Options) -> Iterator[dict[str, Any]]:
    """What `HttpServer.start` is told; it makes a copy of the descriptor."""
    name = options.access_log_file
    told: dict[str, Any] = {
        "access_log": options.access_log,
        "access_log_fd": None,
        "access_log_file": None,
        "access_log_batches": False,
    }
    if not options.access_log:
        yield told
    elif name is None:
        yield {**told, **_by_logging()}
    elif name in STREAMS:
        yield {**told, "access_log_fd": STREAMS[name]}
    else:
        path = os.path.abspath(name)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o644)
        try:
            yield {**told, "access_log_fd": descriptor, "access_log_file": path}
        finally:
            os.close(descriptor)


def _by_logging() -> dict[str, Any]:
    """What `logging` would do with a record, without it if one handler of ours is all it has."""
    if not logger.isEnabledFor(logging.INFO):
        return {"access_log": False}
    handlers = _handlers()
    if logger.filters or len(handlers) != 1:
        return {}
    (handler,) = handlers
    if isinstance(handler, OwnHandler):
        return {"access_log_fd": handler.descriptor()}
    changed = handler.filters or handler.formatter or handler.level > logging.INFO
    return {"access_log_batches": type(handler) is NodeHandler and not changed}


def _handlers() -> list[logging.Handler]:
    """All that a record of the access log reaches."""
    found: list[logging.Handler] = []
    current: logging.Logger | None = logger
    while current is not None:
        found += current.handlers
        current = current.parent if current.propagate else None
    return found


class Courier:
    """Hands lines to the logger of the node. A batch goes when the one before has been logged, so a
    slow handler of `logger` costs lines and no memory."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._hurry = asyncio.Event()
        # Requests and their context variables are nothing to it.
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """The first line waits."""
        if self._task is not None and not self._task.done():
            return
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._deliver(), context=self._context)

    async def _deliver(self) -> None:
        import erlang

        missing = 0
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), INTERVAL)
            lines, dropped = self._core.take_log()
            missing += dropped
            if not lines and not missing:
                return
            try:
                await erlang.async_call("$access_log", lines, missing)
                missing = 0
            except erlang.ErlangError:
                missing += lines.count(b"\n")
            except RuntimeError:
                # Whoever logged them was killed, or the application has stopped. With a pause: this
                # may be known at once, and the task of a loop that ends must not keep it.
                missing += lines.count(b"\n")
                await asyncio.sleep(INTERVAL)

    async def finish(self, timeout: float) -> None:
        """All lines are logged, or the time is over."""
        self._hurry.set()
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=timeout)
            self._task.cancel()
