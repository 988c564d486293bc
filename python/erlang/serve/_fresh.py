"""Imports the modules of an application anew."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType


# Not an application's, wherever they lie.
_NEVER = sys.stdlib_module_names | {"__main__", "erlang", "erlang_asyncio", "erlang_loop"}


@contextmanager
def fresh(names: Iterable[str]) -> Iterator[None]:
    """Inside, these modules and all that lie beside or below them are imported anew; if that
    raises, the old ones are back."""
    roots = [root for name in names if (root := _root(name)) is not None]
    old = {name: module for name, module in sys.modules.items() if _is_of(name, module, roots)}
    for name in old:
        del sys.modules[name]
    importlib.invalidate_caches()
    try:
        yield
    except BaseException:
        sys.modules.update(old)
        raise


def _root(name: str) -> str | None:
    """The directory of a module, or of the outermost package around it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        module = sys.modules.get(".".join(parts[:count]))
        path = None if module is None else _path(module)
        if path is not None:
            return os.path.dirname(path)
    return None


def _path(module: ModuleType) -> str | None:
    path = getattr(module, "__file__", None)
    return path if isinstance(path, str) and path.endswith(".py") else None


def _is_of(name: str, module: ModuleType, roots: list[str]) -> bool:
    path = _path(module)
    if path is None or name.partition(".")[0] in _NEVER:
        return False
    return any(_is_below(path, root) for root in roots)


def _is_below(path: str, root: str) -> bool:
    """Packages that are installed below an application are not its own."""
    below = os.path.relpath(path, root).split(os.sep)
    return below[0] != os.pardir and "site-packages" not in below
