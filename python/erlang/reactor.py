"""Protocols over descriptors that Erlang hands over.

Erlang accepts a connection and gives its descriptor away (``py_reactor_context:handoff/2``); an
object of a class made from ``Protocol`` handles it on an event loop from then on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Protocol"]

_log = logging.getLogger("erlang.reactor")


class Protocol:
    """One connection. Override what is needed; every method runs on the loop's thread."""

    _transport: asyncio.Transport
    _has_room = True

    def connection_made(self, peer: Any) -> None:
        """The connection is there; ``peer`` is the address of the other side."""

    def data_received(self, data: bytes) -> None:
        """Bytes came."""

    def write_ready(self) -> None:
        """There is room to write: at the beginning, and again after ``write`` said ``False``."""

    def connection_lost(self, error: Exception | None) -> None:
        """It is over: nothing else is called after this."""

    def write(self, data: bytes | bytearray | memoryview) -> bool:
        """Sends the bytes, or keeps them until they can be sent.

        ``False``: enough is kept; ``write_ready`` tells when there is room again.
        """
        self._transport.write(data)
        return self._has_room

    def close(self) -> None:
        """Closes when all that was written has gone out."""
        self._transport.close()

    def abort(self) -> None:
        """Closes at once."""
        self._transport.abort()

    def pause_reading(self) -> None:
        """No ``data_received`` until ``resume_reading``."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Takes it back."""
        self._transport.resume_reading()


class _Connection(asyncio.Protocol):
    """Between a transport and a user's protocol: a failure ends this one connection."""

    def __init__(self, context: _Context) -> None:
        self._context = context
        self._user: Protocol | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._context.connections.add(self)
        try:
            self._user = self._context.make()
        except Exception:
            self._failed()
            return
        self._user._transport = transport
        self._call(self._user.connection_made, transport.get_extra_info("peername"))
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._user is not None:
            self._call(self._user.data_received, data)

    def pause_writing(self) -> None:
        if self._user is not None:
            self._user._has_room = False

    def resume_writing(self) -> None:
        if self._user is not None and not self._transport.is_closing():
            self._user._has_room = True
            self._call(self._user.write_ready)

    def connection_lost(self, error: Exception | None) -> None:
        self._context.connections.discard(self)
        user, self._user = self._user, None
        if user is not None:
            self._call(user.connection_lost, error)

    def abort(self) -> None:
        self._transport.abort()

    def _call(self, method: Callable[..., None], *args: Any) -> None:
        try:
            method(*args)
        except Exception:
            self._failed()

    def _failed(self) -> None:
        _log.exception("a connection is closed: its protocol failed")
        self._transport.abort()


class _Context:
    """The connections of one ``py_reactor_context``."""

    def __init__(self, make: Callable[[], Protocol], most: int) -> None:
        self.make = make
        self.most = most
        self.connections: set[_Connection] = set()
        # Handed over, and not made yet.
        self.coming = 0
        self.total = 0


_contexts: dict[int, _Context] = {}


async def _open(number: int, module: str, name: str, most: int) -> None:
    """A new context; called by Erlang, as all below."""
    make = getattr(__import__(module, fromlist=[name]), name)
    if not (isinstance(make, type) and issubclass(make, Protocol)):
        raise TypeError(f"{module}.{name} is not a class made from erlang.reactor.Protocol")
    _contexts[number] = _Context(make, most)


async def _handoff(number: int, descriptor: int) -> bool:
    """Takes a connection over; ``False``: there are too many.

    The descriptor is duplicated: the giver closes its own.
    """
    context = _contexts[number]
    if len(context.connections) + context.coming >= context.most:
        return False
    context.coming += 1
    try:
        accepted = socket.socket(fileno=os.dup(descriptor))
        try:
            accepted.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: _Connection(context), accepted)
        except BaseException:
            accepted.close()
            raise
    finally:
        context.coming -= 1
    context.total += 1
    return True


async def _info(number: int) -> dict[str, int]:
    context = _contexts[number]
    return {"connections": len(context.connections), "total": context.total}


async def _close(number: int) -> None:
    """Ends every connection, and waits until each was told."""
    context = _contexts.pop(number, None)
    if context is None:
        return
    context.most = 0
    for connection in list(context.connections):
        connection.abort()
    while context.connections:
        await asyncio.sleep(0)
