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


def sleeps_in_steps(name, first=None):
    try:
        if first is not None:
            erlang.call("note", first)
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


def asks(count):
    """Asks for nodes of each kind; the value of the last of them becomes its own."""
    parts = [dag.cpu(name=f"part {n}", inputs=["x"])(lambda x, n=n: x + n) for n in range(count)]
    names = [part.name for part in parts]
    total = dag.cpu(name="total", inputs=names)(lambda *parts: sum(parts))
    echo = dag.redis("echo", "ECHO", "{total}")
    awaited = dag.io(name="awaited", inputs=["echo"])(awaits_number)
    return dag.more([*parts, total, echo, awaited], {"x": 10}, result="awaited")


async def awaits_number(text):
    await asyncio.sleep(0)
    return int(text)


async def asks_down(n):
    """Asks again and again, and gives what no term can stand for."""
    await asyncio.sleep(0)
    down = dag.io(name="down", inputs=["n"])(asks_down)
    return Model(n) if n == 0 else dag.more([down], {"n": n - 1}, result="down")


async def asks_down_for_bottom(n):
    down = dag.io(name="down", inputs=["n"])(asks_down_for_bottom)
    return "bottom" if n == 0 else dag.more([down], {"n": n - 1}, result="down")


def weights(model):
    return model.weights


def asks_for(kind, value=None):
    """Asks for one node, of that kind, that has no value; it may have a default."""
    if kind == "unknown":
        return dag.more([dag.cpu(name="a")(fails)], result="b")
    if kind == "inputs":
        return dag.more(dag.Graph([dag.cpu(name="a", inputs=["x"])(unwrap)]), {}, result="a")
    if kind == "skipped":
        skipped = dag.cpu(name="a", inputs=[], condition="x")(unwrap)
        return dag.more([skipped], {"x": value}, result="a")
    if kind == "default":
        broken = dag.cpu(name="a", inputs=[], default=value)(fails)
        return dag.more([broken], result="a")
    if kind == "given":
        return dag.more([dag.cpu(name="a", inputs=["x"])(unwrap)], {"x": value}, result="a")
    return dag.more([dag.cpu(name="a", inputs=[])(globals()[kind])], result="a")


def thread_id():
    return threading.get_native_id()


def stuck():
    # Within: the stop may be there before the next line.
    sleeps_in_steps("asked", first="stuck")


def asks_for_a_meeting(together):
    nodes = [dag.io(name=str(n), inputs=[f"n{n}", "together"])(meet) for n in range(together)]
    total = dag.cpu(name="total", inputs=[node.name for node in nodes])(lambda *n: len(n))
    given = {f"n{n}": n for n in range(together)}
    return dag.more([*nodes, total], {**given, "together": together}, result="total")
