"""The Python side of py_hang_SUITE: coroutines that never yield, beside others that do."""

import asyncio
import threading

import erlang

lock = threading.Condition()


async def spin(pid):
    await asyncio.sleep(0)
    _spin(pid)


async def spin_at_once(pid):
    _spin(pid)


async def spin_in_a_child(pid):
    await asyncio.create_task(spin(pid))


def _spin(pid):
    try:
        erlang.send(pid, "spinning")
        while True:
            pass
    finally:
        erlang.send(pid, "stopped")


async def lock_and_spin(pid):
    """Takes a lock all the time."""
    erlang.send(pid, "spinning")
    try:
        while True:
            with lock:
                lock.notify_all()
    finally:
        erlang.send(pid, "stopped")


async def is_free():
    taken = lock.acquire(timeout=5)
    lock.release()
    return taken


async def tick(pid):
    """Goes on until it is told to end, by a message of its own."""
    erlang.send(pid, ("ticking", erlang.self()))
    count = 0
    while True:
        await asyncio.sleep(0.005)
        count += 1
        if erlang.whereis("py_hang_over") is not None:
            return count


async def one():
    return 1


async def forever(pid):
    erlang.send(pid, "waiting")
    await asyncio.Future()
