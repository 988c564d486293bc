"""sock_recv and the like: tried at once, completed by the native core when they are ready."""

# The private parts of asyncio have no types, and what is mixed in uses what the loop has.
# mypy: disable-error-code="attr-defined,assignment,override,misc,arg-type,no-any-return"

from __future__ import annotations

from asyncio import base_events
from typing import Any


class Sockets:
    """Mixed into ErlangEventLoop."""

    def _check_socket(self, sock: Any) -> None:
        base_events._check_ssl_socket(sock)
        if self._debug and sock.gettimeout() != 0:
            raise ValueError("the socket must be non-blocking")

    async def sock_recv(self, sock: Any, n: int) -> bytes:
        """Receives up to n bytes."""
        self._check_socket(sock)
        data = self._sock_recv(sock, n)
        if type(data) is not bytes:
            if data is NotImplemented:
                return await super().sock_recv(sock, n)
            data = await data
        return data

    async def sock_sendall(self, sock: Any, data: Any) -> None:
        """Sends all of the data."""
        self._check_socket(sock)
        waiting = self._sock_sendall(sock, data)
        if waiting is not None:
            await waiting

    async def sock_recv_into(self, sock: Any, buf: Any) -> int:
        """Receives into a buffer; how many bytes."""
        self._check_socket(sock)
        while True:
            try:
                return sock.recv_into(buf)
            except (BlockingIOError, InterruptedError):
                ready = self._sock_wait(sock, False)
            if ready is NotImplemented:
                return await super().sock_recv_into(sock, buf)
            await ready

    async def sock_accept(self, sock: Any) -> tuple[Any, Any]:
        """Accepts a connection, whose socket does not block."""
        self._check_socket(sock)
        while True:
            try:
                connection, address = sock.accept()
            except (BlockingIOError, InterruptedError):
                ready = self._sock_wait(sock, False)
            else:
                connection.setblocking(False)
                return connection, address
            if ready is NotImplemented:
                return await super().sock_accept(sock)
            await ready
