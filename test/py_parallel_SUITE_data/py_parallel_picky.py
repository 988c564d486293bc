"""As an extension module that refuses sub-interpreters."""

import weakref

import erlang

_made = weakref.WeakSet()

if erlang.detect_mode() is erlang.ExecutionMode.SUBINTERP:
    raise ImportError("module py_parallel_picky does not support loading in subinterpreters")


def ident(x):
    return x


def items(n):
    yield from range(n)


class Owned:
    def __init__(self, owner):
        self.owner = owner
        _made.add(self)


def owner(owned):
    return owned.owner


def alive():
    return len(_made)
