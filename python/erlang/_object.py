"""Small functions that the Erlang module `py` calls."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from erlang import _boot
from erlang._native import register_constructor
from erlang._native import register_converter as _register


def identity(value: object) -> object:
    """`py:to_term/1`: the conversion is all there is to it."""
    return value


def call_method(target: object, name: str, args: list[object], kwargs: dict[str, object]) -> object:
    """`py:call_method/4`"""
    return getattr(target, name)(*args, **kwargs)


def map_chunk(module: str, function: str, items: list[object]) -> list[object]:
    """`py:map/3`: one call for several items."""
    target: Any = importlib.import_module(module)
    for part in function.split("."):
        target = getattr(target, part)
    return [target(item) for item in items]


def reload(name: str) -> bool:
    """`py:reload/1`: imports the module anew, or for the first time."""
    module = sys.modules.get(name)
    if module is None:
        importlib.import_module(name)
    else:
        importlib.reload(module)
    return True


def memory_stats() -> dict[str, Any]:
    """`py:memory_stats/0`: what the interpreter itself counts."""
    import gc

    blocks = sys.getallocatedblocks()
    counts = gc.get_count()
    return {
        "allocated_blocks": blocks,
        "gc_counts": list(counts),
        "gc_stats": gc.get_stats(),
        "modules": len(sys.modules),
    }


def register_converter(direction: str, what: str, module: str, function: str) -> bool:
    """`py:register_converter/3`: here and in all sub-interpreters that will be made."""
    names = (direction, what, module, function)
    add_converter(*names)
    if names in _boot.converters:
        # The latest of those that have a class or a tag in common counts.
        _boot.converters.remove(names)
    _boot.converters.append(names)
    return True


def add_converter(direction: str, what: str, module: str, function: str) -> None:
    """The same in this interpreter alone."""
    target: Any = importlib.import_module(module)
    for part in function.split("."):
        target = getattr(target, part)
    if direction == "to_python":
        register_constructor(what, target)
    else:
        home, _, name = what.rpartition(".")
        _register(getattr(importlib.import_module(home), name), target)
