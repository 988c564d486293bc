"""The context of a callback, a copy of its caller's: the same on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref

import pytest

Loop = asyncio.AbstractEventLoop


def turn(loop: Loop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_each_callback_has_its_own_copy_of_the_context(loop: Loop) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    seen: list[int] = []

    def change() -> None:
        seen.append(variable.get())
        variable.set(variable.get() + 10)

    variable.set(1)
    loop.call_soon(change)
    loop.call_soon(change)
    given = contextvars.copy_context()
    loop.call_soon(change, context=given)
    loop.call_soon(change, context=given)
    loop.call_soon(change, context=None)
    turn(loop)
    assert seen == [1, 1, 1, 11, 1]
    assert variable.get() == 1


def test_the_context_of_a_handle_is_seen_by_the_collector_once_others_have_it(loop: Loop) -> None:
    variable: contextvars.ContextVar[object] = contextvars.ContextVar("variable")

    class Value:
        context: contextvars.Context

    value = Value()
    gone = weakref.ref(value)
    variable.set(value)
    handles = [loop.call_soon(lambda: None), loop.call_later(0, lambda: None)]
    dropped = [loop.call_soon(lambda: None), loop.call_later(60, lambda: None)]
    gc.collect()
    for handle in dropped:
        handle.cancel()
    del dropped, handle
    # A cycle through the context, which nothing but the collector can end.
    value.context = handles[0]._context  # type: ignore[attr-defined]
    assert gc.is_tracked(value.context)
    assert value.context[variable] is value
    loop.call_later(0.001, loop.stop)
    loop.run_forever()
    variable.set(None)
    del value, handles
    loop.close()
    gc.collect()
    assert gone() is None


def test_every_context_that_the_collector_shows_can_be_looked_into(loop: Loop) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    sizes: list[int] = []

    def look() -> None:
        contexts = [each for each in gc.get_objects() if type(each) is contextvars.Context]
        sizes.extend(len(each) for each in contexts)

    variable.set(1)
    loop.call_soon(lambda: None)
    loop.call_soon(look, context=contextvars.copy_context())
    turn(loop)
    assert sizes


def test_a_callback_of_another_thread_runs_in_a_copy_of_that_threads_context(loop: Loop) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    seen: list[str] = []

    def elsewhere() -> None:
        variable.set("there")
        loop.call_soon_threadsafe(lambda: seen.append(variable.get()))
        variable.set("later")
        loop.call_soon_threadsafe(lambda: seen.append(variable.get()))
        loop.call_soon_threadsafe(loop.stop)

    variable.set("here")
    thread = threading.Thread(target=elsewhere)
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    assert seen == ["there", "later"]


def test_a_timer_has_the_context_of_the_time_it_was_set(loop: Loop) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    seen: list[int] = []
    for number in range(3):
        variable.set(number)
        loop.call_later(0, lambda: (seen.append(variable.get()), variable.set(99)))
    loop.call_later(0.001, loop.stop)
    loop.run_forever()
    assert seen == [0, 1, 2]
    assert variable.get() == 2


def test_a_token_is_of_the_callback_that_got_it(loop: Loop) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    tokens: list[contextvars.Token[int]] = []
    failures: list[type[BaseException] | None] = []

    def change() -> None:
        tokens.append(variable.set(1))

    def reset() -> None:
        with pytest.raises(ValueError, match="different Context") as failed:
            variable.reset(tokens[0])
        failures.append(failed.type)

    loop.call_soon(change)
    loop.call_soon(reset)
    loop.call_soon(reset)
    turn(loop)
    assert failures == [ValueError, ValueError]


def test_what_a_callback_has_set_is_let_go_when_it_has_run(loop: Loop) -> None:
    class Value:
        pass

    variable: contextvars.ContextVar[Value] = contextvars.ContextVar("variable")
    alive: list[weakref.ref[Value]] = []
    seen: list[bool] = []

    def change() -> None:
        value = Value()
        alive.append(weakref.ref(value))
        variable.set(value)

    loop.call_soon(change)
    loop.call_soon(lambda: seen.append(alive[0]() is None))
    turn(loop)
    assert seen == [True]


def test_the_context_of_a_handle_shows_what_its_callback_has_set(loop: Loop) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    heard: list[asyncio.Handle] = []
    loop.set_exception_handler(lambda _, context: heard.append(context["handle"]))

    def fail() -> None:
        variable.set("failed")
        raise ValueError("on purpose")

    variable.set("before")
    held = loop.call_soon(variable.set, "after")
    loop.call_soon(fail)
    if hasattr(held, "get_context"):
        assert held.get_context()[variable] == "before"
    turn(loop)
    assert held._context[variable] == "after"  # type: ignore[attr-defined]
    assert heard[0]._context[variable] == "failed"  # type: ignore[attr-defined]


def test_a_context_that_the_collector_showed_is_used_for_no_other_callback(loop: Loop) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    found: list[contextvars.Context] = []

    def find() -> None:
        # Not by isinstance, which asks for __class__: what other tests left may raise then.
        found.extend(one for one in gc.get_objects() if type(one) is contextvars.Context)
        loop.call_soon(variable.set, "another's")
        loop.call_soon(loop.stop)

    loop.call_soon(bool)
    # In a context of its own, so that the one before rests.
    loop.call_soon(find, context=contextvars.copy_context())
    loop.run_forever()
    assert found
    assert not [context for context in found if variable in context]
