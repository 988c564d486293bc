"""Graphs of functions and commands that wait for each other.

::

    @dag.cpu
    def viewer(user): ...

    clicks = dag.redis("clicks", "GET", "clicks:{user}")

    @dag.cpu
    def score(viewer, clicks): ...

    report = dag.run([viewer, clicks, score], {"user": 7})
    report["score"]

Works inside a node and without one. Hundreds of commands wait on one thread; coroutine functions
run on an event loop, other functions on a few threads. Who runs for nobody any more, since the run
was cancelled or its time is up, gets ``erlang.Cancelled``, a coroutine ``asyncio.CancelledError``.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import importlib
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from erlang import _native
from erlang._dag_nodes import Limit, Node, cpu, io, redis

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

__all__ = [
    "Event",
    "Graph",
    "Limit",
    "Node",
    "NodeError",
    "RedisError",
    "Report",
    "Run",
    "cpu",
    "io",
    "more",
    "redis",
    "run",
    "start",
]

_MOST_THREADS = min(32, (os.cpu_count() or 1) + 4)
_PICTURES = ("dot", "svg", "chrome_trace")


class RedisError(Exception):
    """Redis refused a command, or could not be reached."""


class NodeError(Exception):
    """A node failed, and with it the run; the cause is the node's own exception."""

    def __init__(self, node: str, cause: BaseException) -> None:
        super().__init__(f"node {node} failed: {cause!r}")
        self.node = node
        self.__cause__ = cause


@dataclass(frozen=True)
class Event:
    """When and where a node ran; seconds since the run began, None for what did not happen."""

    node: str
    outcome: str
    reason: BaseException | None
    lane: str | None
    queued: float | None
    started: float | None
    ended: float | None


@dataclass(frozen=True)
class Report:
    """What a run gave. ``error`` is why a partial run is partial."""

    results: dict[str, Any]
    timeline: list[Event]
    critical_path: list[str]
    error: BaseException | None
    pictures: dict[str, str]

    def __getitem__(self, node: str) -> Any:
        return self.results[node]


class Graph:
    """Nodes, checked once and run often. ``inputs`` are the names that runs are given."""

    def __init__(self, nodes: Iterable[Node], inputs: Iterable[str] | None = None) -> None:
        self.nodes = tuple(nodes)
        for node in self.nodes:
            if not isinstance(node, Node):
                raise TypeError(f"{node!r} is no node: use @dag.cpu, @dag.io or dag.redis")
        self._places = {node.name: place for place, node in enumerate(self.nodes)}
        self._native, self.inputs, self._leaves = _native.dag_new(
            None if inputs is None else sorted(set(inputs)), [node._native for node in self.nodes]
        )
        self._functions = sum(node.function is not None for node in self.nodes)

    def _wanted(self, want: Iterable[str] | None) -> list[int]:
        if want is None:
            return self._leaves
        try:
            return [self._places[name] for name in want]
        except KeyError as error:
            raise ValueError(f"the graph has no node {error.args[0]}") from None


class Run:
    """A run that goes on: wait for it, await it, or cancel it. Forgotten, it is cancelled."""

    def __init__(self, graph: Graph, native: Any, pictures: tuple[str, ...]) -> None:
        self._graph, self._native, self._pictures = graph, native, pictures

    def cancel(self) -> None:
        """Ends every node that has not ended; a function that runs gets ``erlang.Cancelled``."""
        _native.dag_cancel(self._native)

    def done(self) -> bool:
        """Whether it has ended."""
        return _native.dag_wait(self._native, 0)

    def result(self) -> Report:
        """Waits for the end; raises what the run failed with."""
        # In steps, so that signals are served in between.
        while not _native.dag_wait(self._native, 0.2):
            pass
        return self._report()

    def __await__(self) -> Generator[Any, None, Report]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            if not ended.done():
                ended.set_result(None)

        def notify() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(tell)

        _native.dag_notify(self._native, notify)
        try:
            yield from ended.__await__()
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self._report()

    def _report(self) -> Report:
        bits = sum(1 << _PICTURES.index(name) for name in self._pictures)
        results, timeline, path, error, drawn = _native.dag_report(self._native, bits)
        failure = None if error is None else _failure(*error)
        if failure is not None and not timeline:
            raise failure
        names = [node.name for node in self._graph.nodes]
        return Report(
            results={names[place]: value for place, value in results},
            timeline=[_event(*event) for event in timeline],
            critical_path=path,
            error=failure,
            pictures={name: drawn[_PICTURES.index(name)] for name in self._pictures},
        )


def _event(node: str, outcome: str, reason: Any, *rest: Any) -> Event:
    return Event(node, outcome, None if reason is None else _reason(*reason), *rest)


def _reason(kind: str, what: Any) -> BaseException:
    if kind == "raised":
        raised: BaseException = what
        return raised
    if kind == "timeout":
        return TimeoutError("the node did not end in time")
    if kind == "redis":
        return RedisError(what)
    return RuntimeError(what)


def _failure(kind: str, node: str, reason: Any) -> BaseException:
    if kind == "node":
        return NodeError(node, _reason(*reason))
    if kind == "deadline":
        return TimeoutError("the run did not end in time")
    if kind == "cancelled":
        return concurrent.futures.CancelledError("the run was cancelled")
    return RuntimeError(reason)


def start(
    graph: Graph | Iterable[Node],
    inputs: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
    partial: bool = False,
    want: Iterable[str] | None = None,
    pictures: Iterable[str] = (),
    redis: str | None = None,
) -> Run:
    """Starts a run and gives it at once.

    ``want``: the nodes whose values are wanted; only what they need is run. ``partial``: a failure
    ends only what needs the failed node. ``pictures``: of dot, svg, chrome_trace. ``redis``: a URL,
    or ``embedded`` for a store in memory, which is also what answers where no server is configured.
    """
    given = dict(inputs or {})
    if not isinstance(graph, Graph):
        graph = Graph(graph, given)
    names = tuple(pictures)
    if unknown := set(names) - set(_PICTURES):
        raise ValueError(f"pictures are {', '.join(_PICTURES)}, not {unknown.pop()}")
    threads = min(_MOST_THREADS, graph._functions)
    wanted = graph._wanted(want)
    options = (timeout, partial, want is not None, wanted, redis or "", threads)
    native, *more = _native.dag_run(graph._native, list(given.items()), options)
    for errands, count in zip((False, True), more, strict=True):
        _start_threads(errands, count)
    return Run(graph, native, names)


def run(
    graph: Graph | Iterable[Node], inputs: Mapping[str, Any] | None = None, **options: Any
) -> Report:
    """Runs a graph and waits for it; the options are those of ``start``."""
    return start(graph, inputs, **options).result()


def more(
    graph: Graph | Iterable[Node], inputs: Mapping[str, Any] | None = None, *, result: str
) -> Any:
    """What a function returns that asks for more nodes.

    They run in its place, and the value of the node ``result`` becomes its own.
    """
    given = dict(inputs or {})
    if not isinstance(graph, Graph):
        graph = Graph(graph, given)
    (place,) = graph._wanted([result])
    return _native.dag_more(graph._native, list(given.items()), place)


def _start_threads(errands: bool, count: int) -> None:
    name = "dag-errands" if errands else "dag-python"
    for started in range(count):
        try:
            threading.Thread(target=_native.dag_work, args=(errands,), name=name).start()
        except RuntimeError:
            for _ in range(count - started):
                _native.dag_lost(errands)
            raise


def _stop() -> None:
    _native.dag_close()
    # Also where no coroutine has run yet: one may be next, and its loop would keep the program.
    importlib.import_module("erlang._dag_loop").stop()


# Before Python waits for its threads at the end: they wait for work.
getattr(threading, "_register_atexit", atexit.register)(_stop)
