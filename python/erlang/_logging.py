"""Python's log records on their way to the logger of the node.

Runs on whatever thread logs. `sink(levelno, name, message, meta)` is given by the native side; it
must not block. Nothing here raises: who logs does not expect that, and the hooks below run where
no one could catch it.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

Meta = dict[str, object]
Sink = Callable[[int, str, str, Meta], object]


class NodeHandler(logging.Handler):
    """Hands every record, exception text included, to the sink."""

    def __init__(self, sink: Sink, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.sink = sink
        self._busy = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        # A sink that logs would come back here without end.
        if getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            self.sink(record.levelno, record.name, self._text(record), _meta(record))
        except Exception:
            _complain(f"a log record of {record.name!r} was lost")
        finally:
            self._busy.now = False

    def _text(self, record: logging.LogRecord) -> str:
        try:
            # The formatter appends exc_info and stack_info as it does everywhere.
            return _clean(self.format(record))
        except Exception as error:
            # logger.info("%d", "x"): the mistake is the user's, and he shall see where it is.
            shown = " ".join(map(_repr, (record.msg, record.args, error)))
            return _clean(f"a log record cannot be formatted: {shown}")

    # The sink may be used by many threads at once; the base class would put a lock around it,
    # and with it one around whatever `__str__` the arguments have.
    def createLock(self) -> None:
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        passed = self.filter(record)
        if passed:
            # From 3.12 on a filter may give another record instead of True.
            self.emit(passed if isinstance(passed, logging.LogRecord) else record)
        return bool(passed)


_handler: NodeHandler | None = None
_install_lock = threading.Lock()


def install(sink: Sink, level: int = logging.NOTSET) -> None:
    """Attach to the root logger and to the hooks for exceptions that nobody catches.

    Called again it only changes the sink and the level.
    """
    global _handler
    with _install_lock:
        root = logging.getLogger()
        if _handler is None:
            _handler = NodeHandler(sink, level)
        _handler.sink = sink
        _handler.setLevel(level)
        if _handler not in root.handlers:
            root.addHandler(_handler)
        root.setLevel(level)
        threading.excepthook = _thread_failed
        sys.unraisablehook = _unraisable


def _meta(record: logging.LogRecord) -> Meta:
    return {
        "file": _clean(record.pathname),
        "line": record.lineno,
        "function": _clean(record.funcName or ""),
        "module": _clean(record.module),
        "thread": _clean(record.threadName or ""),
        "time": int(record.created * 1_000_000),
    }


def _thread_failed(args: threading.ExceptHookArgs) -> None:
    # As Python's own hook: a thread may end itself this way.
    if args.exc_type is SystemExit:
        return
    name = args.thread.name if args.thread is not None else "?"
    error, trace = args.exc_value, args.exc_traceback
    _report(f"uncaught exception in Python thread {name}", name, args.exc_type, error, trace)


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    try:
        subject = f"{args.err_msg or 'exception ignored in'}: {_repr(args.object)}"
        name = threading.current_thread().name
    except Exception:
        # The interpreter ends, and modules are gone already: what fails now fails for that reason
        # (the stand-in that `threading` makes for our thread always does).
        return
    _report(subject, name, args.exc_type, args.exc_value, args.exc_traceback)


def _report(
    subject: str,
    thread: str,
    kind: type[BaseException],
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """Straight to the sink: no level or filter that a user has set may lose it."""
    try:
        text = "".join(traceback.format_exception(kind, error, trace)).rstrip("\n")
        meta: Meta = {"thread": _clean(thread)}
        if trace is not None:
            while trace.tb_next is not None:
                trace = trace.tb_next
            code = trace.tb_frame.f_code
            meta["file"] = _clean(code.co_filename)
            meta["line"] = trace.tb_lineno or 0
            meta["function"] = _clean(code.co_name)
        if _handler is not None:
            _handler.sink(logging.ERROR, "erlang.uncaught", _clean(f"{subject}\n{text}"), meta)
    except Exception:
        _complain(f"{subject}: it could not be logged")


def _complain(text: str) -> None:
    """The last resort, when the sink itself fails: the standard error of the process."""
    try:
        if sys.__stderr__ is not None:
            sys.__stderr__.write(f"erlang: {text}\n{traceback.format_exc()}")
    except Exception:
        # There is nowhere left to say it.
        return


def _repr(value: object) -> str:
    """A repr is user code, and the object may be half destroyed."""
    try:
        return repr(value)
    except Exception:
        return object.__repr__(value)


def _clean(text: str) -> str:
    """Text that can be encoded: a lone surrogate becomes its escape."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
