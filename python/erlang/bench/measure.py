"""Runs the groups on the loops in turn, and gives one row of figures after the other."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from erlang.bench import asgi, core, network
from erlang.bench.loops import BASE, OURS

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS = [*core.GROUPS, *network.GROUPS, *asgi.GROUPS]
# Seconds that a group may take.
LIMIT = 120.0

# No CPU time: these are not in the mean.
NOT_CPU = ("memory", "idle", "sleep")


@dataclass
class Row:
    """Figures by loop, one per round; less is better."""

    name: str
    figures: dict[str, list[float]] = field(default_factory=dict)

    def figure(self, loop: str) -> float | None:
        """The median of the rounds, if there is one."""
        found = self.figures.get(loop)
        return statistics.median(found) if found else None

    def times_better(self, loop: str, than: str) -> float | None:
        """How many times less one loop needs than the other: the median over the rounds."""
        pairs = zip(self.figures.get(loop, []), self.figures.get(than, []), strict=False)
        ratios = [ratio(mine, theirs) for mine, theirs in pairs]
        return statistics.median(ratios) if ratios else None

    @property
    def is_cpu(self) -> bool:
        """Whether it is CPU time per operation."""
        return not self.name.startswith(NOT_CPU)


def ratio(mine: float, theirs: float) -> float:
    """Nothing against nothing is even."""
    if mine <= 0:
        return 1.0 if theirs <= 0 else math.inf
    return theirs / mine


def run_group(group: str, loop: str, scale: float) -> dict[str, float]:
    """Nothing if the loop can't do it: a peer may lack a method."""
    command = [sys.executable, "-P", "-W", "ignore", "-m", "erlang.bench.child", group, loop]
    try:
        done = subprocess.run(
            [*command, str(scale)], capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {}
    if done.returncode == 0:
        figures: dict[str, float] = json.loads(done.stdout)
        return figures
    if loop in (OURS, BASE):
        raise RuntimeError(f"{group} on {loop} failed:\n{done.stderr[-2000:]}")
    return {}


def rows(loops: list[str], groups: list[str], rounds: int, scale: float) -> Iterator[Row]:
    """Each row when all loops have run it."""
    with certificate() as has_tls:
        for group in groups:
            if group.startswith("tls") and not has_tls:
                continue
            made: dict[str, Row] = {}
            for _ in range(rounds):
                for loop in loops:
                    for name, figure in run_group(group, loop, scale).items():
                        row = made.setdefault(name, Row(name))
                        row.figures.setdefault(loop, []).append(figure)
            yield from made.values()


@contextlib.contextmanager
def certificate() -> Iterator[bool]:
    """A certificate for the TLS rows, made by openssl; without it there are none."""
    openssl = shutil.which("openssl")
    if openssl is None:
        yield False
        return
    with tempfile.TemporaryDirectory() as folder:
        cert, key = (str(pathlib.Path(folder, name)) for name in ("cert.pem", "key.pem"))
        command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        command += ["-subj", "/CN=localhost", "-out", cert, "-keyout", key]
        subprocess.run(command, check=True, capture_output=True)
        os.environ.update(ERLANG_BENCH_CERT=cert, ERLANG_BENCH_KEY=key)
        yield True


def mean(ratios: list[float]) -> float:
    """The geometric one."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
