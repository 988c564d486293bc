"""The Python side of py_context_SUITE."""

import threading

import erlang


def thread():
    return threading.get_native_id()


def swallow(pid):
    """Does not let itself be stopped the first time."""
    try:
        # Within: without a GIL the interrupt may be there before the next line.
        erlang.send(pid, "running")
        while True:
            pass
    except BaseException:
        erlang.send(pid, "swallowed")
    while True:
        pass
