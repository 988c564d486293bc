"""What the suites do on the Python side."""

import builtins
import time

import erlang

_opened: set[str] = set()
_notes: list[object] = []


def wait_at(name, pid):
    """Says that it runs, then keeps its thread until the gate is opened; can be interrupted."""
    erlang.send(pid, ("at", name))
    # Not by an event: an interrupt in the midst of it may leave its lock to the others for ever.
    while name not in _opened:
        time.sleep(0.005)
    return "through"


def open_gate(name):
    _opened.add(name)


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


def note_items(value):
    """A stream without items: notes the value when the first one is asked for."""
    _notes.append(value)
    yield from ()


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
