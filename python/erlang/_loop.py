"""`ErlangEventLoop`: asyncio's loop over a native core.

What runs per callback, timer and packet is native (`erlang._native.LoopCore`); what runs per
connection or per loop is the standard library's own, of the running version.
"""

# The private parts of asyncio have no types.
# mypy: disable-error-code="attr-defined,assignment,override,misc"

from __future__ import annotations

import asyncio
import collections
import errno
import selectors
import signal
import socket
import sys
import threading
import time
import weakref
from asyncio import (
    base_events,
    constants,
    events,
    format_helpers,
    sslproto,
    transports,
    trsock,
)
from typing import TYPE_CHECKING, Any

from erlang._native import LoopCore

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Callable


def _of_server(transport: Any) -> tuple[Any, ...]:
    """A server of Python 3.13 knows its transports, an older one counts them."""
    return (transport,) if sys.version_info >= (3, 13) else ()


class _ErlangSocketTransport(transports._FlowControlMixin, transports.Transport):
    """What `isinstance` takes the native transport for."""


class _ErlangDatagramTransport(transports._FlowControlMixin, transports.DatagramTransport):
    """What `isinstance` takes the native datagram transport for."""


class _Watched:
    """What asyncio's own transports ask a selector: which descriptors are watched, and for what."""

    def __init__(self, loop: ErlangEventLoop) -> None:
        self._loop = weakref.ref(loop)

    def get_key(self, fd: int) -> selectors.SelectorKey:
        """As `selectors.BaseSelector.get_key` has it."""
        loop = self._loop()
        watched = 0 if loop is None else loop._watched(fd)
        if not watched:
            raise KeyError(f"{fd!r} is not registered")
        return selectors.SelectorKey(fd, fd, watched, None)


class ErlangEventLoop(LoopCore, asyncio.SelectorEventLoop):
    """An asyncio event loop. Every loop is isolated from the others, whatever ``isolated`` says."""

    def __init__(self, *, isolated: bool = True) -> None:
        base_events.BaseEventLoop.__init__(self)
        self._selector = _Watched(self)
        self._ssock: Any = None
        self._csock: Any = None
        # The descriptor by which other threads wake the loop.
        self._internal_fds += 1
        self._transports: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._signal_handlers: dict[int, Any] = {}
        self._unix_server_sockets: dict[Any, Any] = {}
        self._ready: collections.deque[Any] = collections.deque()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} running={self.is_running()} closed={self.is_closed()} "
            f"debug={self.get_debug()}>"
        )

    def run_forever(self) -> None:
        """Runs until ``stop`` is called."""
        self._check_closed()
        self._check_running()
        self._set_coroutine_origin_tracking(self._debug)
        hooks = sys.get_asyncgen_hooks()
        try:
            self._thread_id = threading.get_ident()
            sys.set_asyncgen_hooks(
                firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook
            )
            events._set_running_loop(self)
            self._run()
        finally:
            self._stopping = False
            self._thread_id = None
            events._set_running_loop(None)
            self._set_coroutine_origin_tracking(False)
            sys.set_asyncgen_hooks(*hooks)

    def close(self) -> None:
        """Drops everything that waits; the loop can't be used again."""
        if self.is_running():
            raise RuntimeError("Cannot close a running event loop")
        if self._closed:
            return
        for sig in list(self._signal_handlers):
            self.remove_signal_handler(sig)
        if self._ssock is not None:
            self._close_self_pipe()
        base_events.BaseEventLoop.close(self)
        self._drop_all()
        self._selector = None
        self._internal_fds -= 1

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        """Calls back when the signal comes; for the main thread."""
        self._check_closed()
        if self._csock is None and threading.current_thread() is threading.main_thread():
            self._make_self_pipe()
        super().add_signal_handler(sig, callback, *args)

    def _handle_signal(self, sig: int) -> None:
        handle = self._signal_handlers.get(sig)
        if handle is None:
            return
        if handle._cancelled:
            self.remove_signal_handler(sig)
        else:
            self._add_callback_signalsafe(handle)

    def _add_callback(self, handle: events.Handle) -> None:
        if not handle._cancelled:
            self._enqueue(handle)

    def _callback_failed(self, handle: Any, error: BaseException) -> None:
        """A native handle raised: what ``Handle._run`` says of it."""
        source = format_helpers._format_callback_source(handle._callback, handle._args or ())
        self.call_exception_handler(
            {"message": f"Exception in callback {source}", "exception": error, "handle": handle}
        )

    # Connections.

    def _make_socket_transport(
        self, sock: Any, protocol: Any, waiter: Any = None, *, extra: Any = None, server: Any = None
    ) -> Any:
        self._ensure_fd_no_transport(sock)
        transport = self._stream(sock, protocol, waiter, extra, server)
        if server is not None:
            server._attach(*_of_server(transport))
        return transport

    def _make_ssl_transport(
        self,
        rawsock: Any,
        protocol: Any,
        sslcontext: Any,
        waiter: Any = None,
        *,
        server_side: bool = False,
        server_hostname: str | None = None,
        extra: Any = None,
        server: Any = None,
        **timeouts: Any,
    ) -> Any:
        tls = sslproto.SSLProtocol(
            self, protocol, sslcontext, waiter, server_side, server_hostname, **timeouts
        )
        self._make_socket_transport(rawsock, tls, extra=extra, server=server)
        return tls._app_transport

    def _make_datagram_transport(
        self, sock: Any, protocol: Any, address: Any = None, waiter: Any = None, extra: Any = None
    ) -> Any:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return super()._make_datagram_transport(sock, protocol, address, waiter, extra)
        self._ensure_fd_no_transport(sock)
        return self._datagram(sock, protocol, address, waiter, extra)

    def _resolve_datagram(self, address: Any, ipv6: bool) -> Any:
        """The numeric address that a name stands for."""
        host, port = address[:2]
        family = socket.AF_INET6 if ipv6 else socket.AF_INET
        return socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)[0][4]

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

    # Debug mode: the handles and the checks are asyncio's own.

    def _call_soon(
        self,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> events.Handle:
        handle = events.Handle(callback, args, self, context)
        if handle._source_traceback:
            del handle._source_traceback[-1]
        self._enqueue(handle)
        return handle

    def _debug_call_soon(
        self,
        threadsafe: bool | None,
        context: contextvars.Context | None,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> events.Handle:
        base = base_events.BaseEventLoop
        call = base.call_soon_threadsafe if threadsafe else base.call_soon
        handle = call(self, callback, *args, context=context)
        if handle._source_traceback:
            del handle._source_traceback[-1]
        return handle

    def _debug_call_at(
        self,
        when: float,
        context: contextvars.Context | None,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> events.TimerHandle:
        self._check_thread()
        self._check_callback(callback, "call_at")
        timer = events.TimerHandle(when, callback, args, self, context)
        if timer._source_traceback:
            del timer._source_traceback[-1]
        timer._scheduled = True
        self._schedule(timer, when)
        return timer

    def _debug_create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = base_events.BaseEventLoop.create_task(self, coro, **options)
        if task._source_traceback:
            del task._source_traceback[-1]
        return task

    def _debug_run(self, handle: events.Handle) -> None:
        try:
            self._current_handle = handle
            began = time.monotonic()
            handle._run()
            took = time.monotonic() - began
            if took >= self.slow_callback_duration:
                what = base_events._format_handle(handle)
                base_events.logger.warning("Executing %s took %.3f seconds", what, took)
        finally:
            self._current_handle = None
            # A traceback that was taken meanwhile holds this frame: no cycle through it.
            del handle


def new_event_loop() -> ErlangEventLoop:
    """A new loop, as ``asyncio.new_event_loop`` gives one."""
    return ErlangEventLoop()


if not hasattr(signal, "set_wakeup_fd"):  # pragma: no cover
    raise ImportError("the loop needs a POSIX system")
