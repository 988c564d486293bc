"""What a server can be told."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import ssl
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator


class BadOption(ValueError):
    """An option has a value that can't be used, or names a file that can't."""

    __module__ = "erlang.serve"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``Server``; those of the command line have the same names."""

    host: str = "127.0.0.1"
    #: 0 for any free one.
    port: int = 8000
    #: The path of a Unix socket, in place of host and port.
    uds: str | None = None
    #: Who may connect to it: the permissions of that path.
    uds_mode: int = 0o666
    #: The descriptor of a listening socket, in place of host and port.
    fd: int | None = None
    backlog: int = 2048
    #: Several processes listen on the same port.
    reuse_port: bool = False
    #: The path under which a proxy shows the application.
    root_path: str = ""
    #: "auto": an application that raises on it has none.
    lifespan: Literal["auto", "on", "off"] = "auto"
    #: One line per request.
    access_log: bool = True
    #: ``common``, ``json``, or a text with fields such as ``%(status)s``.
    access_log_format: str = "common"
    #: A file, ``stdout`` or ``stderr``, whatever is configured for `logging`.
    access_log_file: str | None = None
    #: Tells applications that they may send files by path, past all middleware.
    pathsend: bool = False
    #: The value of the header ``server``; none if empty.
    server_header: str = ""
    #: Bytes of a request line with its headers; more is 414 or 431.
    max_header_size: int = 65536
    #: Headers of a request, at most 256; more is 431.
    max_headers: int = 100
    #: Bytes of a request body, 0 for any; more is 413.
    max_body_size: int = 0
    #: Connections at a time, 0 for any; the next one's request is 503.
    max_connections: int = 0
    #: Requests at a time, 0 for any; the next one is 503.
    max_in_flight: int = 0
    #: Seconds for a head to be complete; then 408.
    header_timeout: float = 30.0
    #: Seconds without a request, or without progress in one.
    idle_timeout: float = 60.0
    #: Seconds that ``stop`` waits for requests to be answered.
    stop_timeout: float = 30.0
    #: Proxies whose ``x-forwarded-for`` and ``x-forwarded-proto`` are believed: addresses and
    #: networks with commas between, ``unix`` for peers of a Unix socket, ``*`` for anyone.
    trusted_proxies: str = ""
    #: Bytes of a WebSocket message; more is closed with 1009.
    ws_max_size: int = 16 * 1024 * 1024
    #: Compresses messages where the client can.
    ws_deflate: bool = True
    #: Seconds of silence before a WebSocket client is asked for a sign, 0 for never.
    ws_ping_interval: float = 20.0
    #: Seconds for that sign to come.
    ws_ping_timeout: float = 20.0
    certificate: str | None = None
    private_key: str | None = None
    private_key_password: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be from 0 to 65535, got {self.port}")
        if not 0 < self.backlog <= 65535:
            raise ValueError(f"backlog must be from 1 to 65535, got {self.backlog}")
        if not 0 < self.max_headers <= 256:
            raise ValueError(f"max_headers must be from 1 to 256, got {self.max_headers}")
        if self.access_log_file == "":
            raise ValueError("access_log_file must be a path, stdout or stderr")
        if self.root_path and (self.root_path[0] != "/" or self.root_path[-1] == "/"):
            raise ValueError("root_path must begin with a slash and not end with one")
        if not 0 <= self.uds_mode <= 0o777:
            raise ValueError("uds_mode must be from 0 to 0o777")
        if self.private_key is not None and self.certificate is None:
            raise ValueError("private_key needs a certificate")

    def native(self) -> dict[str, Any]:
        """For ``HttpServer.start``."""
        extensions: dict[str, Any] = {
            "http.response.early_hint": {},
            "http.response.trailers": {},
        }
        if self.pathsend:
            extensions["http.response.pathsend"] = {}
        return {
            **dataclasses.asdict(self),
            "extensions": extensions,
            "socket_extensions": {"websocket.http.response": {}},
        }

    def ssl_context(self) -> ssl.SSLContext | None:
        if self.certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.private_key, self.private_key_password)
        except OSError as error:
            raise BadOption(self._bad_certificate(error)) from error
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _bad_certificate(self, error: OSError) -> str:
        files = [self.certificate, self.private_key]
        missing = [file for file in files if file is not None and not os.access(file, os.R_OK)]
        if missing:
            return f"{missing[0]} can't be read: {error.strerror}"
        if self.private_key is None:
            return f"{self.certificate} is no certificate chain with its private key: {error}"
        return f"{self.certificate} and {self.private_key} are no certificate and its key: {error}"

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """An error says where."""
        try:
            yield
        except OSError as error:
            where = self.uds or f"{self.host}:{self.port}"
            code = error.errno
            # asyncio's text has the address, too. Codes of `getaddrinfo` are negative.
            why = os.strerror(code) if code is not None and code > 0 else error.strerror or error
            text = f"can't listen on {where}: {why}"
            raise (OSError(text) if error.errno is None else OSError(error.errno, text)) from error
