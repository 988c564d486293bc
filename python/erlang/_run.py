"""The ways to a loop: run, policy, install; and what kind of interpreter this is."""

from __future__ import annotations

import asyncio
import enum
import importlib
import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from erlang._loop import new_event_loop
from erlang._policy import policy_class

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None) -> T:
    """Runs a coroutine on a new ErlangEventLoop, as ``asyncio.run`` does on its own."""
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("erlang.run() cannot be called from a running event loop")
    with asyncio.Runner(debug=debug, loop_factory=new_event_loop) as runner:
        return runner.run(main)


EventLoopPolicy = ErlangEventLoopPolicy = policy_class()


def install() -> None:
    """Makes ``asyncio.run`` use ErlangEventLoop; ``erlang.run`` needs no such thing."""
    if not hasattr(ErlangEventLoopPolicy, "new_event_loop"):
        raise RuntimeError("this Python has no event loop policies: use erlang.run(main())")
    if sys.version_info >= (3, 12):
        text = "erlang.install() is deprecated: use erlang.run(main())"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        asyncio.set_event_loop_policy(ErlangEventLoopPolicy())


class ExecutionMode(enum.Enum):
    """How Python code shares its interpreter with others."""

    FREE_THREADED = "free_threaded"
    SUBINTERP = "subinterp"
    SHARED_GIL = "shared_gil"


def detect_mode() -> ExecutionMode:
    """The mode of the interpreter this line runs in."""
    gil_enabled = getattr(sys, "_is_gil_enabled", None)
    if gil_enabled is not None and not gil_enabled():
        return ExecutionMode.FREE_THREADED
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        # A number, a pair or an object: of the same kind on both sides.
        if module.get_current() != module.get_main():
            return ExecutionMode.SUBINTERP
        break
    return ExecutionMode.SHARED_GIL
