"""TLS of the loop: data goes through a native transport, the rest is asyncio's own `SSLProtocol`.

Handshake, shutdown, timeouts and failures run once per connection and are those of the running
Python. What runs per packet, from the socket to the protocol and back, is native.
"""

# The private parts of asyncio have no types, and what is mixed in uses what the loop has.
# mypy: disable-error-code="attr-defined,assignment,override,misc,arg-type,no-any-return"

from __future__ import annotations

import warnings
from asyncio import sslproto, streams, transports
from asyncio.sslproto import SSLProtocolState as State
from typing import Any

# How the native transport counts the states.
_MODES = {
    State.UNWRAPPED: 0,
    State.DO_HANDSHAKE: 1,
    State.WRAPPED: 2,
    State.FLUSHING: 3,
    State.SHUTDOWN: 4,
}


class _ErlangSSLTransport(transports._FlowControlMixin, transports.Transport):
    """What `isinstance` takes the native TLS transport for."""


class TlsProtocol(sslproto.SSLProtocol):
    """asyncio's part of a connection under TLS: all but the way of the data."""

    # Nothing is received into the buffer of this size: the stream feeds the engine.
    max_size = 256
    _tls: Any = None
    _leaves = False
    _app_transport_created: bool

    def __del__(self) -> None:
        tls = self._tls
        if tls is not None and not tls._closed:
            warnings.warn(f"unclosed transport {tls!r}", ResourceWarning, stacklevel=1)
            tls._closed = True

    def _get_app_transport(self) -> Any:
        if not self._app_transport_created:
            self._app_transport_created = True
            self._tls = self._app_transport = self._loop._tls(self)
        return self._app_transport

    def _set_app_protocol(self, app_protocol: Any) -> None:
        super()._set_app_protocol(app_protocol)
        if self._tls is not None:
            self._tls._adopt(app_protocol)

    def _set_state(self, new_state: State) -> None:
        super()._set_state(new_state)
        if self._tls is not None:
            self._tls._set_mode(_MODES[new_state])

    def connection_made(self, transport: Any) -> None:
        """The stream below is connected: the handshake begins."""
        self._tls._attach(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The stream below is lost."""
        super().connection_lost(exc)
        tls, self._tls = self._tls, None
        if tls is not None:
            tls._release()

    def _advance(self) -> None:
        """The engine has more from the peer, and it is not the protocol's data."""
        if self._state is State.DO_HANDSHAKE:
            self._do_handshake()
        elif self._state is State.FLUSHING:
            self._do_flush()
        elif self._state is State.SHUTDOWN:
            self._do_shutdown()

    def _peer_closed(self) -> None:
        """The peer has sent close_notify."""
        self._call_eof_received()
        self._start_shutdown()

    def _leave(self) -> None:
        """Ends when what is written is sent, without the peer's close_notify: RFC 8446, 6.1."""
        self._leaves = True
        self._start_shutdown()
        self._end_if_sent()

    def _end_if_sent(self) -> None:
        waits = self._state is State.SHUTDOWN and self._shutdown_timeout_handle is not None
        if self._leaves and waits and not self._outgoing.pending:
            self._on_shutdown_complete(None)

    def _abort(self, exc: BaseException | None = None) -> None:
        self._set_state(State.UNWRAPPED)
        if self._transport is not None:
            self._transport._force_close(exc)

    def _do_read(self) -> None:
        if self._tls is not None:
            self._tls._pump()

    def _do_write(self) -> None:
        if self._tls is not None:
            self._tls._encrypt_all()

    def _do_flush(self) -> None:
        # What is written comes before the close_notify.
        self._do_write()
        super()._do_flush()

    def _process_outgoing(self) -> None:
        if self._tls is not None:
            self._tls._send_outgoing()

    def pause_writing(self) -> None:
        """The stream below has enough to send."""
        self._ssl_writing_paused = True
        if self._tls is not None:
            self._tls._set_stream_full(True)

    def resume_writing(self) -> None:
        """The stream below takes more."""
        self._ssl_writing_paused = False
        if self._tls is not None:
            self._tls._set_stream_full(False)
            self._end_if_sent()


def _protocol_class(sslcontext: Any) -> type[sslproto.SSLProtocol]:
    """An engine that is not `ssl`'s own is for asyncio, which uses it by its methods alone."""
    if sslcontext is None:
        return TlsProtocol
    own = isinstance(sslcontext, sslproto.ssl.SSLContext)
    if own and sslcontext.sslobject_class is sslproto.ssl.SSLObject:
        return TlsProtocol
    return sslproto.SSLProtocol


def _move_early_data(reader: Any, tls: TlsProtocol) -> None:
    """The client may have begun before the server did: as asyncio has it from 3.14 on."""
    if reader is not None and reader._buffer:
        tls._incoming.write(reader._buffer)
        reader._buffer.clear()


class Tls:
    """Mixed into ErlangEventLoop."""

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
        tls = _protocol_class(sslcontext)(
            self, protocol, sslcontext, waiter, server_side, server_hostname, **timeouts
        )
        self._make_socket_transport(rawsock, tls, extra=extra, server=server)
        return tls._app_transport

    async def start_tls(
        self,
        transport: Any,
        protocol: Any,
        sslcontext: Any,
        *,
        server_side: bool = False,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
    ) -> Any:
        """Puts TLS above a transport; the transport that the protocol should use from now on."""
        known = isinstance(sslcontext, sslproto.ssl.SSLContext)
        native = known and _protocol_class(sslcontext) is TlsProtocol
        timeouts = {
            "ssl_handshake_timeout": ssl_handshake_timeout,
            "ssl_shutdown_timeout": ssl_shutdown_timeout,
        }
        if not native or not hasattr(transport, "_join_loop"):
            return await super().start_tls(
                transport,
                protocol,
                sslcontext,
                server_side=server_side,
                server_hostname=server_hostname,
                **timeouts,
            )
        waiter = self.create_future()
        tls = TlsProtocol(
            self,
            protocol,
            sslcontext,
            waiter,
            server_side,
            server_hostname,
            call_connection_made=False,
            **timeouts,
        )
        # What comes before TLS is above the transport waits in the kernel, or in a stream's reader.
        transport.pause_reading()
        if server_side and isinstance(protocol, streams.StreamReaderProtocol):
            _move_early_data(protocol._stream_reader, tls)
        transport.set_protocol(tls)
        begin = self.call_soon(tls.connection_made, transport)
        resume = self.call_soon(transport.resume_reading)
        try:
            await waiter
        except BaseException:
            transport.close()
            begin.cancel()
            resume.cancel()
            raise
        return tls._app_transport
