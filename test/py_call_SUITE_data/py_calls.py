"""The Python side of py_call_SUITE."""

import contextvars
import threading
import weakref

import erlang

local = threading.local()
_tokens = iter(range(1 << 62))
level = contextvars.ContextVar("level", default=0)
_watched: list[weakref.ref] = []


def down(depth):
    """Erlang and Python in turn: the Erlang function calls this one again."""
    return 0 if depth == 0 else 1 + erlang.call("down", depth - 1)


def down_too_deep(depth):
    return erlang.call("down_too_deep", depth - 1)


def down_spawned(depth):
    return 0 if depth == 0 else 1 + erlang.call("down_spawned", depth - 1)


def context_down(depth):
    """Each level sets a variable that no other may see."""
    before = level.get()
    level.set(depth)
    below = [] if depth == 0 else erlang.call("context_down", depth - 1)
    return [(before, level.get()), *below]


def thread_and_token():
    """The thread, and what was left on it by its first call."""
    if not hasattr(local, "token"):
        local.token = next(_tokens)
    return (threading.get_native_id(), local.token)


class Thing:
    pass


def watch(thing):
    _watched.append(weakref.ref(thing))


def watched():
    return [ref() is not None for ref in _watched]


def forget():
    _watched.clear()


def slow_callback(seconds):
    return erlang.call("slow", seconds)
