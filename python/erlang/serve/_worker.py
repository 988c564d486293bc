"""One of several workers on one port: a process, a thread or an interpreter.

It tells on the descriptor `ready` that it serves, or why it can't, and keeps it open as long as it
lives. It stops when `stop` is closed, so it ends with whoever started it, however that ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from typing import Any

import erlang
from erlang.serve._access import OwnHandler
from erlang.serve._lifespan import LifespanFailed
from erlang.serve._load import AppNotFound, load
from erlang.serve._options import Options
from erlang.serve._server import Server

#: What needs no traceback to be understood.
TOLD_IN_A_SENTENCE = (AppNotFound, LifespanFailed, OSError, ValueError)


def configure_logging(level: str) -> None:
    """For the server's own loggers only: how the application logs is its own business."""
    logger = logging.getLogger("erlang.serve")
    logger.setLevel(level)
    # Workers that are threads have the same one.
    if not logger.handlers:
        logger.addHandler(OwnHandler())
    logger.propagate = False


async def _serve(app: Any, order: dict[str, Any], has_signals: bool) -> None:
    ready, stop = order["ready"], order["stop"]
    server = Server(app, Options(**order["options"]), order["share"])
    await server.start()
    tell(ready, None)
    loop = asyncio.get_running_loop()
    stopped = loop.create_future()

    def stopping() -> None:
        if not stopped.done():
            stopped.set_result(None)

    loop.add_reader(stop, stopping)
    if has_signals:
        # Some send it to all processes of a service: requests are answered, and the log is written.
        loop.add_signal_handler(signal.SIGTERM, stopping)
    try:
        await stopped
    finally:
        loop.remove_reader(stop)
        await server.stop()


def tell(ready: int, error: BaseException | None) -> None:
    text = None if error is None else f"{type(error).__name__}: {error}"
    os.write(ready, json.dumps({"error": text}).encode() + b"\n")


def work(text: str, *, has_signals: bool = False) -> None:
    """Serves as `text` says, which is what `_crew.Order.text` made. A process has signals."""
    order = json.loads(text)
    ready, stop = order["ready"], order["stop"]
    try:
        configure_logging(order["log_level"])
        app = load(order["app"], factory=order["factory"])
        erlang.run(_serve(app, order, has_signals))
    except Exception as error:
        if not isinstance(error, TOLD_IN_A_SENTENCE):
            logging.getLogger("erlang.serve").error("a worker could not serve", exc_info=error)
        tell(ready, error)
    finally:
        os.close(ready)
        os.close(stop)


if __name__ == "__main__":
    # Ctrl-C goes to all processes of a terminal; the first of them tells the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(int(sys.argv[1])) as order:
        text = order.read()
    sys.path[:] = json.loads(text)["path"]
    work(text, has_signals=True)
