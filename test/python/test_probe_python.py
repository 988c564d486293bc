"""scripts/probe_python.py: which interpreters ./dev uses, and why not the others."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "scripts" / "probe_python.py"


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What is said of a Python of some version whose shared library is there."""
    judge = runpy.run_path(str(PROGRAM))["verdict"]

    def of(*version: int, free_threaded: bool = False, shared: str = sys.executable) -> str:
        monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
        said: str = judge(free_threaded, shared)
        return said

    return of


def test_a_python_is_not_refused_because_it_is_newer_than_those_that_are_known(
    verdict: Any,
) -> None:
    assert verdict(3, 11) == "ok"
    assert verdict(3, 99) == "ok"
    assert verdict(3, 99, free_threaded=True) == "ok"


def test_a_python_that_can_not_work_is_refused_with_the_reason(verdict: Any) -> None:
    assert verdict(3, 10) == "is older than 3.11"
    assert verdict(3, 13, free_threaded=True).startswith("is a free-threaded 3.13")
    assert verdict(3, 13, shared="/none.so") == "has no shared library (looked for /none.so)"
