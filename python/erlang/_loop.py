"""`ErlangEventLoop`: asyncio's loop over a native core.

What runs per callback, timer and packet is native (`erlang._native.LoopCore`); what runs per
connection or per loop is the standard library's own, of the running version.
"""

# The private parts of asyncio have no types.
# mypy: disable-error-code="attr-defined,assignment,override,misc"

from __future__ import annotations

import asyncio
import collections
import signal
import sys
import threading
import time
import weakref
from asyncio import base_events, events, format_helpers
from asyncio.log import logger
from typing import TYPE_CHECKING, Any

from erlang._native import LoopCore

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Callable


class ErlangEventLoop(LoopCore, asyncio.SelectorEventLoop):
    """An asyncio event loop. Every loop is isolated from the others, whatever ``isolated`` says."""

    def __init__(self, *, isolated: bool = True) -> None:
        base_events.BaseEventLoop.__init__(self)
        self._selector = None
        self._ssock = self._csock = None
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

    def close(self) -> None:
        """Drops everything that waits; the loop can't be used again."""
        if self.is_running():
            raise RuntimeError("Cannot close a running event loop")
        if self._closed:
            return
        for sig in list(self._signal_handlers):
            self.remove_signal_handler(sig)
        if self._ssock is not None:
            self._close_self_pipe()
        base_events.BaseEventLoop.close(self)
        self._drop_all()

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        """Calls back when the signal comes; for the main thread."""
        self._check_closed()
        if self._csock is None and threading.current_thread() is threading.main_thread():
            self._make_self_pipe()
        super().add_signal_handler(sig, callback, *args)

    def _handle_signal(self, sig: int) -> None:
        handle = self._signal_handlers.get(sig)
        if handle is None:
            return
        if handle._cancelled:
            self.remove_signal_handler(sig)
        else:
            self._add_callback_signalsafe(handle)

    def _add_callback(self, handle: events.Handle) -> None:
        if not handle._cancelled:
            self._enqueue(handle)

    def _callback_failed(self, handle: Any, error: BaseException) -> None:
        """A native handle raised: what ``Handle._run`` says of it."""
        source = format_helpers._format_callback_source(handle._callback, handle._args or ())
        self.call_exception_handler(
            {"message": f"Exception in callback {source}", "exception": error, "handle": handle}
        )

    # Debug mode: the handles and the checks are asyncio's own.

    def _call_soon(
        self,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> events.Handle:
        handle = events.Handle(callback, args, self, context)
        if handle._source_traceback:
            del handle._source_traceback[-1]
        self._enqueue(handle)
        return handle

    def _debug_call_soon(
        self,
        threadsafe: bool | None,
        context: contextvars.Context | None,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> events.Handle:
        base = base_events.BaseEventLoop
        call = base.call_soon_threadsafe if threadsafe else base.call_soon
        handle = call(self, callback, *args, context=context)
        if handle._source_traceback:
            del handle._source_traceback[-1]
        return handle

    def _debug_call_at(
        self,
        when: float,
        context: contextvars.Context | None,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> events.TimerHandle:
        self._check_thread()
        self._check_callback(callback, "call_at")
        timer = events.TimerHandle(when, callback, args, self, context)
        if timer._source_traceback:
            del timer._source_traceback[-1]
        timer._scheduled = True
        self._schedule(timer, when)
        return timer

    def _debug_create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = base_events.BaseEventLoop.create_task(self, coro, **options)
        if task._source_traceback:
            del task._source_traceback[-1]
        return task

    def _debug_run(self, handle: events.Handle) -> None:
        try:
            self._current_handle = handle
            began = time.monotonic()
            handle._run()
            took = time.monotonic() - began
            if took >= self.slow_callback_duration:
                what = base_events._format_handle(handle)
                logger.warning("Executing %s took %.3f seconds", what, took)
        finally:
            self._current_handle = None


def new_event_loop() -> ErlangEventLoop:
    """A new loop, as ``asyncio.new_event_loop`` gives one."""
    return ErlangEventLoop()


if not hasattr(signal, "set_wakeup_fd"):  # pragma: no cover
    raise ImportError("the loop needs a POSIX system")
