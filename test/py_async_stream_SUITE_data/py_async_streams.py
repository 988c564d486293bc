"""Asynchronous generators of every kind."""

import asyncio
import itertools

import erlang

made = []


async def count(limit):
    for number in range(limit):
        made.append(number)
        yield number


async def slow_count(limit, seconds):
    for number in range(limit):
        await asyncio.sleep(seconds)
        yield number


def made_so_far():
    return list(made)


def wrapped(limit):
    return count(limit)


async def watched(pid):
    """Tells when it is closed, after it has waited once more."""
    try:
        for number in itertools.count():
            yield number
    finally:
        await asyncio.sleep(0)
        erlang.send(pid, "closed")


async def waits(pid):
    try:
        yield 0
        await asyncio.Event().wait()
    finally:
        erlang.send(pid, "closed")


async def endless():
    while True:
        yield 0


async def fails_after(limit):
    for number in range(limit):
        yield number
    raise ValueError("enough")


async def unconvertible(pid):
    try:
        yield 1
        yield object()
        yield 2
    finally:
        erlang.send(pid, "closed")


async def wide(pid, keys):
    yield {n: n for n in range(keys)}
    erlang.send(pid, "between")
    yield "after"


class Both:
    """Can be iterated in both ways: the plain one is taken."""

    def __iter__(self):
        return iter(["plain"])

    async def __aiter__(self):
        yield "async"


class Only:
    """Not a generator; has nothing to close."""

    def __init__(self):
        self.left = 2

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.left == 0:
            raise StopAsyncIteration
        self.left -= 1
        return self.left


async def who():
    yield erlang.self()
    yield type(asyncio.get_running_loop()).__name__
