"""Nodes of graphs as Python writes them: decorated functions, commands of Redis."""

from __future__ import annotations

import inspect
import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from erlang import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Word = str | bytes | int | float
    # bytes, the place of an input, or the parts of one word.
    Part = bytes | int | list[Any]

_MISSING: Any = object()


class Limit:
    """A bound on how many nodes run at once: those that have it, in whatever graphs and runs."""

    def __init__(self, at_once: int) -> None:
        self._native = _native.dag_limit(at_once)


@dataclass(frozen=True)
class Policy:
    """What happens around a node: seconds, or None."""

    timeout: float | None = None
    retries: int = 0
    backoff: float = 0.01
    hedge: float | None = None


@dataclass(frozen=True, eq=False)
class Node:
    """A node; one that is a function can still be called as such."""

    name: str
    kind: str
    inputs: tuple[tuple[str, bool], ...]
    policy: Policy
    default: Any = _MISSING
    condition: str | None = None
    limit: Limit | None = None
    function: Callable[..., Any] | None = None
    commands: Any = field(default=None, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.function is None:
            raise TypeError(f"node {self.name} is a command, not a function")
        return self.function(*args, **kwargs)

    def line(self) -> tuple[Any, ...]:
        """The node as the native side takes it."""
        if self.function is not None:
            is_async = inspect.iscoroutinefunction(self.function)
            body: tuple[Any, ...] = ("python", self.function, is_async)
        else:
            body = ("redis", *self.commands)
        policy = (
            self.policy.timeout,
            self.policy.retries,
            self.policy.backoff,
            self.policy.hedge,
        )
        default = None if self.default is _MISSING else (self.default,)
        limit = None if self.limit is None else self.limit._native
        return (self.name, body, list(self.inputs), policy, default, self.condition, limit)


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters that must be given."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in positional and parameter.default is inspect.Parameter.empty
    ]


def _inputs(names: Iterable[str], optional: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    return tuple((name, name in optional) for name in names)


def _node(
    name: str, kind: str, inputs: Iterable[str], options: dict[str, Any], **body: Any
) -> Node:
    """The options are what every kind of node may have."""
    return Node(
        name=name,
        kind=kind,
        inputs=_inputs(inputs, options.pop("optional", ())),
        default=options.pop("default", _MISSING),
        condition=options.pop("condition", None),
        limit=options.pop("limit", None),
        policy=Policy(**options),
        **body,
    )


def _function(kind: str, function: Callable[..., Any], options: dict[str, Any]) -> Node:
    inputs = options.pop("inputs", None)
    names = _parameters(function) if inputs is None else inputs
    name = options.pop("name", None) or function.__name__
    return _node(name, kind, names, options, function=function)


@overload
def cpu(function: Callable[..., Any], /) -> Node: ...
@overload
def cpu(**options: Any) -> Callable[[Callable[..., Any]], Node]: ...
def cpu(function: Any = None, /, **options: Any) -> Any:
    """Makes a node of a function that computes. Its inputs are its parameters.

    Options: ``name``, ``inputs``, ``optional`` (inputs that may be missing), ``timeout``,
    ``retries``, ``backoff``, ``hedge``, ``default``; times in seconds. ``condition`` names an input
    or a node: this one runs only if that is true. ``limit`` is a ``Limit`` shared with others.
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
    return _node(name, "redis", names, options, commands=(how, what))


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
