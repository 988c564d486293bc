"""``python -m erlang.serve main:app``"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import signal
import sys
from contextlib import suppress
from typing import Any, get_type_hints

import erlang
from erlang.serve._crew import KINDS, Failed, Order, best_kind, check_kind, leave
from erlang.serve._load import load
from erlang.serve._options import Options
from erlang.serve._server import Server
from erlang.serve._supervise import Supervisor, address_text, listen, say
from erlang.serve._worker import TOLD_IN_A_SENTENCE, configure_logging

LEVELS = ["debug", "info", "warning", "error", "critical"]
#: No server of a node has this number.
SHARE = -1
HELP = {
    "host": "the address to listen on",
    "port": "the port; 0 for any free one",
    "uds": "the path of a Unix socket, in place of host and port",
    "uds_mode": "the permissions of that path, in octal",
    "fd": "the descriptor of a listening socket, in place of host and port",
    "backlog": "connections that may wait to be accepted",
    "reuse_port": "several processes listen on the same port",
    "root_path": "the path under which a proxy shows the application",
    "lifespan": "whether the application has a lifespan",
    "access_log": "one line per request",
    "access_log_format": "common, json, or a text with fields such as %%(status)s",
    "access_log_file": "where the lines go: a file, stdout or stderr",
    "pathsend": "tell applications that they may send files by path, past all middleware",
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
        # Before each error, and there are many options.
        usage="python -m erlang.serve [--help] [OPTION…] module:attribute",
        description="Serves an ASGI application.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("app", help="module:attribute")
    parser.add_argument("--factory", action="store_true", help="call the attribute for the app")
    parser.add_argument("--app-dir", default=".", help="where to look for the module")
    parser.add_argument(
        "--log-level", choices=LEVELS, default="info", help="what the server logs; access is info"
    )
    parser.add_argument("--workers", type=int, default=1, help="how many serve at the same time")
    parser.add_argument("--worker-kind", choices=KINDS, default="auto", help="what a worker is")
    parser.add_argument("--reload", action="store_true", help="start again when a file changes")
    parser.add_argument("--reload-dir", action="append", help="what to watch instead of --app-dir")
    hints = get_type_hints(Options)
    for field in dataclasses.fields(Options):
        flag, kind, text = "--" + field.name.replace("_", "-"), hints[field.name], HELP[field.name]
        if kind is bool:
            action: Any = argparse.BooleanOptionalAction
            parser.add_argument(flag, action=action, default=field.default, help=text)
        elif field.name == "lifespan":
            choices = ["auto", "on", "off"]
            parser.add_argument(flag, choices=choices, default=field.default, help=text)
        elif field.name == "uds_mode":
            # As `chmod` takes it, and so shown.
            parser.add_argument(flag, type=_octal, default=f"{field.default:o}", help=text)
        else:
            number = int if kind in (int, int | None) else float if kind is float else str
            parser.add_argument(flag, type=number, default=field.default, help=text)
    return parser


def _octal(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be octal, such as 660, got {text!r}") from None


async def main(app: Any, options: Options) -> None:
    server = Server(app, options)
    await server.start()
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def stopping() -> None:
        # The second signal does not wait.
        if stop.is_set():
            server.flush(0.2)
            os._exit(1)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping)
    # Whoever reads this may send a signal at once.
    for address in server.addresses:
        say(f"serving on {address_text(address, options.certificate is not None)}")
    await stop.wait()
    await server.stop()


async def supervise(order: Order, given: dict[str, Any]) -> None:
    kind, count = given["worker_kind"], given["workers"]
    if given["reload"]:
        kind = "processes"
    elif kind == "auto":
        kind = best_kind()
    if kind != "processes":
        order = dataclasses.replace(order, share=SHARE)
    with order.options.listening():
        listeners = listen(order.options, count if kind == "processes" else 1)
    try:
        supervisor = Supervisor(order, listeners)
        if given["reload"]:
            await supervisor.reload(given["reload_dir"] or [sys.path[0]])
        else:
            await supervisor.crew(kind, count)
    finally:
        for listener in listeners:
            listener.close()
        if order.options.uds is not None:
            with suppress(OSError):
                os.unlink(order.options.uds)


def run(arguments: list[str] | None = None) -> int:
    given = vars(parser().parse_args(arguments))
    level = given["log_level"].upper()
    configure_logging(level)
    sys.path.insert(0, os.path.abspath(given["app_dir"]))
    name, factory = given["app"], given["factory"]
    try:
        options = Options(
            **{field.name: given[field.name] for field in dataclasses.fields(Options)}
        )
        if given["workers"] < 1:
            raise ValueError("workers must be at least 1")
        if given["reload"] and given["workers"] > 1:
            raise ValueError("reload is for one worker")
        check_kind(given["worker_kind"])
        if not os.path.isdir(given["app_dir"]):
            raise ValueError(f"app_dir must be a directory, got {given['app_dir']}")
        if given["reload"] or given["workers"] > 1:
            erlang.run(supervise(Order(name, factory, level, options), given))
        else:
            erlang.run(main(load(name, factory=factory), options))
    except (Failed, *TOLD_IN_A_SENTENCE) as error:
        print(f"erlang.serve: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    leave(run())
