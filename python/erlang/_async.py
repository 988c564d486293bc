"""Coroutines and Erlang: call it without blocking the loop, start tasks, know the caller."""

from __future__ import annotations

import asyncio
import contextvars
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from erlang import _in_trio

try:
    from erlang import _node
except ImportError:
    from erlang import _no_node as _node  # type: ignore[no-redef]

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Awaitable, Coroutine

T = TypeVar("T")


class _Named(NamedTuple):
    caller: Any
    trace_id: Any
    reply_to: Any


class Current(_Named):
    """Whom the code runs for, and what that process has said about the call."""

    # What the process has told `logger` about itself.
    metadata: dict[str, Any]

    @property
    def traceparent(self) -> str | None:
        """The header of W3C Trace Context, from the metadata or as the ``trace_id``."""
        for value in (self.metadata.get("traceparent"), self.trace_id):
            if isinstance(value, str) and _TRACEPARENT.fullmatch(value):
                return value
        return None


_TRACEPARENT = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*")


def current() -> Current | None:
    """The call this code belongs to; ``None`` in a thread that runs for nobody."""
    known = _node.current()
    if known is None:
        return None
    caller, about = known
    trace_id, reply_to, metadata = about or (None, caller, {})
    told = Current(caller, trace_id, reply_to)
    told.metadata = metadata
    return told


def async_call(name: str, *args: object) -> Awaitable[Any]:
    """Calls a function registered in Erlang; to be awaited, on any loop of asyncio or Trio."""
    if _in_trio():
        from erlang import _trio

        return _trio.ask(name, *args)
    loop = asyncio._get_running_loop()
    if loop is None:
        raise RuntimeError("erlang.async_call() needs a running event loop: use erlang.call()")
    future = loop.create_future()
    if _node.ask(loop, future, name, *args):
        return future
    # A loop of another make has no way in for Erlang: a thread of its own waits.
    context = contextvars.copy_context()
    return loop.run_in_executor(None, context.run, _node.call, name, *args)


# asyncio itself keeps no strong references to tasks.
_tasks: set[asyncio.Task[Any]] = set()


def spawn_task(
    coro: Coroutine[Any, Any, T],
) -> asyncio.Task[T] | concurrent.futures.Future[T]:
    """Runs a coroutine in the background: on the running loop, which gives a task, or from code
    without one on a loop of the node, in a sub-interpreter on its own loop, which gives a future of
    ``concurrent.futures``."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        task = loop.create_task(coro)
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
        return task
    from erlang import _tasks as node_loops

    if not node_loops.up.is_set():
        if not _node.begin_loop():
            _node.call("$start_loops")
        node_loops.up.wait()
    return asyncio.run_coroutine_threadsafe(coro, node_loops.loops[-1])
