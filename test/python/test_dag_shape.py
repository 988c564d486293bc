"""Graphs that Python runs: conditions, limits, nodes that ask for more, very many nodes, and what
happens to functions that nobody waits for."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import pytest

import erlang
from erlang import dag

PATIENCE = 60
MANY = 100_000


def outcomes(report):
    return {event.node: event.outcome for event in report.timeline}


@pytest.mark.parametrize("flag", [True, 1, "x", [0], object()])
def test_a_node_whose_condition_is_true_runs(flag):
    taken = dag.cpu(name="taken", condition="flag")(lambda x: x)
    assert dag.run([taken], {"x": 1, "flag": flag})["taken"] == 1


@pytest.mark.parametrize("flag", [False, None, 0, "", b"", [], {}])
def test_a_node_whose_condition_is_not_true_is_skipped_and_so_is_who_needs_it(flag):
    nodes = [
        dag.cpu(name="never", condition="flag", default=7)(lambda: pytest.fail("it ran")),
        dag.redis("told", "PING", condition="flag"),
        dag.cpu(name="needs")(lambda never: never),
        dag.cpu(name="may", optional=["never"])(lambda never: ("without", never)),
    ]
    report = dag.run(nodes, {"flag": flag})
    assert report.results == {"may": ("without", None)}
    assert outcomes(report) == {
        "never": "skipped",
        "told": "skipped",
        "needs": "skipped",
        "may": "done",
    }


def test_a_condition_may_be_a_node_of_any_kind():
    key = f"condition:{os.getpid()}"

    @dag.io
    async def awaited():
        return []

    nodes = [
        dag.redis("added", "SADD", key, 1),
        dag.redis("again", "SADD", key, 1, after=["added"]),
        awaited,
        *(
            dag.cpu(name=f"after {name}", condition=name)(lambda: True)
            for name in ("added", "again", "awaited")
        ),
    ]
    assert dag.run(nodes).results == {"after added": True}
    with pytest.raises(ValueError, match="needs nothing"):
        dag.Graph([dag.cpu(name="n", condition="nothing")(lambda: 1)], inputs=[])


def test_a_condition_that_can_t_be_asked_fails_its_node():
    class Unknown:
        def __bool__(self):
            raise ValueError("neither")

    nodes = [
        dag.cpu(name="unknown")(Unknown),
        dag.cpu(name="n", condition="unknown")(lambda: 1),
    ]
    with pytest.raises(dag.NodeError) as caught:
        dag.run(nodes)
    assert caught.value.node == "unknown"
    assert isinstance(caught.value.__cause__, ValueError)


def test_no_more_than_the_limit_run_at_once_in_whatever_runs():
    limit, lock, now, most = dag.Limit(2), threading.Lock(), [0], [0]

    def counted():
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.001)
        with lock:
            now[0] -= 1

    nodes = [dag.cpu(name=str(n), limit=limit)(counted) for n in range(30)]
    for running in [dag.start(nodes), dag.start(nodes)]:
        running.result()
    assert most[0] == 2
    with pytest.raises(ValueError, match="above zero"):
        dag.Limit(0)


def test_a_function_may_ask_for_more_nodes():
    def asks(count):
        parts = [dag.cpu(name=f"p{n}", inputs=["x"])(lambda x, n=n: x + n) for n in range(count)]
        total = dag.cpu(name="total", inputs=[p.name for p in parts])(lambda *all: sum(all))
        return dag.more([*parts, total], {"x": 10}, result="total")

    nodes = [
        dag.cpu(asks),
        dag.cpu(name="after")(lambda asks: asks + 1),
        dag.redis("echo", "ECHO", "{asks}"),
        dag.cpu(name="then", condition="asks")(lambda: "then"),
    ]
    report = dag.run(nodes, {"count": 3})
    assert report.results == {"after": 34, "echo": b"33", "then": "then"}
    assert outcomes(report)["asks/total"] == "done"


def test_a_coroutine_may_ask_and_asked_nodes_may_ask_again():
    made = object()

    @dag.io(name="down")
    async def down(n):
        await asyncio.sleep(0)
        return made if n == 0 else dag.more([down], {"n": n - 1}, result="down")

    assert dag.run([down], {"n": 20})["down"] is made


@pytest.mark.parametrize("lane", [dag.cpu, dag.io])
def test_nodes_may_ask_a_thousand_levels_deep_and_no_deeper(lane):
    @lane(name="down")
    async def later(n):
        return "bottom" if n == 0 else dag.more([later], {"n": n - 1}, result="down")

    @lane(name="down")
    def at_once(n):
        return "bottom" if n == 0 else dag.more([at_once], {"n": n - 1}, result="down")

    down = later if lane is dag.io else at_once
    assert dag.run([down], {"n": 1000})["down"] == "bottom"
    with pytest.raises(Exception, match="over 1000 levels deep"):
        dag.run([down], {"n": 100_000})


def test_what_an_asked_node_raises_is_the_cause():
    @dag.cpu
    def broken():
        raise LookupError("inside")

    asks = dag.cpu(name="asks")(lambda: dag.more([broken], result="broken"))
    with pytest.raises(dag.NodeError) as caught:
        dag.run([asks])
    assert caught.value.node == "asks"
    assert isinstance(caught.value.__cause__, LookupError)
    with pytest.raises(ValueError, match="no node other"):
        dag.more([broken], result="other")


def test_a_default_of_an_asked_node_is_taken_as_its_value_would_be():
    @dag.cpu(default="")
    def broken():
        raise LookupError("inside")

    nodes = [
        dag.cpu(name="asks")(lambda: dag.more([broken], result="broken")),
        dag.redis("echo", "ECHO", "{asks}"),
        dag.cpu(name="then", condition="asks")(lambda: "then"),
    ]
    report = dag.run(nodes)
    assert report.results == {"echo": b""}
    assert outcomes(report)["then"] == "skipped"


def test_a_hundred_thousand_nodes():
    make = dag.cpu
    nodes = [make(name=str(n), inputs=["x"])(abs) for n in range(MANY)]
    report = dag.run(nodes, {"x": -1})
    assert sum(report.results.values()) == MANY
    commands = [dag.redis(str(n), "ECHO", n) for n in range(MANY)]
    answers = dag.run(commands).results
    assert all(answer == name.encode() for name, answer in answers.items())
    assert len(answers) == MANY


def test_a_wide_run_does_not_keep_others_waiting():
    wide = dag.Graph([dag.cpu(name=str(n))(lambda: time.sleep(0.001)) for n in range(20_000)])
    running = dag.start(wide)
    for _ in range(5):
        assert dag.run([dag.cpu(name="small")(lambda: 1)])["small"] == 1
    assert not running.done()
    running.cancel()


def stuck(began, ended):
    began.set()
    try:
        while True:
            time.sleep(0.001)
    except BaseException as error:
        ended.append(type(error))
        raise


def ends(ended):
    deadline = time.monotonic() + PATIENCE
    while not ended and time.monotonic() < deadline:
        time.sleep(0.001)
    return ended


@pytest.mark.parametrize("way", ["cancelled", "forgotten"])
def test_a_function_that_nobody_waits_for_is_interrupted(way):
    began, ended = threading.Event(), []
    running = dag.start([dag.cpu(name="stuck")(lambda: stuck(began, ended))])
    assert began.wait(PATIENCE)
    if way == "cancelled":
        running.cancel()
    else:
        del running
    assert ends(ended) == [erlang.Cancelled]
    # Its thread is as good as before.
    assert dag.run([dag.cpu(name="next")(lambda: 1)])["next"] == 1


@pytest.mark.parametrize("whose", ["run", "node"])
def test_a_function_whose_time_is_up_is_interrupted(whose):
    began, ended, seconds = threading.Event(), [], 0.02
    # On a busy machine it may not begin in time.
    while not began.is_set():
        own = {"timeout": seconds} if whose == "node" else {}
        node = dag.cpu(name="stuck", **own)(lambda: stuck(began, ended))
        with pytest.raises((TimeoutError, dag.NodeError)):
            dag.run([node], timeout=seconds if whose == "run" else None)
        seconds *= 2
    assert ends(ended) == [erlang.Cancelled]


def test_who_awaits_a_run_is_told_though_its_function_goes_on():
    go = threading.Event()
    blocks = dag.cpu(name="blocks")(lambda: go.wait(PATIENCE))

    async def main():
        with pytest.raises(TimeoutError):
            await dag.start([blocks], timeout=0.02)

    try:
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
        assert not go.is_set()
    finally:
        go.set()


def test_the_longest_path_runs_first():
    threads, order = dag._MOST_THREADS, []
    held, go, rest = threading.Semaphore(0), threading.Event(), threading.Event()

    def holds(until):
        held.release()
        assert until.wait(PATIENCE)

    def note(name):
        order.append(name)
        if len(order) == 106:
            rest.set()

    def noted(name, **options):
        return dag.cpu(name=name, **options)(lambda *_: note(name))

    # One thread goes on; the others wait until all is done.
    holders = [
        dag.cpu(name=f"holder {n}", weight=1e6)(lambda until=rest if n else go: holds(until))
        for n in range(threads)
    ]
    leaves = [noted(f"leaf {n}") for n in range(100)]
    links = [noted(f"link {n}", inputs=[f"link {n - 1}"] if n else []) for n in range(5)]
    run = dag.start([*holders, *leaves, *links, noted("heavy", weight=4.5)], timeout=PATIENCE)
    for _ in holders:
        assert held.acquire(timeout=PATIENCE)
    go.set()
    run.result()
    assert order[:5] == ["link 0", "heavy", "link 1", "link 2", "link 3"]
    assert order[5:] == [*(f"leaf {n}" for n in range(100)), "link 4"]
