"""``python -m erlang.serve`` as its users start it."""

from __future__ import annotations

import signal
import socket
import subprocess
import urllib.request
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "served_app.py").write_text(APP)
    (tmp_path / "broken_app.py").write_text("import no_such_module_at_all")
    return tmp_path


@pytest.mark.smoke
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_a_signal(served, folder, number):
    with served(folder, "served_app:app", "--root-path", "/r") as (address, process):
        with urllib.request.urlopen(address) as response:
            assert response.read() == b"ErlangEventLoop/r"
        process.send_signal(number)
        rest = process.stdout.read()
        process.wait()
    assert process.returncode == 0
    assert '"GET /r/ HTTP/1.1" 200' in rest
    assert "the lifespan ended" in rest


def test_a_factory_makes_the_application(served, folder):
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
        (["served_app:app", "--max-headers", "1000"], "from 1 to 256, got 1000"),
        (["served_app:app", "--backlog", "-5"], "backlog must be from 1 to 65535, got -5"),
        (["served_app:app", "--uds", "/no/such/dir/s"], "can't listen on /no/such/dir/s: "),
        (["served_app:app", "--host", "host.invalid"], "can't listen on host.invalid:0: "),
        (["served_app:app", "--host", "host.invalid", "--workers", "2"], "host.invalid:0: "),
        (["served_app:app", "--app-dir", "/no/such/dir"], "app_dir must be a directory"),
        (["served_app:app", "--access-log-file", ""], "access_log_file must be a path"),
        (["served_app:app", "--certificate", "/etc/passwd"], "/etc/passwd is no certificate"),
        (["served_app:app", "--port", "80000"], "port must be from 0 to 65535, got 80000"),
        (["served_app:app", "--port", "80000", "--workers", "2"], "got 80000"),
        (["served_app:app", "--root-path", "r"], "root_path must begin with a slash"),
        (["served_app:app", "--access-log-format", "x"], "'x' is not common or json"),
        (["served_app:app", "--access-log-file", "/no/such/file"], "/no/such/file"),
        (["served_app:app", "--certificate", "/no/such/file"], "/no/such/file can't be read: No"),
        (["broken_app:app"], "no_such_module_at_all"),
        (["broken_app:app", "--workers", "2"], "no_such_module_at_all"),
        (["no_such_app:app", "--workers", "2"], "there is no module 'no_such_app'"),
        (["served_app:app", "--workers", "0"], "workers must be from 1 to 4096, got 0"),
        (["served_app:app", "--workers", "2", "--reload"], "reload is for one worker"),
    ],
)
def test_what_can_not_be_served_is_told_in_a_sentence(command, folder, arguments, said):
    done = subprocess.run(
        command(folder, *arguments), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    # An application that raises is told with its place.
    assert ("Traceback" in done.stderr) == arguments[0].startswith("broken")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--log-level", "loud"], "invalid choice: 'loud'"),
        (["--uds-mode", "999"], "must be octal, such as 660, got '999'"),
    ],
)
def test_a_wrong_word_is_told_with_the_usage(command, folder, arguments, said):
    done = subprocess.run(
        command(folder, "served_app:app", *arguments),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
    # The usage does not hide it.
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.parametrize("arguments", [[], ["--workers", "2"]])
def test_a_port_in_use_is_told_once(command, folder, arguments):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            command(folder, "served_app:app", "--port", str(port), *arguments),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.endswith(f"can't listen on 127.0.0.1:{port}: Address already in use\n")


HANGING_APP = """
import asyncio

async def app(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.get_running_loop().create_future()
"""


@pytest.mark.parametrize("arguments", [[], ["--workers", "2"]])
def test_a_signal_ends_an_application_whose_shutdown_hangs(served, folder, arguments):
    (folder / "hanging_app.py").write_text(HANGING_APP)
    options = ["--stop-timeout", "0.1", *arguments]
    with served(folder, "hanging_app:app", *options) as (_, process):
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        process.wait()
    assert process.returncode == 0
    assert "the application did not end its lifespan" in rest


LOGGING_APP = """
import logging

logging.basicConfig(level="INFO", format="root %(name)s %(message)s")

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise NotImplementedError
    logging.getLogger("mine").info("here")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})
"""


@pytest.mark.parametrize("arguments", [[], ["--workers", "2"]])
def test_logging_of_the_application_is_its_own(served, folder, arguments):
    (folder / "logging_app.py").write_text(LOGGING_APP)
    with served(folder, "logging_app:app", *arguments) as (address, process):
        with urllib.request.urlopen(address) as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        process.wait()
    assert [line for line in rest.splitlines() if "here" in line] == ["root mine here"]
    # Once, and in the server's own form.
    (line,) = [line for line in rest.splitlines() if '"GET / HTTP/1.1" 200' in line]
    assert line.startswith("127.0.0.1 - - [")
