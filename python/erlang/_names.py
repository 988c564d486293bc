"""Built-in functions that look at the names of their caller.

``py:call(builtins, eval, ["x"])`` calls without a frame of Python in which they could look: they
are given the names of the calling Erlang process instead.
"""

from __future__ import annotations

from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Names = dict[str, Any]


def bind(function: str, names: Names) -> Callable[..., Any]:
    """The function of that name, which looks at these names."""
    return partial(_FUNCTIONS[function], names)


def _eval(names: Names, source: Any, /, globals: Names | None = None, locals: Any = None) -> Any:
    return eval(source, names if globals is None else globals, locals)


def _exec(
    names: Names, source: Any, /, globals: Names | None = None, locals: Any = None, **more: Any
) -> None:
    exec(source, names if globals is None else globals, locals, **more)


def _dir(names: Names, /, *args: Any) -> list[str]:
    return dir(*args) if args else sorted(names)


def _vars(names: Names, /, *args: Any) -> Any:
    return vars(*args) if args else names


def _all(names: Names, /) -> Names:
    return names


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dir": _dir,
    "eval": _eval,
    "exec": _exec,
    "globals": _all,
    "locals": _all,
    "vars": _vars,
}
