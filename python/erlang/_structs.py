"""Elixir's structs: what a map with the key ``__struct__`` is in Python, and what goes back for it.

Made known to the conversion when the first one comes, or when one of the names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from erlang._native import Atom, register_converter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAP_SET = "Elixir.MapSet"
# What Elixir calls the module of the references of `Py.ref`.
_REFERENCE = "Elixir.Py.Ref"
_STRUCT = "__struct__"


class Struct(dict[str, Any]):
    """The fields of a struct of Elixir, by name: a dict that is converted to the struct.

    ``module`` is its module, without ``Elixir.``: ``erlang.Struct("Date", {"year": 2024, …})``.
    """

    __slots__ = ("module",)

    def __init__(
        self,
        module: str,
        fields: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
        /,
        **more: Any,
    ) -> None:
        super().__init__(fields, **more)
        self.module = module

    def __repr__(self) -> str:
        return f"erlang.Struct({self.module!r}, {super().__repr__()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Struct, (self.module, dict(self))


class MapSet(set[Any]):
    """A set that is converted to a ``MapSet`` of Elixir; any other set becomes a list."""

    # The fields beside its map, if it came from Elixir: releases of Elixir differ in them.
    _others: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"erlang.MapSet({set(self)!r})"


# The same of one that is made here.
_others: dict[str, Any] | None = None


def make(module: str, fields: dict[str, Any]) -> object:
    """What a struct becomes."""
    if module == _REFERENCE and "object" in fields:
        return fields["object"]
    if module == _MAP_SET and isinstance(fields.get("map"), dict):
        made = MapSet(fields.pop("map"))
        made._others = fields
        return made
    return Struct(module.removeprefix("Elixir."), fields)


def _module(name: str) -> Atom:
    # A struct that Erlang defines is written as a module of Erlang is: `:name`.
    return Atom(f"Elixir.{name}" if name[:1].isupper() else name)


def _of_struct(struct: Struct) -> dict[Atom, object]:
    nil = Atom("nil")
    fields: dict[Atom, object] = {Atom(_STRUCT): _module(struct.module)}
    for name, value in struct.items():
        fields[Atom(name)] = nil if value is None else value
    return fields


def _of_map_set(map_set: MapSet) -> dict[Atom, object]:
    global _others
    others = map_set._others
    if others is None:
        if _others is None:
            from erlang import call

            _others = getattr(call("$map_set"), "_others", None)
        others = _others or {}
    fields: dict[Atom, object] = {Atom(_STRUCT): Atom(_MAP_SET)}
    fields[Atom("map")] = {item: [] for item in map_set}
    for name, value in others.items():
        fields[Atom(name)] = value
    return fields


register_converter(Struct, _of_struct)
register_converter(MapSet, _of_map_set)
