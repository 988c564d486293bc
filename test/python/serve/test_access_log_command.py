"""The access log of ``python -m erlang.serve``: signals, workers, slow readers, `logging`."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT = 60.0

APP = """
import logging
import os

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise NotImplementedError
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""

CONFIGURED = (
    APP
    + """
class Health(logging.Filter):
    def filter(self, record):
        return record.args[2] != "/health"

handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("mine %(message)s"))
logger = logging.getLogger("erlang.serve.access")
logger.addHandler(handler)
logger.addFilter(Health())
logger.propagate = False
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logged_app.py").write_text(APP)
    (tmp_path / "configured_app.py").write_text(CONFIGURED)
    return tmp_path


@contextmanager
def running(line: list[str]) -> Iterator[tuple[http.client.HTTPConnection, subprocess.Popen[str]]]:
    """A server whose standard error is a pipe, which the test reads when it likes."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(line, **pipes)
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().split()[2])
        connection = http.client.HTTPConnection(str(address.hostname), address.port)
        yield connection, process
        connection.close()
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def ask(connection: http.client.HTTPConnection, path: str = "/") -> bytes:
    connection.request("GET", path)
    response = connection.getresponse()
    assert response.status == 200
    return response.read()


def test_every_line_is_written_before_the_server_ends(command, folder):
    with running(command(folder, "logged_app:app")) as (connection, process):
        for number in range(100):
            ask(connection, f"/{number}")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 0
    found = [line.split('"')[1] for line in errors.splitlines()]
    assert found == [f"GET /{number} HTTP/1.1" for number in range(100)]


def test_a_line_comes_while_the_server_runs(command, folder):
    with running(command(folder, "logged_app:app")) as (connection, process):
        ask(connection, "/now")
        assert '"GET /now HTTP/1.1" 200' in process.stderr.readline()


@pytest.mark.parametrize("to", ["stdout", "stderr", "file"])
def test_lines_of_several_workers_are_whole(command, folder, to):
    path = folder / "log"
    where = str(path) if to == "file" else to
    arguments = ["--workers", "2", "--worker-kind", "processes", "--access-log-format", "json"]
    line = command(folder, "logged_app:app", "--access-log-file", where, *arguments)
    with running(line) as (connection, process):
        pids = set()
        for number in range(200):
            pids.add(ask(connection, f"/{number}?{'q' * (number * 7)}"))
            connection.close()
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate()
    assert len(pids) == 2
    text = {"stdout": output, "stderr": errors, "file": path.read_text() if to == "file" else ""}
    found = [json.loads(line)["target"].split("?")[0] for line in text[to].splitlines()]
    assert sorted(found) == sorted(f"/{number}" for number in range(200))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_process_that_is_told_to_end_writes_its_lines(command, folder, workers):
    """Also the processes of workers, which get the signal of a whole group first."""
    arguments = ["--workers", workers, "--worker-kind", "processes"]
    with running(command(folder, "logged_app:app", *arguments)) as (connection, process):
        pid = int(ask(connection, "/last"))
        connection.close()
        os.kill(pid, signal.SIGTERM)
        if workers == "2":
            assert "a worker has died" in process.stdout.readline()
            process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert '"GET /last HTTP/1.1" 200' in errors


def test_a_reader_that_does_not_read_holds_up_no_request(command, folder):
    path, count = "/" + "x" * 1500, 3000
    with running(command(folder, "logged_app:app")) as (connection, process):
        for _ in range(count):
            ask(connection, path)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 0
    seen, missing = 0, 0
    for line in errors.splitlines():
        if f'"GET {path} HTTP/1.1" 200' in line:
            seen += 1
        else:
            assert line.endswith(" requests were not logged: the access log is read too slowly")
            missing += int(line.split()[2])
    assert missing > 0
    assert seen + missing == count


def test_a_reader_that_has_left_holds_up_nothing(command, folder):
    with running(command(folder, "logged_app:app")) as (connection, process):
        process.stderr.close()
        for _ in range(100):
            ask(connection)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0
        process.stderr = None


def test_the_level_of_the_server_is_that_of_its_access_log(command, folder):
    line = command(folder, "logged_app:app", "--log-level", "warning")
    with running(line) as (connection, process):
        ask(connection)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert errors == ""


@pytest.mark.parametrize("arguments", [[], ["--workers", "2"]])
def test_handlers_and_filters_of_the_application_get_records(command, folder, arguments):
    with running(command(folder, "configured_app:app", *arguments)) as (connection, process):
        ask(connection, "/health")
        ask(connection, "/shown")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    (line,) = errors.splitlines()
    assert line.startswith("mine 127.0.0.1:")
    assert line.endswith('"GET /shown HTTP/1.1" 200')


def test_lines_go_to_a_file_whatever_logging_has(served, folder):
    path = folder / "log"
    given = ["--access-log-file", str(path), "--log-level", "error"]
    with served(folder, "configured_app:app", *given) as (address, process):
        urllib.request.urlopen(f"{address}/health").close()
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        process.wait()
    assert "GET" not in rest
    assert '"GET /health HTTP/1.1" 200' in path.read_text()
