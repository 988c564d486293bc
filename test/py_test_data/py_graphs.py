"""Functions that the graphs of the suite run."""

import asyncio
import threading
import time

import erlang
from erlang import dag

attempts: dict[str, int] = {}
kept: list[object] = []


class Model:
    """No term of Erlang can stand for it."""

    def __init__(self, weights):
        self.weights = weights
        self.made_on = id(self)


def model(weights):
    return Model(weights)


def score(model, features):
    assert model.made_on == id(model)
    return sum(w * float(f) for w, f in zip(model.weights, features, strict=True))


def same(first, second):
    return first is second


def add(*numbers):
    return sum(numbers)


def kinds(*values):
    return [type(value).__name__ for value in values]


def unwrap(value):
    return value


def fails(*_):
    raise ValueError("as told")


def sleeps(*_):
    try:
        time.sleep(60)
    except erlang.Cancelled:
        erlang.call("note", "cancelled")
        raise


def sleeps_in_steps(name):
    try:
        while True:
            time.sleep(0.001)
    except BaseException as error:
        erlang.call("note", [name, type(error).__name__])
        raise


def succeeds_at(name, attempt):
    attempts[name] = attempts.get(name, 0) + 1
    if attempts[name] < attempt:
        raise RuntimeError(f"attempt {attempts[name]}")
    return attempts[name]


def commands(user):
    return [
        ["GET", f"{user}:name"],
        ["HGET", f"{user}:profile", "age"],
        ["LRANGE", f"{user}:seen", 0, -1],
    ]


def whose():
    return erlang.self()


def thread():
    return threading.current_thread().name


async def coroutine(x):
    await asyncio.sleep(0)
    return x + 1


async def failing_coroutine():
    await asyncio.sleep(0)
    raise ValueError("awaited")


async def endless_coroutine():
    try:
        await asyncio.sleep(3600)
    except BaseException as error:
        erlang.call("note", type(error).__name__)
        raise


def from_python(key, value):
    @dag.cpu
    def doubled(value):
        return erlang.double(value)

    nodes = [
        doubled,
        dag.redis("set", "SET", "{key}", "{value}"),
        dag.redis("get", "GET", "{key}", after=["set"]),
    ]
    report = dag.run(nodes, {"key": key, "value": value})
    return [report["doubled"], report["get"]]


async def passed(value):
    await asyncio.sleep(0)
    return value


meeting: list[object] = []


async def meet(number, together):
    """Ends when so many are here at once."""
    meeting.append(number)
    while len(meeting) < together:
        await asyncio.sleep(0.001)
    return number


def sleeps_briefly(_):
    time.sleep(0.001)


def truth_is_unknown():
    class Unknown:
        def __bool__(self):
            raise ValueError("neither true nor false")

    return Unknown()
