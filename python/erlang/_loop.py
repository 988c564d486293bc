"""`ErlangEventLoop`: asyncio's loop over a native core.

What runs per callback, timer and packet is native (`erlang._native.LoopCore`); what runs per
connection or per loop is the standard library's own, of the running version.
"""

# The private parts of asyncio have no types.
# mypy: disable-error-code="attr-defined,assignment,override,misc"

from __future__ import annotations

import asyncio
import collections
import os
import selectors
import signal
import sys
import threading
import weakref
from asyncio import (
    base_events,
    events,
    format_helpers,
    transports,
)
from typing import Any

from erlang._loop_connections import Connections
from erlang._loop_datagrams import Datagrams
from erlang._loop_debug import DebugMode
from erlang._loop_signals import Signals
from erlang._loop_sockets import Sockets
from erlang._loop_subprocess import Subprocesses
from erlang._loop_tls import Tls
from erlang._native import LoopCore


class _ErlangSocketTransport(transports._FlowControlMixin, transports.Transport):
    """What `isinstance` takes the native transport for."""


class _ErlangDatagramTransport(transports._FlowControlMixin, transports.DatagramTransport):
    """What `isinstance` takes the native datagram transport for."""


class _Watched:
    """What asyncio's own transports ask a selector: which descriptors are watched, and for what."""

    def __init__(self, loop: ErlangEventLoop) -> None:
        self._loop = weakref.ref(loop)

    def get_key(self, fd: int) -> selectors.SelectorKey:
        """As `selectors.BaseSelector.get_key` has it."""
        loop = self._loop()
        watched = 0 if loop is None else loop._watched(fd)
        if not watched:
            raise KeyError(f"{fd!r} is not registered")
        return selectors.SelectorKey(fd, fd, watched, None)


# A child of os.fork() has the parent's loops, and must leave alone what they watch.
_loops: weakref.WeakSet[ErlangEventLoop] = weakref.WeakSet()


def _after_fork() -> None:
    for loop in list(_loops):
        loop._after_fork()


os.register_at_fork(after_in_child=_after_fork)


class ErlangEventLoop(
    DebugMode,
    Sockets,
    Tls,
    Connections,
    Datagrams,
    Subprocesses,
    LoopCore,
    Signals,
    asyncio.SelectorEventLoop,
):
    """An asyncio event loop. Every loop is isolated from the others, whatever ``isolated`` says."""

    def __init__(self, *, isolated: bool = True) -> None:
        base_events.BaseEventLoop.__init__(self)
        self._selector = _Watched(self)
        self._ssock: Any = None
        self._csock: Any = None
        _loops.add(self)
        # The descriptor by which other threads wake the loop.
        self._internal_fds += 1
        self._transports: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._signal_handlers: dict[int, Any] = {}
        self._unix_server_sockets: dict[Any, Any] = {}
        self._ready: collections.deque[Any] = collections.deque()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} running={self.is_running()} closed={self.is_closed()} "
            f"debug={self.get_debug()}>"
        )

    def run_forever(self) -> None:
        """Runs until ``stop`` is called."""
        self._check_closed()
        self._check_running()
        self._set_coroutine_origin_tracking(self._debug)
        hooks = sys.get_asyncgen_hooks()
        try:
            self._thread_id = threading.get_ident()
            sys.set_asyncgen_hooks(
                firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook
            )
            events._set_running_loop(self)
            self._run()
        finally:
            self._stopping = False
            self._thread_id = None
            events._set_running_loop(None)
            self._set_coroutine_origin_tracking(False)
            sys.set_asyncgen_hooks(*hooks)

    def close(self, _close: Any = base_events.BaseEventLoop.close) -> None:
        """Drops everything that waits; the loop can't be used again."""
        if self.is_running():
            raise RuntimeError("Cannot close a running event loop")
        if self._closed:
            return
        self._end_signals()
        if self._ssock is not None:
            self._close_self_pipe()
        # Kept by the default: a loop may be closed when the modules are gone already.
        _close(self)
        self._end()
        self._selector = None
        self._internal_fds -= 1

    def _add_callback(self, handle: events.Handle) -> None:
        if not handle._cancelled:
            self._enqueue(handle)

    def _interrupted(self) -> None:
        """Called when another thread has sent an exception to this one: it is raised in here."""

    def _callback_failed(self, handle: Any, error: BaseException) -> None:
        """A native handle raised: what ``Handle._run`` says of it."""
        source = format_helpers._format_callback_source(handle._callback, handle._args or ())
        self.call_exception_handler(
            {"message": f"Exception in callback {source}", "exception": error, "handle": handle}
        )


def new_event_loop() -> ErlangEventLoop:
    """A new loop, as ``asyncio.new_event_loop`` gives one."""
    return ErlangEventLoop()


if not hasattr(signal, "set_wakeup_fd"):  # pragma: no cover
    raise ImportError("the loop needs a POSIX system")
