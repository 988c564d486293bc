"""Runs CPython's own asyncio suite, which comes with Python, on our loop.

    run.py [--jobs N] [MODULE…]

Fails when a test fails that is not in `cannot_pass.txt`, and when one in it passes. Each module has
a process of its own; a test that hangs or ends it is a failure, and the next one begins after it.
The last line is "N passed, M failed, K skipped"; those of the list are skipped ones.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

HERE = pathlib.Path(__file__).parent
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

# Other systems, and the insides of asyncio's own loops and of what is not a loop.
NOT_OURS = {
    "test_proactor_events",
    "test_selector_events",
    "test_windows_events",
    "test_windows_utils",
}

# The long ones first, so that two processes end at about the same time.
LONG = ["test_events", "test_tasks", "test_ssl", "test_subprocess", "test_streams"]

# How often, a second each, nothing may come. Counted, not measured: a machine that is stopped for
# a while is no hang. gc.collect() a hundred times in a big process is slow, and none either.
LIMIT = 40


@dataclass
class Module:
    """What happened in one module."""

    name: str
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)


def modules_of_suite() -> list[str]:
    spec = importlib.util.find_spec("test.test_asyncio")
    if spec is None or not spec.submodule_search_locations:
        return []
    folder = pathlib.Path(spec.submodule_search_locations[0])
    names = {path.stem for path in folder.glob("test_*.py")} - NOT_OURS
    return sorted(names, key=lambda name: (name not in LONG, name))


def read_list() -> dict[str, str]:
    """Test to reason, of this Python. A line: the versions, or `*`, the test; the reason is the
    comment above it."""
    listed, reason = {}, ""
    for line in (HERE / "cannot_pass.txt").read_text().splitlines():
        if line.startswith("#"):
            reason = line[1:].strip()
        elif line.strip():
            versions, test = line.split()
            if not reason:
                raise SystemExit(f"cannot_pass.txt: {test} has no reason")
            if versions == "*" or VERSION in versions.split(","):
                listed[test] = reason
        else:
            reason = ""
    return listed


def short(test: str) -> str:
    return test.removeprefix("test.test_asyncio.")


class Child:
    """The process that runs one module, watched."""

    def __init__(self, name: str, after: str | None, log: Any, folder: str) -> None:
        command = [sys.executable, "-P", "-W", "ignore", str(HERE / "suite.py"), name]
        self.process = subprocess.Popen(
            command + ([after] if after else []),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            start_new_session=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": folder},
        )

    def events(self) -> Any:
        """The events as they come; ends when the process does, or when nothing comes for long."""
        assert self.process.stdout is not None
        out, rest = self.process.stdout.fileno(), b""
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            idle = 0
            while idle < LIMIT:
                if not selector.select(1):
                    idle += 1
                    continue
                idle = 0
                data = os.read(out, 1 << 16)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                yield from map(json.loads, lines)
            yield {"outcome": "hung", "why": f"hung: nothing for {LIMIT} s"}

    def end(self, *, hung: bool) -> int:
        """Ends the process and what its tests left behind; the group is ours."""
        try:
            if hung:  # it shows its stacks
                self.process.send_signal(signal.SIGABRT)
                self.process.wait(5)
            status = self.process.wait(5)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


def run_module(name: str) -> Module:
    module, after = Module(name), None
    while True:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
            child, running, hung = Child(name, after, log, folder), None, None
            for event in child.events():
                if event["outcome"] == "hung":
                    hung = event
                elif event["outcome"] == "began":
                    running = event["test"]
                else:
                    module.outcomes[short(event["test"])] = event
                    running = None
            status = child.end(hung=hung is not None)
            log.seek(0)
            said = log.read()[-6000:]
        if hung is None and status == 0:
            return module
        why = hung["why"] if hung else f"the process ended with status {status}"
        test = short(running or f"{name} (outside of a test)")
        module.outcomes[test] = {"outcome": "failed", "why": f"{why}\n{said}", "loops": 1}
        if running is None:
            return module
        after = running


def judge(modules: list[Module], listed: dict[str, str]) -> tuple[list[str], dict[str, int]]:
    """What is wrong, one text each, and the counts."""
    wrong: list[str] = []
    counts = dict.fromkeys(("passed", "listed", "skipped", "no loop"), 0)
    seen = set()
    for module in modules:
        for test, event in module.outcomes.items():
            seen.add(test)
            outcome = event["outcome"]
            if outcome == "failed" and test in listed:
                counts["listed"] += 1
            elif outcome == "failed":
                wrong.append(f"FAILED: {test}\n{event['why']}")
            elif outcome == "passed" and test in listed:
                wrong.append(f"PASSED, but is in cannot_pass.txt: {test} ({listed[test]})")
            elif outcome == "skipped":
                counts["skipped"] += 1
            else:
                counts["passed" if event["loops"] else "no loop"] += 1
    names = {module.name for module in modules}
    for test in sorted(set(listed) - seen):
        if test.split(".")[0] in names:
            wrong.append(f"in cannot_pass.txt, but there is no such test: {test}")
    return wrong, counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    options = parser.parse_args()
    names = options.modules or modules_of_suite()
    if not names:
        print(f"{sys.executable} comes without the package `test`: nothing to run")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        modules = list(pool.map(run_module, names))
    wrong, counts = judge(modules, read_list())
    print("\n\n".join(wrong))
    on_loop = counts["passed"] + counts["listed"] + len(wrong)
    print(
        f"Python {sys.version.split()[0]}: {counts['passed']} of {on_loop} tests that make a loop "
        f"pass, {counts['listed']} can't, {counts['no loop']} more make none; "
        f"{time.monotonic() - began:.0f} s"
    )
    passed = counts["passed"] + counts["no loop"]
    skipped = counts["listed"] + counts["skipped"]
    print(f"{passed} passed, {len(wrong)} failed, {skipped} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
