"""Trio as a guest of the event loop (``erlang.run_trio``), and what its tasks await from Erlang."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
from typing import TYPE_CHECKING, Any, TypeVar

import outcome  # type: ignore[import-not-found, unused-ignore]
import trio  # type: ignore[import-not-found, unused-ignore]

from erlang import _node
from erlang._run import run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    # What an answer comes in; both have the same methods.
    Answer = asyncio.Future[Any] | concurrent.futures.Future[Any]

T = TypeVar("T")


def run_trio(main: Callable[..., Awaitable[T]], *args: object) -> T:
    """Runs Trio's ``main(*args)`` as a guest of a new ErlangEventLoop: both libraries run in this
    thread, and code of either may use what the other has."""
    return run(_host(main, args))


async def _host(main: Callable[..., Awaitable[T]], args: tuple[object, ...]) -> T:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[outcome.Outcome[Any]] = loop.create_future()
    scope = trio.CancelScope()

    async def guest() -> Any:
        with scope:
            return await main(*args)

    trio.lowlevel.start_guest_run(
        guest,
        run_sync_soon_threadsafe=loop.call_soon_threadsafe,
        run_sync_soon_not_threadsafe=loop.call_soon,
        done_callback=done.set_result,
        host_uses_signal_set_wakeup_fd=True,
    )
    cancelled = None
    while not done.done():
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError as error:
            cancelled = error
            scope.cancel()
    value: T = done.result().unwrap()
    if cancelled is not None and scope.cancelled_caught:
        raise cancelled
    return value


async def ask(name: str, *args: object, abandoned: Callable[[Answer], None] | None = None) -> Any:
    """Calls a function registered in Erlang, from a task of Trio. Should that be cancelled,
    ``abandoned`` hears of the answer that will come."""
    loop = asyncio._get_running_loop()
    answer = None if loop is None else loop.create_future()
    if answer is None or not _node.ask(loop, answer, name, *args):
        return await _ask_in_thread(name, args, abandoned)
    task = trio.lowlevel.current_task()

    def answered(answer: asyncio.Future[Any]) -> None:
        trio.lowlevel.reschedule(task, outcome.capture(answer.result))

    def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
        answer.remove_done_callback(answered)
        if abandoned is not None:
            abandoned(answer)
        else:
            answer.cancel()
        return trio.lowlevel.Abort.SUCCEEDED

    answer.add_done_callback(answered)
    return await trio.lowlevel.wait_task_rescheduled(abort)


async def _ask_in_thread(
    name: str, args: tuple[object, ...], abandoned: Callable[[Answer], None] | None
) -> Any:
    """The same where no loop of ours runs beside Trio: a thread waits."""
    answer: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def call() -> None:
        try:
            answer.set_result(_node.call(name, *args))
        except BaseException as error:
            answer.set_exception(error)

    try:
        # Who waits for Erlang takes no place among those who compute.
        limiter = trio.CapacityLimiter(math.inf)
        await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
    except trio.Cancelled:
        if abandoned is not None:
            abandoned(answer)
        raise
    return answer.result()


class _Ends(trio.abc.Instrument):  # type: ignore[misc, unused-ignore]
    """Calls back when tasks are over."""

    def __init__(self) -> None:
        self.callbacks: dict[object, list[Callable[[object], None]]] = {}

    def task_exited(self, task: object) -> None:
        for callback in self.callbacks.pop(task, ()):
            callback(task)


_ends: trio.lowlevel.RunVar[_Ends] = trio.lowlevel.RunVar("erlang.ends")


def at_end_of_task(callback: Callable[[object], None]) -> None:
    """Calls back when the current task is over, as ``asyncio.Task.add_done_callback`` does."""
    try:
        ends = _ends.get()
    except LookupError:
        ends = _Ends()
        _ends.set(ends)
        trio.lowlevel.add_instrument(ends)
    ends.callbacks.setdefault(trio.lowlevel.current_task(), []).append(callback)
