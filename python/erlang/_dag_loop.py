"""The event loop that runs the coroutines of graphs: one thread, started with the first one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any

from erlang import _native
from erlang._loop import new_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_lock = threading.Lock()
_closed = False
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def _forked() -> None:
    global _loop, _thread, _lock
    _loop, _thread, _lock = None, None, threading.Lock()


os.register_at_fork(after_in_child=_forked)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        if pending:
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        loop.close()


def _running() -> asyncio.AbstractEventLoop | None:
    """``None``: Python is about to end, and a new thread would keep it from that for ever."""
    global _loop, _thread
    with _lock:
        if _closed:
            return None
        if _loop is None:
            _loop = new_event_loop()
            _thread = threading.Thread(target=_serve, args=(_loop,), name="dag-loop", daemon=False)
            _thread.start()
        return _loop


def stop() -> None:
    """Ends the thread, for good; called before Python waits for its threads at the end."""
    global _closed, _loop, _thread
    with _lock:
        _closed = True
        loop, thread, _loop, _thread = _loop, _thread, None, None
    if loop is not None and thread is not None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def spawn(coroutine: Coroutine[Any, Any, object], completion: object) -> Callable[[], None]:
    """Runs a coroutine; its end is the end of the node. Gives what cancels it."""
    loop = _running()
    if loop is None:
        coroutine.close()
        _native.dag_fail(completion, RuntimeError("the program ends"))
        return lambda: None
    tasks: list[asyncio.Task[object]] = []

    def end(task: asyncio.Task[object]) -> None:
        if task.cancelled():
            _native.dag_fail(completion, asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            _native.dag_fail(completion, error)
        else:
            _native.dag_complete(completion, task.result())

    def start() -> None:
        task = loop.create_task(coroutine)
        tasks.append(task)
        task.add_done_callback(end)

    def cancel() -> None:
        # After `start`: both go through the loop, in order. A closed loop has cancelled all itself.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: tasks[0].cancel() if tasks else None)

    loop.call_soon_threadsafe(start)
    return cancel
