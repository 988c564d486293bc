"""``~PY`` of Elixir: code with the place where it stands in a source file of Elixir."""

from __future__ import annotations

import ast
import functools
import linecache
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType

_MISSING = object()


def run(space: dict[str, Any], source: str, names: dict[str, Any], file: str, line: int) -> Any:
    """Runs the statements, with the names for as long as they run; gives the value of an expression
    at the end."""
    body, value = _compiled(source, file, line)
    before = {name: space.get(name, _MISSING) for name in names}
    space.update(names)
    try:
        exec(body, space)
        return None if value is None else eval(value, space)
    finally:
        for name, old in before.items():
            # What the code has given that name stays.
            if space.get(name, _MISSING) is not names[name]:
                continue
            if old is _MISSING:
                del space[name]
            else:
                space[name] = old


@functools.lru_cache(maxsize=1024)
def _compiled(source: str, file: str, line: int) -> tuple[CodeType, CodeType | None]:
    text = source if "\n" in source else source.strip()
    text = "\n" * (line - 1) + text
    _show(file, text)
    tree = ast.parse(text, file)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return compile(tree, file, "exec"), None
    value = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    return compile(tree, file, "exec"), compile(value, file, "eval")


def _show(file: str, text: str) -> None:
    """The lines for tracebacks, where the source of Elixir is not there (any more)."""
    if os.path.exists(file):
        return
    new = text.splitlines(keepends=True)
    entry = linecache.cache.get(file)
    old = entry[2] if entry is not None and len(entry) > 2 else []
    lines = [*new, *old[len(new) :]]
    for number, known in enumerate(old[: len(new)]):
        if not new[number].strip():
            lines[number] = known
    # Without a time `checkcache` keeps it.
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
