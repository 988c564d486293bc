"""Serve an ASGI application with HTTP/1.1 and WebSocket on our own event loop.

``python -m erlang.serve main:app`` is the command; ``serve`` and ``Server`` are for programs that
have a loop of their own.
"""

from __future__ import annotations

from erlang.serve._lifespan import LifespanFailed
from erlang.serve._load import AppNotFound, load
from erlang.serve._mounts import Mounts
from erlang.serve._options import Options
from erlang.serve._server import Server, serve
from erlang.serve._table import BadOption
from erlang.serve._wsgi import Wsgi

__all__ = [
    "AppNotFound",
    "BadOption",
    "LifespanFailed",
    "Mounts",
    "Options",
    "Server",
    "Wsgi",
    "load",
    "serve",
]
