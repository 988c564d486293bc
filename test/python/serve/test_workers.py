"""Several workers of ``python -m erlang.serve`` on one port, and one that is reloaded."""

from __future__ import annotations

import collections
import os
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from pathlib import Path

APP = """
import asyncio, os, threading

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        os.write(1, b"a lifespan ended\\n")
        return await send({"type": "lifespan.shutdown.complete"})
    if scope["path"] == "/die":
        os._exit(1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/slow":
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await asyncio.sleep(0.3)
    body = f"{os.getpid()} {threading.get_native_id()}"
    await send({"type": "http.response.body", "body": body.encode()})
"""
# Nobody reads a log while we ask.
QUIET = ["worked_app:app", "--no-access-log"]
ANSWERS = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": {body!r}}})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "worked_app.py").write_text(APP)
    return tmp_path


def has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.fixture(params=["processes", "interpreters", "threads"])
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    if kind == "threads" and has_gil():
        pytest.skip("this Python has a GIL")
    if kind == "interpreters" and sys.version_info < (3, 12):
        pytest.skip("own-GIL interpreters came with Python 3.12")
    return kind


def ask(address: str, path: str = "/") -> bytes:
    with urllib.request.urlopen(address + path, timeout=30) as response:
        return bytes(response.read())


def everyone(address: str, count: int) -> set[bytes]:
    """Asks until so many workers have answered."""
    seen: set[bytes] = set()
    while len(seen) < count:
        seen.add(ask(address))
    return seen


def test_workers_share_a_socket_and_end_with_their_lifespans(served, folder, kind):
    with served(folder, *QUIET, "--workers", "3", "--worker-kind", kind) as (address, process):
        seen = everyone(address, 3)
        assert len({worker.split()[0] for worker in seen}) == (3 if kind == "processes" else 1)
        slow = socket.create_connection((urlsplit(address).hostname, urlsplit(address).port))
        slow.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        got = b""
        while b"begun" not in got:
            got += slow.recv(1000)
        process.send_signal(signal.SIGTERM)
        while piece := slow.recv(1000):
            got += piece
        slow.close()
        rest = process.stdout.read()
        process.wait()
    assert got.endswith(b"0\r\n\r\n")
    assert process.returncode == 0
    assert rest.count("a lifespan ended") == 3


def test_workers_share_connections_that_come_at_once(served, folder, kind):
    with served(folder, *QUIET, "--workers", "2", "--worker-kind", kind) as (address, _):
        where = (urlsplit(address).hostname, urlsplit(address).port)
        clients = [socket.create_connection(where) for _ in range(100)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        answers = collections.Counter(client.recv(1000).split(b"\r\n\r\n")[1] for client in clients)
        for client in clients:
            client.close()
    # By chance alone, less than 20 of 100 is a matter of 1 in 10 ** 9. Those in one process count,
    # but not what is on its way.
    assert min(answers.values()) >= (20 if kind == "processes" else 30)
    assert len(answers) == 2


def test_workers_share_a_unix_socket(folder, tmp_path, command):
    path = tmp_path / "socket"
    arguments = ["--workers", "2", "--worker-kind", "processes", "--uds", str(path)]
    line = command(folder, *QUIET, *arguments)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        said(process, "with 2 processes")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert not path.exists()


def test_a_port_that_is_taken_is_told(command, folder):
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*command(folder, *QUIET, "--workers", "2"), "--port", port],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "Address already in use" in done.stderr


def test_a_process_that_dies_is_replaced(served, folder):
    with served(folder, *QUIET, "--workers", "2", "--worker-kind", "processes") as started:
        address, process = started
        before = everyone(address, 2)
        with pytest.raises(OSError, match=r"closed connection|reset"):
            ask(address, "/die")
        while everyone(address, 2) <= before:
            pass
        process.send_signal(signal.SIGTERM)
        assert "a worker has died: another one takes its place" in process.stdout.read()


def test_workers_end_with_their_supervisor(served, folder):
    with served(folder, *QUIET, "--workers", "2", "--worker-kind", "processes") as started:
        address, process = started
        workers = [int(worker.split()[0]) for worker in everyone(address, 2)]
        watched = [os.pidfd_open(worker) for worker in workers]
        process.kill()
        for descriptor in watched:
            wait_for_end(descriptor)


def wait_for_end(descriptor: int) -> None:
    ready, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    assert ready


def said(process: Any, text: str) -> None:
    """Reads what the command prints until it says so."""
    for line in process.stdout:
        if text in line:
            return
    pytest.fail(f"it never said {text!r}")


def test_reload_follows_the_files(served, folder):
    module = folder / "changing.py"
    module.write_text(ANSWERS.format(body=b"first"))
    with served(folder, "changing:app", "--reload") as (address, process):
        said(process, "the application runs")
        assert ask(address) == b"first"
        module.write_text("this is no Python at all")
        said(process, "SyntaxError")
        module.write_text(ANSWERS.format(body=b"second time"))
        said(process, "changing.py has changed: starting again")
        # Nobody is refused: the request waits for the new worker.
        assert ask(address) == b"second time"
        (folder / "part").mkdir()
        (folder / "part" / "__init__.py").write_text("")
        said(process, "__init__.py has changed")
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        process.wait()
    assert process.returncode == 0
