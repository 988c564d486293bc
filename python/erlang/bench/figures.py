"""The short figures: throughput, latency, and a table of what matters for small sleeps."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

from erlang.bench import core, loops

Loop = Any


def io_latency(loop: Loop, count: int = 500) -> float:
    """From a byte that is sent to the reader that is called, in microseconds; the median."""
    mine, theirs = socket.socketpair()
    mine.setblocking(False)
    took: list[float] = []
    sent = 0.0

    def send() -> None:
        nonlocal sent
        sent = time.perf_counter()
        theirs.send(b"x")

    def readable() -> None:
        took.append(time.perf_counter() - sent)
        mine.recv(1)
        if len(took) == count:
            loop.stop()
        else:
            loop.call_soon(send)

    loop.add_reader(mine.fileno(), readable)
    loop.call_soon(send)
    loop.run_forever()
    loop.remove_reader(mine.fileno())
    mine.close()
    theirs.close()
    return statistics.median(took) * 1e6


def sleeps(loop: Loop, seconds: float, count: int) -> list[float]:
    """How long each took, in microseconds."""

    async def main() -> list[float]:
        took = []
        for _ in range(count):
            began = time.perf_counter()
            await asyncio.sleep(seconds)
            took.append((time.perf_counter() - began) * 1e6)
        return took

    measured: list[float] = loop.run_until_complete(main())
    return measured


def idle_cpu(loop: Loop, seconds: float = 1.0) -> float:
    """CPU milliseconds per second while nothing happens."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    loop.run_until_complete(asyncio.sleep(seconds))
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / seconds * 1e3


def measure(loop: Loop) -> dict[str, float]:
    """All figures of one loop."""
    millisecond = statistics.median(sleeps(loop, 1e-3, 200))
    precise = sleeps(loop, 250e-6, 200)
    return {
        "timers": 1e6 / core.timers(loop, 0.5)["timers, set"],
        "callbacks": 1e6 / core.calls(loop, 0.5)["call_soon, in bulk"],
        "io": io_latency(loop),
        "sleep": millisecond,
        "turn": core.best(lambda: core.chain(loop, 50_000)),
        "off": statistics.median(abs(took - 250) for took in precise),
        "idle": idle_cpu(loop),
    }


def of_loop(name: str) -> dict[str, float]:
    """The same, in a process of its own."""
    command = [sys.executable, "-P", "-W", "ignore", "-m", "erlang.bench.figures", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def show() -> None:
    """Prints the figures of ours, asyncio and the peers that are installed."""
    measured = {name: of_loop(name) for name in loops.installed()}
    ours = measured[loops.OURS]
    print(f"Timer throughput: {ours['timers']:,.0f} timers/sec")
    print(f"Callback dispatch: {ours['callbacks']:,.0f} callbacks/sec")
    print(f"I/O ready detection: {ours['io']:,.1f} µs latency")
    print()
    print(f"{'':26}" + "".join(f"{name:>14}" for name in measured))
    table = {
        "timers/sec": ("timers", "{:,.0f}"),
        "callbacks/sec": ("callbacks", "{:,.0f}"),
        "I/O ready detection": ("io", "{:,.1f} µs"),
        "sleep(1 ms)": ("sleep", "{:,.0f} µs"),
        "loop overhead per turn": ("turn", "{:,.3f} µs"),
        "timer precision (0.25 ms)": ("off", "± {:,.0f} µs"),
        "idle CPU": ("idle", "{:,.2f} ms/s"),
    }
    for title, (key, form) in table.items():
        cells = "".join(f"{form.format(values[key]):>14}" for values in measured.values())
        print(f"{title:26}{cells}")


if __name__ == "__main__":
    print(json.dumps(measure(loops.factory(sys.argv[1])())), flush=True)
    os._exit(0)
