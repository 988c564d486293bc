"""The older name of the loop of ``erlang``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from erlang._loop import ErlangEventLoop, new_event_loop
from erlang._run import ErlangEventLoopPolicy

if TYPE_CHECKING:
    from asyncio import AbstractEventLoopPolicy

__all__ = ["ErlangEventLoop", "ErlangEventLoopPolicy", "get_event_loop_policy", "new_event_loop"]


def get_event_loop_policy() -> AbstractEventLoopPolicy:
    """A policy for ``asyncio.set_event_loop_policy``."""
    policy: AbstractEventLoopPolicy = ErlangEventLoopPolicy()
    return policy
