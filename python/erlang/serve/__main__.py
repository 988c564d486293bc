"""``python -m erlang.serve main:app``"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import signal
import sys
from contextlib import suppress
from typing import Any

import erlang
from erlang.serve._crew import Failed, Order, best_kind, check_kind, leave
from erlang.serve._load import load
from erlang.serve._options import Options
from erlang.serve._server import Server
from erlang.serve._supervise import Supervisor, address_text, listen, say
from erlang.serve._table import ROWS, Row
from erlang.serve._worker import TOLD_IN_A_SENTENCE, configure_logging

#: No server of a node has this number.
SHARE = -1


class Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Tells the defaults of options that have one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, "") else super()._get_help_string(action)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m erlang.serve",
        # Before each error, and there are many options.
        usage="python -m erlang.serve [--help] [OPTION…] module:attribute",
        description="Serves an ASGI application.",
        formatter_class=Formatter,
    )
    parser.add_argument("app", help="module:attribute")
    for row in ROWS:
        if row.command:
            flag, told = "--" + row.name.replace("_", "-"), argument(row)
            parser.add_argument(flag, help=row.help.replace("%", "%%"), **told)
    return parser


def argument(row: Row) -> dict[str, Any]:
    """What `argparse` is told of an option."""
    match row.kind:
        case "boolean":
            return {"action": argparse.BooleanOptionalAction, "default": row.default}
        case "one_of":
            return {"choices": row.words, "default": row.default}
        case "permissions":
            # As `chmod` takes it, and so shown.
            return {"type": _octal, "default": f"{row.default:o}"}
        case "integer" | "descriptor":
            return {"type": int, "default": row.default}
        case "time":
            return {"type": float, "default": row.default, "metavar": "SECONDS"}
        case "paths":
            return {"action": "append"}
        case _:
            return {"default": row.default}


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
    app_dir = "." if given["app_dir"] is None else given["app_dir"]
    sys.path.insert(0, os.path.abspath(app_dir))
    name, factory = given["app"], given["factory"]
    try:
        for row in ROWS:
            if row.command and not row.program:
                row.check(given[row.name])
        options = Options(**{row.name: given[row.name] for row in ROWS if row.program})
        if given["reload"] and given["workers"] > 1:
            raise ValueError("reload is for one worker")
        check_kind(given["worker_kind"])
        if not os.path.isdir(app_dir):
            raise ValueError(f"app_dir must be a directory, got {app_dir}")
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
