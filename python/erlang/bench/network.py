"""What a server costs on a loop: CPU microseconds per message, connection or child process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pathlib
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

Loop = Any
CLIENT = str(pathlib.Path(__file__).with_name("client.py"))
SIZES = {"1k": 1024, "10k": 10_240, "100k": 102_400}


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Echo(asyncio.Protocol):
    transport: Any

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Buffered(asyncio.BufferedProtocol):
    def connection_made(self, transport: Any) -> None:
        self.transport, self.buffer = transport, memoryview(bytearray(1 << 18))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self.buffer[:nbytes]))


class Datagrams(asyncio.DatagramProtocol):
    transport: Any

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.transport.sendto(data, addr)


def listening() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0), backlog=2048)
    sock.setblocking(False)
    return sock


def address_of(sock: socket.socket) -> str:
    return f"127.0.0.1:{sock.getsockname()[1]}"


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["ERLANG_BENCH_CERT"], os.environ["ERLANG_BENCH_KEY"])
    return context


async def protocol_server(loop: Loop, protocol: Any = Echo, tls: bool = False) -> str:
    sock = listening()
    address = address_of(sock)
    await loop.create_server(protocol, sock=sock, **({"ssl": server_tls()} if tls else {}))
    return address


async def unix_server(loop: Loop) -> str:
    path = os.path.join(tempfile.mkdtemp(), "socket")
    await loop.create_unix_server(Echo, path)
    return path


async def stream_server(loop: Loop, size: int, tls: bool = False) -> str:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                writer.write(await reader.readexactly(size))
                await writer.drain()
        writer.close()

    sock = listening()
    address = address_of(sock)
    options: dict[str, Any] = {"ssl": server_tls()} if tls else {}
    await asyncio.start_server(serve, sock=sock, **options)
    return address


async def socket_server(loop: Loop, kept: set[Any]) -> str:
    async def serve(sock: socket.socket) -> None:
        with sock, contextlib.suppress(ConnectionError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := await loop.sock_recv(sock, 1 << 18):
                await loop.sock_sendall(sock, data)

    async def accept(sock: socket.socket) -> None:
        while True:
            connection, _ = await loop.sock_accept(sock)
            connection.setblocking(False)
            kept.add(loop.create_task(serve(connection)))

    sock = listening()
    kept.add(loop.create_task(accept(sock)))
    return address_of(sock)


async def datagram_server(loop: Loop) -> str:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    address = address_of(sock)
    await loop.create_datagram_endpoint(Datagrams, sock=sock)
    return address


class Load:
    """The client's process, led by a thread; the loop serves meanwhile."""

    def __init__(self, *arguments: Any) -> None:
        command = [sys.executable, "-I", CLIENT, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError("the client ended early")
        return line

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def beside(loop: Loop, work: Callable[[], float]) -> Coroutine[Any, Any, float]:
    """Runs in a thread while the loop runs; its result."""
    done = loop.create_future()

    def thread() -> None:
        try:
            result = work()
        except BaseException as error:
            loop.call_soon_threadsafe(done.set_exception, error)
        else:
            loop.call_soon_threadsafe(done.set_result, result)

    threading.Thread(target=thread, daemon=True).start()

    async def wait() -> float:
        result: float = await done
        return result

    return wait()


def per_message(
    loop: Loop, serve: Callable[[], Any], kind: str, connections: int, size: int, *more: Any
) -> float:
    async def main() -> float:
        address = await serve()

        def work() -> float:
            load = Load(kind, address, connections, size, *more)
            try:
                load.line()
                began = cpu()
                load.go()
                count = int(load.line())
                return (cpu() - began) / count * 1e6
            finally:
                load.end()

        return await beside(loop, work)

    measured: float = loop.run_until_complete(main())
    return measured


def echo_row(
    name: str, serve: Callable[..., Any], size: int, kind: str = "tcp", *more: str
) -> Callable[[Loop, float], dict[str, float]]:
    def group(loop: Loop, scale: float) -> dict[str, float]:
        seconds = max(0.1, scale / 2)
        return {name: per_message(loop, lambda: serve(loop), kind, 10, size, seconds, *more)}

    return group


def churn(loop: Loop, scale: float) -> dict[str, float]:
    seconds = max(0.1, scale / 2)
    cost = per_message(loop, lambda: protocol_server(loop), "churn", 16, 64, seconds)
    return {"connection, made, used and closed": cost}


def children(loop: Loop, scale: float) -> dict[str, float]:
    async def main(count: int) -> float:
        began = cpu()
        for _ in range(count):
            process = await asyncio.create_subprocess_exec("/bin/true")
            assert await process.wait() == 0
        return (cpu() - began) / count * 1e6

    asyncio.set_event_loop(loop)
    loop.run_until_complete(main(5))
    return {"subprocess, run and waited for": loop.run_until_complete(main(int(60 * scale) + 10))}


def other_threads() -> int:
    """How often the threads of this process, but this one, have slept so far."""
    mine, switches = str(threading.get_native_id()), 0
    for thread in os.listdir("/proc/self/task"):
        if thread != mine:
            status = pathlib.Path(f"/proc/self/task/{thread}/status").read_text()
            switches += int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return switches


def resident() -> int:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def idle(loop: Loop, scale: float) -> dict[str, float]:
    """A thousand connections that do nothing: their memory, and how often the loop wakes."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(4096, limits[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], wanted), limits[1]))
    figures = {}

    async def main() -> float:
        address = await protocol_server(loop)

        def hold(connections: int, measure: bool) -> None:
            gc.collect()
            before = resident()
            load = Load("idle", address, connections, 0, 0)
            try:
                load.line()
                time.sleep(0.2)
                gc.collect()
                figures["memory per idle connection"] = (resident() - before) / connections
                if measure:
                    before = other_threads()
                    time.sleep(max(0.5, 2 * scale))
                    figures["idle, 1000 connections, wakes"] = other_threads() - before
            finally:
                load.end()
            time.sleep(0.2)

        def work() -> float:
            hold(100, False)
            hold(1000, True)
            return 0.0

        return await beside(loop, work)

    loop.run_until_complete(main())
    return figures


def groups() -> dict[str, Callable[[Loop, float], dict[str, float]]]:
    made: dict[str, Callable[[Loop, float], dict[str, float]]] = {}
    kept: set[Any] = set()
    for label, size in SIZES.items():
        made[f"tcp_{label}"] = echo_row(f"TCP, protocol, {label}", protocol_server, size)
    for label, size in SIZES.items():
        serve = lambda loop, size=size: stream_server(loop, size)  # noqa: E731
        made[f"streams_{label}"] = echo_row(f"TCP, streams, {label}", serve, size)
    buffered = lambda loop: protocol_server(loop, Buffered)  # noqa: E731
    made["buffered"] = echo_row("TCP, buffered protocol, 10k", buffered, 10_240)
    sock = lambda loop: socket_server(loop, kept)  # noqa: E731
    for label in ("1k", "100k"):
        made[f"sock_{label}"] = echo_row(f"TCP, sock_*, {label}", sock, SIZES[label])
    made["udp"] = echo_row("UDP, 1k", datagram_server, 1024, "udp")
    made["unix"] = echo_row("Unix, protocol, 1k", unix_server, 1024)
    tls = lambda loop: protocol_server(loop, tls=True)  # noqa: E731
    made["tls_1k"] = echo_row("TLS, protocol, 1k", tls, 1024, "tcp", "tls")
    made["tls_100k"] = echo_row("TLS, protocol, 100k", tls, 102_400, "tcp", "tls")
    tls = lambda loop: stream_server(loop, 10_240, tls=True)  # noqa: E731
    made["tls_streams"] = echo_row("TLS, streams, 10k", tls, 10_240, "tcp", "tls")
    made["churn"] = churn
    made["subprocess"] = children
    made["idle"] = idle
    return made


GROUPS = groups()
