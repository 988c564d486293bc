"""Any interleaving of calls, timers, watches, cancels and stops does what a model says.

The model is the order asyncio keeps in one turn: what was ready, then what became readable or
writable, then the timers that are due; what these schedule runs in the next turn. The same machine
runs asyncio's loop and ours.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

import erlang

if TYPE_CHECKING:
    from collections.abc import Callable

PAIRS = 3
READ, WRITE = "read", "write"


class Action(NamedTuple):
    """What a callback does when it runs, beside being noted."""

    verb: str = "nothing"
    number: int = 0


class World:
    """What the model and the real loop have in common: numbers for callbacks, and their actions."""

    def __init__(self) -> None:
        self.count = 0
        self.log: list[int] = []
        self.failed: list[int] = []

    def next_number(self) -> int:
        self.count += 1
        return self.count

    def act(self, own: int, action: Action) -> None:
        verb, number = action
        if verb == "soon":
            self.soon(Action())
        elif verb == "due":
            self.due(number, Action())
        elif verb == "cancel":
            self.cancel(number % (self.count + 1))
        elif verb == "cancel itself":
            self.cancel(own)
        elif verb == "stop":
            self.stop()
        elif verb in (READ, WRITE):
            self.unwatch(verb, number % PAIRS)

    def soon(self, action: Action) -> None:
        raise NotImplementedError

    def due(self, rank: int, action: Action) -> None:
        raise NotImplementedError

    def cancel(self, number: int) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def unwatch(self, kind: str, index: int) -> bool:
        raise NotImplementedError


def due_in(rank: int, number: int) -> float:
    """Seconds, in the past; no two timers are due at the same time."""
    return -10 + rank * 1e-3 + number * 1e-6


class Model(World):
    """The rules, without a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.ready: list[tuple[int, Action]] = []
        self.timers: list[tuple[float, int, Action]] = []
        self.watches: dict[tuple[str, int], tuple[int, Action]] = {}
        self.handles: set[int] = set()
        self.cancelled: set[int] = set()
        self.full: set[int] = set()

    def soon(self, action: Action) -> None:
        number = self.next_number()
        self.handles.add(number)
        self.ready.append((number, action))

    def due(self, rank: int, action: Action) -> None:
        number = self.next_number()
        self.handles.add(number)
        self.timers.append((due_in(rank, number), number, action))

    def far(self) -> None:
        self.next_number()

    def cancel(self, number: int) -> None:
        # No handle of a watch is given out.
        if number in self.handles:
            self.cancelled.add(number)

    def stop(self) -> None:
        pass

    def watch(self, kind: str, index: int, action: Action) -> None:
        self.unwatch(kind, index)
        self.watches[kind, index] = self.next_number(), action

    def unwatch(self, kind: str, index: int) -> bool:
        watch = self.watches.pop((kind, index), None)
        if watch is not None:
            self.cancelled.add(watch[0])
        return watch is not None

    def run(self, callbacks: list[tuple[int, Action]]) -> list[int]:
        """Runs them; which ones ran."""
        ran = []
        for number, action in callbacks:
            if number in self.cancelled:
                continue
            ran.append(number)
            if action.verb == "raise":
                self.failed.append(number)
            self.act(number, action)
        return ran

    def turn(self) -> tuple[list[int], list[int], list[int]]:
        """What runs: of the calls, of the watches, of the timers."""
        ready, self.ready = self.ready, []
        watched = [
            watch
            for (kind, index), watch in self.watches.items()
            if kind == WRITE or index in self.full
        ]
        timers, self.timers = sorted(self.timers), []
        return (
            self.run(ready),
            self.run(watched),
            self.run([(number, action) for _, number, action in timers]),
        )


class Real(World):
    """The loop under test."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self.began = loop.time()
        self.handles: dict[int, asyncio.Handle] = {}
        self.pairs = [self.new_pair() for _ in range(PAIRS)]
        loop.set_exception_handler(lambda _loop, context: self.note_failure(context))

    @staticmethod
    def new_pair() -> tuple[socket.socket, socket.socket]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        return ours, theirs

    def note_failure(self, context: dict[str, Any]) -> None:
        error = context["exception"]
        assert isinstance(error, ArithmeticError), context
        self.failed.append(error.args[0])

    def callback(self, number: int, action: Action) -> None:
        self.log.append(number)
        if action.verb == "raise":
            raise ArithmeticError(number)
        self.act(number, action)

    def soon(self, action: Action) -> None:
        number = self.next_number()
        self.handles[number] = self.loop.call_soon(self.callback, number, action)

    def due(self, rank: int, action: Action) -> None:
        number = self.next_number()
        when = self.began + due_in(rank, number)
        self.handles[number] = self.loop.call_at(when, self.callback, number, action)

    def far(self) -> None:
        number = self.next_number()
        self.handles[number] = self.loop.call_later(3600, self.callback, number, Action())

    def cancel(self, number: int) -> None:
        if number in self.handles:
            self.handles[number].cancel()
            assert self.handles[number].cancelled()

    def stop(self) -> None:
        self.loop.stop()

    def watch(self, kind: str, index: int, action: Action) -> None:
        number = self.next_number()
        add: Callable[..., Any] = self.loop.add_reader if kind == READ else self.loop.add_writer
        add(self.pairs[index][0], self.callback, number, action)

    def unwatch(self, kind: str, index: int) -> bool:
        remove = self.loop.remove_reader if kind == READ else self.loop.remove_writer
        return bool(remove(self.pairs[index][0]))

    def turn(self) -> list[int]:
        self.log.clear()
        self.loop.stop()
        self.loop.run_forever()
        return list(self.log)

    def close(self) -> None:
        self.loop.close()
        for pair in self.pairs:
            for end in pair:
                end.close()


actions = st.one_of(
    st.just(Action()),
    st.builds(Action, st.sampled_from(["soon", "raise", "stop", "cancel itself"])),
    st.builds(Action, st.sampled_from(["cancel", "due", READ, WRITE]), st.integers(0, 60)),
)
# Which of two descriptors is served first is not promised: what they do must not depend on it.
watch_actions = st.sampled_from([Action(), Action("raise"), Action("stop")])
indices = st.integers(0, PAIRS - 1)
kinds = st.sampled_from([READ, WRITE])


class Machine(RuleBasedStateMachine):
    """Does the same to the model and to the loop."""

    factory: Callable[[], asyncio.AbstractEventLoop]

    @initialize()
    def begin(self) -> None:
        self.model = Model()
        self.real = Real(type(self).factory())
        self.open = True

    def both(self, name: str, *args: Any) -> None:
        assert getattr(self.real, name)(*args) == getattr(self.model, name)(*args)

    @precondition(lambda self: self.open)
    @rule(action=actions)
    def call_soon(self, action: Action) -> None:
        self.both("soon", action)

    @precondition(lambda self: self.open)
    @rule(rank=st.integers(0, 50), action=actions)
    def call_at(self, rank: int, action: Action) -> None:
        self.both("due", rank, action)

    @precondition(lambda self: self.open)
    @rule()
    def call_later(self) -> None:
        self.both("far")

    @precondition(lambda self: self.open)
    @rule(number=st.integers(0, 60))
    def cancel(self, number: int) -> None:
        self.both("cancel", number % (self.model.count + 1))

    @precondition(lambda self: self.open)
    @rule(kind=kinds, index=indices, action=watch_actions)
    def add(self, kind: str, index: int, action: Action) -> None:
        self.both("watch", kind, index, action)

    @precondition(lambda self: self.open)
    @rule(kind=kinds, index=indices)
    def remove(self, kind: str, index: int) -> None:
        self.both("unwatch", kind, index)

    @precondition(lambda self: self.open)
    @rule(index=indices)
    def fill(self, index: int) -> None:
        self.real.pairs[index][1].send(b"x")
        self.model.full.add(index)

    @precondition(lambda self: self.open)
    @rule(index=indices)
    def drain(self, index: int) -> None:
        if index in self.model.full:
            self.real.pairs[index][0].recv(1000)
        self.model.full.discard(index)

    @precondition(lambda self: self.open)
    @rule(index=indices)
    def use_the_number_again(self, index: int) -> None:
        for kind in (READ, WRITE):
            self.both("unwatch", kind, index)
        for end in self.real.pairs[index]:
            end.close()
        self.real.pairs[index] = self.real.new_pair()
        self.model.full.discard(index)

    @precondition(lambda self: self.open)
    @rule()
    def turn(self) -> None:
        calls, watches, timers = self.model.turn()
        ran = self.real.turn()
        assert ran[: len(calls)] == calls
        assert sorted(ran[len(calls) : len(calls) + len(watches)]) == sorted(watches)
        assert ran[len(calls) + len(watches) :] == timers
        assert sorted(self.real.failed) == sorted(self.model.failed)

    @precondition(lambda self: self.open and self.model.count > 20)
    @rule()
    def close(self) -> None:
        self.real.loop.close()
        self.open = False

    @precondition(lambda self: not self.open)
    @rule(number=st.integers(0, 60))
    def a_closed_loop_is_closed(self, number: int) -> None:
        self.real.cancel(number)
        loop = self.real.loop
        for refused in (loop.run_forever, lambda: loop.call_soon(print)):
            with pytest.raises(RuntimeError, match="closed"):
                refused()
        loop.close()

    def teardown(self) -> None:
        if hasattr(self, "real"):
            self.real.close()


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, erlang.new_event_loop])
def test_the_loop_does_what_the_model_says(factory: Any) -> None:
    machine = type("Machine", (Machine,), {"factory": staticmethod(factory)})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_machine(
        machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=50,
            deadline=None,
            database=None,
            suppress_health_check=checks,
        ),
    )
