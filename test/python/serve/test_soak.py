"""The harness of `./dev soak http`, in small: it passes here, and it sees what is planted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CLIENTS = os.environ.get("PY_TEST_SOAK", "")
LIMIT = 300.0

pytestmark = pytest.mark.skipif(
    not os.access(CLIENTS, os.X_OK), reason="the clients of the soak are built by ./dev test"
)


def soak(loop: str, count: int, plant: str = "", *options: str) -> tuple[int, str]:
    server = ROOT / "bench" / "soak_server.py"
    certificate = ROOT / "test" / "python" / "tls" / "server.pem"
    command = [sys.executable, "-P", str(server), loop, str(certificate)]
    done = subprocess.run(
        [CLIENTS, "--count", str(count), *options, "--", *command],
        env={**os.environ, "SOAK_PLANT": plant, "PYTHONPATH": str(server.parent)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT,
    )
    print(done.stdout)
    return done.returncode, done.stdout


def count(name: str, text: str) -> int:
    found = re.search(rf"^  {name} +(\d+)", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_nobody_gets_another_clients_answer() -> None:
    status, text = soak("erlang", 3000)
    assert status == 0
    # It was a test of all of it.
    for name in [
        "requests",
        "left by the client",
        "  over TLS",
        "  given as sockets",
        "  WebSockets",
    ]:
        assert count(name, text) > 0


def test_an_answer_that_was_swapped_is_seen() -> None:
    status, text = soak("erlang", 3000, "swap")
    assert status == 1
    assert count("mismatches", text) > 0


def test_an_answer_that_never_comes_is_seen() -> None:
    status, text = soak("erlang", 3000, "hang", "--patience", "5")
    assert status == 1
    assert count("stuck", text) > 0


def test_what_is_left_behind_is_seen() -> None:
    status, text = soak("erlang", 3000, "leak")
    assert status == 1
    assert re.search(r"^  descriptors .* LEFT$", text, re.MULTILINE)
