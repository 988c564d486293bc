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


def benchmark_event_loop(text: str) -> None:
    assert re.search(r"^Timer throughput: [\d,]+ timers/sec$", text, re.M)
    assert re.search(r"^Callback dispatch: [\d,]+ callbacks/sec$", text, re.M)
    assert re.search(r"^I/O ready detection: [\d,.]+ µs latency$", text, re.M)
    for row in ("sleep(1 ms)", "loop overhead per turn", "timer precision", "idle CPU"):
        assert re.search(rf"^{re.escape(row)}.*\d", text, re.M)


CHECKS = {"benchmark_event_loop.py": benchmark_event_loop}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_shows_what_it_promises(name: str) -> None:
    CHECKS[name](shown(name))
