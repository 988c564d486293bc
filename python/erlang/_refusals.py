"""Extension modules that refuse a sub-interpreter, noted where they are loaded.

Packages hide such a refusal: they catch the ``ImportError`` and go on without their native part,
until a name is missing. What was refused, and who had asked for it, tells why.

Only in sub-interpreters; the native side asks ``hint`` about exceptions on their way to Erlang.
"""

from __future__ import annotations

import _imp
import sys

# Not from `typing`: it is not imported before a program does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

# By package: the module that was refused, which is the package's own or one that it has imported.
refused: dict[str, str] = {}

# CPython: "does not support loading in subinterpreters"; PyO3: "do not yet support
# subinterpreters", "only be initialized once per interpreter process"; Cython: "Interpreter change
# detected"; numpy: "cannot load module more than once per process".
_SIGNS = ("interpreter", "once per process")
_IMPORTERS = ("importlib", "_frozen_importlib", "_frozen_importlib_external", "erlang")


def install() -> None:
    """Notice refusals in this interpreter."""
    for name in ("create_dynamic", "exec_dynamic", "create_builtin"):
        setattr(_imp, name, _noting(getattr(_imp, name)))


def _noting(step: Callable[..., Any]) -> Callable[..., Any]:
    def load(given: Any, *rest: Any) -> Any:
        try:
            return step(given, *rest)
        except ImportError as error:
            if any(sign in str(error).lower() for sign in _SIGNS):
                note(getattr(given, "name", None) or given.__name__)
            raise

    return load


def note(name: str) -> None:
    """The module was refused; so were its package, and the one that imports it."""
    refused[_package(name)] = name
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = _package(frame.f_globals.get("__name__"))
        if package not in _IMPORTERS:
            refused.setdefault(package, name)
            return
        frame = frame.f_back


def _package(module: object) -> str:
    return str(module).partition(".")[0]


def hint(error: BaseException) -> str | None:
    """The refused module that this exception comes from, if it does."""
    if not refused:
        return None
    if isinstance(error, ModuleNotFoundError):
        return refused.get(_package(error.name))
    if isinstance(error, ImportError):
        return _where(error) or next(reversed(refused.values()))
    if isinstance(error, AttributeError):
        owner = getattr(error, "obj", None)
        if isinstance(owner, type(sys)):
            return refused.get(_package(owner.__name__))
        return _where(error)
    if isinstance(error, NameError):
        return _where(error)
    return None


def _where(error: BaseException) -> str | None:
    """By the code that raised it."""
    trace = error.__traceback__
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return refused.get(_package(trace.tb_frame.f_globals.get("__name__")))
