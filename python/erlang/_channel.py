"""Channels, bounded queues between Python code and Erlang processes; and the mailbox of a task."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from erlang import Pid, _in_trio, _own_pid, call
from erlang._async import async_call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

_tokens = itertools.count(1)

# What a timer of Erlang takes: 2**32 milliseconds.
_MAX_SECONDS = 4_294_967


class ChannelClosed(Exception):
    """Nothing can be sent any more, and nothing is left to be received."""


ChannelClosed.__module__ = "erlang"


class _Receiver:
    """Whatever values can be awaited from."""

    _kind = ""
    pid: Pid

    async def areceive(self) -> Any:
        """The next value. Cancelled, it takes none out."""
        token = next(_tokens)
        if _in_trio():
            return self._received(await self._ask_in_trio(token))
        answer = asyncio.ensure_future(async_call(f"${self._kind}_await", self.pid, token))
        try:
            return self._received(await asyncio.shield(answer))
        except asyncio.CancelledError:
            self._abandon(token, answer)
            raise

    def _ask_in_trio(self, token: int) -> Awaitable[Any]:
        from erlang import _trio

        abandoned = functools.partial(self._abandon, token)
        return _trio.ask(f"${self._kind}_await", self.pid, token, abandoned=abandoned)

    def _abandon(self, token: int, answer: Any) -> None:
        """Nobody waits for the answer any more."""
        answer.add_done_callback(self._give_back)
        self._tell("forget", token)

    def __aiter__(self) -> _Receiver:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.areceive()
        except ChannelClosed:
            raise StopAsyncIteration from None

    def _give_back(self, answer: Any) -> None:
        if not answer.cancelled() and answer.exception() is None and answer.result()[0] == "ok":
            self._tell("give_back", answer.result()[1])

    def _tell(self, what: str, *args: object) -> None:
        # An application that stops has no channels any more.
        with suppress(RuntimeError):
            call(f"${self._kind}_{what}", self.pid, *args)

    @staticmethod
    def _received(answer: Any) -> Any:
        what, value = answer
        if what == "ok":
            return value
        if what == "timeout":
            raise TimeoutError("nothing was sent in time")
        raise ChannelClosed("the channel is closed")


class Channel(_Receiver):
    """A channel of ``py_channel``, or a new one. At most ``max`` values wait in it; ``None``: as
    many as ``py_channel:new/0`` allows."""

    __module__ = "erlang"
    _kind = "channel"

    def __init__(self, pid: Pid | None = None, *, max: int | None = None) -> None:
        if max is not None and (not isinstance(max, int) or max < 1):
            raise ValueError(f"max must be a positive integer, not {max!r}")
        self.pid: Pid = call("$channel_new", max) if pid is None else pid

    def __repr__(self) -> str:
        return f"<erlang.Channel {self.pid!r}>"

    def try_send(self, value: object) -> bool:
        """Sends unless the channel is full; says whether it did."""
        return self._sent(call("$channel_try_send", self.pid, value))

    def send(self, value: object) -> None:
        """Sends; blocks this thread while the channel is full."""
        self._sent(call("$channel_send", self.pid, value))

    async def asend(self, value: object) -> None:
        """Sends; waits while the channel is full, and lets the loop go on."""
        self._sent(await async_call("$channel_send", self.pid, value))

    def receive(self, timeout: float | None = None) -> Any:
        """The next value; blocks this thread. ``TimeoutError`` after so many seconds."""
        return self._received(call("$channel_receive", self.pid, _milliseconds(timeout)))

    def close(self) -> None:
        """Nothing can be sent any more; what is in it can still be received."""
        call("$channel_close", self.pid)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return self.receive()
        except ChannelClosed:
            raise StopIteration from None

    @staticmethod
    def _sent(answer: Any) -> bool:
        if answer == "closed":
            raise ChannelClosed("the channel is closed")
        return bool(answer)


def _milliseconds(timeout: float | None) -> int | None:
    if timeout is None or timeout == math.inf:
        return None
    if not 0 <= timeout <= _MAX_SECONDS:
        raise ValueError(f"timeout must be 0 to {_MAX_SECONDS} seconds, or None, not {timeout!r}")
    return math.ceil(timeout * 1000)


class Mailbox(_Receiver):
    """The messages sent to the pid of a task."""

    __module__ = "erlang"
    _kind = "mailbox"

    def __init__(self) -> None:
        self.pid = call("$mailbox_new")

    def __repr__(self) -> str:
        return f"<erlang.Mailbox {self.pid!r}>"

    def _stop(self, _task: object) -> None:
        self._tell("stop")


_mailbox: contextvars.ContextVar[Mailbox] = contextvars.ContextVar("erlang.mailbox")


def receive() -> Mailbox:
    """The mailbox of the current task: ``async for message in erlang.receive()``. From the first
    call on ``erlang.self()`` in this task, and in those it starts, is the mailbox's pid."""
    at_end = _at_end_of_task()
    mailbox = _mailbox.get(None)
    if mailbox is None:
        mailbox = Mailbox()
        _mailbox.set(mailbox)
        _own_pid.set(mailbox.pid)
        at_end(mailbox._stop)
    return mailbox


def _at_end_of_task() -> Callable[[Callable[[object], None]], None]:
    """Where to say what is called when the current task is over."""
    if _in_trio():
        from erlang import _trio

        return _trio.at_end_of_task
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("erlang.receive() is for a task: use erlang.Channel in other code")
    return task.add_done_callback
