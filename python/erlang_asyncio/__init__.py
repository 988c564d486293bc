"""asyncio's functions on the loop of ``erlang``, under the older name."""

from __future__ import annotations

import asyncio
from asyncio import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    CancelledError,
    create_task,
    ensure_future,
    gather,
    get_running_loop,
    set_event_loop,
    shield,
    sleep,
    timeout,
    wait,
    wait_for,
)
from typing import Any

from erlang._loop import ErlangEventLoop, new_event_loop
from erlang._run import run

TimeoutError = asyncio.TimeoutError

__all__ = [
    "ALL_COMPLETED",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "CancelledError",
    "ErlangEventLoop",
    "TimeoutError",
    "create_task",
    "ensure_future",
    "gather",
    "get_event_loop",
    "get_running_loop",
    "new_event_loop",
    "run",
    "set_event_loop",
    "shield",
    "sleep",
    "timeout",
    "wait",
    "wait_for",
]


def get_event_loop() -> asyncio.AbstractEventLoop:
    """The running loop, else the one that was set, else a new one, which is set."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        loop = _set_loop()
    if loop is None or loop.is_closed():
        loop = new_event_loop()
        asyncio.set_event_loop(loop)
    return loop


def _set_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that was set for this thread; none is made, and no warning is given."""
    private = getattr(asyncio.events, "_get_event_loop_policy", None)
    policy: Any = (private or asyncio.get_event_loop_policy)()
    loop: asyncio.AbstractEventLoop | None = getattr(policy._local, "_loop", None)
    return loop
