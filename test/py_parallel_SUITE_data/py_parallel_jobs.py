"""Jobs for the parallel tests."""

import importlib.machinery
import importlib.util
import sys
import threading
import time

import erlang


def ident(x):
    return x


def tell(x):
    erlang.send(erlang.self(), x)


def interpreter():
    """A number that no two interpreters share at the same time."""
    return id(threading)


def spin():
    while True:
        pass


def spin_and_tell(pid):
    try:
        erlang.send(pid, "begun")
        spin()
    finally:
        erlang.send(pid, "stopped")


def meet(name):
    return erlang.call("parallel_meet", name)


def cpu(n):
    x = 0
    for i in range(n):
        x = (x * 1103515245 + i) & 0x7FFFFFFF
    return x


def slow_ident(x):
    time.sleep(0.01)
    return x


_list = list(range(100))
_dict = {n: [n] for n in range(100)}


def change(n):
    """Changes what `read` gives back."""
    for i in range(300):
        _list.append(i)
        _dict[n * 1000 + i] = [i]
        if len(_list) > 300:
            del _list[100:]
        _dict.pop(n * 1000 + i - 5, None)
    return n


def read(n):
    """One of the objects that others change."""
    return list(_list) if n % 2 else dict(_dict)


def import_what_needs_the_gil():
    """A module of CPython's own tests that does not say that it can do without."""
    import _testmultiphase

    name = "_testmultiphase_null_slots"
    loader = importlib.machinery.ExtensionFileLoader(name, _testmultiphase.__file__)
    importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    return sys._is_gil_enabled()


def hold_on():
    return erlang.call("hold_on")
