"""The loops that can be measured here."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

OURS = "erlang"
BASE = "asyncio"
PEERS = ("uvloop", "rloop")


def installed() -> list[str]:
    """Ours, asyncio and the peers that are there."""
    return [OURS, BASE, *(peer for peer in PEERS if importlib.util.find_spec(peer))]


def factory(name: str) -> Callable[[], Any]:
    """What makes a loop of that name."""
    made: Callable[[], Any] = importlib.import_module(name).new_event_loop
    return made
