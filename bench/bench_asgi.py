"""Our ASGI server against uvicorn (uvloop, httptools) and granian: each row ends in its verdict.

Requests per second of CPU time of the server, by wrk over loopback, one worker each; rounds of the
servers alternate, and the median counts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
PYTHON = [sys.executable, "-P", "-m"]
PLAIN, FASTAPI = "asgi_apps:plain", "asgi_apps:fastapi"
LIMIT = 30.0


class Row(NamedTuple):
    """What is asked of which application, and how many times better than a peer is the goal."""

    name: str
    app: str
    path: str
    goals: dict[str, float]


ROWS = [
    Row("plain text", PLAIN, "/", {"granian": 1.5, "uvicorn": 2.0}),
    Row("10 KB", PLAIN, "/10k", {"granian": 1.0, "uvicorn": 1.0}),
    Row("FastAPI, JSON", FASTAPI, "/json/7?q=x", {"granian": 1.0, "uvicorn": 1.0}),
]
#: A server that writes its access log.
LOGGED = ", log on"
#: How many times better than each peer, and what a line may cost of a request in per cent.
LOG_GOALS = {"granian": 2.4, "granian, log on": 2.4, "uvicorn": 2.0, "uvicorn, log on": 2.4}
LINE_GOAL = 10.0
SOCKET_GOALS = {"uvicorn, websockets": 1.0, "uvicorn, wsproto": 1.0}


def command(name: str, app: str, port: int) -> list[str]:
    factory = ["--factory"] if app == FASTAPI else []
    quiet = ["--no-access-log", "--log-level", "warning"]
    # By default it is on, save in granian.
    loud = ["--access-log"] if name.startswith("granian") else []
    logging = loud if name.endswith(LOGGED) else quiet
    common = [app, "--port", str(port), *logging, *factory]
    if name.startswith("ours"):
        return [*PYTHON, "erlang.serve", *common, "--app-dir", str(HERE)]
    if name.startswith("granian"):
        granian = str(Path(sys.executable).with_name("granian"))
        return [granian, "--interface", "asgi", "--working-dir", str(HERE), *common]
    http = ["--ws", "wsproto"] if name.endswith("wsproto") else ["--http", "httptools"]
    return [*PYTHON, "uvicorn", *common, "--app-dir", str(HERE), "--loop", "uvloop", *http]


class Server:
    """One server in a process of its own, with its children."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path | None) -> None:
        self.port, self.log = port, log
        self.pids = [process.pid]
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            self.pids += [int(pid) for pid in (task / "children").read_text().split()]

    def cpu(self) -> float:
        # The clock of another process, as the kernel numbers them: /proc counts in 10 ms.
        return sum(time.clock_gettime((~pid << 3) | 2) for pid in self.pids)

    def memory(self) -> int:
        pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def running(name: str, app: str) -> Iterator[Server]:
    port = free_port()
    line = command(name, app, port)
    if not name.endswith(LOGGED):
        process, log = subprocess.Popen(line, stdout=subprocess.DEVNULL), None
    else:
        # To a file, as it would be in earnest.
        descriptor, path = tempfile.mkstemp()
        process, log = subprocess.Popen(line, stdout=descriptor, stderr=descriptor), Path(path)
        os.close(descriptor)
    try:
        deadline = time.monotonic() + LIMIT
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{name} did not start") from None
                time.sleep(0.05)
        yield Server(process, port, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if log is not None:
            log.unlink()


class Figure(NamedTuple):
    """Of one run."""

    per_cpu: float
    p50: float
    p90: float


UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def wrk(server: Server, path: str, seconds: float) -> Figure:
    url = f"http://127.0.0.1:{server.port}{path}"

    def run(duration: float) -> str:
        arguments = ["wrk", "-t1", "-c32", f"-d{duration:g}s", "--latency", url]
        return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout

    run(1)
    before = server.cpu()
    said = run(seconds)
    used = server.cpu() - before
    if re.search(r"Non-2xx|Socket errors", said):
        raise SystemExit(f"not all requests were answered:\n{said}")
    count = int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]
    if server.log is not None:
        await_lines(server.log, count)
    times = {
        share: float(number) * UNITS[unit]
        for share, number, unit in re.findall(r"(50|90)%\s+([\d.]+)(us|ms|s)", said)
    }
    return Figure(count / used, times["50"], times["90"])


def await_lines(log: Path, count: int) -> None:
    """Waits until so many requests are in a log: what is not written costs nothing."""
    deadline = time.monotonic() + LIMIT
    while True:
        with log.open("rb") as lines:
            written = sum(b"GET / " in line for line in lines)
        if written >= count:
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"{written} of {count} requests were logged")
        time.sleep(0.1)


async def echo_messages(port: int, count: int) -> None:
    from websockets.asyncio.client import connect

    async def one() -> None:
        url = f"ws://127.0.0.1:{port}/"
        async with connect(url, compression=None, ping_interval=None) as client:
            for _ in range(count):
                await client.send(b"x" * 100)
                await client.recv()

    await asyncio.gather(*(one() for _ in range(8)))


def echo(server: Server, count: int) -> float:
    asyncio.run(echo_messages(server.port, 50))
    before = server.cpu()
    asyncio.run(echo_messages(server.port, count))
    return 8 * count / (server.cpu() - before)


def idle_memory(server: Server, count: int = 1000) -> float:
    """Bytes of a connection that has been used once and waits."""

    def used() -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n")
        connection.recv(4096)
        return connection

    warm = [used() for _ in range(50)]
    before = server.memory()
    kept = [used() for _ in range(count)]
    grown = server.memory() - before
    for connection in warm + kept:
        connection.close()
    return grown / count


def medians(names: list[str], app: str, rounds: int, measure: object) -> dict[str, list[float]]:
    """The median of each figure of each server, the rounds one after another."""
    seen: dict[str, list[object]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            with running(name, app) as server:
                seen[name].append(measure(server))  # type: ignore[operator]
    return {
        name: [statistics.median(column) for column in zip(*figures, strict=True)]  # type: ignore[call-overload]
        for name, figures in seen.items()
    }


def judged(name: str, what: str, reached: bool) -> str:
    return f"{name:<22} {what:<88} {'reached' if reached else 'short'}"


def http_rows(rounds: int, seconds: float) -> None:
    for row in ROWS:
        names = ["ours", "uvicorn", "granian"]
        found = medians(
            names, row.app, rounds, lambda server, row=row: wrk(server, row.path, seconds)
        )
        ours = found["ours"]
        for peer, goal in row.goals.items():
            ratio = ours[0] / found[peer][0]
            text = (
                f"{ours[0] / 1e3:.1f} k/CPU s, {peer} {found[peer][0] / 1e3:.1f} k: "
                f"{ratio:.2f}x, goal {goal}x"
            )
            print(judged(row.name, text, ratio >= goal), flush=True)
        for at, share in ((1, "p50"), (2, "p90")):
            text = f"{share} {ours[at]:.2f} ms, granian {found['granian'][at]:.2f} ms"
            print(judged(row.name, text, ours[at] <= found["granian"][at]), flush=True)


def log_rows(rounds: int, seconds: float) -> None:
    """The default configuration, which logs each request, beside peers with and without a log."""
    mine = "ours" + LOGGED
    names = ["ours", mine, *LOG_GOALS]
    found = medians(names, PLAIN, rounds, lambda server: wrk(server, "/", seconds))
    logged = found[mine][0]
    for peer, goal in LOG_GOALS.items():
        ratio = logged / found[peer][0]
        text = (
            f"{logged / 1e3:.1f} k/CPU s, {peer} {found[peer][0] / 1e3:.1f} k: "
            f"{ratio:.2f}x, goal {goal}x"
        )
        print(judged("default, log on", text, ratio >= goal), flush=True)
    for own in ("ours", "granian", "uvicorn"):
        without, with_log = found[own][0], found[own + LOGGED][0]
        cost = (without / with_log - 1) * 100
        text = (
            f"{own}: {without / 1e3:.1f} k/CPU s without, {with_log / 1e3:.1f} k with: {cost:.1f} %"
        )
        if own == "ours":
            text += f", goal {LINE_GOAL:g} %"
        reached = cost <= LINE_GOAL or own != "ours"
        print(judged("cost of a line", text, reached), flush=True)


def socket_rows(rounds: int, count: int) -> None:
    names = ["ours", "uvicorn, websockets", "uvicorn, wsproto"]
    found = medians(names, PLAIN, rounds, lambda server: [echo(server, count)])
    for peer, goal in SOCKET_GOALS.items():
        ours, theirs = found["ours"][0], found[peer][0]
        text = f"{ours / 1e3:.1f} k/CPU s, {peer} {theirs / 1e3:.1f} k: {ours / theirs:.2f}x"
        print(judged("WebSocket echo", text, ours / theirs > goal), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--only", choices=["http", "log", "socket", "idle"], help="some rows")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install wrk")
    rounds, seconds, count = (1, 1.0, 300) if options.quick else (options.rounds, 3.0, 2000)
    print(f"Python {platform.python_version()}, 32 connections, {rounds} rounds")
    wanted = [options.only] if options.only else ["http", "log", "socket", "idle"]
    if "http" in wanted:
        http_rows(rounds, seconds)
    if "log" in wanted:
        log_rows(rounds, seconds)
    if "socket" in wanted:
        socket_rows(rounds, count)
    if "idle" in wanted:
        with running("ours", PLAIN) as server:
            each = idle_memory(server)
        print(judged("idle connection", f"{each:.0f} bytes, goal 4096", each <= 4096))


if __name__ == "__main__":
    main()
