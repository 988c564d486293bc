"""Fork, and the frames of all threads, in a process that may have several interpreters.

A child made by fork from such a process does not survive CPython's first step in it, and
``sys._current_frames`` looks at threads of interpreters that run on meanwhile. So a fork ends the
interpreters of ``py:parallel`` that nobody uses, and is refused if there are others.
"""

from __future__ import annotations

import _posixsubprocess
import _thread
import os
import sys

from erlang import _errors, _node, _start

# Not from `typing`: it is not imported before a program does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

# Seconds that idle interpreters have to end.
_PATIENCE = 5.0
# The place of `preexec_fn` among the arguments of `fork_exec`: without it there is no Python code
# in the child.
_PREEXEC_FN = 21


def install() -> None:
    """In every interpreter."""
    _start.install()
    for name in ("fork", "forkpty"):
        _replace(name)
    _posixsubprocess.fork_exec = _fork_exec(_posixsubprocess.fork_exec)
    if "subprocess" in sys.modules:
        sys.modules["subprocess"]._fork_exec = _posixsubprocess.fork_exec  # type: ignore[attr-defined]
    # For those that fork by themselves, as uvloop does. It can't refuse.
    os.register_at_fork(before=_before, after_in_parent=_node.end_fork)
    sys._current_frames = _frames_of(sys._current_frames)
    sys._current_exceptions = _exceptions_of(sys._current_exceptions)


def _replace(name: str) -> None:
    original = getattr(os, name, None)
    if original is None:
        return

    def forks() -> Any:
        with _Fork(f"os.{name}()"), _start.Start():
            return original()

    forks.__name__ = forks.__qualname__ = name
    forks.__doc__ = original.__doc__
    setattr(os, name, forks)
    setattr(sys.modules["posix"], name, forks)


def _fork_exec(original: Callable[..., int]) -> Callable[..., int]:
    def fork_exec(*args: Any) -> int:
        if len(args) <= _PREEXEC_FN or args[_PREEXEC_FN] is None:
            return original(*args)
        with _Fork("subprocess with preexec_fn"):
            return original(*args)

    return fork_exec


class _Fork:
    """No sub-interpreter is made within it. For ``with``, which a cancelled call enters and leaves
    whole: a fork that is begun and never ended would hold up every later interpreter."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        if not _node.begin_fork(0) and not (_end_idle() and _node.begin_fork(_PATIENCE)):
            raise RuntimeError(
                f"{self._what} while sub-interpreters exist: the child would crash in CPython. Use "
                "the start method 'forkserver' or 'spawn' of multiprocessing, or fork when no "
                "context is a sub-interpreter and no py:parallel runs"
            )

    def __exit__(self, *_: object) -> None:
        _node.end_fork()


def _end_idle() -> bool:
    """Whether the interpreters that are left are about to end."""
    try:
        return bool(_node.call("$end_idle_interpreters"))
    except (RuntimeError, _errors.ErlangError):
        # The application has stopped, and with it all of them.
        return True


def _before() -> None:
    _ = _node.begin_fork(0) or (_end_idle() and _node.begin_fork(_PATIENCE))


def _frames_of(original: Callable[[], dict[int, FrameType]]) -> Callable[[], dict[int, FrameType]]:
    def _current_frames() -> dict[int, FrameType]:
        frames = _node.current_frames() if _node.interpreters() else original()
        # Not this function: who calls it.
        frames[_thread.get_ident()] = sys._getframe(1)
        return frames

    _current_frames.__doc__ = original.__doc__
    return _current_frames


def _exceptions_of(original: Callable[[], Any]) -> Callable[[], Any]:
    def _current_exceptions() -> Any:
        if _node.interpreters():
            raise RuntimeError(
                "sys._current_exceptions() while sub-interpreters exist: CPython looks at threads "
                "of other interpreters, which run on meanwhile"
            )
        return original()

    _current_exceptions.__doc__ = original.__doc__
    return _current_exceptions
