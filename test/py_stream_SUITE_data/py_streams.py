"""Generators of every kind."""

import erlang

made = []
closed = []


def count(limit):
    for number in range(limit):
        made.append(number)
        yield number


def watched(pid):
    """Tells when it is closed."""
    try:
        number = 0
        while True:
            yield number
            number += 1
    finally:
        erlang.send(pid, "closed")


def fails_after(limit):
    yield from range(limit)
    raise ValueError("enough")


def taken():
    seen = list(made)
    made.clear()
    return seen


def wide(keys):
    yield {n: n for n in range(keys)}
    yield "after"


def sends_between(pid, keys):
    yield 1
    erlang.send(pid, {n: n for n in range(keys)})
    yield 2


def unconvertible():
    yield 1
    yield object()


def slow(pid):
    yield 1
    erlang.send(pid, "going on")
    while True:
        pass
