"""Several servers of this process that accept from one socket."""

from __future__ import annotations

import socket
from typing import Any


class SharedSocket(socket.socket):
    """A listening socket. What it accepts goes to the server with the fewest connections: left to
    itself, the loop that went to sleep last would have them all."""

    _core: Any

    @classmethod
    def of(cls, fd: int, core: Any) -> SharedSocket:
        made = cls(fileno=fd)
        made._core = core
        return made

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is this server's own."""
        while True:
            try:
                fd, address = self._accept()  # type: ignore[attr-defined]
            except BlockingIOError:
                self._core.settle()
                raise
            if not self._core.pass_on(fd):
                return socket.socket(self.family, self.type, self.proto, fileno=fd), address
