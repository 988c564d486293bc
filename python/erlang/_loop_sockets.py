"""sock_recv and the like: tried at once, completed when the native core says they are ready."""

# The private parts of asyncio have no types, and what is mixed in uses what the loop has.
# mypy: disable-error-code="attr-defined,assignment,override,misc,arg-type,no-any-return"

from __future__ import annotations

import errno
import functools
import os
import socket
import sys
from asyncio import base_events, exceptions
from contextlib import suppress
from typing import Any


def _is_numeric(host: Any, port: Any) -> bool:
    """Whether an address needs no name service, and so no thread."""
    if not (port is None or isinstance(port, int) or (isinstance(port, str) and port.isdecimal())):
        return False
    if not isinstance(host, str):
        return host is None
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


def _file_of(file: Any) -> tuple[int, int]:
    """The descriptor of a file that ``sendfile`` can read, and its size."""
    try:
        fileno = file.fileno()
        return fileno, os.fstat(fileno).st_size
    except (AttributeError, OSError) as error:
        raise exceptions.SendfileNotAvailableError("not a regular file") from error


class Sockets:
    """Mixed into ErlangEventLoop."""

    def _check_socket(self, sock: Any) -> None:
        base_events._check_ssl_socket(sock)
        if self._debug and sock.gettimeout() != 0:
            raise ValueError("the socket must be non-blocking")

    def _sock_ready(self, sock: Any, write: bool) -> Any:
        """A future of readiness. Callbacks that watch the same descriptor are replaced."""
        ready = self._sock_wait(sock, write)
        if ready is not NotImplemented:
            return ready
        ready, fd = self.create_future(), sock.fileno()
        add = self._add_writer if write else self._add_reader
        handle = add(fd, lambda: ready.done() or ready.set_result(None))
        done = self._sock_write_done if write else self._sock_read_done
        ready.add_done_callback(functools.partial(done, fd, handle=handle))
        return ready

    async def _sock_do(self, sock: Any, write: bool, method: str, *args: Any) -> Any:
        """Calls a method of the socket, again when it is ready if it would block."""
        while True:
            try:
                return getattr(sock, method)(*args)
            except (BlockingIOError, InterruptedError):
                ready = self._sock_ready(sock, write)
            await self._sock_done(sock, write, ready)

    async def _sock_done(self, sock: Any, write: bool, done: Any) -> Any:
        """What the core does when the socket is ready; who is cancelled leaves nothing behind."""
        try:
            return await done
        except exceptions.CancelledError:
            self._sock_forget(sock, write, done)
            raise

    async def sock_recv(self, sock: Any, n: int) -> bytes:
        """Receives up to n bytes."""
        self._check_socket(sock)
        data = self._sock_recv(sock, n)
        if type(data) is not bytes:
            if data is NotImplemented:
                return await self._sock_do(sock, False, "recv", n)
            # As `_sock_done`, without a coroutine more.
            try:
                data = await data
            except exceptions.CancelledError:
                self._sock_forget(sock, False, data)
                raise
        return data

    async def sock_recv_into(self, sock: Any, buf: Any) -> int:
        """Receives into a buffer; how many bytes."""
        self._check_socket(sock)
        return await self._sock_do(sock, False, "recv_into", buf)

    async def sock_recvfrom(self, sock: Any, bufsize: int) -> tuple[bytes, Any]:
        """Receives a datagram; with the address it came from."""
        self._check_socket(sock)
        return await self._sock_do(sock, False, "recvfrom", bufsize)

    async def sock_recvfrom_into(self, sock: Any, buf: Any, nbytes: int = 0) -> tuple[int, Any]:
        """Receives a datagram into a buffer; how many bytes, and from where."""
        self._check_socket(sock)
        return await self._sock_do(sock, False, "recvfrom_into", buf, nbytes or len(buf))

    async def sock_sendall(self, sock: Any, data: Any) -> None:
        """Sends all of the data."""
        self._check_socket(sock)
        waiting = self._sock_sendall(sock, data)
        if type(waiting) is int:
            rest = memoryview(data).cast("B")[waiting:]
            while rest:
                rest = rest[await self._sock_do(sock, True, "send", rest) :]
        elif waiting is not None:
            try:
                await waiting
            except exceptions.CancelledError:
                self._sock_forget(sock, True, waiting)
                raise

    async def sock_sendto(self, sock: Any, data: Any, address: Any) -> int:
        """Sends a datagram; how many bytes."""
        self._check_socket(sock)
        return await self._sock_do(sock, True, "sendto", data, address)

    async def sock_accept(self, sock: Any) -> tuple[Any, Any]:
        """Accepts a connection, whose socket does not block."""
        self._check_socket(sock)
        connection, address = await self._sock_do(sock, False, "accept")
        connection.setblocking(False)
        return connection, address

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connects to an address; a name is looked up."""
        self._check_socket(sock)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            kind = {"family": sock.family, "type": sock.type, "proto": sock.proto}
            resolved = await self._ensure_resolved(address, loop=self, **kind)
            address = resolved[0][4]
        try:
            sock.connect(address)
            return
        except (BlockingIOError, InterruptedError):
            ready = self._sock_ready(sock, True)
        await self._sock_done(sock, True, ready)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, f"Connect call failed {address}")

    async def _sock_sendfile_native(
        self, sock: Any, file: Any, offset: int, count: int | None
    ) -> int:
        fileno, size = _file_of(file)
        if not (size or count):
            return 0
        # Above this, 32-bit systems raise OverflowError.
        most = sys.maxsize // 2 + 1
        sent = 0
        try:
            while True:
                left = most if count is None else min(count - sent, most)
                try:
                    more = os.sendfile(sock.fileno(), fileno, offset + sent, left)
                except (BlockingIOError, InterruptedError):
                    more = None
                except OSError as error:
                    if not sent:
                        # Not a file of that kind, or not such a socket: it can be done otherwise.
                        text = "os.sendfile call failed"
                        raise exceptions.SendfileNotAvailableError(text) from error
                    if error.errno == errno.ENOTCONN:
                        text = "socket is not connected"
                        raise ConnectionError(text, errno.ENOTCONN) from error
                    raise
                if more is not None:
                    sent += more
                    if not more or sent == count:
                        break
                await self._sock_done(sock, True, self._sock_ready(sock, True))
        finally:
            # What is no file of that kind has no place in it.
            with suppress(OSError):
                os.lseek(fileno, offset + sent, os.SEEK_SET)
        return sent

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """Looks an address up: in a thread if it has names in it."""
        if _is_numeric(host, port) and not self._debug:
            return socket.getaddrinfo(host, port, family, type, proto, flags)
        return await super().getaddrinfo(
            host, port, family=family, type=type, proto=proto, flags=flags
        )
