"""The context of a callback, a copy of its caller's: the same on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref

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
