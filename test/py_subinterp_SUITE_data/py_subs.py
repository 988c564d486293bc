"""What the tests run inside of sub-interpreters."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import datetime
import decimal
import importlib
import os
import socket
import threading
import time
import uuid

import erlang

# ---- loops

_here: list[asyncio.Future[int]] = []


async def meet(parties):
    """Ends when so many are in it: they wait for each other."""
    future = asyncio.get_running_loop().create_future()
    _here.append(future)
    if len(_here) == parties:
        for waiting in _here:
            waiting.set_result(parties)
    return await future


def where():
    return [threading.get_ident(), type(asyncio.get_running_loop()).__name__]


async def where_async():
    return where()


def run_loops():
    """Loops that the code runs by itself."""

    async def main():
        await asyncio.sleep(0.001)
        return type(asyncio.get_running_loop()).__name__

    return [erlang.run(main()), asyncio.run(main())]


async def ask_erlang(name, x):
    asked = await asyncio.gather(*(erlang.async_call(name, x + n) for n in range(3)))
    return [asked, erlang.call(name, x), erlang.self()]


def spawn():
    """From code without a loop."""
    return erlang.spawn_task(where_async()).result()


async def wait_until_cancelled(pid):
    erlang.send(pid, "waits")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        erlang.send(pid, "cancelled")
        raise


class Refused(Exception):
    """A class that only this interpreter has."""


async def fail():
    await asyncio.sleep(0)
    raise Refused("no")


async def block(pid):
    erlang.send(pid, "blocks")
    while True:
        pass


# ---- one socket, many interpreters

_servers = []


def listen():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        return [listener.detach(), port]


async def serve(fd, name):
    async def answer(reader, writer):
        line = await reader.readline()
        writer.write(name.encode() + b" " + line)
        writer.close()
        if line == b"block\n":
            erlang.call("blocked", name)

    listener = socket.socket(fileno=os.dup(fd))
    _servers.append(await asyncio.start_server(answer, sock=listener))
    return name


# ---- threads that stay


def _until(name):
    while erlang.whereis(name) is None:
        time.sleep(0.01)


def leave_thread(name, daemon):
    """A thread that goes on until a process has that name."""
    threading.Thread(target=_until, args=(name,), daemon=daemon).start()
    return True


def leave_executor():
    """Threads of an executor that wait for work."""
    global _executor
    _executor = concurrent.futures.ThreadPoolExecutor(4)
    return sum(_executor.map(abs, range(-9, 0)))


async def leave_default_executor():
    return await asyncio.get_running_loop().run_in_executor(None, abs, -3)


def leave_graph():
    from erlang import dag

    @dag.io(name="b")
    async def later(a):
        await asyncio.sleep(0)
        return a + 1

    return dag.run([dag.cpu(name="a")(lambda: 1), later]).results


def leave_thread_that_makes_another():
    import atexit

    def again():
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=time.sleep, args=(0.01,)).start()

    atexit.register(again)
    return True


# ---- what others do


def import_all(names):
    """Imports all of them; those that this interpreter refuses, or does not have, are told."""
    refused = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            refused.append(name)
    return refused


def trio_guest():
    """Trio on a loop of ours; it leaves a thread that waits for work for ten seconds."""
    import trio

    async def main():
        await trio.sleep(0.001)
        return await trio.to_thread.run_sync(threading.get_ident)

    async def host():
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        trio.lowlevel.start_guest_run(
            main,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=done.set_result,
            host_uses_signal_set_wakeup_fd=True,
        )
        return (await done).unwrap()

    return erlang.run(host()) != threading.get_ident()


@dataclasses.dataclass
class Point:
    x: int
    y: int


def values():
    """One of each kind that crosses in another form."""
    return [
        Point(1, 2),
        datetime.date(2024, 2, 29),
        decimal.Decimal("1.50"),
        uuid.UUID(int=1),
        {1},
        erlang.Atom("ok"),
        float("inf"),
    ]


def name_of(value):
    return type(value).__name__


def catch(name):
    """An error of Erlang is of this interpreter's own class."""
    try:
        erlang.call(name)
    except erlang.ErlangError as error:
        return [error.kind, error.reason]


# ---- limits

_MIB = 1 << 20


def take_memory(how, mib):
    """Takes that much, in one of the ways that Python's allocators have, and lets it go."""
    if how == "block":
        return len(bytes(mib * _MIB)) > 0
    if how == "blocks":
        return len([bytes(4000) for _ in range(mib * _MIB // 4000)]) > 0
    if how == "objects":
        return len([str(number) for number in range(mib * _MIB // 64)]) > 0
    grown = bytearray()
    for _ in range(mib):
        grown += bytes(_MIB)
    return len(grown) > 0


def wait_for(name, pid):
    erlang.send(pid, "waits")
    _until(name)
    return True


def threads():
    """How many threads of ours run Python in this process."""
    names = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm") as comm:
            names.append(comm.read().strip())
    return sum(name in ("py-sub", "py-loop", "py-worker") for name in names)
