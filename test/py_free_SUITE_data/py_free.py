"""The Python side of py_free_SUITE: values that all threads change, and code that never ends."""

import asyncio
import gc
import random
import threading

import erlang

pairs = {}
numbers = []
members = set()
lock = threading.Lock()


class Thing:
    def __init__(self):
        self.count = 0

    def grow(self):
        setattr(self, f"a{random.randrange(1000)}", 1)
        return True


def change(times):
    for _ in range(times):
        key = random.randrange(100)
        pairs[key] = key
        pairs.pop(random.randrange(100), None)
        numbers.append(key)
        if len(numbers) > 200:
            numbers.clear()
        members.add(key)
        members.discard(random.randrange(100))
    return times


def give():
    return [pairs, numbers, members]


def keep(value):
    """Others find it in what they convert."""
    if len(numbers) > 100:
        numbers.clear()
    numbers.append(value)
    return value


def thing():
    return Thing()


def same(value):
    return value


def things():
    gc.collect()
    return sum(type(one) is Thing for one in gc.get_objects())


def spin():
    while True:
        pass


def take_locks():
    while True:
        with lock:
            pass


def is_free():
    free = lock.acquire(timeout=30)
    if free:
        lock.release()
    return free


def define():
    made = type("Made", (Thing,), {"x": 1})
    made.y = 2
    return made().grow()


def ask(value):
    return erlang.call("py_free_echo", value)


async def ask_later(value):
    await asyncio.sleep(0)
    return await erlang.async_call("py_free_echo", value)


async def spin_for_ever():
    while True:
        pass


def count_to(end):
    yield from range(end)


def run_threads(count):
    """Half of them die."""

    def body(number):
        change(10)
        if number % 2:
            raise SystemExit

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count


def close_loops(count):
    """Others want to stop and close what a thread runs."""
    for _ in range(count):
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_run, args=(loop,))
        thread.start()
        for action in (loop.stop, loop.close):
            try:
                loop.call_soon_threadsafe(action)
                loop.close()
            except RuntimeError:
                pass
        thread.join()
    return count


def _run(loop):
    wait = asyncio.sleep(0.001)
    try:
        loop.run_until_complete(wait)
    except RuntimeError:
        wait.close()
