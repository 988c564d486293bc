"""The examples in plain Python run as their heads say, and show what they promise."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"


def shown(name: str) -> str:
    command = [sys.executable, "-P", str(EXAMPLES / name)]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    ).stdout


def figure(pattern: str, text: str) -> float:
    found = re.search(f"^{pattern}$", text, re.M)
    assert found, (pattern, text)
    return float(found[1].replace(",", ""))


def benchmark_event_loop(text: str) -> None:
    # Far below what the slowest machine does, and far above what a loop that does nothing shows.
    assert figure(r"Timer throughput: ([\d,]+) timers/sec", text) > 1000
    assert figure(r"Callback dispatch: ([\d,]+) callbacks/sec", text) > 1000
    assert 0 < figure(r"I/O ready detection: ([\d,.]+) µs latency", text) < 1e6
    # The first column is ours.
    assert 1000 <= figure(r"sleep\(1 ms\) +([\d,.]+) µs.*", text) < 1e6
    assert figure(r"loop overhead per turn +([\d,.]+) µs.*", text) > 0
    assert figure(r"timer precision \(0.25 ms\) +± ([\d,.]+) µs.*", text) < 1e6
    assert figure(r"idle CPU +([\d,.]+) ms/s.*", text) < 1000


CHECKS = {"benchmark_event_loop.py": benchmark_event_loop}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_shows_what_it_promises(name: str) -> None:
    CHECKS[name](shown(name))
