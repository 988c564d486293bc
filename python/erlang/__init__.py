"""Python and Erlang in one process: call, send, atoms, pids, shared state.

Inside a node everything here works; outside of one, what needs a node raises ``NotInNode``.
"""

from __future__ import annotations

import importlib
import sys
from contextvars import ContextVar

# By name too: in a node it is there before the package is.
from erlang import _native as _native
from erlang._errors import Cancelled, ErlangError, NotInNode
from erlang._native import Atom, Fun, Pid, Port, Ref, register_constructor, register_converter
from erlang._native import __version__ as __version__

# As `typing` has it: importing that costs more than all else that is needed at the start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from erlang import dag as dag
    from erlang import pg as pg
    from erlang._async import async_call as async_call
    from erlang._async import current as current
    from erlang._async import spawn_task as spawn_task
    from erlang._channel import Channel as Channel
    from erlang._channel import ChannelClosed as ChannelClosed
    from erlang._channel import receive as receive
    from erlang._loop import ErlangEventLoop as ErlangEventLoop
    from erlang._loop import new_event_loop as new_event_loop
    from erlang._run import ErlangEventLoopPolicy as ErlangEventLoopPolicy
    from erlang._run import EventLoopPolicy as EventLoopPolicy
    from erlang._run import ExecutionMode as ExecutionMode
    from erlang._run import detect_mode as detect_mode
    from erlang._run import install as install
    from erlang._run import run as run
    from erlang._shared_dict import SharedDict as SharedDict
    from erlang._structs import MapSet as MapSet
    from erlang._structs import Struct as Struct
    from erlang._trio import run_trio as run_trio

try:
    from erlang import _node
except ImportError:
    from erlang import _no_node as _node  # type: ignore[no-redef]

_IN_NODE = _node.__name__ != "erlang._no_node"

# The pid of a task's mailbox.
_own_pid: ContextVar[Pid] = ContextVar("erlang.own_pid")

call = _node.call
send = _node.send
whereis = _node.whereis

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
    """The pid of the Erlang process this code runs for; in a task with a mailbox, its own."""
    return _own_pid.get(None) or _node.self()


def _in_trio() -> bool:
    """Whether this code runs in a task of Trio, be it a guest of our loop or not."""
    lowlevel = getattr(sys.modules.get("trio"), "lowlevel", None)
    return lowlevel is not None and lowlevel.in_trio_task()


def sleep(seconds: float) -> Any:
    """Blocks this thread, the GIL released. Where an event loop runs, Trio's too, it gives
    something to await, and blocks nothing."""
    if _in_trio():
        return sys.modules["trio"].sleep(seconds)
    asyncio = sys.modules.get("asyncio")
    running = getattr(asyncio, "_get_running_loop", None)
    if running is not None and running() is not None:
        return asyncio.sleep(seconds)  # type: ignore[union-attr]
    return _node.sleep(seconds)


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


# Names that are in modules of their own: these are imported when one is used, not before (asyncio).
_LATER = {
    "ErlangEventLoop": "erlang._loop",
    "new_event_loop": "erlang._loop",
    "ErlangEventLoopPolicy": "erlang._run",
    "EventLoopPolicy": "erlang._run",
    "ExecutionMode": "erlang._run",
    "detect_mode": "erlang._run",
    "install": "erlang._run",
    "run": "erlang._run",
    "async_call": "erlang._async",
    "current": "erlang._async",
    "spawn_task": "erlang._async",
    "Channel": "erlang._channel",
    "ChannelClosed": "erlang._channel",
    "receive": "erlang._channel",
    "SharedDict": "erlang._shared_dict",
    "run_trio": "erlang._trio",
    "MapSet": "erlang._structs",
    "Struct": "erlang._structs",
}


def __dir__() -> list[str]:
    """What there is: also names that are imported when they are used. `help` gets each of them."""
    from importlib.util import find_spec

    hidden = {"TYPE_CHECKING", "annotations"}
    if find_spec("trio") is None:
        hidden.add("run_trio")
    return sorted({*globals(), *_LATER, *_PARTS} - hidden)


def _absent(name: str) -> str:
    from difflib import get_close_matches

    text = f"module 'erlang' has no attribute {name!r}"
    if name.startswith("_"):
        return text
    if near := get_close_matches(name, __dir__(), 1):
        text += f": did you mean {near[0]!r}?"
    return text + " (Functions of Erlang can be called inside an Erlang node only.)"


# Modules of this package; an Erlang function of such a name is called with `erlang.call`.
_PARTS = frozenset({"dag", "pg", "reactor", "serve"})


def __getattr__(name: str) -> Any:
    """``erlang.name(*args)`` calls the Erlang function registered as ``name``."""
    if name in _PARTS:
        return importlib.import_module(f"erlang.{name}")
    if name in _LATER:
        value = getattr(importlib.import_module(_LATER[name]), name)
        globals()[name] = value
        return value
    if name.startswith("_") or not _IN_NODE:
        raise AttributeError(_absent(name), name=name, obj=sys.modules[__name__])

    def function(*args: object) -> Any:
        return call(name, *args)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    return function
