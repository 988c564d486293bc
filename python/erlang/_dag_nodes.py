"""Nodes of graphs as Python writes them: decorated functions, commands of Redis."""

from __future__ import annotations

import inspect
import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from erlang import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Word = str | bytes | int | float
    # bytes, the place of an input, or the parts of one word.
    Part = bytes | int | list[Any]


class Limit:
    """A bound on how many nodes run at once: those that have it, in whatever graphs and runs."""

    def __init__(self, at_once: int) -> None:
        self._native = _native.dag_limit(at_once)


@dataclass(frozen=True, eq=False)
class Node:
    """A node; one that is a function can still be called as such."""

    name: str
    kind: str
    inputs: tuple[tuple[str, bool], ...]
    options: Mapping[str, Any]
    function: Callable[..., Any] | None
    _read: Any = field(repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.function is None:
            raise TypeError(f"node {self.name} is a command, not a function")
        return self.function(*args, **kwargs)

    @property
    def _native(self) -> tuple[Any, ...]:
        """The node as graphs take it: read once, with the objects that belong to it."""
        default = (self.options["default"],) if "default" in self.options else None
        return (self._read, self.function, default)


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters that must be given."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in positional and parameter.default is inspect.Parameter.empty
    ]


def _node(
    name: str,
    kind: str,
    names: Iterable[str],
    options: dict[str, Any],
    run: tuple[Any, ...],
    function: Callable[..., Any] | None = None,
) -> Node:
    """The options are keys that every kind of node has; the native side knows and checks them."""
    inputs = [(name, name in options.get("optional", ())) for name in names]
    keys = {key: value for key, value in options.items() if key not in ("default", "optional")}
    limit = keys.get("limit")
    if isinstance(limit, Limit):
        # A description has places in place of objects; there is only this one.
        keys["limit"], limit = 0, limit._native
    keys = dict(run=run, kind=kind, inputs=inputs, **keys)
    read = _native.dag_node(name, keys, limit)
    return Node(name, kind, tuple(inputs), options, function, read)


def _function(kind: str, function: Callable[..., Any], options: dict[str, Any]) -> Node:
    inputs = options.pop("inputs", None)
    names = _parameters(function) if inputs is None else inputs
    name = options.pop("name", None) or function.__name__
    run = ("function", inspect.iscoroutinefunction(function))
    return _node(name, kind, names, options, run, function)


@overload
def cpu(function: Callable[..., Any], /) -> Node: ...
@overload
def cpu(**options: Any) -> Callable[[Callable[..., Any]], Node]: ...
def cpu(function: Any = None, /, **options: Any) -> Any:
    """Makes a node of a function that computes. Its inputs are its parameters.

    Options: ``name``, ``inputs``, ``optional`` (inputs that may be missing), ``timeout``,
    ``retries``, ``backoff``, ``hedge``, ``default``; times in seconds. ``condition`` names an input
    or a node: this one runs only if that is true. ``weight`` is how long it takes beside the
    others. ``limit`` is a ``Limit`` shared with others.
    """
    if function is not None:
        return _function("cpu", function, {})
    return lambda function: _function("cpu", function, dict(options))


@overload
def io(function: Callable[..., Any], /) -> Node: ...
@overload
def io(**options: Any) -> Callable[[Callable[..., Any]], Node]: ...
def io(function: Any = None, /, **options: Any) -> Any:
    """Makes a node of a function that waits: a coroutine function runs on an event loop."""
    if function is not None:
        return _function("io", function, {})
    return lambda function: _function("io", function, dict(options))


def redis(
    name: str,
    *words: Word,
    commands: Sequence[Sequence[Word]] | None = None,
    commands_from: str | None = None,
    after: Sequence[str] = (),
    **options: Any,
) -> Node:
    """Makes a node of a command: ``redis("clicks", "GET", "clicks:{user}")``.

    ``{user}`` is the value of an input or a node; a word that is nothing else may be a list, which
    is as many words. ``commands`` are sent together; ``commands_from`` names the node that gives
    them. ``after`` names nodes that come first.
    """
    if sum((bool(words), commands is not None, commands_from is not None)) != 1:
        raise ValueError(f"node {name} needs words, commands or commands_from")
    names = list(after)
    if commands_from is not None:
        how, what = "given", _place(names, commands_from)
    elif commands is not None:
        how, what = "many", [_command(words, names) for words in commands]
    else:
        how, what = "one", _command(words, names)
    return _node(name, "redis", names, options, ("redis", how, what))


def _place(names: list[str], name: str) -> Any:
    if name not in names:
        names.append(name)
    return names.index(name)


def _command(words: Sequence[Word], names: list[str]) -> Any:
    return [_word(word, names) for word in words]


def _word(word: Word, names: list[str]) -> Part:
    if isinstance(word, bytes):
        return word
    if isinstance(word, int | float):
        return str(word).encode()
    parts: list[Any] = []
    for text, name, _, _ in string.Formatter().parse(word):
        if text:
            parts.append(text.encode())
        if name is not None:
            parts.append(_place(names, name))
    if len(parts) == 1:
        part: Part = parts[0]
        return part
    return parts or b""
