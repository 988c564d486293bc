"""Signals: outside a node as asyncio has it, inside served by the emulator's own signal handling.

In a node a signal belongs to the emulator. `py_signal` takes it over with the first handler for it,
and tells each loop what came: the answer to a question that the loop asks again and again.
"""

# The private parts of asyncio have no types.
# mypy: disable-error-code="attr-defined,assignment,override,misc,no-untyped-call"

from __future__ import annotations

import inspect
import signal
import threading
from asyncio import SelectorEventLoop, events
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from erlang._errors import Cancelled

_node: Any
try:
    # Not `from erlang`: outside a node that has a name for what refuses there.
    import erlang._node as _node
except ImportError:
    _node = None

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

# By the emulator's names.
_SERVED: dict[int, str] = {
    signal.SIGHUP: "sighup",
    signal.SIGQUIT: "sigquit",
    signal.SIGABRT: "sigabrt",
    signal.SIGALRM: "sigalrm",
    signal.SIGTERM: "sigterm",
    signal.SIGUSR1: "sigusr1",
    signal.SIGUSR2: "sigusr2",
    signal.SIGCHLD: "sigchld",
    signal.SIGTSTP: "sigtstp",
}
_NUMBERS = {name: number for number, name in _SERVED.items()}


def _give_back(what: str, *args: Any) -> None:
    """Without fail: a signal that nobody handles any more must be the emulator's again."""
    try:
        _node.call(f"${what}", *args)
    except (RuntimeError, Cancelled):
        # A job that was told to stop can't wait.
        _tell(what, *args)


def _tell(what: str, *args: Any) -> None:
    # Where the application has stopped there is no such process, and all was given back.
    with suppress(ValueError):
        _node.send("py_signal", (what, *args))


class Signals(SelectorEventLoop):
    """What a loop knows of signals."""

    # Stands for the loop in `py_signal`, while it has handlers.
    _signals: int | None = None

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        """Calls back when the signal comes; outside a node for the main thread."""
        self._check_closed()
        if _node is not None:
            self._add_in_node(sig, callback, args)
            return
        if self._csock is None and threading.current_thread() is threading.main_thread():
            self._make_self_pipe()
        super().add_signal_handler(sig, callback, *args)

    def remove_signal_handler(self, sig: int) -> bool:
        """Whether there was one."""
        if _node is None:
            return bool(super().remove_signal_handler(sig))
        self._check_signal(sig)
        if self._signal_handlers.pop(sig, None) is None:
            return False
        if self._signal_handlers:
            _give_back("signal_remove", self._signals, _SERVED[sig])
        else:
            _give_back("signal_close", self._signals)
            self._signals = None
        return True

    def _end_signals(self) -> None:
        """The loop is closed: no handler of it is left."""
        if _node is None:
            for sig in list(self._signal_handlers):
                super().remove_signal_handler(sig)
        elif self._signals is not None:
            self._signal_handlers.clear()
            # Nobody may answer any more: the application may be stopping.
            _tell("signal_close", self._signals)
            self._signals = None

    def _add_in_node(self, sig: int, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if inspect.iscoroutine(callback) or inspect.iscoroutinefunction(callback):
            raise TypeError("coroutines cannot be used with add_signal_handler()")
        self._check_signal(sig)
        name = _SERVED.get(sig)
        if sig in (signal.SIGKILL, signal.SIGSTOP):
            raise RuntimeError(f"sig {sig} cannot be caught")
        if name is None:
            # As where a system has no handlers at all: programs go on without one.
            raise NotImplementedError(
                f"signal {sig} ({signal.strsignal(sig)}) cannot be handled in an Erlang node: the "
                f"emulator passes on {', '.join(_NUMBERS).upper()} and no other"
            )
        if self._signals is None:
            self._signals = _node.call("$signal_open")
            self._await_signals()
        _node.call("$signal_add", self._signals, name)
        self._signal_handlers[sig] = events.Handle(callback, args, self, None)

    def _await_signals(self) -> None:
        came = self.create_future()
        _node.ask(self, came, "$signal_await", self._signals)
        came.add_done_callback(self._signals_came)

    def _signals_came(self, came: asyncio.Future[list[str]]) -> None:
        if came.cancelled() or came.exception() is not None:
            # Whoever told is gone, and with it the handlers.
            self._signals = None
            self._signal_handlers.clear()
            return
        if not came.result():
            # Closed; another may be open already, with a question of its own.
            return
        for name in came.result():
            self._handle_signal(_NUMBERS[name])
        if self._signals is not None:
            self._await_signals()

    def _handle_signal(self, sig: int) -> None:
        handle = self._signal_handlers.get(sig)
        if handle is None:
            return
        if handle._cancelled:
            self.remove_signal_handler(sig)
        else:
            self._add_callback_signalsafe(handle)
