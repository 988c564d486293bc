"""Jobs for the parallel tests."""

import threading
import time


def ident(x):
    return x


def interpreter():
    """A number that no two interpreters share at the same time."""
    return id(threading)


def spin():
    while True:
        pass


def cpu(n):
    x = 0
    for i in range(n):
        x = (x * 1103515245 + i) & 0x7FFFFFFF
    return x


def slow_ident(x):
    time.sleep(0.01)
    return x
