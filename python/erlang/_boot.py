"""The node's end of the package: run once when Python starts in it, once when the node ends."""

from __future__ import annotations

import atexit
import threading

from erlang import _errors, _native, _node, _stdio


def start() -> None:
    """Output goes to the caller's group leader, log records to Erlang's logger."""
    _stdio.install(_node.write, _node.write)
    _native._set_atom_maker(_make_atom)
    threading.excepthook = _thread_failed


def stop() -> None:
    """What an ordinary Python does at its end: joins threads, runs ``atexit`` functions."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


def _make_atom(name: str) -> None:
    try:
        _node.call("$atom", name)
    except _errors.ErlangError as error:
        raise ValueError(f"{name!r} can't become an atom: {error.reason!r}") from None


def _thread_failed(args: threading.ExceptHookArgs) -> None:
    import traceback

    if args.exc_type is SystemExit:
        return
    name = args.thread.name if args.thread is not None else "?"
    text = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
    _node.log(40, "threading", f"uncaught exception in thread {name}:\n{text}", {})
