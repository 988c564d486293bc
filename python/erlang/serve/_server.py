"""A server: listening sockets, the application's lifespan, and the end of both.

What runs per connection and request is native (`erlang._native.HttpServer`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from erlang._native import HttpServer
from erlang.serve import _access
from erlang.serve._file import send_pieces, send_whole
from erlang.serve._lifespan import Lifespan, LifespanFailed
from erlang.serve._load import as_asgi3
from erlang.serve._options import Options
from erlang.serve._share import SharedSocket
from erlang.serve._table import BadOption

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger("erlang.serve")

#: Seconds that an application has to end when it was told to do so at once.
LATEST = 3.0
#: Seconds that the end of a lifespan has at least.
LEAST = 2.0
#: Seconds that the reader of the access log has at the end.
FLUSH = 2.0


class Server:
    """Serves one application on the running loop."""

    def __init__(
        self,
        app: Any,
        options: Options | None = None,
        share: int | None = None,
        listening: socket.socket | None = None,
    ) -> None:
        """Servers with the same number as `share` have the same socket, and share connections.
        `listening` is in place of what the options say, and stays the caller's until the server
        listens on it."""
        self.options = options or Options()
        self._share = share
        self._given = listening
        #: Of a Unix socket that this server makes and removes.
        self._path = self.options.uds if listening is None else None
        self._app = as_asgi3(app)
        self._core = HttpServer()
        self._courier: _access.Courier | None = None
        self._lifespan = Lifespan(self._app, self.options.lifespan)
        self._listener: asyncio.Server | None = None
        self._empty: asyncio.Future[None] | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._secure: ssl.SSLContext | None = None
        self._taken: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Starts the application, then listens."""
        loop = asyncio.get_running_loop()
        self._secure = self.options.ssl_context()
        await self._lifespan.startup()
        state = self._lifespan.state
        try:
            with _access.opened(self.options) as access:
                native = {**self.options.native(), **access}
                self._courier = _access.Courier(self._core)
                self._start(loop, state, native)
            await self._listen(loop)
        except BaseException:
            if self._listener is not None:
                self._listener.close()
                self._listener = None
            await self._lifespan.shutdown(self.options.stop_timeout)
            raise

    def _start(self, loop: asyncio.AbstractEventLoop, state: Any, native: dict[str, Any]) -> None:
        try:
            self._core.start(loop, self._app, state, self, native)
        except ValueError as error:
            raise BadOption(str(error)) from error

    async def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        options, factory = self.options, self._core.connection
        common: dict[str, Any] = {"backlog": options.backlog, "ssl": self._secure}
        # What listens has an owner: cancelled while it began to, asyncio would leave it open.
        common["start_serving"] = False
        fd = options.fd if self._given is None else self._given.detach()
        if self._path is not None:
            with options.listening():
                self._listener = await loop.create_unix_server(factory, self._path, **common)
            os.chmod(self._path, options.uds_mode)
        elif fd is not None:
            sock = self._socket(fd)
            if sock.family == socket.AF_UNIX:
                self._listener = await loop.create_unix_server(factory, sock=sock, **common)
            else:
                self._listener = await loop.create_server(factory, sock=sock, **common)
        else:
            with options.listening():
                self._listener = await loop.create_server(
                    factory, options.host, options.port, reuse_port=options.reuse_port, **common
                )
        with options.listening():
            await self._listener.start_serving()

    def _socket(self, fd: int) -> socket.socket:
        if self._share is None:
            return socket.socket(fileno=fd)
        sock = SharedSocket.of(fd, self._core)
        try:
            self._core.share(self._share, self._take)
        except BaseException:
            sock.close()
            raise
        return sock

    def _take(self, fd: int) -> None:
        """A connection that another server has accepted."""
        sock = socket.socket(fileno=fd)
        if self._listener is None:
            sock.close()
            return
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        taking = loop.connect_accepted_socket(self._core.connection, sock, ssl=self._secure)
        task = loop.create_task(taking)
        self._taken.add(task)
        task.add_done_callback(self._took)

    def _took(self, task: asyncio.Task[Any]) -> None:
        self._taken.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.debug("a connection was not made", exc_info=error)

    @property
    def addresses(self) -> list[Any]:
        """Where it listens: what ``getsockname`` says."""
        if self._listener is None:
            return []
        return [sock.getsockname() for sock in self._listener.sockets]

    @property
    def port(self) -> int:
        """The port of the first address."""
        return int(self.addresses[0][1])

    def info(self) -> dict[str, int]:
        """Numbers of this moment: ``connections``, ``in_flight``, ``served``."""
        return dict(self._core.info())

    async def reload(self, app: Any) -> None:
        """Another application for the requests from now on; no connection is lost. The old one's
        lifespan ends when what it has begun is answered, or after ``stop_timeout``."""
        new = as_asgi3(app)
        lifespan = Lifespan(new, self.options.lifespan)
        await lifespan.startup()
        old, self._lifespan, self._app = self._lifespan, lifespan, new
        begun = self._core.tasks()
        self._core.reload(new, lifespan.state)
        if not begun:
            await self._end(old, begun)
            return
        ending = asyncio.create_task(self._end(old, begun), name="lifespan of the old application")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def _end(self, lifespan: Lifespan, begun: tuple[asyncio.Task[None], ...]) -> None:
        if begun:
            await asyncio.wait(begun, timeout=self.options.stop_timeout)
            # WebSockets have no end of their own.
            self._core.restart(begun)
            await asyncio.wait(begun, timeout=LATEST)
        try:
            await lifespan.shutdown(self.options.stop_timeout)
        except LifespanFailed:
            logger.exception("the old application did not stop as it should")

    async def stop(self, timeout: float | None = None) -> None:
        """Listens no more, lets requests be answered within `timeout`, then ends the rest."""
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        listener.close()
        if self._path is not None:
            with suppress(OSError):
                os.unlink(self._path)
        if timeout is None:
            timeout = self.options.stop_timeout
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        try:
            await asyncio.wait_for(self._drain(), timeout)
        except TimeoutError:
            if timeout > 0:
                logger.warning("some requests were not answered within %s s: they end now", timeout)
            await self._abort()
        if self._endings:
            await asyncio.wait(self._endings, timeout=max(end - loop.time(), LEAST))
        try:
            await self._lifespan.shutdown(max(end - loop.time(), LEAST))
        finally:
            await self._flushed()

    async def _flushed(self) -> None:
        """Lines of the access log are written, if their reader takes them."""
        loop = asyncio.get_running_loop()
        end = loop.time() + FLUSH
        if self._courier is not None:
            await self._courier.finish(FLUSH)
        while not self.flush(0.0) and loop.time() < end:
            await asyncio.sleep(0.002)

    def flush(self, timeout: float) -> bool:
        """Writes what waits of the access log, and blocks for `timeout` seconds at most; whether
        all of it is written."""
        return bool(self._core.flush_log(timeout))

    async def _drain(self) -> None:
        self._empty = asyncio.get_running_loop().create_future()
        self._core.stop()
        await self._empty

    def abort(self) -> None:
        """Ends all connections at once."""
        self._core.abort()

    async def _abort(self) -> None:
        # What was not answered is a 500; who does not take that, or has no end, is left.
        for end in (self._core.cancel, self.abort):
            self._empty = asyncio.get_running_loop().create_future()
            end()
            self._core.stop()
            with suppress(TimeoutError):
                # An application that does not let itself be cancelled can't hold up the end.
                await asyncio.wait_for(self._empty, LATEST)
                return

    # What the native part calls.

    def emptied(self) -> None:
        if self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    async def send_file(self, request: Any, transport: Any, path: str) -> None:
        """`transport` is `None` where it can't send a file by itself."""
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if not request._file_begins(size):
                request._file_ended()
            elif transport is None:
                await send_pieces(request, file, size)
            else:
                await send_whole(transport, file, size, self.options.idle_timeout)
                request._file_ended()

    def access(self, client: str, method: str, target: str, version: str, status: int) -> None:
        # The arguments are those of uvicorn's records: filters and formatters for them fit.
        _access.logger.info(_access.MESSAGE, client, method, target, version, status)

    def access_waits(self) -> None:
        if self._courier is not None:
            self._courier.wake()

    def access_line(self, line: str) -> None:
        _access.logger.info("%s", line)

    def failed(self, error: BaseException, gone: bool) -> None:
        if gone and _is_about_connection(error):
            logger.debug("the application ended when the client had left", exc_info=error)
            return
        logger.error("the application raised", exc_info=error)

    def complain(self, text: str) -> None:
        logger.error("%s", text)


def _is_about_connection(error: BaseException | None) -> bool:
    """Whether it goes back to the `OSError` that `send` raises for a client that has left."""
    while error is not None:
        if isinstance(error, OSError):
            return True
        if isinstance(error, BaseExceptionGroup):
            # Of several tasks: what another one has raised is an error of its own.
            return all(map(_is_about_connection, error.exceptions))
        error = error.__cause__ or error.__context__
    return False


async def serve(app: Any, options: Options | None = None) -> None:
    """Serves until the task is cancelled, then stops in order."""
    server = Server(app, options)
    await server.start()
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await server.stop()
