"""What a loop costs inside a node, for `py_loop_bench`; and the same server outside of one.

    python -m erlang.bench.node

Says its address, and for each line it reads its CPU time in microseconds.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import struct
import sys
import threading
import time

from erlang._loop import new_event_loop
from erlang.bench.network import CLIENT, cpu, protocol_server


async def serve() -> str:
    """An echo server on the running loop; its address."""
    return await protocol_server(asyncio.get_running_loop())


def client() -> str:
    """The program that talks to it."""
    return CLIENT


async def reaction(count: int) -> float:
    """Microseconds from a byte on a socket to the callback that reads it; the median of so many."""
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    taken: list[int] = []

    def ready() -> None:
        now = time.monotonic_ns()
        taken.append(now - struct.unpack("q", near.recv(8))[0])

    def write() -> None:
        for _ in range(count):
            time.sleep(0.001)
            far.send(struct.pack("q", time.monotonic_ns()))

    with near, far:
        loop.add_reader(near, ready)
        try:
            await asyncio.to_thread(write)
            while len(taken) < count:
                await asyncio.sleep(0.01)
        finally:
            loop.remove_reader(near)
    return statistics.median(taken) / 1000


def _answer() -> None:
    for _ in sys.stdin:
        print(round(cpu() * 1e6), flush=True)


async def _outside() -> None:
    print(await serve(), flush=True)
    answers = threading.Thread(target=_answer)
    answers.start()
    await asyncio.to_thread(answers.join)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_outside())
