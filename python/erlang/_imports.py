"""Imports are not interrupted: jobs whose callers gave up go on until theirs are done.

The code of imports has a lock for each module. An exception from outside, between two of its steps,
leaves that lock to nobody: no other thread could import the module any more, ever. And who asks
again for a module that takes long finds it done.
"""

from __future__ import annotations

import _frozen_importlib
from functools import partial

from erlang import _node

# The functions of imports that take locks. CPython calls them by these names as well.
_ENTRANCES = ("_find_and_load", "_lock_unlock_module", "_load", "_exec")


def guard() -> None:
    """From here on the node knows who is in one of them."""
    for name in _ENTRANCES:
        function = getattr(_frozen_importlib, name, None)
        if function is not None:
            setattr(_frozen_importlib, name, partial(_node.importing, function))
