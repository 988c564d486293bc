"""The `audit` setting: Python audit events that are refused in this node.

A guard against accidents and careless libraries, not a sandbox: Python code can find its way
around it, and native code never asks. Runs on whatever thread raises the event.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Everything in the standard library that starts another program and raises an event for it.
_GROUPS = {
    "subprocess": (
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
    ),
}

_refused: frozenset[str] = frozenset()
_installed = False


def install(names: list[str]) -> None:
    """Refuse these events and no others: a hook can't be removed, so the list is exchanged."""
    global _refused, _installed
    _refused = frozenset(names).union(*(_GROUPS.get(name, ()) for name in names))
    if _refused and not _installed:
        sys.addaudithook(_hook)
        _guard_interpreters()
        _installed = True


def _hook(event: str, _args: tuple[object, ...]) -> None:
    # "socket" stands for "socket.connect" and all others of that beginning.
    if _refused and (event in _refused or event.partition(".")[0] in _refused):
        raise PermissionError(f"{event} is refused by the audit setting of erlang_python")


def _guard_interpreters() -> None:
    """Refuse to make interpreters: a hook holds for its own interpreter only.

    Not by the event of their making: 3.13 does not raise it where a hook of Python hears it, and
    3.12 crashes when it is refused.
    """
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        module.create = _guarded(module.create)


def _guarded(create: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: object, **kwargs: object) -> Any:
        if _refused:
            raise PermissionError(
                "making an interpreter is refused: the audit setting of erlang_python would not "
                "hold in it. Use a context: py_context:new(#{mode => subinterp})"
            )
        return create(*args, **kwargs)

    return guarded
