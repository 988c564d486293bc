"""What a server can be told."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import ssl
from typing import TYPE_CHECKING, Any

from erlang.serve._fields import Fields
from erlang.serve._table import ROWS, BadOption

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(Fields):
    """The options of ``Server``; those of the command line have the same names."""

    def __post_init__(self) -> None:
        for row in ROWS:
            if row.program:
                row.check(getattr(self, row.name))
        if self.private_key is not None and self.certificate is None:
            raise BadOption("private_key needs a certificate")

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
