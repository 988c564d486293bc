"""The older name of the loop of ``erlang``."""

from __future__ import annotations

from erlang._loop import ErlangEventLoop, new_event_loop
from erlang._run import ErlangEventLoopPolicy

__all__ = ["ErlangEventLoop", "ErlangEventLoopPolicy", "get_event_loop_policy", "new_event_loop"]


def get_event_loop_policy() -> ErlangEventLoopPolicy:
    """A policy for ``asyncio.set_event_loop_policy``."""
    return ErlangEventLoopPolicy()
