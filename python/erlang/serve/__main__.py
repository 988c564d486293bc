"""``python -m erlang.serve main:app``"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import os
import signal
import sys
from typing import Any, get_type_hints

import erlang
from erlang.serve._lifespan import LifespanFailed
from erlang.serve._load import AppNotFound, load
from erlang.serve._options import Options
from erlang.serve._server import Server

HELP = {
    "host": "the address to listen on",
    "port": "the port; 0 for any free one",
    "uds": "the path of a Unix socket, in place of host and port",
    "fd": "the descriptor of a listening socket, in place of host and port",
    "backlog": "connections that may wait to be accepted",
    "reuse_port": "several processes listen on the same port",
    "root_path": "the path under which a proxy shows the application",
    "lifespan": "whether the application has a lifespan",
    "access_log": "one line per request",
    "server_header": "the value of the header `server`",
    "max_header_size": "bytes of a request line with its headers",
    "max_headers": "headers of a request, at most 256",
    "max_body_size": "bytes of a request body, 0 for any",
    "max_connections": "connections at a time, 0 for any",
    "max_in_flight": "requests at a time, 0 for any",
    "header_timeout": "seconds for a head to be complete",
    "idle_timeout": "seconds without a request, or without progress in one",
    "stop_timeout": "seconds for requests to be answered at the end",
    "trusted_proxies": "addresses, networks, `unix` or `*`: whose forwarded headers are believed",
    "ws_max_size": "bytes of a WebSocket message",
    "ws_deflate": "compress WebSocket messages where the client can",
    "ws_ping_interval": "seconds of silence before a WebSocket is pinged, 0 for never",
    "ws_ping_timeout": "seconds for the answer to a ping",
    "certificate": "a file with the certificate chain, for TLS",
    "private_key": "a file with the private key, if it is not with the certificate",
    "private_key_password": "the password of the private key",
}


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m erlang.serve",
        description="Serves an ASGI application.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("app", help="module:attribute")
    parser.add_argument("--factory", action="store_true", help="call the attribute for the app")
    parser.add_argument("--app-dir", default=".", help="where to look for the module")
    parser.add_argument("--log-level", default="info", help="debug, info, warning or error")
    hints = get_type_hints(Options)
    for field in dataclasses.fields(Options):
        flag, kind, text = "--" + field.name.replace("_", "-"), hints[field.name], HELP[field.name]
        if kind is bool:
            action: Any = argparse.BooleanOptionalAction
            parser.add_argument(flag, action=action, default=field.default, help=text)
        elif field.name == "lifespan":
            choices = ["auto", "on", "off"]
            parser.add_argument(flag, choices=choices, default=field.default, help=text)
        else:
            number = int if kind in (int, int | None) else float if kind is float else str
            parser.add_argument(flag, type=number, default=field.default, help=text)
    return parser


def address_text(address: Any, secure: bool) -> str:
    if isinstance(address, str):
        return f"unix:{address}"
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"{'https' if secure else 'http'}://{host}:{address[1]}"


async def main(app: Any, options: Options) -> None:
    server = Server(app, options)
    await server.start()
    for address in server.addresses:
        print(f"serving on {address_text(address, options.certificate is not None)}", flush=True)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def stopping() -> None:
        # The second signal does not wait.
        if stop.is_set():
            os._exit(1)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping)
    await stop.wait()
    await server.stop()


def run(arguments: list[str] | None = None) -> int:
    given = vars(parser().parse_args(arguments))
    logging.basicConfig(
        level=given.pop("log_level").upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    sys.path.insert(0, os.path.abspath(given.pop("app_dir")))
    name, factory = given.pop("app"), given.pop("factory")
    try:
        options = Options(**given)
        erlang.run(main(load(name, factory=factory), options))
    except (AppNotFound, LifespanFailed, OSError, ValueError) as error:
        print(f"erlang.serve: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run())
