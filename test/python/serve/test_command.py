"""``python -m erlang.serve`` as its users start it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

APP = """
import asyncio

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("the lifespan ended", flush=True)
        return await send({"type": "lifespan.shutdown.complete"})
    body = type(asyncio.get_running_loop()).__name__ + scope["root_path"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body.encode()})

def make():
    return app

not_an_app = 1
"""
LIMIT = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "served_app.py").write_text(APP)
    (tmp_path / "broken_app.py").write_text("import no_such_module_at_all")
    return tmp_path


def command(folder: Path, *arguments: str) -> list[str]:
    # -P: the package is the installed one.
    given = ["--app-dir", str(folder), "--port", "0", *arguments]
    return [sys.executable, "-P", "-m", "erlang.serve", *given]


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        command(folder, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"serving on (\S+)", line):
                yield found[1], process
                break
        else:
            pytest.fail("".join(said))
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.smoke
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_a_signal(folder, number):
    with served(folder, "served_app:app", "--root-path", "/r") as (address, process):
        with urllib.request.urlopen(address) as response:
            assert response.read() == b"ErlangEventLoop/r"
        process.send_signal(number)
        rest = process.stdout.read()
        process.wait()
    assert process.returncode == 0
    assert '"GET /r/ HTTP/1.1" 200' in rest
    assert "the lifespan ended" in rest


def test_a_factory_makes_the_application(folder):
    with (
        served(folder, "served_app:make", "--factory", "--no-access-log") as (address, _),
        urllib.request.urlopen(address) as response,
    ):
        assert response.read() == b"ErlangEventLoop"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["served_app"], "is not of the form module:attribute"),
        (["no_such_app:app"], "there is no module 'no_such_app'"),
        (["served_app:missing"], "has no attribute 'missing'"),
        (["served_app:not_an_app"], "can't be called"),
        (["served_app:app", "--max-headers", "1000"], "max_headers must be from 1 to 256"),
        (["served_app:app", "--root-path", "r"], "root_path must begin with a slash"),
        (["served_app:app", "--certificate", "/no/such/file"], "No such file"),
        (["broken_app:app"], "no_such_module_at_all"),
    ],
)
def test_what_can_not_be_served_is_told_in_a_sentence(folder, arguments, said):
    done = subprocess.run(
        command(folder, *arguments), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
