"""Connections and endpoints of the loop: native transports behind asyncio's own methods."""

# The private parts of asyncio have no types, and what is mixed in uses what the loop has.
# mypy: disable-error-code="attr-defined,assignment,override,misc,arg-type,no-any-return"

from __future__ import annotations

import errno
import socket
import sys
from asyncio import constants, transports, trsock
from typing import TYPE_CHECKING, Any

from erlang._native import ReadPipe, WritePipe

if TYPE_CHECKING:
    from collections.abc import Callable


def _of_server(transport: Any) -> tuple[Any, ...]:
    """A server of Python 3.13 knows its transports, an older one counts them."""
    return (transport,) if sys.version_info >= (3, 13) else ()


class _Readable(transports.ReadTransport):
    """What ``isinstance`` takes the reading end of a pipe for."""


class _Writable(transports._FlowControlMixin, transports.WriteTransport):
    """What ``isinstance`` takes the writing end of a pipe for."""


class _ErlangReadPipeTransport(ReadPipe):
    # asyncio's classes can't be a base of a native one: their layouts differ.
    __class__ = property(lambda _: _Readable)


class _ErlangWritePipeTransport(WritePipe):
    __class__ = property(lambda _: _Writable)


class Connections:
    """Mixed into ErlangEventLoop."""

    def _make_socket_transport(
        self, sock: Any, protocol: Any, waiter: Any = None, *, extra: Any = None, server: Any = None
    ) -> Any:
        self._ensure_fd_no_transport(sock)
        if server is not None and server._sockets is None:
            sock.close()
            raise ConnectionAbortedError("the server was closed before it had this connection")
        return self._stream(sock, protocol, waiter, extra, server)

    def _make_read_pipe_transport(
        self, pipe: Any, protocol: Any, waiter: Any = None, extra: Any = None
    ) -> Any:
        return self._pipe(pipe, protocol, waiter, extra, _ErlangReadPipeTransport)

    def _make_write_pipe_transport(
        self, pipe: Any, protocol: Any, waiter: Any = None, extra: Any = None
    ) -> Any:
        return self._pipe(pipe, protocol, waiter, extra, _ErlangWritePipeTransport)

    def _attach_transport(self, server: Any, transport: Any) -> None:
        server._attach(*_of_server(transport))

    def _detach_transport(self, server: Any, transport: Any) -> None:
        server._detach(*_of_server(transport))

    def _fill_extra(self, extra: dict[str, Any], sock: Any, name: str) -> None:
        """What ``get_extra_info`` asks for the first time."""
        if sock is None:
            return
        if name == "socket":
            extra[name] = trsock.TransportSocket(sock)
        elif name in ("sockname", "peername"):
            try:
                extra[name] = sock.getsockname() if name == "sockname" else sock.getpeername()
            except OSError:
                extra[name] = None

    def _accept_connection(
        self,
        protocol_factory: Callable[[], Any],
        sock: Any,
        sslcontext: Any = None,
        server: Any = None,
        backlog: int = 100,
        *timeouts: Any,
    ) -> None:
        """The listening socket is readable: plain connections are made at once, without a task."""
        if sslcontext is not None:
            super()._accept_connection(
                protocol_factory, sock, sslcontext, server, backlog, *timeouts
            )
            return
        if type(sock) is socket.socket:
            try:
                self._accept(sock, protocol_factory, server, backlog)
            except OSError as error:
                self._accept_failed(error, protocol_factory, sock, server, backlog, *timeouts)
            return
        for _ in range(backlog + 1):
            try:
                connection, address = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._accept_failed(error, protocol_factory, sock, server, backlog, *timeouts)
                return
            connection.setblocking(False)
            try:
                protocol = protocol_factory()
                extra = {"peername": address}
                self._make_socket_transport(connection, protocol, extra=extra, server=server)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                connection.close()
                message = "Error on transport creation for incoming connection"
                self.call_exception_handler({"message": message, "exception": error})

    def _accept_failed(
        self,
        error: OSError,
        protocol_factory: Callable[[], Any],
        sock: Any,
        server: Any,
        backlog: int,
        *timeouts: Any,
    ) -> None:
        """Out of descriptors or memory: waits a moment, as asyncio does."""
        if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            raise error
        message = "socket.accept() out of system resource"
        shown = trsock.TransportSocket(sock)
        self.call_exception_handler({"message": message, "exception": error, "socket": shown})
        self._remove_reader(sock.fileno())
        if not timeouts:
            timeouts = (constants.SSL_HANDSHAKE_TIMEOUT, constants.SSL_SHUTDOWN_TIMEOUT)
        again = (protocol_factory, sock, None, server, backlog, *timeouts)
        self.call_later(constants.ACCEPT_RETRY_DELAY, self._start_serving, *again)

    async def _sendfile_native(self, transp: Any, file: Any, offset: int, count: int) -> int:
        reading = transp.is_reading()
        transp.pause_reading()
        await transp._make_empty_waiter()
        # The socket is watched by sock_sendfile meanwhile.
        transp._leave_loop()
        try:
            return await self.sock_sendfile(transp._sock, file, offset, count, fallback=False)
        finally:
            transp._join_loop()
            transp._reset_empty_waiter()
            if reading:
                transp.resume_reading()
