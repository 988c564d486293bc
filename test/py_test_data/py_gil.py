"""Holds the GIL as a badly written C extension does."""

import ctypes

import erlang

_libc = ctypes.PyDLL(None)


def hold(pid, milliseconds):
    """Nobody else runs Python meanwhile."""
    erlang.send(pid, "holding")
    try:
        _libc.usleep(milliseconds * 1000)
    finally:
        erlang.send(pid, "released")


class Thing:
    pass


def thing():
    return Thing()
