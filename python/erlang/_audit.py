"""The `audit` setting: Python audit events that are refused in this node.

A guard against accidents and careless libraries, not a sandbox: Python code can find its way
around it, and native code never asks. Runs on whatever thread raises the event.
"""

from __future__ import annotations

import sys

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
        _installed = True


def _hook(event: str, _args: tuple[object, ...]) -> None:
    # "socket" stands for "socket.connect" and all others of that beginning.
    if _refused and (event in _refused or event.partition(".")[0] in _refused):
        raise PermissionError(f"{event} is refused by the audit setting of erlang_python")
