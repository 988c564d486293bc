"""Starts a worker, and hears from it."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import subprocess
import sys
import sysconfig
import threading
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable

    from erlang.serve._options import Options


@dataclasses.dataclass(frozen=True)
class Order:
    """What every worker of a server does."""

    app: str
    factory: bool
    log_level: str
    options: Options
    #: Workers of one process have one socket, and share its connections.
    share: int | None = None

    def text(self, listener: int, ready: int, stop: int) -> str:
        options = dataclasses.replace(self.options, fd=listener, uds=None)
        return json.dumps(
            {
                "app": self.app,
                "factory": self.factory,
                "log_level": self.log_level,
                "options": dataclasses.asdict(options),
                "path": sys.path,
                "share": self.share,
                "ready": ready,
                "stop": stop,
            }
        )


class Failed(Exception):
    """A worker could not start."""


def has_gil() -> bool:
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def best_kind() -> str:
    """Of the kinds that use several cores, the one that any application can have."""
    return "processes" if has_gil() else "threads"


def check_kind(kind: str) -> None:
    """Raises `ValueError` for a kind that this Python does not have."""
    if kind == "threads" and has_gil():
        built = "runs with one" if sysconfig.get_config_var("Py_GIL_DISABLED") else "has one"
        raise ValueError(f"workers that are threads need a Python without a GIL, and this {built}")
    if kind == "interpreters" and sys.version_info < (3, 12):
        raise ValueError("workers that are interpreters need Python 3.12 or later")


_interpreters_left: list[Any] = []


def leave(status: int) -> NoReturn:
    """Ends the process. Interpreters are not destroyed: CPython 3.13.0 aborts when two that had
    imported `datetime` and `decimal` end."""
    if _interpreters_left:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _in_thread(text: str) -> None:
    from erlang.serve._worker import work

    work(text)


def _in_interpreter(text: str) -> None:
    create, run = _interpreters()
    path = json.loads(text)["path"]
    _interpreters_left.append(create())
    run(
        _interpreters_left[-1],
        f"import sys; sys.path[:] = {path!r}\n"
        f"from erlang.serve._worker import work; work({text!r})\n"
        "import atexit; atexit._run_exitfuncs()",
    )


def _interpreters() -> tuple[Callable[[], Any], Callable[[Any, str], Any]]:
    """How to create and use an interpreter with a GIL of its own."""
    if sys.version_info >= (3, 13):
        module: Any = importlib.import_module("_interpreters")
        return lambda: module.create("isolated"), module.exec
    module = importlib.import_module("_xxsubinterpreters")
    return lambda: module.create(isolated=True), module.run_string


def _start_process(text: str, theirs: tuple[int, ...]) -> subprocess.Popen[bytes]:
    # By a pipe: anyone can read a command line, and a password may be among the options.
    order, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    command = [sys.executable, *flags, "-m", "erlang.serve._worker", str(order)]
    try:
        return subprocess.Popen(command, pass_fds=(order, *theirs))
    finally:
        for descriptor in (order, *theirs):
            os.close(descriptor)


BODIES = {"threads": _in_thread, "interpreters": _in_interpreter}


class Worker:
    """One that was started."""

    def __init__(self, order: Order, kind: str, listener: socket.socket) -> None:
        self._ready, ready = os.pipe()
        stop, self._stop = os.pipe()
        theirs = (os.dup(listener.fileno()), ready, stop)
        text = order.text(*theirs)
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        if kind == "processes":
            self._process = _start_process(text, theirs)
        else:
            # A daemon: the second signal ends it in the midst.
            self._thread = threading.Thread(target=BODIES[kind], args=(text,), daemon=True)
            self._thread.start()
        self.ended = False

    async def started(self, loop: asyncio.AbstractEventLoop) -> None:
        """Returns when it serves; raises `Failed`."""
        said = b""
        while not said.endswith(b"\n"):
            await readable(loop, self._ready)
            piece = os.read(self._ready, 65536)
            if not piece:
                self._over()
                raise Failed("a worker ended before it served")
            said += piece
        answer = json.loads(said)
        if answer["error"] is not None:
            await self.over(loop)
            raise Failed(answer["error"])

    async def over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Returns when it has ended."""
        if self.ended:
            return
        while True:
            await readable(loop, self._ready)
            if not os.read(self._ready, 65536):
                break
        self._over()

    def stop(self) -> None:
        """Lets it end in order."""
        if self._stop >= 0:
            os.close(self._stop)
            self._stop = -1

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _over(self) -> None:
        self.ended = True
        self.stop()
        os.close(self._ready)
        if self._process is not None:
            self._process.wait()
        elif self._thread is not None:
            self._thread.join()


async def readable(loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
    ready = loop.create_future()
    loop.add_reader(descriptor, ready.set_result, None)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
