"""One module of `test.test_asyncio` on our loop, for `run.py`: one line of JSON per event.

    suite.py MODULE [FIRST]

The loop is put in where the suite asks asyncio for one: the default policy's factory (hence
`asyncio.run`, `Runner` and `IsolatedAsyncioTestCase`), `asyncio.SelectorEventLoop` and
`asyncio.EventLoop`. With FIRST, the id of a test, only those after it are run.
"""

from __future__ import annotations

import asyncio
import asyncio.unix_events
import faulthandler
import importlib
import json
import os
import signal
import sys
import traceback
import unittest
import warnings
from typing import TYPE_CHECKING, Any

import erlang

if TYPE_CHECKING:
    from collections.abc import Iterator

# The same tests once more on another selector, or for another system.
TWINS = {
    "KqueueEventLoopTests",
    "PollEventLoopTests",
    "ProactorEventLoopTests",
    "SelectEventLoopTests",
}

# Of these modules only the classes that run a loop; the others are mocks of its insides.
CLASSES = {
    "test_unix_events": {"SelectorEventLoopUnixSocketTests", "TestFork", "TestFunctional"},
}


class Loop(erlang.ErlangEventLoop):
    """Our loop, made as the suite makes asyncio's; counts how many there were."""

    made = 0

    def __init__(self, selector: object = None) -> None:
        if selector is not None:
            selector.close()  # type: ignore[attr-defined]
        super().__init__()
        Loop.made += 1


def put_in() -> None:
    """From here on the suite gets our loop."""
    for name in ("_UnixDefaultEventLoopPolicy", "_DefaultEventLoopPolicy"):
        policy = getattr(asyncio.unix_events, name, None)
        if policy is not None:
            policy._loop_factory = Loop
    for name in ("SelectorEventLoop", "EventLoop"):
        if hasattr(asyncio, name):
            setattr(asyncio, name, Loop)


def flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def tests_of(module: str) -> list[unittest.TestCase]:
    loaded = importlib.import_module(f"test.test_asyncio.{module}")
    found = flat(unittest.defaultTestLoader.loadTestsFromModule(loaded))
    wanted = CLASSES.get(module)
    return [
        test
        for test in found
        if type(test).__name__ not in TWINS and (not wanted or type(test).__name__ in wanted)
    ]


class Reporter(unittest.TestResult):
    """Writes what happens while it happens: a test that ends the process is known by its start."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.out = out
        self.outcome = self.why = ""

    def say(self, **event: Any) -> None:
        os.write(self.out, (json.dumps(event) + "\n").encode())

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        Loop.made = 0
        self.outcome, self.why = "passed", ""
        self.say(test=test.id(), outcome="began")

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.say(test=test.id(), outcome=self.outcome, why=self.why, loops=Loop.made)

    def failed(self, test: Any, error: Any) -> None:
        why = "".join(traceback.format_exception(*error))[-4000:]
        if isinstance(test, unittest.TestCase):
            self.outcome, self.why = "failed", self.why or why
        else:  # setUpModule and the like
            self.say(test=str(test), outcome="failed", why=why, loops=1)

    addError = addFailure = failed

    def addSubTest(self, test: Any, subtest: Any, error: Any) -> None:
        if error is not None:
            self.failed(test, error)

    def addSkip(self, test: Any, reason: str) -> None:
        if isinstance(test, unittest.TestCase) and self.outcome == "passed":
            self.outcome, self.why = "skipped", reason

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.outcome, self.why = "failed", "unexpected success"


def main() -> None:
    # A background job starts with SIGINT ignored; a hang is shown with every thread's stack.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    out = os.dup(1)
    os.dup2(2, 1)
    put_in()
    tests = tests_of(sys.argv[1])
    ids = [test.id() for test in tests]
    if len(sys.argv) > 2:
        tests = tests[ids.index(sys.argv[2]) + 1 :]
    unittest.TestSuite(tests).run(Reporter(out))
    # Threads that a test left behind don't matter.
    os._exit(0)


if __name__ == "__main__":
    main()
