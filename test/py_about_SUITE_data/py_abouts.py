"""What code in Python knows of its caller, and tells Erlang."""

import asyncio
import contextlib
import contextvars
import logging
import threading
import weakref

import erlang


def now():
    current = erlang.current()
    return [*current, current.metadata, current.traceparent]


def now_for(_item):
    return now()


async def soon():
    await asyncio.sleep(0)
    return now()


async def everywhere():
    """In a task, in a thread of one, and on a loop of one's own in that."""
    return [
        await asyncio.create_task(soon()),
        await asyncio.to_thread(now),
        await asyncio.to_thread(erlang.run, soon()),
    ]


def in_a_thread():
    """A thread that has the context of the call."""
    known = []
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: known.append(context.run(now)))
    thread.start()
    thread.join()
    return known[0]


def call(name):
    return erlang.call(name)


async def await_call(name):
    return await erlang.async_call(name)


async def gives_up(name):
    """Cancels its question; whether nobody keeps the future any more."""
    future = erlang.async_call(name)
    await erlang.async_call("begun")
    kept = weakref.ref(future)
    future.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await future
    del future
    # What hears of the end of a future is called in the next turn.
    await asyncio.sleep(0)
    return kept() is None


async def items():
    yield now()


def log(text):
    logging.getLogger("about").warning(text)


async def log_soon(text):
    await asyncio.sleep(0)
    log(text)
