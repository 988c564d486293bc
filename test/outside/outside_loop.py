"""A pytest plugin: every loop that a test makes is of the kind that OUTSIDE_LOOP names.

Writes one line of JSON per test to OUTSIDE_REPORT. Nothing is written twice: xdist's workers send
their reports to the controller.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import json
import os
import sys
import warnings
from typing import Any

KIND = os.environ["OUTSIDE_LOOP"]


def take_names(new_event_loop: Any, loop_class: Any) -> None:
    """asyncio's names give our loops. Names, as policies go away with 3.16."""
    asyncio.events.new_event_loop = asyncio.new_event_loop = new_event_loop
    asyncio.SelectorEventLoop = asyncio.EventLoop = loop_class


def install() -> None:
    if KIND != "uvloop":
        # Packages prefer it where it can be imported.
        sys.modules["uvloop"] = None  # type: ignore[assignment]
    if KIND == "erlang":
        import erlang

        take_names(erlang.new_event_loop, type(probe(erlang.new_event_loop)))
        policy = getattr(erlang, "EventLoopPolicy", None)
    elif KIND == "uvloop":
        import uvloop

        take_names(uvloop.new_event_loop, uvloop.Loop)
        policy = uvloop.EventLoopPolicy
    else:
        return
    if sys.version_info < (3, 14):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            asyncio.set_event_loop_policy(policy())


def probe(factory: Any) -> Any:
    loop = factory()
    loop.close()
    return loop


install()


class Report:
    """Collects the three phases of each test into one outcome."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "w", encoding="utf-8", buffering=1)  # noqa: SIM115 closed at the end
        self.outcomes: dict[str, str] = {}

    def write(self, test: str, outcome: str, why: str = "") -> None:
        self.file.write(json.dumps({"test": test, "outcome": outcome, "why": why}) + "\n")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
            self.write(report.nodeid, "failed", report.longreprtext[-3000:])
        elif report.skipped:
            self.outcomes.setdefault(report.nodeid, "skipped")
        if report.when == "teardown" and self.outcomes.get(report.nodeid) != "failed":
            self.write(report.nodeid, self.outcomes.get(report.nodeid, "passed"))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write(report.nodeid, "failed", report.longreprtext[-3000:])

    def pytest_unconfigure(self) -> None:
        self.file.close()


def pytest_configure(config: Any) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Report(os.environ["OUTSIDE_REPORT"]), "outside-report")
