"""The comparison of other packages' suites: what counts as a failure of our loop."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parent.parent / "outside" / "run.py"


@pytest.fixture(scope="module")
def runner() -> Any:
    spec = importlib.util.spec_from_file_location("outside_run", PATH)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Suite:
    """Stands for a suite of which single tests are repeated."""

    folder = Path("/nowhere")

    def __init__(self, runner: Any, **again: dict[str, str]) -> None:
        self.runner, self.again, self.asked = runner, again, []

    def run(self, kind: str, tests: list[str]) -> Any:
        self.asked.append((kind, tests))
        return self.runner.Run(outcomes=self.again[kind])


def judge(
    runner: Any, theirs: dict[str, str], ours: dict[str, str], listed: Any, **again: Any
) -> Any:
    suite = Suite(runner, **again)
    run = runner.Run
    return suite, runner.judge("p", suite, run(outcomes=theirs), run(outcomes=ours), listed)


def test_what_fails_on_ours_alone_and_twice_is_a_failure(runner: Any) -> None:
    both, bad = {"t": "passed", "u": "passed"}, {"t": "failed", "u": "passed"}
    suite, verdict = judge(runner, both, bad, {}, erlang={"t": "failed"}, asyncio={"t": "passed"})
    assert [text.splitlines()[0] for text in verdict.wrong] == ["FAILED p t"]
    assert (verdict.passed, verdict.skipped) == (1, 0)
    assert suite.asked == [("erlang", ["t"]), ("asyncio", ["t"])]


def test_what_did_not_even_end_on_ours_is_a_failure(runner: Any) -> None:
    _, verdict = judge(
        runner,
        {"t": "passed", "u": "passed"},
        {"u": "passed"},
        {},
        erlang={},
        asyncio={"t": "passed"},
    )
    assert verdict.wrong == ["FAILED p t\ndid not end"]


def test_what_fails_on_asyncio_too_or_passes_when_repeated_is_none(runner: Any) -> None:
    theirs = {"both": "failed", "their_flake": "passed", "our_flake": "passed"}
    ours = dict.fromkeys(theirs, "failed")
    _, verdict = judge(
        runner,
        {**theirs, "fine": "passed"},
        {**ours, "fine": "passed"},
        {},
        erlang={"their_flake": "failed", "our_flake": "passed"},
        asyncio={"their_flake": "failed", "our_flake": "passed"},
    )
    assert verdict.wrong == []
    assert verdict.notes == [
        "failed once, passed when repeated: p our_flake",
        "fails on asyncio too, when repeated: p their_flake",
    ]
    assert (verdict.passed, verdict.skipped) == (1, 3)


def test_what_the_list_explains_is_none_and_what_passes_is_told(
    runner: Any, tmp_path: Path
) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# Head.\n\n# looks inside\np dir/t.py::white*[x]\np old\nq t\n")
    listed = runner.read_list(path)
    test = "dir/t.py::white_box[x]"
    again = {test: "failed", "t": "failed"}
    _, verdict = judge(
        runner,
        {test: "passed", "old": "passed", "t": "passed"},
        {test: "failed", "old": "passed", "t": "failed"},
        listed,
        erlang=again,
        asyncio={test: "passed", "t": "passed"},
    )
    assert len(verdict.wrong) == 1, verdict
    assert verdict.notes == [
        f"white box: p {test}: looks inside",
        "passes, though the list has it: p old",
    ]


def test_a_line_of_the_list_without_a_reason_is_refused(runner: Any, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# Head.\n\np t\n")
    with pytest.raises(SystemExit, match="p t has no reason"):
        runner.read_list(path)


def test_a_suite_in_which_nothing_passes_on_asyncio_is_a_failure(runner: Any) -> None:
    _, verdict = judge(runner, {"t": "failed"}, {"t": "failed"}, {})
    assert len(verdict.wrong) == 1
