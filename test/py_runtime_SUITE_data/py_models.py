"""One and the same set of coroutines for asyncio, AnyIO and Trio; the kits say how each library
does what the set needs beside what `erlang` gives."""

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
import py_tools
import trio
import uvloop

import erlang


class Asyncio:
    @staticmethod
    def run(main, *args):
        return erlang.run(main(*args))

    @staticmethod
    @asynccontextmanager
    async def group():
        async with asyncio.TaskGroup() as group:
            yield lambda function, *args: group.create_task(function(*args))

    @staticmethod
    @asynccontextmanager
    async def briefly(seconds):
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                yield


class Uvloop(Asyncio):
    """A loop of another make."""

    @staticmethod
    def run(main, *args):
        return uvloop.run(main(*args))


class AnyIO:
    @staticmethod
    def run(main, *args):
        return anyio.run(main, *args, backend_options={"loop_factory": erlang.new_event_loop})

    @staticmethod
    @asynccontextmanager
    async def group():
        async with anyio.create_task_group() as group:
            yield group.start_soon

    @staticmethod
    @asynccontextmanager
    async def briefly(seconds):
        with anyio.move_on_after(seconds):
            yield


class AnyIOOnTrio(AnyIO):
    run = staticmethod(erlang.run_trio)


class Trio:
    run = staticmethod(erlang.run_trio)

    @staticmethod
    @asynccontextmanager
    async def group():
        async with trio.open_nursery() as nursery:
            yield nursery.start_soon

    @staticmethod
    @asynccontextmanager
    async def briefly(seconds):
        with trio.move_on_after(seconds):
            yield


class TrioAlone(Trio):
    """Without a loop of ours beside it."""

    run = staticmethod(trio.run)


KITS = {kit.__name__: kit for kit in (Asyncio, Uvloop, AnyIO, AnyIOOnTrio, Trio, TrioAlone)}


def kits():
    return list(KITS)


def run(kit, test, *args):
    kit = KITS[kit]
    return kit.run(globals()[test], kit, *args)


async def calls(kit):
    got = []

    async def one(number):
        got.append(await erlang.async_call("runtime_add", number, number))

    async with kit.group() as start:
        for number in range(100):
            start(one, number)
    try:
        await erlang.async_call("runtime_boom")
    except erlang.ErlangError as error:
        return [sum(got), error.kind, error.reason]


async def sleeps(kit):
    began = time.monotonic()
    async with kit.group() as start:
        for _ in range(100):
            start(erlang.sleep, 0.05)
    return 0.05 <= time.monotonic() - began < 4


async def pipe(kit, count):
    """More values than there is room for, both ends on one loop."""
    channel, got = erlang.Channel(max=2), []

    async def sender():
        for number in range(count):
            await channel.asend(number)
        channel.close()

    async with kit.group() as start:
        start(sender)
        async for number in channel:
            got.append(number)
    return got


async def doubles(kit, source, target):
    target = erlang.Channel(target)
    async for value in erlang.Channel(source):
        await target.asend(2 * value)
    target.close()


async def gives_up(kit, channel):
    """A receiver that gave up takes nothing, and neither does a call."""
    channel = erlang.Channel(channel)
    async with kit.briefly(0.02):
        await channel.areceive()
        return "too early"
    async with kit.briefly(0.02):
        await erlang.async_call("runtime_slow", 200)
        return "too early"
    channel.try_send("kept")
    return await channel.areceive()


async def leaves(kit):
    async with kit.briefly(0.02):
        await erlang.async_call("runtime_hold")
    return "left"


async def mailbox(kit):
    caller, own = erlang.self(), erlang.receive()
    erlang.send(caller, ("mine", erlang.self()))
    async with kit.briefly(0.02):
        await own.areceive()
    erlang.send(caller, "waited")
    total = 0
    async for message in own:
        if message == "stop":
            break
        total += message
    return total


async def hangs(kit, caller):
    erlang.send(caller, "waits")
    try:
        await erlang.sleep(60)
    finally:
        erlang.send(caller, "over")


# ---- blocking, cancelling


async def one():
    return 1


async def three():
    for number in range(3):
        yield number


async def blocks(name, caller):
    return py_tools.wait_at(name, caller)


async def calls_without_await(milliseconds):
    return erlang.call("runtime_slow", milliseconds)


async def blocks_later(seconds):
    await asyncio.sleep(0)
    time.sleep(seconds)


async def moved_to_a_thread(name, caller):
    return await asyncio.to_thread(py_tools.wait_at, name, caller)


async def calls_blocking(name):
    return erlang.call(name)


async def calls_in_a_thread(name):
    return await asyncio.to_thread(erlang.call, name)


async def awaits(name):
    return await erlang.async_call(name)


@contextmanager
def noted(caller, name):
    try:
        yield
    except asyncio.CancelledError:
        erlang.send(caller, ("cancelled", name))
        raise
    finally:
        erlang.send(caller, ("over", name))


async def inner(caller):
    with noted(caller, "inner"):
        erlang.send(caller, "waits")
        await erlang.async_call("runtime_wait")


async def middle(caller):
    with noted(caller, "middle"):
        await asyncio.gather(inner(caller))


async def outer(caller):
    with noted(caller, "outer"):
        await asyncio.create_task(middle(caller))


async def limits(caller, first, second):
    """Two limits, one within the other: which of them was reached?"""
    try:
        async with asyncio.timeout(first):
            try:
                async with asyncio.timeout(second):
                    await inner(caller)
            except TimeoutError:
                return "the inner one"
    except TimeoutError:
        return "the outer one"


async def races(seconds):
    return await asyncio.sleep(seconds, "slept")
