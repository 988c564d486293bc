"""The options of a server, from the one table of them (``native/pyloop/src/http/options.rs``)."""

from __future__ import annotations

from typing import Any

from erlang._native import server_options


class BadOption(ValueError):
    """An option has a value that can't be used, or names a file that can't."""

    __module__ = "erlang.serve"


class Row:
    """An option."""

    name: str
    kind: str
    help: str
    #: Of ``python -m erlang.serve``, of ``Options``.
    command: bool
    program: bool
    #: Of the field of ``Options``.
    type: str
    default: Any = None
    least: int | None = None
    most: int | None = None
    words: tuple[str, ...] = ()

    def __init__(self, columns: dict[str, Any]) -> None:
        self.__dict__.update(columns)
        if self.kind == "time" and self.default is not None:
            # The table has milliseconds.
            self.default /= 1000

    def check(self, value: Any) -> None:
        """Raises `BadOption` for a value that is out of range. Types are for type checkers."""
        wanted = self._wanted(value)
        if wanted is not None:
            raise BadOption(f"{self.name} must {wanted}, got {value}")

    def _wanted(self, value: Any) -> str | None:
        if self.kind == "time":
            # A time may be a fraction of the table's unit.
            if not (value > 0 or value == self.least):
                return "be a positive number of seconds" + (" or 0" if self.least == 0 else "")
        elif self.most is not None:
            least = self.least or 0
            if not least <= value <= self.most:
                if self.kind == "permissions":
                    return f"be from 0 to {self.most:#o}"
                return f"be from {least} to {self.most}"
        elif self.kind == "one_of":
            if value not in self.words:
                return f"be {_listed(self.words)}"
        elif self.kind == "prefix":
            if value and (value[0] != "/" or value[-1] == "/"):
                return "begin with a slash and not end with one"
        elif self.kind in ("path_or", "text_or") and value == "":
            return f"be a {self.kind.removesuffix('_or')}, {_listed(self.words)}"
        return None


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


ROWS = [Row(columns) for columns in server_options()]
