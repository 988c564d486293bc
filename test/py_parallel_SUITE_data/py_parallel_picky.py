"""As an extension module that refuses sub-interpreters."""

import erlang

if erlang.detect_mode() is erlang.ExecutionMode.SUBINTERP:
    raise ImportError("module py_parallel_picky does not support loading in subinterpreters")


def ident(x):
    return x


def items(n):
    yield from range(n)
