"""The benchmark of loops: its rows come from every group, and a ratio means what it says."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from erlang.bench import measure, report
from erlang.bench.loops import BASE, OURS

PROJECT = pathlib.Path(__file__).parent.parent.parent


def goals() -> Any:
    spec = importlib.util.spec_from_file_location("bench_loop", PROJECT / "bench/bench_loop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(name: str, ours: list[float], base: list[float]) -> measure.Row:
    return measure.Row(name, {OURS: ours, BASE: base})


def test_a_ratio_is_of_one_round_and_says_which_is_faster() -> None:
    made = row("UDP, 1k", [1.0, 2.0, 4.0], [3.0, 8.0, 8.0])
    assert made.times_better(OURS, BASE) == 3.0
    assert "3.0x faster than asyncio" in report.line(made, [OURS, BASE])
    assert "2.0x slower than asyncio" in report.line(row("x", [2.0], [1.0]), [OURS, BASE])
    assert "1.25x faster than asyncio" in report.line(row("x", [4.0], [5.0]), [OURS, BASE])
    assert "1.00x faster than asyncio" in report.line(row("x", [1.0], [0.999]), [OURS, BASE])
    assert "3.0x less than asyncio" in report.line(row("memory", [1.0], [3.0]), [OURS, BASE])
    assert "uvloop can't" in report.line(made, [OURS, BASE, "uvloop"])
    assert "2.00x asyncio (2 rows)" in report.means(
        [row("a", [1.0], [1.0]), row("b", [1.0], [4.0]), row("memory", [1.0], [9.0])], [OURS, BASE]
    )


def test_a_row_ends_in_reached_or_short() -> None:
    verdict = goals().verdict
    assert verdict(row("UDP, 1k", [1.0], [7.7]))[-1] == "reached"
    assert verdict(row("UDP, 1k", [1.0], [7.5]))[-1] == "short"
    assert "ahead of zuvloop's anchor 6.66x" in verdict(row("UDP, 1k", [1.0], [7.5]))
    assert verdict(row("sleep(0.25 ms), off by", [300.0], [900.0]))[-1] == "short"
    assert verdict(row("idle, 1000 connections, wakes", [0.0], [0.0]))[-1] == "reached"


@pytest.mark.parametrize("group", measure.GROUPS)
def test_each_group_measures_rows_that_have_a_goal(group: str) -> None:
    with measure.certificate() as has_tls:
        if group.startswith("tls") and not has_tls:
            pytest.skip("there is no openssl")
        figures = measure.run_group(group, OURS, 0.05)
    known = goals()
    assert figures
    assert set(figures) <= set(known.GOALS) | set(known.LIMITS)
    # The kernel may take memory of the tests before this one back while it is measured.
    timed = {name: figure for name, figure in figures.items() if not name.startswith("memory")}
    assert all(figure >= 0 for figure in timed.values()), timed


@pytest.mark.smoke
def test_the_table_is_printed_from_the_package() -> None:
    command = [sys.executable, "-P", "-m", "erlang.bench", "--quick", "--only", "calls,tcp_1k"]
    text = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    ).stdout
    assert "TCP, protocol, 1k" in text
    assert "geometric mean of the CPU rows:" in text.splitlines()[-1]
    command[-1] = "nothing"
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "there is no group nothing" in refused.stderr
