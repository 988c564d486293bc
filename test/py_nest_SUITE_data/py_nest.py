"""The Python side of py_nest_SUITE."""

import contextvars

import erlang

level = contextvars.ContextVar("level", default=0)


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
