"""Several workers on one port; or one that is started again when its files change."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import socket
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from erlang.serve._crew import Failed, Order, Worker
from erlang.serve._watch import Watch

if TYPE_CHECKING:
    from erlang.serve._options import Options

#: Seconds that a request may go on when files have changed.
RELOAD_STOP_TIMEOUT = 2.0


def listen(options: Options, count: int) -> list[socket.socket]:
    """So many sockets, all on the same port: the kernel spreads connections over them."""
    if options.fd is not None:
        return [socket.socket(fileno=options.fd)]
    if options.uds is not None:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.stat(options.uds).st_mode):
                os.unlink(options.uds)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(options.uds)
        os.chmod(options.uds, options.uds_mode)
        listener.listen(options.backlog)
        return [listener]
    found = socket.getaddrinfo(
        options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, address = found[0][0], found[0][4][:2]
    several = count > 1
    if several and not options.reuse_port:
        # Another server there must not go unnoticed.
        socket.create_server(address, family=family).close()
    reuse_port = several or options.reuse_port
    listeners: list[socket.socket] = []
    for _ in range(count):
        listener = socket.create_server(
            address, family=family, backlog=options.backlog, reuse_port=reuse_port
        )
        listeners.append(listener)
        address = listener.getsockname()[:2]
    return listeners


class Supervisor:
    """Starts workers, and ends with them."""

    def __init__(self, order: Order, listeners: list[socket.socket]) -> None:
        self._order, self._listeners = order, listeners
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._workers: list[Worker] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._stopping)

    def _stopping(self) -> None:
        # The second signal does not wait.
        if self._stop.is_set():
            for worker in self._workers:
                worker.kill()
            os._exit(1)
        self._stop.set()

    async def crew(self, kind: str, count: int) -> None:
        """Serves with so many workers until a signal comes."""
        await self._start(kind, count)
        say(f"serving on {self._address()} with {count} {kind}")
        stop = asyncio.create_task(self._stop.wait())
        ends = [asyncio.create_task(self._keep(at, kind)) for at in range(count)]
        try:
            await asyncio.wait([stop, *ends], return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                if end.done():
                    end.result()
        finally:
            for task in (stop, *ends):
                task.cancel()
            await asyncio.gather(stop, *ends, return_exceptions=True)
            await self._end()

    async def _start(self, kind: str, count: int) -> None:
        try:
            for at in range(count):
                self._workers.append(self._worker(at, kind))
                if kind == "interpreters":
                    # One after another: CPython is not safe where two start side by side.
                    await self._workers[-1].started(self._loop)
            if kind != "interpreters":
                for worker in self._workers:
                    await worker.started(self._loop)
        except Failed:
            await self._end()
            raise

    def _worker(self, at: int, kind: str) -> Worker:
        return Worker(self._order, kind, self._listeners[at % len(self._listeners)])

    async def _keep(self, at: int, kind: str) -> None:
        """A process that dies is replaced; a thread or an interpreter does not die alone."""
        while True:
            await self._workers[at].over(self._loop)
            if self._stop.is_set():
                return
            if kind != "processes":
                raise Failed("a worker has ended")
            say("a worker has died: another one takes its place")
            self._workers[at] = self._worker(at, kind)
            await self._workers[at].started(self._loop)

    async def reload(self, folders: list[str]) -> None:
        """Serves with one worker, which is started again when a file changes."""
        options = self._order.options
        timeout = min(options.stop_timeout, RELOAD_STOP_TIMEOUT)
        options = dataclasses.replace(options, stop_timeout=timeout)
        self._order = dataclasses.replace(self._order, options=options)
        watch, stop = Watch(folders), asyncio.create_task(self._stop.wait())
        say(f"serving on {self._address()}, watching {', '.join(folders)}")
        while not self._stop.is_set():
            worker = self._worker(0, "processes")
            self._workers = [worker]
            life = asyncio.create_task(self._live(worker))
            change = asyncio.create_task(watch.changed())
            await asyncio.wait([stop, change], return_when=asyncio.FIRST_COMPLETED)
            worker.stop()
            await life
            if change.done():
                say(f"{os.path.relpath(change.result())} has changed: starting again")
            change.cancel()

    async def _live(self, worker: Worker) -> None:
        try:
            await worker.started(self._loop)
            say("the application runs")
            await worker.over(self._loop)
        except Failed as failure:
            # Somebody is at work on it.
            print(f"erlang.serve: {failure}", file=sys.stderr, flush=True)

    async def _end(self) -> None:
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            await worker.over(self._loop)

    def _address(self) -> str:
        secure = self._order.options.certificate is not None
        return address_text(self._listeners[0].getsockname(), secure)


def address_text(address: Any, secure: bool) -> str:
    if isinstance(address, str):
        return f"unix:{address}"
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"{'https' if secure else 'http'}://{host}:{address[1]}"


def say(text: str) -> None:
    print(text, flush=True)
