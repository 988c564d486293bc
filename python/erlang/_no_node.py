"""What `erlang` offers where there is no node: one clear exception."""

from __future__ import annotations

import time
from typing import Any, NoReturn

from erlang._errors import NotInNode


def _refuse(what: str) -> NoReturn:
    raise NotInNode(
        f"erlang.{what} works inside an Erlang node only: run this code by py:call, py:exec or "
        "another function of the Erlang module py"
    )


def call(name: str, *args: object) -> Any:
    """Calls a function registered in Erlang."""
    _refuse("call")


def send(dest: object, term: object) -> None:
    """Sends a message to an Erlang process."""
    _refuse("send")


def whereis(name: str) -> Any:
    """The pid registered under a name."""
    _refuse("whereis")


def self() -> Any:
    """The pid of the process this code runs for."""
    _refuse("self")


def ask(loop: object, future: object, name: str, *args: object) -> bool:
    """Calls a function registered in Erlang."""
    _refuse("async_call")


def begin_loop() -> bool:
    """Starts the loop of this sub-interpreter."""
    _refuse("spawn_task")


def current() -> Any:
    """Whom this code runs for."""
    _refuse("current")


def sleep(seconds: float) -> None:
    """Blocks this thread."""
    time.sleep(seconds)
