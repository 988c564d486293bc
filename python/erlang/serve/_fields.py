"""The fields of ``Options``. The stub beside this file has their types; ``./dev fmt`` writes it."""

from __future__ import annotations

import dataclasses
from typing import Literal as Literal

from erlang.serve._table import ROWS

Fields = dataclasses.make_dataclass(
    "Fields",
    [(row.name, row.type, dataclasses.field(default=row.default)) for row in ROWS if row.program],
    frozen=True,
    kw_only=True,
    # `Options` itself has these.
    init=False,
    repr=False,
    eq=False,
    match_args=False,
)
# Where `typing.get_type_hints` looks up what the types are.
Fields.__module__ = __name__
