"""Serves `soak_app` for `./dev soak http`: plain, over TLS, and on sockets accepted by hand.

`soak_server.py erlang|uvloop|asyncio CERTIFICATE`: our server on our loop, or uvicorn on one of the
others. Prints `ready PLAIN TLS GIVEN`, the ports, and ends with SIGTERM.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import soak_app

if TYPE_CHECKING:
    from collections.abc import Callable

BACKLOG = 1024


async def ours(certificate: str) -> tuple[list[int], Callable[[], Any], Callable[[], Any]]:
    from erlang.serve import Options, Server

    plain = Server(soak_app.app, Options(port=0, access_log=False, backlog=BACKLOG))
    secure = Server(
        soak_app.app,
        Options(port=0, access_log=False, backlog=BACKLOG, certificate=certificate),
    )
    await plain.start()
    await secure.start()

    async def stop() -> None:
        await plain.stop()
        await secure.stop()

    return [plain.port, secure.port], plain._core.connection, stop


async def uvicorns(certificate: str) -> tuple[list[int], Callable[[], Any], Callable[[], Any]]:
    import uvicorn

    servers = []
    for files in ({}, {"ssl_certfile": certificate}):
        config = uvicorn.Config(
            soak_app.app,
            port=0,
            log_level="critical",
            access_log=False,
            http="httptools",
            backlog=BACKLOG,
            **files,
        )
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        servers.append(server)
    first = servers[0]
    connection = functools.partial(
        first.config.http_protocol_class,
        config=first.config,
        server_state=first.server_state,
        app_state=first.lifespan.state,
    )

    async def stop() -> None:
        for server in servers:
            server.force_exit = True
            await server.shutdown()

    ports = [server.servers[0].sockets[0].getsockname()[1] for server in servers]
    return ports, connection, stop


async def accept(listener: socket.socket, connection: Callable[[], Any]) -> None:
    """Gives the server sockets that it has not accepted."""
    loop = asyncio.get_running_loop()
    taking = set()
    while True:
        sock, _ = await loop.sock_accept(listener)
        task = loop.create_task(loop.connect_accepted_socket(connection, sock))
        taking.add(task)
        task.add_done_callback(functools.partial(took, taking))


def took(taking: set[Any], task: asyncio.Task[Any]) -> None:
    taking.discard(task)
    with suppress(asyncio.CancelledError, OSError):
        task.result()


async def main(start: Callable[[str], Any], certificate: str) -> None:
    loop = asyncio.get_running_loop()
    ends = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ends.set)
    ports, connection, stop = await start(certificate)
    with socket.create_server((soak_app.HOST, 0), backlog=BACKLOG) as listener:
        listener.setblocking(False)
        accepting = loop.create_task(accept(listener, connection))
        print("ready", *ports, listener.getsockname()[1], flush=True)
        await ends.wait()
        accepting.cancel()
        with suppress(asyncio.CancelledError):
            await accepting
        await stop()


def run(name: str, certificate: str) -> None:
    start: Callable[[str], Any] = uvicorns
    if name == "erlang":
        import erlang

        make, start = erlang.new_event_loop, ours
    elif name == "uvloop":
        import uvloop

        make = uvloop.new_event_loop
    else:
        make = asyncio.new_event_loop
    # What was imported is not looked at in every collection.
    gc.freeze()
    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(main(start, certificate))


if __name__ == "__main__":
    run(*sys.argv[1:])
