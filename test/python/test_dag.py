"""Graphs that Python runs, without a node."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import types
import weakref

import pytest

import erlang
from erlang import dag

PATIENCE = 60


@dag.cpu
def double(x):
    return 2 * x


@dag.cpu
def plus(double, x):
    return double + x


@dag.io
async def fetched(x):
    await asyncio.sleep(0)
    return ("fetched", x)


@dag.cpu
def fails():
    raise KeyError("as told")


@pytest.mark.smoke
def test_values_go_from_node_to_node():
    report = dag.run([double, plus], {"x": 3})
    assert report.results == {"plus": 9}
    assert report["plus"] == 9
    assert report.critical_path == ["double", "plus"]
    assert [event.outcome for event in report.timeline] == ["done", "done"]


def test_a_node_is_still_a_function():
    assert double(4) == 8
    with pytest.raises(TypeError, match="command"):
        dag.redis("n", "PING")()


def test_the_module_is_no_function_of_erlang():
    assert erlang.dag is dag


def test_objects_pass_as_they_are():
    class Model:
        pass

    made = Model()

    @dag.cpu
    def model():
        return made

    @dag.cpu
    def same(model):
        return model is made

    assert dag.run([model, same])["same"] is True


def test_objects_are_released_after_the_run():
    class Model:
        pass

    seen = []

    @dag.cpu
    def model():
        made = Model()
        seen.append(weakref.ref(made))
        return made

    @dag.cpu
    def dropped(model):
        return None

    dag.run([model, dropped])
    deadline = time.monotonic() + PATIENCE
    while seen[0]() is not None:
        assert time.monotonic() < deadline
        dag.run([double], {"x": 1})


def test_coroutines_run_side_by_side_on_a_loop():
    started = []
    go = threading.Event()

    def node(number):
        async def body():
            started.append(asyncio.get_running_loop())
            if len(started) == 50:
                go.set()
            while not go.is_set():
                await asyncio.sleep(0.001)
            return number

        return dag.io(name=f"n{number}")(body)

    report = dag.run([node(number) for number in range(50)], timeout=PATIENCE)
    assert sorted(report.results.values()) == list(range(50))
    assert len(set(started)) == 1
    assert isinstance(started[0], erlang.ErlangEventLoop)


def test_an_exception_is_the_cause_of_the_node_error():
    with pytest.raises(dag.NodeError) as caught:
        dag.run([fails])
    assert caught.value.node == "fails"
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.__traceback__ is not None


def test_a_coroutine_that_raises_fails_its_node():
    @dag.io
    async def bad():
        await asyncio.sleep(0)
        raise ValueError("async")

    with pytest.raises(dag.NodeError, match="async"):
        dag.run([bad])


def test_defaults_optional_inputs_and_partial_runs():
    fallback = dag.cpu(name="fallback", default=5)(fails.function)
    wants = dag.cpu(inputs=["fails", "fallback"], optional=["fails"], name="wants")(
        lambda failed, fallback: (failed, fallback)
    )
    report = dag.run([fails, fallback, wants], partial=True)
    assert report["wants"] == (None, 5)
    assert isinstance(report.error, dag.NodeError)
    event = next(event for event in report.timeline if event.node == "fallback")
    assert event.outcome == "done"
    assert isinstance(event.reason, KeyError)


def test_a_node_is_tried_again():
    attempts = []

    @dag.cpu(retries=2, backoff=0.001)
    def flaky():
        attempts.append(1)
        if len(attempts) < 3:
            raise RuntimeError
        return len(attempts)

    assert dag.run([flaky])["flaky"] == 3


def test_a_coroutine_that_timed_out_is_cancelled():
    cancelled = threading.Event()

    @dag.io(timeout=0.01)
    async def slow():
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(dag.NodeError) as caught:
        dag.run([slow])
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert cancelled.wait(PATIENCE)


def test_a_cancel_does_not_wait_for_functions_that_may_not_be_interrupted(tmp_path, monkeypatch):
    # They import, and each has a thread.
    many = 50
    monkeypatch.setattr(dag, "_MOST_THREADS", many + 3)
    monkeypatch.syspath_prepend(str(tmp_path))
    go, importing = threading.Event(), threading.Semaphore(0)
    gate = types.SimpleNamespace(go=go, importing=importing, PATIENCE=PATIENCE)
    monkeypatch.setitem(sys.modules, "dag_gate", gate)
    code = "import dag_gate\ndag_gate.importing.release()\ndag_gate.go.wait(dag_gate.PATIENCE)\n"

    def imports(number):
        name = f"dag_imported_{number}"
        (tmp_path / f"{name}.py").write_text(code)
        return dag.cpu(name=name)(lambda: importlib.import_module(name))

    def hangs():
        began, ended = threading.Event(), threading.Event()

        @dag.io
        async def hang():
            began.set()
            try:
                await asyncio.sleep(3600)
            finally:
                ended.set()

        run = dag.start([hang])
        assert began.wait(PATIENCE)
        return run, ended

    def cancelled_in(run, ended):
        since = time.monotonic()
        run.cancel()
        assert ended.wait(PATIENCE)
        return time.monotonic() - since

    spare = [dag.cpu(name=f"spare {number}")(lambda: None) for number in range(3)]
    importers = dag.start([imports(number) for number in range(many)] + spare)
    try:
        for _ in range(many):
            assert importing.acquire(timeout=PATIENCE)
        hanging = [hangs() for _ in range(3)]
        importers.cancel()
        took = min(cancelled_in(*each) for each in hanging)
    finally:
        go.set()
    # Each of them is tried again after up to 10 ms.
    assert took < many * 0.003


def test_a_run_past_its_time_ends_though_a_function_goes_on():
    go = threading.Event()
    try:
        blocks = dag.cpu(name="blocks")(lambda: go.wait(PATIENCE))
        with pytest.raises(TimeoutError):
            dag.run([blocks], timeout=0.02)
    finally:
        go.set()


def test_a_cancelled_run_says_so_and_queued_nodes_never_run():
    go, began, ran = threading.Event(), threading.Event(), []

    @dag.cpu
    def first():
        began.set()
        go.wait(PATIENCE)

    after = dag.cpu(inputs=["first"], name="after")(ran.append)
    running = dag.start([first, after])
    assert began.wait(PATIENCE)
    running.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        running.result()
    go.set()
    assert dag.run([double], {"x": 1})["double"] == 2
    assert ran == []


def test_redis_commands_take_values():
    key = f"key:{os.getpid()}"
    nodes = [
        dag.redis("set", "SET", "{key}:1", 42),
        dag.redis("push", commands=[["RPUSH", "{key}:l", "a", 1.5]]),
        dag.redis("get", "GET", "{key}:1", after=["set"]),
        dag.cpu(inputs=["key", "get"], name="keys")(lambda key, _: [f"{key}:1", b"none"]),
        dag.redis("many", "MGET", "{keys}"),
        dag.cpu(inputs=["key", "push"], name="given")(
            lambda key, _: [["LRANGE", f"{key}:l", 0, -1], ["LLEN", f"{key}:1"]]
        ),
        dag.redis("answers", commands_from="given"),
    ]
    report = dag.run(nodes, {"key": key}, want=["get", "many", "answers"])
    assert report["get"] == b"42"
    assert report["many"] == [b"42", None]
    values, error = report["answers"]
    assert values == [b"a", b"1.5"]
    assert error.startswith(b"WRONGTYPE")
    with pytest.raises(dag.NodeError) as caught:
        dag.run([dag.redis("wrong", "LLEN", f"{key}:1")])
    assert isinstance(caught.value.__cause__, dag.RedisError)


def test_a_server_that_is_not_there_is_an_error():
    get = dag.redis("get", "GET", "x")
    with pytest.raises(dag.NodeError, match="connection to Redis lost"):
        dag.run([get], redis="unix:/nowhere/redis.sock")
    with pytest.raises(ValueError, match="redis://"):
        dag.run([get], redis="what:ever")


def test_a_wrong_graph_is_refused_with_the_reason():
    a = dag.cpu(name="a", inputs=["b"])(id)
    b = dag.cpu(name="b", inputs=["a"])(id)
    with pytest.raises(ValueError, match="cycle"):
        dag.Graph([a, b])
    with pytest.raises(ValueError, match="node a needs b"):
        dag.run([a])
    with pytest.raises(ValueError, match="used twice"):
        dag.Graph([a, a])
    with pytest.raises(TypeError, match="no node"):
        dag.Graph([print])
    with pytest.raises(ValueError, match="no node nothing"):
        dag.run([double], {"x": 1}, want=["nothing"])
    with pytest.raises(ValueError, match="no input x"):
        dag.run(dag.Graph([double]))
    with pytest.raises(ValueError, match="pictures"):
        dag.run([double], {"x": 1}, pictures=["gif"])
    with pytest.raises(ValueError, match="needs words"):
        dag.redis("n")
    with pytest.raises(ValueError, match="a node needs a name"):
        dag.redis("", "PING")


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"timeout": "soon"}, ValueError, "the timeout of node n is no time in seconds"),
        ({"hedge": -1}, ValueError, "the hedge of node n is no time in seconds"),
        ({"retries": 1.5}, ValueError, "the retries of node n are no count"),
        ({"weight": -1}, ValueError, "the weight of node n is no number above 0"),
        ({"limit": 2}, ValueError, "the limit of node n is no dag.Limit"),
        ({"condition": 2}, ValueError, "the condition of node n is no name"),
        ({"inputs": [2]}, ValueError, "the inputs of node n are no list of names"),
        ({"inputs": [""]}, ValueError, "the inputs of node n are no list of names"),
        ({"condition": ""}, ValueError, "the condition of node n is no name"),
        ({"colour": "red"}, TypeError, "node n has an unknown key colour"),
        ({"kind": "io"}, TypeError, "kind"),
        ({"run": print}, TypeError, "run"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_written(options, error, told):
    with pytest.raises(error, match=told):
        dag.cpu(name="n", **options)(lambda: 1)


def test_nothing_is_as_good_as_no_option():
    nothing = {"timeout": None, "hedge": None, "limit": None, "condition": None, "default": None}
    node = dag.cpu(name="n", **nothing)(lambda: 1)
    assert dag.run([node])["n"] == 1
    assert dag.Graph([node]).inputs == ()


def test_only_what_is_wanted_runs():
    report = dag.run([double, plus, fails], {"x": 1}, want=["double"])
    assert report.results == {"double": 2}
    assert [event.outcome for event in report.timeline] == ["done", "skipped", "skipped"]


def test_pictures_are_drawn():
    report = dag.run([double, plus], {"x": 1}, pictures=["svg", "chrome_trace"])
    assert set(report.pictures) == {"svg", "chrome_trace"}
    assert report.pictures["svg"].startswith("<svg")
    assert json.loads(report.pictures["chrome_trace"])


def test_a_run_is_awaited_on_any_loop(loop):
    async def main():
        report = await dag.start([double, plus, fetched], {"x": 2})
        return report.results

    assert loop.run_until_complete(main()) == {"plus": 6, "fetched": ("fetched", 2)}


def test_cancelling_who_awaits_cancels_the_run(loop):
    async def main():
        began = loop.create_future()

        @dag.io
        async def slow():
            loop.call_soon_threadsafe(began.set_result, None)
            await asyncio.sleep(3600)

        running = dag.start([slow])
        task = asyncio.ensure_future(running)
        await began
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert running.done()

    loop.run_until_complete(main())


def test_many_runs_at_once_from_many_threads():
    graph = dag.Graph([double, plus])

    def one(x):
        return dag.run(graph, {"x": x})["plus"]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(200))) == [3 * x for x in range(200)]


def test_a_run_inside_of_a_node():
    outer = dag.cpu(name="outer", inputs=["x"])(lambda x: dag.run([double], {"x": x})["double"])
    assert dag.run([outer], {"x": 4})["outer"] == 8


SCRIPT = """
import os
from erlang import dag

@dag.cpu
def one():
    return 1

@dag.io
async def two():
    return 2

assert dag.run([one, two]).results == {"one": 1, "two": 2}
child = os.fork()
assert dag.run([one, two]).results == {"one": 1, "two": 2}
if child:
    assert os.waitpid(child, 0)[1] == 0
print("ended", bool(child))
"""


def test_the_process_ends_and_its_child_has_graphs_too():
    script = "import warnings; warnings.simplefilter('ignore')\n" + SCRIPT
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stderr == ""
    assert sorted(ended.stdout.split("\n")) == ["", "ended False", "ended True"]


ENDS_EARLY = """
import threading, time
from erlang import dag

begun = threading.Event()

@dag.cpu
def first():
    begun.set()
    threading.main_thread().join()
    # The end of Python has begun; its functions for that are about to run.
    time.sleep(0.3)
    return 1

@dag.cpu
def other():
    # Its thread is the one that takes what comes after the first function.
    threading.main_thread().join()
    time.sleep(1)

@dag.io
async def second(first):
    return first

run = dag.start([first, other, second])
begun.wait()
"""


def test_the_program_ends_while_a_function_before_a_coroutine_runs():
    ended = subprocess.run([sys.executable, "-c", ENDS_EARLY], timeout=PATIENCE, check=False)
    assert ended.returncode == 0


# Each child makes a process of its own while another thread of it starts the first run.
FORKS = """
import os, signal, sys, threading, time
from erlang import dag

@dag.cpu
def one():
    return 1

def run():
    assert dag.run([one])["one"] == 1

def grandchild(pause):
    thread = threading.Thread(target=run)
    thread.start()
    end = time.perf_counter() + pause
    while time.perf_counter() < end:
        pass
    pid = os.fork()
    if pid == 0:
        signal.alarm(15)
        run()
        os._exit(0)
    thread.join()
    return os.waitpid(pid, 0)[1]

import warnings
warnings.simplefilter("ignore")
for n in range(40):
    pid = os.fork()
    if pid == 0:
        status = grandchild(n * 0.00005)
        os._exit(0 if status == 0 else 1)
    if os.waitpid(pid, 0)[1]:
        sys.exit("the grandchild of fork %d hangs" % n)
"""


def test_a_process_forked_while_another_thread_starts_a_run_has_graphs():
    ended = subprocess.run(
        [sys.executable, "-c", FORKS],
        timeout=120,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr


def sockets():
    """Those that this process has open."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return {name for name in found if name.startswith("socket:")}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_no_connection_to_redis(tmp_path):
    """Its parent could not end one: the server would wait for the child."""
    path = str(tmp_path / "redis")
    accepted = []

    def serve():
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.sendall(b"$1\r\nv\r\n")
        accepted.append(connection)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        server = threading.Thread(target=serve)
        server.start()
        before = sockets()
        dag.run([dag.redis("get", "GET", "x")], redis=f"unix:{path}?protocol=2")
        server.join(PATIENCE)
        with accepted[0] as connection:
            both = sockets() - before
            assert len(both) == 2
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(write, " ".join(sockets() & both).encode())
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as pipe:
                assert pipe.read() == f"socket:[{os.fstat(connection.fileno()).st_ino}]"
            assert os.waitpid(child, 0)[1] == 0
