"""The policy that makes every loop of asyncio one of this package.

Imports neither asyncio nor the loop: in a node it is set at the end of asyncio's first import, and
any module of the package may have begun that one.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any


def _base() -> Any:
    unix_events: Any = importlib.import_module("asyncio.unix_events")
    for name in ("_UnixDefaultEventLoopPolicy", "_DefaultEventLoopPolicy"):
        if hasattr(unix_events, name):
            return getattr(unix_events, name)
    return object


def _new_loop() -> Any:
    return importlib.import_module("erlang._loop").new_event_loop()


@functools.cache
def policy_class() -> Any:
    """``ErlangEventLoopPolicy``, the same each time."""

    class ErlangEventLoopPolicy(_base()):  # type: ignore[misc]
        """Makes every loop of asyncio an ErlangEventLoop."""

        _loop_factory = staticmethod(_new_loop)

    ErlangEventLoopPolicy.__module__ = "erlang"
    ErlangEventLoopPolicy.__qualname__ = "ErlangEventLoopPolicy"
    return ErlangEventLoopPolicy
