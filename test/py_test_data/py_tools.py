"""What the suites do on the Python side."""

import builtins
import threading
import time

import erlang

_gates: dict[str, threading.Event] = {}
_lock = threading.Lock()
_notes: list[object] = []


def _gate(name):
    with _lock:
        return _gates.setdefault(name, threading.Event())


def wait_at(name, pid):
    """Says that it runs, then keeps its thread until the gate is opened; can be interrupted."""
    gate = _gate(name)
    erlang.send(pid, ("at", name))
    while not gate.wait(0.005):
        pass
    return "through"


def open_gate(name):
    _gate(name).set()


def spin(pid):
    """Burns a processor until it is interrupted, and tells when that happens."""
    try:
        # Within: without a GIL the interrupt may be there before the next line.
        erlang.send(pid, "spinning")
        while True:
            pass
    finally:
        erlang.send(pid, "stopped")


def note(value):
    _notes.append(value)


def notes():
    taken = list(_notes)
    _notes.clear()
    return taken


def identity(value):
    return value


def nap(seconds):
    """As time.sleep, but in pieces that can be interrupted."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.002)
    return seconds


def nap_here(pid, seconds):
    erlang.send(pid, "here")
    return nap(seconds)


def fail(kind, message):
    raise getattr(builtins, kind)(message)


def cpu_seconds():
    return time.process_time()
