"""What is done when a program first imports a module: the start of the node does not import it."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

# Not from `typing`: it is not imported before a program does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_wanted: dict[str, Callable[[ModuleType], None]] = {}


def when_imported(name: str, then: Callable[[ModuleType], None]) -> None:
    """Calls ``then`` with the module: now if it is there, and whenever its code was executed."""
    _wanted[name] = then
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    if name in sys.modules:
        then(sys.modules[name])


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        then = _wanted.get(name)
        if then is None:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_then(module: ModuleType) -> None:
            execute(module)
            then(module)

        spec.loader.exec_module = execute_and_then  # type: ignore[method-assign]
        return spec
