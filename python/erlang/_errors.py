"""What can go wrong between the two worlds."""

from __future__ import annotations


class NotInNode(RuntimeError):
    """This needs an Erlang node around it; plain ``python3`` has none."""


class ErlangError(Exception):
    """An Erlang function raised; `kind`, `reason` and `stacktrace` are the terms it raised with."""

    def __init__(self, kind: str, reason: object, stacktrace: list[object]) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason
        self.stacktrace = stacktrace

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason!r}"


class Cancelled(BaseException):
    """The Erlang side no longer waits: the job is to end. Not an `Exception`, so that ``except
    Exception`` does not swallow it."""


# What a traceback shows is the name people import.
for _class in (NotInNode, ErlangError, Cancelled):
    _class.__module__ = "erlang"
