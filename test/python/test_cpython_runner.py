"""The runner of CPython's asyncio suite judges right; the suite itself is run by `./dev test`."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNNER = pathlib.Path(__file__).parent.parent / "cpython" / "run.py"


@pytest.fixture
def runner() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("cpython_runner", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def outcome(of: str, loops: int = 1) -> dict[str, Any]:
    return {"outcome": of, "why": "because", "loops": loops}


def test_what_fails_outside_of_the_list_and_what_passes_inside_of_it_are_wrong(runner: Any) -> None:
    outcomes = {
        "test_a.A.good": outcome("passed"),
        "test_a.A.apart": outcome("passed", loops=0),
        "test_a.A.skipped": outcome("skipped"),
        "test_a.A.bad": outcome("failed"),
        "test_a.A.known": outcome("failed"),
        "test_a.A.better": outcome("passed"),
    }
    listed = dict.fromkeys(["test_a.A.known", "test_a.A.better", "test_a.A.gone"], "a reason")
    wrong, counts = runner.judge([runner.Module("test_a", outcomes)], listed)
    assert counts == {"passed": 1, "listed": 1, "skipped": 1, "no loop": 1}
    assert [text.split("\n")[0] for text in wrong] == [
        "FAILED: test_a.A.bad",
        "PASSED, but is in cannot_pass.txt: test_a.A.better (a reason)",
        "in cannot_pass.txt, but there is no such test: test_a.A.gone",
    ]


def test_each_line_of_the_list_has_a_reason_and_its_pythons(
    runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(runner, "HERE", tmp_path)
    monkeypatch.setattr(runner, "VERSION", "3.12")
    text = "# the head\n\n# why\n* test_a.A.b\n3.11,3.12 test_a.A.c\n3.11 test_a.A.d\n"
    (tmp_path / "cannot_pass.txt").write_text(text)
    assert runner.read_list() == {"test_a.A.b": "why", "test_a.A.c": "why"}
    (tmp_path / "cannot_pass.txt").write_text("# the head\n\n* test_a.A.b\n")
    with pytest.raises(SystemExit, match="has no reason"):
        runner.read_list()


SUITE = """
import json, sys, time
tests = ["test.test_asyncio.test_a.A.one", "test.test_asyncio.test_a.A.two"]
for test in tests[tests.index(sys.argv[2]) + 1:] if len(sys.argv) > 2 else tests:
    print(json.dumps({"test": test, "outcome": "began"}), flush=True)
    if test.endswith("one"):
        DO
    print(json.dumps({"test": test, "outcome": "passed", "why": "", "loops": 1}), flush=True)
"""


@pytest.mark.parametrize(
    ("what", "why"),
    [("time.sleep(60)", "hung"), ("sys.exit(3)", "the process ended with status 3")],
)
def test_a_test_that_hangs_or_ends_the_process_is_named_and_the_next_one_runs(
    runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, what: str, why: str
) -> None:
    (tmp_path / "suite.py").write_text(SUITE.replace("DO", what))
    monkeypatch.setattr(runner, "HERE", tmp_path)
    monkeypatch.setattr(runner, "LIMIT", 1)
    outcomes = runner.run_module("test_a").outcomes
    assert outcomes["test_a.A.one"]["outcome"] == "failed"
    assert outcomes["test_a.A.one"]["why"].startswith(why)
    assert outcomes["test_a.A.two"]["outcome"] == "passed"
