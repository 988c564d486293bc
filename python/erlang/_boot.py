"""The node's end of the package: run once when Python starts in it, once when the node ends."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` without its enumerations
import atexit
import os
import sys
import threading

from erlang import _errors, _fork, _native, _node, _path, _stdio, _trace
from erlang._imports import when_imported

# Not from `typing`: it is not imported before a program does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any


# `logging.INFO` and `logging.WARNING`, which is not imported before a program does.
_INFO, _WARNING = 20, 30


def start() -> None:
    """Output goes to the caller's group leader, log records to Erlang's logger."""
    _threads_outlive_calls()
    _trace.install()
    _fork.install()
    _stdio.install(_write, _write, _node.line_begun)
    _native._set_atom_maker(_make_atom)
    threading.excepthook = _thread_failed
    sys.unraisablehook = _unraisable
    when_imported("asyncio", _choose_wanted_loop)
    os.register_at_fork(after_in_child=_in_child)
    when_imported("logging", lambda _: _attach_logging())


# Whether this process was made by `os.fork()`: it runs for no process of Erlang.
_is_child = False


def _in_child() -> None:
    """In a child of `os.fork()`, which is a Python process of its own from here on. The emulator's
    signal handlers are gone: Python must not take them for handlers that it does not know."""
    global _is_child
    _is_child = True
    for number in _signal.valid_signals():
        if _signal.getsignal(number) is None:
            _signal.signal(number, _signal.SIG_DFL)
    # Python 3.11 and 3.12 want a main thread that they have started or made themselves.
    if getattr(threading.main_thread(), "_tstate_lock", True) is None:
        threading._main_thread = threading._MainThread()  # type: ignore[attr-defined]


def _threads_outlive_calls() -> None:
    """Threads that a call starts are no daemons, as in any program: Python joins them at its end.

    A new thread is a daemon if the one that starts it is. Ours were not started by ``threading``,
    which takes such threads for daemons."""
    threading._DummyThread.daemon = False


def settle(settings: dict[str, Any]) -> None:
    """Carries out what the settings of the node ask of an interpreter: in the main one each time
    the application starts, in another one before anybody can call it."""
    _route_output(settings["log_stdout"])
    _keyboard(settings["keyboard"])
    _asyncio_policy(settings["asyncio_policy"])
    _slow_callback_ms(settings["slow_callback_ms"])
    # What an earlier start has refused may be allowed now.
    if settings["audit"] or "erlang._audit" in sys.modules:
        from erlang import _audit

        _audit.install(settings["audit"])


def _route_output(to_logger: bool) -> None:
    """What is printed goes to the caller's group leader, or line by line to the logger."""
    if to_logger:
        _stdio.install(_printed, _complained, _node.line_begun)
    else:
        _stdio.install(_write, _write, _node.line_begun)


def _write(text: str) -> None:
    """To the caller's group leader. A thread waits for one that is behind, a loop does not."""
    if not _node.write(text):
        _node.write_behind(text, not runs_loop())


def runs_loop() -> bool:
    """Whether an event loop runs in this thread, be it asyncio's or Trio's."""
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    if running is not None and running() is not None:
        return True
    lowlevel = getattr(sys.modules.get("trio"), "lowlevel", None)
    return lowlevel is not None and bool(lowlevel.in_trio_run())


def set_environment(variables: list[tuple[bytes, bytes | None]]) -> None:
    """What Erlang has in its own environment; ``None`` unsets a variable."""
    for name, value in variables:
        if value is None:
            os.environb.pop(name, None)
        else:
            os.environb[name] = value
    _path.export()


def _keyboard(is_erlangs: bool) -> None:
    """Whether Erlang reads the standard input of this process."""
    if is_erlangs:
        _stdio.refuse_input()


def _printed(text: str) -> None:
    _node.log(_INFO, "stdout", text.rstrip("\n"), {})


def _complained(text: str) -> None:
    _node.log(_WARNING, "stderr", text.rstrip("\n"), {})


def warn_of_wheel(places: list[str] | None = None) -> None:
    """A wheel of this package in the environment is not used: the node brings its own."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for place in sys.path if places is None else places:
        other = os.path.join(place, "erlang", "__init__.py")
        if os.path.exists(other) and os.path.abspath(place) != own:
            text = f"{other} is not used: inside a node the package erlang is the application's own"
            _node.log(_WARNING, "erlang", text, {})
            return


# In the main interpreter: the converters that Erlang has registered, as it named them.
converters: list[tuple[str, ...]] = []


def before_subinterpreters() -> tuple[list[str], list[tuple[str, ...]]]:
    """In the main interpreter: imports what several others must not import for the first time at
    once, and gives the path and the converters that the new one shall have."""
    import datetime  # noqa: F401

    _warn_of_torch()
    return list(sys.path), list(converters)


_torch_told = False


def _warn_of_torch() -> None:
    """Once: what torch keeps for one interpreter breaks when there is another."""
    global _torch_told
    if not _torch_told and "torch" in sys.modules:
        _torch_told = True
        text = (
            "torch is loaded in the main interpreter, and a sub-interpreter is made: from then on "
            "backward() of torch fails in this node. Use py:call, or a node without py:parallel"
        )
        _node.log(_WARNING, "erlang", text, {})


def inherit(path: list[str]) -> None:
    """In a sub-interpreter: modules are found where the main one finds them."""
    sys.path[:] = path
    if "erlang._refusals" not in sys.modules:
        from erlang import _refusals

        _refusals.install()
    if sys.version_info < (3, 13) and _Refused not in sys.meta_path:
        sys.meta_path.insert(0, _Refused)


def add_converters(registered: list[tuple[str, ...]]) -> None:
    """In a sub-interpreter: those of the main one."""
    for names in registered:
        add_converter(*names)


def add_converter(*names: str) -> None:
    """In a sub-interpreter, which may not be able to import what the main one could."""
    from erlang import _object

    try:
        _object.add_converter(*names)
    except Exception as error:
        text = (
            f"the converter {names[2]}.{names[3]} of {names[1]} is missing in a sub-interpreter: "
            f"{type(error).__name__}: {error}"
        )
        _node.log(_WARNING, "erlang", text, {})


class _Refused:
    """Modules of Python 3.12 that it refuses in a sub-interpreter, but only after it has run their
    code there: that breaks them for all interpreters."""

    names = frozenset(
        [
            "_ctypes",
            "_curses",
            "_curses_panel",
            "_datetime",
            "_decimal",
            "_elementtree",
            "_lsprof",
            "_tkinter",
            # It needs the C code of `datetime`; `zoneinfo` does without.
            "_zoneinfo",
            "faulthandler",
            "nis",
            "ossaudiodev",
            "pyexpat",
            "readline",
        ]
    )

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name in _Refused.names:
            from erlang import _refusals

            _refusals.note(name)
            text = f"module {name} does not support loading in subinterpreters"
            raise ImportError(text, name=name)


def stop() -> None:
    """What an ordinary Python does at its end: joins threads, runs ``atexit`` functions."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


def leave() -> None:
    """The same in a sub-interpreter; Python itself looks once more when it ends it."""
    for wake in reversed(threading._threading_atexits):  # type: ignore[attr-defined]
        wake()
    # By its number: asking for the current thread makes an object that complains when it ends.
    here, main = threading.get_ident(), threading.main_thread()
    while threads := [
        one
        for one in threading.enumerate()
        if not one.daemon
        and one is not main
        and one.ident != here
        and not isinstance(one, threading._DummyThread)
    ]:
        for thread in threads:
            thread.join()
    atexit._run_exitfuncs()


def _make_atom(name: str) -> None:
    try:
        _node.call("$atom", name)
    except _errors.ErlangError as error:
        raise ValueError(f"{name!r} can't become an atom: {error.reason!r}") from None


# Whether plain `asyncio.run` gets the loop of this package.
_wants_loop = True


def _choose_wanted_loop(_asyncio: ModuleType) -> None:
    if _wants_loop:
        _choose_loop(True)


def _choose_loop(ours: bool) -> None:
    import asyncio
    import warnings

    from erlang._policy import policy_class

    policy = policy_class()
    with warnings.catch_warnings():
        # Python 3.14 says that policies will go.
        warnings.simplefilter("ignore", DeprecationWarning)
        if ours != isinstance(asyncio.get_event_loop_policy(), policy):
            asyncio.set_event_loop_policy(policy() if ours else None)


def _asyncio_policy(ours: bool) -> None:
    global _wants_loop
    _wants_loop = ours
    if "asyncio" in sys.modules:
        _choose_loop(ours)


# Seconds from which on a callback of the node's loops is slow; ``None``: none is.
slow_callback: float | None = None


def _slow_callback_ms(limit: int | str) -> None:
    """Callbacks of the node's loops that take so long are logged; ``"infinity"``: none is."""
    global slow_callback
    slow_callback = limit / 1000 if isinstance(limit, int) else None


def _attach_logging() -> None:
    # Before `_logging`, which needs it whole: importing it may come back here.
    import logging  # noqa: F401, I001
    from erlang import _logging

    _logging.install(_log)


def _log(level: int, name: str, message: str, meta: dict[str, object]) -> None:
    if not _is_child:
        meta["pid"] = _node.self()
    _node.log(level, name, message, meta)


# Attaching puts the functions of `_logging` in the place of these two.
def _thread_failed(args: threading.ExceptHookArgs) -> None:
    _attach_logging()
    threading.excepthook(args)


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    try:
        _attach_logging()
    except ImportError:
        # At the end of an interpreter nothing is imported any more.
        sys.unraisablehook = sys.__unraisablehook__
    sys.unraisablehook(args)
