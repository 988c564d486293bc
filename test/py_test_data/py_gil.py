"""Holds the GIL as a badly written C extension does."""

import ctypes
import os
import select
import tempfile

import erlang

_libc = ctypes.PyDLL(None)


def hold(pid, milliseconds):
    """Nobody else runs Python meanwhile."""
    erlang.send(pid, "holding")
    try:
        _libc.usleep(milliseconds * 1000)
    finally:
        erlang.send(pid, "released")


class _Poll(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


def hold_until_written(pid):
    """The same until something is written to the pipe it tells of; half a minute at most."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDWR)
        wait = _Poll(end, select.POLLIN, 0)
        erlang.send(pid, ("holding", pipe))
        try:
            _libc.poll(ctypes.byref(wait), 1, 30_000)
        finally:
            erlang.send(pid, "released")
            os.close(end)


class Thing:
    pass


def thing():
    return Thing()
