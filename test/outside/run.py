"""Runs the test suites of other packages on asyncio and on our loop, and compares.

    run.py [--peers] [--jobs N] [--folder DIR] [NAME | NAME=DIR …]

A test that fails on our loop twice and passes on asyncio twice is a failure, unless
`white_box.txt` names it with a reason. NAME is fetched from the package index, as its release with
source; NAME=DIR is a source tree that is there. --peers runs each suite on uvloop too, for the
table. The last line is "N passed, M failed, K skipped".
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).parent

# A suite that takes longer hangs. In seconds.
LIMIT = 1800

# What each suite needs on the command line; the options of its own configuration are not used: they
# measure coverage, or take more processes than there are cores.
SUITES = {
    "aiohttp": ["-m", "not dev_mode and not autobahn and not internal"],
    "anyio": ["-p", "anyio", "-m", "not network"],
    "httpcore": [],
    "uvicorn": [],
}
# The release of websockets with source has no tests.
ONLY_FROM_A_TREE = {"websockets": []}


@dataclass
class Run:
    """The outcomes of one suite on one kind of loop."""

    outcomes: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def those(self, outcome: str) -> set[str]:
        return {test for test, found in self.outcomes.items() if found == outcome}


@dataclass
class Verdict:
    """What the comparison of one package found."""

    passed: int
    skipped: int
    wrong: list[str]
    notes: list[str]


class Suite:
    def __init__(self, name: str, tree: pathlib.Path, folder: pathlib.Path, jobs: int) -> None:
        self.name, self.tree, self.folder, self.jobs = name, tree, folder, jobs
        self.options = {**SUITES, **ONLY_FROM_A_TREE}[name]

    def run(self, kind: str, tests: list[str] | None = None) -> Run:
        """The whole suite, or single tests, on loops of this kind."""
        label = f"{self.name}-{kind}{'-again' if tests else ''}"
        report, log = self.folder / f"{label}.jsonl", self.folder / f"{label}.log"
        report.unlink(missing_ok=True)
        options = "-p outside_loop -o addopts= -q -ra --color=no -p no:cacheprovider -p no:randomly"
        command = [sys.executable, "-P", "-m", "pytest", *options.split()]
        command += ["--ignore-glob=*benchmark*", "--timeout=120", *self.options]
        command += ["-n", "0", *tests] if tests else ["-n", str(self.jobs), "tests"]
        env = {
            **os.environ,
            "OUTSIDE_LOOP": kind,
            "OUTSIDE_REPORT": str(report),
            # A source tree that was given is tested as it is, not as it is installed.
            "PYTHONPATH": os.pathsep.join([str(HERE), *map(str, self.tree.glob("src"))]),
        }
        began = time.monotonic()
        with log.open("w") as out:
            try:
                subprocess.run(
                    command,
                    cwd=self.tree,
                    env=env,
                    stdout=out,
                    stderr=out,
                    stdin=subprocess.DEVNULL,
                    timeout=LIMIT,
                )
            except subprocess.TimeoutExpired:
                out.write(f"\nended after {LIMIT} s\n")
        run = read_report(report)
        run.seconds = time.monotonic() - began
        return run


def read_report(path: pathlib.Path) -> Run:
    run = Run()
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            run.outcomes[event["test"]] = event["outcome"]
            run.why[event["test"]] = event["why"]
    return run


def read_list(path: pathlib.Path) -> dict[str, str]:
    """`PACKAGE TEST`, a pattern, to its reason, which is the comment above it."""
    listed, reason = {}, ""
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            reason = line[1:].strip()
        elif line.strip():
            if not reason:
                raise SystemExit(f"{path.name}: {line} has no reason")
            listed[line.strip()] = reason
        else:
            reason = ""
    return listed


def reason_of(listed: dict[str, str], name: str, test: str) -> str | None:
    for line, reason in listed.items():
        package, pattern = line.split(None, 1)
        # The brackets of a parametrized test are no pattern.
        if package == name and fnmatch.fnmatchcase(test, pattern.replace("[", "[[]")):
            return reason
    return None


def judge(name: str, suite: Suite, theirs: Run, ours: Run, listed: dict[str, str]) -> Verdict:
    """Compares; runs what differs once more on both."""
    if not theirs.those("passed"):
        return Verdict(0, 0, [f"FAILED {name}: nothing passed on asyncio, see {suite.folder}"], [])
    differ = sorted(
        (ours.those("failed") | (theirs.those("passed") - set(ours.outcomes)))
        - theirs.those("failed")
    )
    wrong, notes = [], []
    if differ:
        again_ours, again_theirs = suite.run("erlang", differ), suite.run("asyncio", differ)
    for test in differ:
        reason = reason_of(listed, name, test)
        if reason is not None:
            notes.append(f"white box: {name} {test}: {reason}")
        elif again_theirs.outcomes.get(test) == "failed":
            notes.append(f"fails on asyncio too, when repeated: {name} {test}")
        elif again_ours.outcomes.get(test) == "passed":
            notes.append(f"failed once, passed when repeated: {name} {test}")
        else:
            why = again_ours.why.get(test) or ours.why.get(test) or "did not end"
            wrong.append(f"FAILED {name} {test}\n{why}")
    for test in sorted(ours.those("passed")):
        if reason_of(listed, name, test) is not None:
            notes.append(f"passes, though the list has it: {name} {test}")
    passed = len(ours.those("passed"))
    return Verdict(passed, len(ours.outcomes) - passed - len(wrong), wrong, notes)


def tree_of(word: str, folder: pathlib.Path) -> tuple[str, pathlib.Path]:
    """The name of a package and its source tree, fetched unless it is given or there."""
    name, _, given = word.partition("=")
    if name not in SUITES and name not in ONLY_FROM_A_TREE:
        raise SystemExit(
            f"no suite of '{name}'; there are: {', '.join([*SUITES, *ONLY_FROM_A_TREE])}"
        )
    if given:
        return name, pathlib.Path(given).resolve()
    if name not in SUITES:
        raise SystemExit(f"the release of {name} has no tests: name a source tree, {name}=DIR")
    # The release that is installed: its tests are for no other.
    version = importlib.metadata.version(name)
    tree = folder / f"{name}-{version}"
    if not tree.exists():
        fetch(name, version, folder)
    return name, tree


def fetch(name: str, version: str, folder: pathlib.Path) -> None:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    subprocess.run([*pip, "--no-binary", name, "--dest", folder, f"{name}=={version}"], check=True)
    with tarfile.open(folder / f"{name}-{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")


def row(name: str, kind: str, run: Run) -> str:
    counts = " ".join(
        f"{len(run.those(outcome)):>7}" for outcome in ("passed", "failed", "skipped")
    )
    return f"{name:<12} {kind:<8} {counts} {run.seconds:>8.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    trees = [tree_of(word, options.folder) for word in options.names or SUITES]
    listed = read_list(HERE / "white_box.txt")
    rows, verdicts = [f"{'package':<12} {'loop':<8} {'passed':>7} {'failed':>7} {'skipped':>7}"], []
    for name, tree in trees:
        suite = Suite(name, tree, options.folder.resolve(), options.jobs)
        runs = {
            kind: suite.run(kind) for kind in ("asyncio", "erlang", *(["uvloop"] * options.peers))
        }
        rows += [row(name, kind, run) for kind, run in runs.items()]
        verdicts.append(judge(name, suite, runs["asyncio"], runs["erlang"], listed))
    print("\n".join([*rows, ""]))
    for verdict in verdicts:
        print("\n".join(verdict.wrong + verdict.notes))
    wrong = sum(len(verdict.wrong) for verdict in verdicts)
    passed, skipped = sum(v.passed for v in verdicts), sum(v.skipped for v in verdicts)
    print(f"{passed} passed, {wrong} failed, {skipped} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
