"""Python and Erlang in one process: call, send, atoms, pids, shared state.

Inside a node everything here works; outside of one, what needs a node raises ``NotInNode``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# By name too: in a node it is there before the package is.
from erlang import _native as _native
from erlang._errors import Cancelled, ErlangError, NotInNode
from erlang._native import Atom, Fun, Pid, Port, Ref, register_constructor, register_converter

if TYPE_CHECKING:
    from erlang import dag as dag
    from erlang._loop import ErlangEventLoop as ErlangEventLoop
    from erlang._loop import new_event_loop as new_event_loop
    from erlang._run import ErlangEventLoopPolicy as ErlangEventLoopPolicy
    from erlang._run import EventLoopPolicy as EventLoopPolicy
    from erlang._run import ExecutionMode as ExecutionMode
    from erlang._run import detect_mode as detect_mode
    from erlang._run import install as install
    from erlang._run import run as run

try:
    from erlang import _node
except ImportError:
    from erlang import _no_node as _node  # type: ignore[no-redef]

call = _node.call
send = _node.send
whereis = _node.whereis
sleep = _node.sleep

__all__ = [
    "Atom",
    "Cancelled",
    "ErlangError",
    "Fun",
    "NotInNode",
    "Pid",
    "Port",
    "Ref",
    "atom",
    "call",
    "register_constructor",
    "register_converter",
    "self",
    "send",
    "sleep",
    "state_clear",
    "state_decr",
    "state_delete",
    "state_get",
    "state_incr",
    "state_keys",
    "state_set",
    "whereis",
]


def self() -> Pid:
    """The pid of the Erlang process this code runs for."""
    return _node.self()


def atom(name: str) -> Atom:
    """The atom of that name; a new one counts against ``atom_quota``."""
    return Atom(name)


def state_get(key: object, default: object = None) -> Any:
    """The value stored under a key, or the default."""
    found, value = call("$state_get", key)
    return value if found else default


def state_set(key: object, value: object) -> None:
    """Stores a value for all of the node to see."""
    call("$state_set", key, value)


def state_delete(key: object) -> None:
    """Removes a key; one that is not there is no error."""
    call("$state_delete", key)


def state_keys() -> list[Any]:
    """All keys, in no order."""
    keys: list[Any] = call("$state_keys")
    return keys


def state_clear() -> None:
    """Removes everything."""
    call("$state_clear")


def state_incr(key: object, by: int = 1) -> int:
    """Adds to a counter, atomically; a missing one starts at 0. Returns the new value."""
    value: int = call("$state_incr", key, by)
    return value


def state_decr(key: object, by: int = 1) -> int:
    """Takes from a counter, atomically."""
    value: int = call("$state_decr", key, by)
    return value


# Names of the event loop and where they are: asyncio is imported when one is used, not before.
_LOOP_NAMES = {
    "ErlangEventLoop": "erlang._loop",
    "new_event_loop": "erlang._loop",
    "ErlangEventLoopPolicy": "erlang._run",
    "EventLoopPolicy": "erlang._run",
    "ExecutionMode": "erlang._run",
    "detect_mode": "erlang._run",
    "install": "erlang._run",
    "run": "erlang._run",
}


def __getattr__(name: str) -> Any:
    """``erlang.name(*args)`` calls the Erlang function registered as ``name``."""
    if name == "dag":
        return importlib.import_module("erlang.dag")
    if name in _LOOP_NAMES:
        value = getattr(importlib.import_module(_LOOP_NAMES[name]), name)
        globals()[name] = value
        return value
    if name.startswith("_"):
        raise AttributeError(f"module 'erlang' has no attribute {name!r}")

    def function(*args: object) -> Any:
        return call(name, *args)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    return function
