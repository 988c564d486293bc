"""``erlang.SharedDict``: a dictionary for all interpreters of the node and for Erlang."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, MutableMapping, ValuesView
from typing import Any, NoReturn

from erlang import call

_MISSING = object()


class SharedDict(MutableMapping[Any, Any]):
    """The dictionary of that name, which Erlang knows as ``py:shared_dict_*``.

    With ``create`` it is made if it is not there, and stays until somebody closes it. Each
    operation on one key is atomic. Values are copied in and out, by the rules of conversion: to
    change one that is a list, store it again. Keys are compared as Erlang does: ``1`` and ``1.0``
    are two keys.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str, *, create: bool = False, max_entries: int | None = None) -> None:
        self._name = name
        if create:
            self._ask("new", max_entries)
        else:
            self._ask("open")

    @property
    def name(self) -> str:
        """What Erlang and other interpreters find it by."""
        return self._name

    def __getitem__(self, key: object) -> Any:
        return self._ask("get", key)

    def __setitem__(self, key: object, value: object) -> None:
        self._ask("put", key, value)

    def __delitem__(self, key: object) -> None:
        self._ask("take", key)

    def __contains__(self, key: object) -> bool:
        try:
            self._ask("get", key)
        except KeyError:
            return False
        return True

    def __len__(self) -> int:
        length: int = self._ask("open")
        return length

    def __iter__(self) -> Iterator[Any]:
        """Over the keys that are there now."""
        keys: list[Any] = self._ask("keys")
        return iter(keys)

    def snapshot(self) -> dict[Any, Any]:
        """A plain dict of what is there now."""
        return dict(self._ask("items"))

    def items(self) -> ItemsView[Any, Any]:
        """The pairs that are there now."""
        return self.snapshot().items()

    def values(self) -> ValuesView[Any]:
        """The values that are there now."""
        return self.snapshot().values()

    def pop(self, key: object, default: Any = _MISSING) -> Any:
        """Removes a key and gives its value: to one caller only."""
        try:
            return self._ask("take", key)
        except KeyError:
            if default is _MISSING:
                raise
            return default

    def setdefault(self, key: object, default: Any = None) -> Any:
        """The value of a key, which is the default if it was not there."""
        while not self._ask("put_new", key, default):
            try:
                return self._ask("get", key)
            except KeyError:
                # Removed since: it is our turn again.
                continue
        return default

    def clear(self) -> None:
        """Removes everything."""
        self._ask("clear")

    def incr(self, key: object, by: int = 1) -> int:
        """Adds to an integer; one that is not there counts from 0. Returns the new value."""
        value: int = self._ask("incr", key, by)
        return value

    def compare_and_swap(self, key: object, old: object, new: object) -> bool:
        """Stores ``new`` if the value is ``old``; whether it did."""
        swapped: bool = self._ask("swap", key, old, new)
        return swapped

    def apply(self, key: object, function: Callable[[Any], Any], default: Any = None) -> Any:
        """Replaces a value by ``function(value)``, and gives that. Where others change the key
        meanwhile the function is called again."""
        while True:
            try:
                value, version = self._ask("versioned", key)
            except KeyError:
                new = function(default)
                if self._ask("put_new", key, new):
                    return new
                continue
            new = function(value)
            if self._ask("replace", key, version, new):
                return new

    def close(self) -> None:
        """Ends it, for everybody."""
        self._ask("close")

    def __repr__(self) -> str:
        return f"SharedDict({self._name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDict) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __reduce__(self) -> tuple[type[SharedDict], tuple[str]]:
        return SharedDict, (self._name,)

    def _ask(self, operation: str, *args: object) -> Any:
        status, *answer = call("$dict_" + operation, self._name, *args)
        if status != "ok":
            self._raise(answer[0], args)
        return answer[0] if len(answer) == 1 else answer

    def _raise(self, reason: str, args: tuple[object, ...]) -> NoReturn:
        if reason == "not_found":
            raise KeyError(args[0])
        if reason == "full":
            raise OverflowError(f"the shared dict {self._name!r} is full")
        if reason == "bad_argument":
            raise TypeError("a counter is an integer, and moves by an integer")
        if reason == "no_such_dict":
            text = f"there is no shared dict {self._name!r}: it was closed, its owner ended, or "
            raise LookupError(text + "it was never made")
        raise RuntimeError(f"the shared dict {self._name!r} can't be used: {reason}")
