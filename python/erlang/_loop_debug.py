"""Debug mode of the loop: the handles and the checks are asyncio's own. And slow callbacks."""

# The private parts of asyncio have no types, and what is mixed in uses what the loop has.
# mypy: disable-error-code="attr-defined,assignment,override,misc,arg-type,no-any-return"

from __future__ import annotations

import contextvars
import time
from asyncio import base_events, coroutines, events
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class TimerHandle(events.TimerHandle):
    """asyncio's, which knows its place among the loop's timers."""

    __slots__ = ("_key",)
    _key: int


class DebugMode:
    """Mixed into ErlangEventLoop."""

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
        if threadsafe:
            # Not by asyncio's own: from 3.14 on that uses a queue which we don't have.
            self._check_closed()
            self._check_callback(callback, "call_soon_threadsafe")
            handle = self._call_soon(callback, args, context)
        else:
            base = base_events.BaseEventLoop
            handle = base.call_soon(self, callback, *args, context=context)
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
        timer = TimerHandle(when, callback, args, self, context)
        if timer._source_traceback:
            del timer._source_traceback[-1]
        timer._scheduled = True
        timer._key = self._schedule(timer, when)
        return timer

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        # Else it would wait among the timers for its time, with its traceback.
        if handle._scheduled:
            handle._scheduled = False
            self._unschedule(handle._key)

    def _debug_create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = base_events.BaseEventLoop.create_task(self, coro, **options)
        if task._source_traceback:
            del task._source_traceback[-1]
        return task

    def report_slow_callbacks(self, seconds: float | None) -> None:
        """Logs every callback that takes so long, as debug mode does, for the price of a look at a
        clock; ``None``: none. The loops of a node do so by the setting ``slow_callback_ms``."""
        if seconds is not None:
            if not seconds > 0:
                raise ValueError("seconds must be positive")
            self.slow_callback_duration = seconds
        self._time_callbacks(seconds or 0)

    def _slow(self, subject: Any, took: float) -> None:
        """What stands for a callback that took long: its handle, its coroutine, its transport."""
        is_handle = isinstance(subject, events.Handle)
        if is_handle:
            what = base_events._format_handle(subject)
        elif coroutines.iscoroutine(subject):
            what = f"<{coroutines._format_coroutine(subject)}>"
        else:
            what = repr(subject)
        # In the callback's own context: the record tells whom it ran for.
        context = (is_handle and subject._context) or contextvars.copy_context()
        text = "Executing %s took %.3f seconds"
        context.run(base_events.logger.warning, text, what, took)

    def _debug_run(self, handle: events.Handle) -> None:
        try:
            self._current_handle = handle
            began = time.monotonic()
            handle._run()
            took = time.monotonic() - began
            if took >= self.slow_callback_duration:
                self._slow(handle, took)
        finally:
            self._current_handle = None
            # A traceback that was taken meanwhile holds this frame: no cycle through it.
            del handle
