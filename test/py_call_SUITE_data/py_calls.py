"""The Python side of py_call_SUITE."""

import threading
import weakref

import erlang

local = threading.local()
_tokens = iter(range(1 << 62))
_watched: list[weakref.ref] = []


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
