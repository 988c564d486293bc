"""A worker of ``py_asgi``: serves for an Erlang process, and does what that says."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import erlang
from erlang._tasks import at_end
from erlang.serve._fresh import fresh
from erlang.serve._load import find, load
from erlang.serve._mounts import Mounts
from erlang.serve._options import Options
from erlang.serve._server import Server
from erlang.serve._wsgi import Wsgi

if TYPE_CHECKING:
    from erlang import Pid

App = tuple[str, str]

# How often a worker tries to have a mailbox, and the seconds between.
_MOST_SILENT, _NEXT_MAILBOX = 200, 0.05

_FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)

# Where workers listen. Connections have the same address at this end.
_addresses: list[tuple[int, Any]] = []


def _address(sock: socket.socket) -> tuple[int, Any]:
    name = sock.getsockname()
    return sock.family, name if sock.family == socket.AF_UNIX else name[1]


def _in_child() -> None:
    """A child of a fork has no socket of a server: it would keep the port, and accept for nobody;
    and a client would wait for it after the server has closed the connection."""
    if not _addresses:
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if _is_served(fd):
            # In its place, since somebody may close this number later.
            os.dup2(nothing, fd, inheritable=False)
    os.close(nothing)


def _is_served(fd: int) -> bool:
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return False
        sock = socket.socket(fileno=fd)
    except OSError:
        # That of the listing itself, or a kind that Python does not know.
        return False
    try:
        return sock.family in _FAMILIES and _address(sock) in _addresses
    except OSError:
        return False
    finally:
        sock.detach()


os.register_at_fork(after_in_child=_in_child)


async def work(
    owner: Pid,
    fd: int,
    share: int | None,
    app: App,
    mounts: list[tuple[str, App]],
    directory: str | None,
    options: dict[str, Any],
) -> None:
    """Serves on a copy of `fd` until it is told to stop; cancelled, it ends at once. Workers with
    the same `share` accept from the same socket."""
    if directory is not None and directory not in sys.path:
        sys.path.insert(0, directory)
    with socket.socket(fileno=os.dup(fd)) as copy:
        address = _address(copy)
    _addresses.append(address)
    try:
        made = await make(app, mounts)
        # Closed here if the server does not start: else nobody could listen there any more.
        with socket.socket(fileno=os.dup(fd)) as copy:
            server = Server(made, Options(**options), share, copy)
            await server.start()
        worker = Worker(owner, server, app, mounts)
        # Its stop may be cancelled, and the loop end before it: no client waits for an answer then.
        with at_end(server.abort):
            try:
                await worker.run()
            finally:
                await server.stop(0.0)
    finally:
        _addresses.remove(address)


async def make(app: App, mounts: list[tuple[str, App]]) -> Any:
    """The application, with others below it."""
    for _, name in (app, *(mounted for _, mounted in mounts)):
        # In a thread: who is served already does not wait for an import.
        await asyncio.to_thread(find, name)
    main = _made(*app)
    if not mounts:
        return main
    return Mounts({"/": main, **{prefix: _made(*mounted) for prefix, mounted in mounts}})


def _made(kind: str, name: str) -> Any:
    if kind == "wsgi":
        return Wsgi(load(name, wsgi=True))
    return load(name, factory=kind == "factory")


class Worker:
    """Hears the commands of an Erlang process in the mailbox of its task."""

    def __init__(self, owner: Pid, server: Server, app: App, mounts: list[tuple[str, App]]) -> None:
        self._owner = owner
        self._server = server
        self._app, self._mounts = app, mounts
        self._ends = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        # After the server has started: requests must not inherit a mailbox.
        hears = asyncio.create_task(self._hear())
        # Deaf, it could never be stopped: it ends, and another takes its place.
        hears.add_done_callback(lambda _: self._ends.set())
        try:
            await self._ends.wait()
            if hears.done():
                hears.result()
        finally:
            hears.cancel()

    async def _hear(self) -> None:
        """Commands come to a mailbox, which may end when a process of the node is replaced. Then
        there is another one as soon as there can be; whom the server answers does not notice."""
        silent = 0
        while silent < _MOST_SILENT:
            if await asyncio.create_task(self._listen()):
                silent = 0
            silent += 1
            await asyncio.sleep(_NEXT_MAILBOX)
        raise RuntimeError("this worker can't have a mailbox any more")

    async def _listen(self) -> bool:
        """To one mailbox, which belongs to this task, until it ends. Whether there was one."""
        try:
            box = erlang.receive()
            erlang.send(self._owner, ("ready", box.pid))
        except (erlang.ErlangError, RuntimeError):
            return False
        # Whoever reads the mailbox for us may be gone, too.
        with suppress(erlang.ErlangError, RuntimeError):
            async for command, ref, argument in box:
                task = asyncio.create_task(self._do(command, ref, argument))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        return True

    async def _do(self, command: str, ref: Any, argument: Any) -> None:
        if command == "stop":
            try:
                await self._server.stop(float(argument))
            finally:
                self._ends.set()
            return
        try:
            if command == "reload":
                await self._reload(anew=argument)
            answer: tuple[Any, ...] = ("ok", self._server.info())
        except Exception as error:
            answer = ("failed", _class_name(error), str(error), _formatted(error))
        erlang.send(self._owner, ("answer", ref, answer))

    async def _reload(self, *, anew: bool) -> None:
        apps = [self._app, *(app for _, app in self._mounts)]
        names = [name.partition(":")[0] for _, name in apps] if anew else []
        with fresh(names):
            await self._server.reload(await make(self._app, self._mounts))


def _class_name(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def _formatted(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
