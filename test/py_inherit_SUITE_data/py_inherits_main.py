"""As an extension module that refuses sub-interpreters."""

import threading

import erlang

if erlang.detect_mode() is erlang.ExecutionMode.SUBINTERP:
    raise ImportError(f"not here, in {threading.current_thread().name}")


def make(value):
    return [value]
