"""Coroutines for the suite."""

import asyncio
import functools
import os
import socket
import threading
import time
import types

import py_tools

import erlang


async def one():
    return 1


async def give(value):
    return value


async def nap(seconds, value=None):
    await asyncio.sleep(seconds)
    return value


async def through_thread(seconds, value):
    """Its loop sleeps until a thread wakes it."""
    await asyncio.to_thread(time.sleep, seconds)
    return value


async def fail(text):
    await asyncio.sleep(0)
    raise ValueError(text)


def plain(a, b=0):
    return a + b


async def wait_at(gate, pid):
    """Keeps its loop until the gate is opened."""
    return py_tools.wait_at(gate, pid)


def define_turns(source):
    exec("".join(source), globals())


def thread_name():
    return threading.current_thread().name


async def where():
    return [threading.get_ident(), type(asyncio.get_running_loop()).__name__]


async def which():
    return id(asyncio.get_running_loop())


kept = []


async def holds(pid, seconds):
    kept.append(asyncio.get_running_loop())
    erlang.send(pid, "blocks")
    time.sleep(seconds)


def all_closed():
    return all(loop.is_closed() for loop in kept)


def later(value):
    """A plain function that gives a coroutine."""
    return give(value)


class Thing:
    async def method(self, x):
        return x + 1

    async def __call__(self, x):
        return x + 3

    @staticmethod
    async def static(x):
        return x + 2


thing = Thing()


async def count(n):
    for i in range(n):
        yield i


async def slow_count(n, seconds):
    try:
        for i in range(n):
            await asyncio.sleep(seconds)
            yield i
    finally:
        lists["ended"].append("count")


def wrapped_count(n):
    return count(n)


async def count_down(n):
    for i in range(n, -1, -1):
        yield 1 / i


# What has begun and what has ended, by name.
lists = {"begun": [], "ended": []}


def has(name, what):
    return what in lists[name]


async def note(name):
    await asyncio.sleep(0)
    lists["ended"].append(name)


async def hang(name):
    try:
        lists["begun"].append(name)
        await asyncio.Event().wait()
    finally:
        lists["ended"].append(name)


async def blocks(seconds, name):
    lists["begun"].append(name)
    time.sleep(seconds)
    return "blocked"


class Stranger:
    pass


async def stranger():
    return Stranger()


async def is_stranger(it):
    return isinstance(it, Stranger)


async def cancel_myself():
    asyncio.current_task().cancel()
    await asyncio.sleep(10)


async def leave():
    await asyncio.sleep(0)
    raise SystemExit(3)


async def stop_the_loop():
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


partial = functools.partial(give)


class Future:
    def __init__(self, value):
        self.value = value

    def __await__(self):
        yield
        return self.value


def future(value):
    return Future(value)


_barriers = {}


async def meet(place, count):
    """Returns when so many are at that place."""
    barrier = _barriers.setdefault(place, asyncio.Barrier(count))
    await barrier.wait()
    return count


class Giver:
    """What its call gives can be awaited, and is no coroutine."""

    def __call__(self, value):
        return Future(value)


giver = Giver()
partial_of_object = functools.partial(Thing())


@types.coroutine
def generator(x):
    yield
    return x + 4


def leaves_a_twin(loop):
    """A descriptor that is closed while it is watched, and whose copy stays readable."""
    mine, theirs = socket.socketpair()
    number, twin = mine.fileno(), os.dup(mine.fileno())
    loop.add_reader(number, int)
    theirs.send(b"x")
    mine.close()
    loop.remove_reader(number)
    return twin, theirs


async def after_a_twin(times):
    """Something comes from another thread after the loop has got rid of such a descriptor."""
    loop = asyncio.get_running_loop()
    twins, got = [], []
    for _ in range(times):
        twins.append(leaves_a_twin(loop))
        for _ in range(3):
            await asyncio.sleep(0.01)
        reads, writes = socket.socketpair()
        reads.setblocking(False)
        waits = loop.create_task(loop.sock_recv(reads, 10))
        threading.Timer(0.1, writes.send, (b"data",)).start()
        got.append(await waits)
        reads.close()
        writes.close()
    for twin, theirs in twins:
        os.close(twin)
        theirs.close()
    return got
