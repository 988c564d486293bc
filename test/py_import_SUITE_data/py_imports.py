"""The Python side of py_import_SUITE."""

import sys
import time
import warnings

import erlang

times = 0
_gate = ("", None)


def prepare(gate, pid):
    """From here on `py_slow` is imported anew, until a process is registered as `gate`."""
    global times, _gate
    times, _gate = 0, (gate, pid)
    forget("py_slow")


def forget(name):
    sys.modules.pop(name, None)


def imported():
    global times
    times += 1
    gate, pid = _gate
    erlang.send(pid, "importing")
    while erlang.whereis(gate) is None:
        time.sleep(0.005)


def count():
    return times


def import_quick():
    import py_quick

    return py_quick.answer()


def import_and_spin(pid):
    import py_slow  # noqa: F401
    import py_tools

    py_tools.spin(pid)


complaints = []


def note_complaints():
    """What Python warns of from here on."""
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_rest: complaints.append(str(message))


def told():
    return complaints
