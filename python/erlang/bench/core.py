"""What a loop costs without descriptors: callbacks, timers, tasks, threads. Microseconds each."""

from __future__ import annotations

import asyncio
import random
import statistics
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Loop = Any
# Other processes of the machine disturb it least.
clock = time.process_time


def best(measure: Callable[[], float], times: int = 3) -> float:
    return min(measure() for _ in range(times))


def nothing(*_: Any) -> None:
    """A callback."""


def chain(loop: Loop, count: int) -> float:
    """One callback at a time: each is a turn of its own."""
    left = count

    def callback() -> None:
        nonlocal left
        left -= 1
        if left:
            loop.call_soon(callback)
        else:
            loop.stop()

    loop.call_soon(callback)
    began = clock()
    loop.run_forever()
    return (clock() - began) / count * 1e6


def bulk(loop: Loop, count: int) -> float:
    """Ten thousand callbacks in a turn."""
    turns, batch = count // 10_000, 10_000

    def feed() -> None:
        nonlocal turns
        turns -= 1
        for _ in range(batch):
            loop.call_soon(nothing)
        loop.call_soon(feed if turns else loop.stop)

    loop.call_soon(feed)
    began = clock()
    loop.run_forever()
    return (clock() - began) / count * 1e6


def calls(loop: Loop, scale: float) -> dict[str, float]:
    count = int(200_000 * scale)
    return {
        "call_soon, one at a time": best(lambda: chain(loop, count)),
        "call_soon, in bulk": best(lambda: bulk(loop, max(10_000, count // 10_000 * 10_000))),
    }


def timers(loop: Loop, scale: float) -> dict[str, float]:
    count = int(100_000 * scale)
    delays = [60 + random.Random(number).random() * 60 for number in range(count)]

    def once() -> tuple[float, float]:
        began = clock()
        handles = [loop.call_later(delay, nothing) for delay in delays]
        set_at = clock()
        for handle in handles:
            handle.cancel()
        cancelled_at = clock()
        loop.call_soon(loop.stop)
        loop.run_forever()
        return (set_at - began) / count * 1e6, (cancelled_at - set_at) / count * 1e6

    measured = [once() for _ in range(3)]
    return {
        "timers, set": min(figures[0] for figures in measured),
        "timers, cancelled": min(figures[1] for figures in measured),
    }


async def one() -> int:
    return 1


async def awaited(count: int) -> float:
    loop = asyncio.get_running_loop()
    began = clock()
    for _ in range(count):
        await loop.create_task(one())
    return (clock() - began) / count * 1e6


async def gathered(count: int) -> float:
    began = clock()
    await asyncio.gather(*(one() for _ in range(count)))
    return (clock() - began) / count * 1e6


def tasks(loop: Loop, scale: float) -> dict[str, float]:
    count = int(10_000 * scale) + 1000
    return {
        "task, created and awaited": best(lambda: loop.run_until_complete(awaited(count))),
        "gather": best(lambda: loop.run_until_complete(gathered(count))),
    }


def flood(loop: Loop, count: int) -> float:
    """Another thread posts as fast as it can. By the wall: to wait for each other is the cost."""

    async def wait() -> float:
        done = loop.create_future()

        def post() -> None:
            for _ in range(count):
                loop.call_soon_threadsafe(nothing)
            loop.call_soon_threadsafe(done.set_result, None)

        thread = threading.Thread(target=post)
        began = time.perf_counter()
        thread.start()
        await done
        spent = time.perf_counter() - began
        thread.join()
        return spent / count * 1e6

    measured: float = loop.run_until_complete(wait())
    return measured


def threads(loop: Loop, scale: float) -> dict[str, float]:
    return {"call_soon_threadsafe, a flood": best(lambda: flood(loop, int(40_000 * scale)))}


def lateness(loop: Loop, scale: float) -> dict[str, float]:
    """How far off a sleep of 0.25 ms is, early or late; the median."""

    async def sleeps() -> list[float]:
        off = []
        for _ in range(int(300 * scale) + 50):
            began = time.perf_counter()
            await asyncio.sleep(250e-6)
            off.append(abs(time.perf_counter() - began - 250e-6) * 1e6)
        return off

    return {"sleep(0.25 ms), off by": statistics.median(loop.run_until_complete(sleeps()))}


GROUPS = {
    "calls": calls,
    "timers": timers,
    "tasks": tasks,
    "threads": threads,
    "lateness": lateness,
}
