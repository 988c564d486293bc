"""The node's own loops: what a thread of the node runs, and the coroutines around a user's."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from asyncio import events
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from erlang import _boot
from erlang._loop import ErlangEventLoop
from erlang._run import run

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        Awaitable,
        Callable,
        Coroutine,
        Iterator,
    )

T = TypeVar("T")

# The loops that are up, and whether there is one.
loops: list[ErlangEventLoop] = []
up = threading.Event()

# Seconds that tasks have to end when their loop does.
_PATIENCE = 1.0

# What is called when those are over, by loop.
_ends: dict[Any, Callable[[], object]] = {}


def new_loop() -> ErlangEventLoop:
    """A loop for the calling thread."""
    loop = new_shared_loop()
    asyncio.set_event_loop(loop)
    return loop


def new_context_loop() -> ErlangEventLoop:
    """The same for a context: what others spawn does not run there."""
    loop = _watched_loop()
    asyncio.set_event_loop(loop)
    return loop


def new_shared_loop() -> ErlangEventLoop:
    """A loop for a thread that runs many: none of them is the thread's own."""
    loop = _watched_loop()
    loops.append(loop)
    up.set()
    return loop


def _watched_loop() -> ErlangEventLoop:
    loop = ErlangEventLoop()
    loop.report_slow_callbacks(_boot.slow_callback)
    return loop


def can_begin() -> None:
    """Raises what would keep a loop from running, be it a refusal or a lack of descriptors."""
    loop = _watched_loop()
    try:
        _complete(loop, asyncio.sleep(0))
    finally:
        loop.close()


def serve(loop: ErlangEventLoop) -> None:
    """Runs until somebody stops the loop; the node asks whether it was meant so."""
    turned: list[bool] = []
    loop.call_soon(turned.append, True)
    try:
        loop.run_forever()
    except (SystemExit, KeyboardInterrupt):
        # The task that raised it has it as its outcome: whoever waits for that is told.
        pass
    except BaseException:
        if not turned:
            # It can't run at all: to try again would be to try for ever.
            raise
        logging.getLogger("erlang").exception("an event loop goes on after an exception")


def step(loop: Any) -> int:
    """Runs what is ready, on a thread that many loops share.

    When to come again, in nanoseconds of the monotonic clock: 0 for now, -1 when the loop's
    descriptor says so.
    """
    hooks = sys.get_asyncgen_hooks()
    try:
        loop._thread_id = threading.get_ident()
        sys.set_asyncgen_hooks(
            firstiter=loop._asyncgen_firstiter_hook, finalizer=loop._asyncgen_finalizer_hook
        )
        events._set_running_loop(loop)
        return int(loop._step())
    except (SystemExit, KeyboardInterrupt):
        # The task that raised it has it as its outcome: whoever waits for that is told.
        return 0
    except BaseException:
        logging.getLogger("erlang").exception("an event loop goes on after an exception")
        return 0
    finally:
        loop._stopping = False
        loop._thread_id = None
        events._set_running_loop(None)
        sys.set_asyncgen_hooks(*hooks)


def end(loop: ErlangEventLoop) -> None:
    """Cancels what is left and closes the loop."""
    if loop in loops:
        loops.remove(loop)
        if not loops:
            up.clear()
    try:
        _complete(loop, _end_tasks())
        if loop in _ends:
            _complete(loop, _end_rest(_ends.pop(loop)))
        _complete(loop, loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _complete(loop: ErlangEventLoop, coro: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine to its end, also when somebody who came late stops the loop meanwhile."""
    task = loop.create_task(coro)
    task.add_done_callback(lambda _: loop.stop())
    while not task.done():
        loop.run_forever()


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_PATIENCE)


async def _end_rest(end: Callable[[], object]) -> None:
    end()
    # What it has asked of the loop is done in this turn.
    await asyncio.sleep(0)


@contextmanager
def at_end(end: Callable[[], object]) -> Iterator[None]:
    """Calls `end` where it is left, and at the latest when the running loop ends: a task that does
    not end never leaves it."""
    loop = asyncio.get_running_loop()
    _ends[loop] = end
    try:
        yield
    finally:
        if _ends.pop(loop, None) is not None:
            end()


async def wrap(awaitable: Awaitable[T]) -> T:
    """A coroutine of anything that can be awaited."""
    return await awaitable


async def collect(items: AsyncIterable[T]) -> list[T]:
    """All items; a generator is closed also when this is cancelled."""
    if hasattr(items, "aclose"):
        generator: AsyncGenerator[T, None] = items  # type: ignore[assignment]
        async with aclosing(generator):
            return [item async for item in generator]
    return [item async for item in items]


async def pump(
    items: AsyncIterable[Any], give: Callable[[Any], bool | None], room: Callable[[Any], None]
) -> None:
    """Gives all items to the reader of a stream, who may want a pause."""
    loop = asyncio.get_running_loop()
    try:
        async for item in items:
            then = give(item)
            if then is None:
                continue
            if then:
                await asyncio.sleep(0)
            else:
                wanted = loop.create_future()
                room(wanted)
                await wanted
    finally:
        await _close(items)


async def _close(items: AsyncIterable[Any]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()


def drive(items: AsyncIterable[Any]) -> Iterator[Any]:
    """The items one by one, each on a loop of the calling thread that rests in between."""
    runner = asyncio.Runner(loop_factory=ErlangEventLoop)
    iterator = aiter(items)
    try:
        while True:
            try:
                item = runner.run(wrap(anext(iterator)))
            except StopAsyncIteration:
                return
            yield item
    finally:
        if events._get_running_loop() is None:
            _end_drive(runner, items)
        else:
            # Dropped where another loop runs.
            threading.Thread(target=_end_drive, args=(runner, items)).start()


def _end_drive(runner: asyncio.Runner, items: AsyncIterable[Any]) -> None:
    with runner:
        runner.run(_close(items))


def run_here(awaitable: Awaitable[Any]) -> Any:
    """Awaits on a loop of its own, on the calling thread."""
    return run(wrap(awaitable))


def collect_here(items: AsyncIterable[Any]) -> list[Any]:
    """Collects on a loop of its own, on the calling thread."""
    return run(collect(items))
