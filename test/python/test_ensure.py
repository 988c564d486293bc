"""``erlang/_ensure.py``: what it leaves alone in the directory that it is given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "python" / "erlang" / "_ensure.py"


def ensure(venv: Path, python: Path | str) -> subprocess.CompletedProcess[bytes]:
    plan = {
        "venv": str(venv),
        "python": str(python),
        "installer": "/no/uv",
        "kind": "none",
        "file": "",
        "specs": [],
        "extra": [],
        "stamp": "of this test\n",
        "seconds": 60,
    }
    program = subprocess.Popen(
        [sys.executable, "-I", "-S", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert program.stdin is not None
    assert program.stdout is not None
    with program, program.stdin, program.stdout:
        # Its standard input stays open until it has ended.
        program.stdin.write(json.dumps(plan).encode() + b"\n")
        program.stdin.flush()
        said = program.stdout.read()
        return subprocess.CompletedProcess([], program.wait(), said)


def test_an_environment_whose_python_is_gone_keeps_what_else_is_there(tmp_path: Path) -> None:
    """As ``python -m venv .`` leaves it, when the Python of the system gets a newer version."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/no/such/python")
    (tmp_path / "bin" / "own").touch()
    (tmp_path / "pyvenv.cfg").write_text("home = /no/such\n")
    (tmp_path / "letter.txt").write_text("dear")
    for _ in range(3):
        assert ensure(tmp_path, "/bin/false").returncode == 3
    assert (tmp_path / "letter.txt").read_text() == "dear"
    assert (tmp_path / "bin" / "own").exists()


def test_a_creation_that_failed_is_made_again_beside_what_came_since(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    half = tmp_path / "half"
    half.write_text(f'#!/bin/sh\nmkdir -p "{venv}/lib/half"\nexit 1\n')
    half.chmod(0o755)
    assert ensure(venv, half).returncode == 3
    assert (venv / "lib" / "half").exists()
    (venv / "letter.txt").write_text("dear")
    done = ensure(venv, sys.executable)
    assert done.returncode == 0, done.stdout
    assert (venv / "letter.txt").read_text() == "dear"
    assert not (venv / "lib" / "half").exists()
    assert (venv / "bin" / "python").exists()
