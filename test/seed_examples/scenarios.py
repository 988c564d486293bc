"""What is around an example when it runs: a peer, a check, an end."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import sys
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from seed_examples import Example, Names, example, examples

import erlang

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

_numbers = itertools.count(1)


def new_host() -> str:
    """An address of this machine that nobody else uses, so that all its ports are free."""
    number = next(_numbers)
    return f"127.{os.getpid() % 250 + 1}.{number // 250}.{number % 250 + 1}"


def free_port(host: str, kind: int) -> int:
    with closing(socket.socket(socket.AF_INET, kind)) as sock:
        sock.bind((host, 0))
        port: int = sock.getsockname()[1]
        return port


def bound_socket(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setblocking(False)
    return sock


# ---- scripts: they run by themselves


def script(one: Example) -> Names:
    names = one.run([])
    clean(names)
    return names


def clean(names: Names) -> None:
    """Closes the loops that a script has left open."""
    for value in names.values():
        if isinstance(value, asyncio.AbstractEventLoop):
            value.close()
    asyncio.set_event_loop(None)


def prints(expected: str) -> Callable[[Example], None]:
    def run(one: Example) -> None:
        printed: list[str] = []
        clean(one.run(printed))
        assert printed == [expected]

    return run


def gives(**expected: object) -> Callable[[Example], None]:
    def run(one: Example) -> None:
        names = script(one)
        assert {name: names[name] for name in expected} == expected

    return run


def raises(error: type[BaseException]) -> Callable[[Example], None]:
    def run(one: Example) -> None:
        names: Names = {}
        try:
            one.run(None, names)
        except error:
            return
        finally:
            clean(names)
        raise AssertionError(f"{one.name} did not raise {error.__name__}")

    return run


def times_out(one: Example) -> None:
    try:
        erlang.run(one.run()["main"]())
    except TimeoutError:
        return
    raise AssertionError("no timeout")


def in_threads(function: str) -> Callable[[Example], None]:
    def run(one: Example) -> None:
        names = one.run()
        assert not names["t1"].is_alive()
        assert names[function]("loop_c") == ["loop_c", "loop_c"]

    return run


def sleeps(one: Example) -> None:
    erlang.run(one.run()["example"]())


def udp_client(one: Example) -> None:
    printed: list[str] = []
    with closing(bound_socket(new_host())) as server:
        server.settimeout(60)
        host, port = server.getsockname()

        def answer() -> None:
            data, peer = server.recvfrom(100)
            server.sendto(data, peer)

        thread = threading.Thread(target=answer)
        thread.start()
        one.run(printed, HOST=host, PORT=port)
        thread.join()
    assert printed[0] == "Sending: Hello UDP!"
    assert printed[1].startswith("Received: Hello UDP! from")
    assert printed[2] == "Echo response: Hello UDP!"


# ---- coroutines: the example is part of a loop that the test runs


def coroutine(function: Callable[[Example], Awaitable[None]]) -> Callable[[Example], None]:
    async def limited(one: Example) -> None:
        async with asyncio.timeout(60):
            assert isinstance(asyncio.get_running_loop(), erlang.ErlangEventLoop)
            await function(one)

    return lambda one: erlang.run(limited(one))


@contextmanager
def background(main: Any) -> Iterator[asyncio.Task[Any]]:
    task = asyncio.get_running_loop().create_task(main)
    try:
        yield task
    finally:
        task.cancel()


async def ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


@coroutine
async def tcp_client(one: Example) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))
        writer.close()

    host, printed = new_host(), []  # type: ignore[var-annotated]
    async with await asyncio.start_server(answer, host, 0) as server:
        port = server.sockets[0].getsockname()[1]
        await one.run(printed, HOST=host, PORT=port)["main"]()
    assert printed == ["Received: Hello, World!"]


@coroutine
async def tcp_server(one: Example) -> None:
    host, printed = new_host(), []  # type: ignore[var-annotated]
    port = free_port(host, socket.SOCK_STREAM)
    with background(one.run(printed, HOST=host, PORT=port)["main"]()) as task:
        while True:
            with suppress(ConnectionRefusedError):
                reader, writer = await asyncio.open_connection(host, port)
                break
            await asyncio.sleep(0.002)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        own = writer.get_extra_info("sockname")
        writer.close()
        await until(lambda: len(printed) == 3)
        await ended(task)
    assert printed == [f"Connection from {own}", "Received: hello", "Connection closed"]


async def echo_of(host: str, port: int) -> bytes:
    loop = asyncio.get_running_loop()
    with closing(bound_socket(new_host())) as client:
        await loop.sock_sendto(client, b"hello", (host, port))
        return await loop.sock_recv(client, 100)


@coroutine
async def udp_endpoint(one: Example) -> None:
    host, printed = new_host(), []  # type: ignore[var-annotated]
    port = free_port(host, socket.SOCK_DGRAM)
    with background(one.run(printed, HOST=host, PORT=port)["main"]()) as task:
        await until(lambda: printed)
        assert printed == [f"Listening on {(host, port)}"]
        assert await echo_of(host, port) == b"hello"
        await ended(task)
        await until(lambda: printed[-1] == "Connection closed")


@coroutine
async def udp_callbacks(one: Example) -> None:
    loop, factory = asyncio.get_running_loop(), one.run()["MyDatagramProtocol"]
    transport, protocol = await loop.create_datagram_endpoint(factory, (new_host(), 0))
    assert protocol.transport is transport
    with closing(bound_socket(new_host())) as peer:
        got = loop.create_future()
        protocol.datagram_received = lambda data, addr: got.set_result((data, addr))
        await loop.sock_sendto(peer, b"hello", transport.get_extra_info("sockname"))
        assert await got == (b"hello", peer.getsockname())
    transport.close()


@coroutine
async def udp_unconnected(one: Example) -> None:
    loop, host = asyncio.get_running_loop(), new_host()
    with (
        closing(bound_socket(new_host())) as first,
        socket.socket(type=socket.SOCK_DGRAM) as second,
    ):
        port = first.getsockname()[1]
        second.setblocking(False)
        second.bind((new_host(), port))
        names = await one.await_it(
            HOST=host,
            PORT=free_port(host, socket.SOCK_DGRAM),
            PEER_1=first.getsockname()[0],
            PEER_2=second.getsockname()[0],
            PEER_PORT=port,
        )
        assert await loop.sock_recv(first, 100) == b"Hello"
        assert await loop.sock_recv(second, 100) == b"World"
    names["transport"].close()


async def sends(one: Example, peer: socket.socket, expected: bytes) -> None:
    loop, (host, port) = asyncio.get_running_loop(), peer.getsockname()
    if "0.0.0.0" in one.replaced:
        host = new_host()
    names = await one.await_it(HOST=host, PORT=port)
    assert await loop.sock_recv(peer, 100) == expected
    names["transport"].close()


@coroutine
async def udp_connected(one: Example) -> None:
    with closing(bound_socket(new_host())) as peer:
        await sends(one, peer, b"Hello")


@coroutine
async def udp_broadcast(one: Example) -> None:
    with closing(bound_socket("127.255.255.255")) as peer:
        await sends(one, peer, b"Broadcast message")


@coroutine
async def fastapi(one: Example) -> None:
    import httpx

    transport = httpx.ASGITransport(app=one.run()["app"])
    async with httpx.AsyncClient(transport=transport, base_url="http://example") as client:
        answer = await client.get("/delay", params={"ms": 5})
        assert (answer.status_code, answer.json()) == (200, {"slept_ms": 5})


def fastapi_app() -> Any:
    """For a server."""
    return example("fastapi").run()["app"]


def erlang_asyncio_fastapi_app() -> Any:
    return example("erlang_asyncio_fastapi").run()["app"]


@coroutine
async def subprocess(one: Example) -> None:
    names = await one.await_it()
    for process, code in (("shell", 3), ("program", 0)):
        transport = names[process][0]
        await transport._wait()
        assert transport.get_returncode() == code
        transport.close()
    assert await names["shell_2"].wait() == 4
    assert await names["program_2"].wait() == 0


@coroutine
async def signals(one: Example) -> None:
    loop = asyncio.get_running_loop()
    remove, removed = loop.remove_signal_handler, []
    # Instances take attributes, so the example meets this one.
    loop.remove_signal_handler = lambda number: removed.append(remove(number))  # type: ignore[method-assign,assignment,func-returns-value]
    await one.await_it()
    assert removed == [True], removed
    assert not remove(signal.SIGTERM)


def mode(one: Example) -> None:
    is_gil_enabled = getattr(sys, "_is_gil_enabled", lambda: True)
    # The examples run in the main interpreter.
    shown = {
        True: "Running with shared GIL",
        False: "Running in free-threaded mode (no GIL)",
    }
    prints(shown[is_gil_enabled()])(one)


def isolated_loops(one: Example) -> None:
    names = one.run()
    loops = [names["shared_loop"], names["isolated_loop"]]
    try:
        assert loops[0] is not loops[1]
        for loop in loops:
            assert type(loop) is erlang.ErlangEventLoop
            # Each runs, while the other one rests.
            assert loop.run_until_complete(asyncio.sleep(0, "ran")) == "ran"
    finally:
        clean(names)


def makes_our_loops(one: Example) -> None:
    """After it every loop of asyncio is ours."""
    script(one)
    with closing(asyncio.new_event_loop()) as loop:
        assert type(loop) is erlang.ErlangEventLoop, type(loop)


SCENARIOS: dict[str, Callable[[Example], object]] = {
    "pattern_run": prints("Done!"),
    "erlang_loop_usage": prints("Done!"),
    "execution_mode": mode,
    "isolated_loops": isolated_loops,
    "pattern_install": makes_our_loops,
    "erlang_loop_policy": makes_our_loops,
    "basic_usage": gives(result="done"),
    "erlang_asyncio_basic_usage": gives(result="done"),
    "run": gives(result=42),
    "erlang_asyncio_run": gives(result=42),
    "loop_functions": raises(RuntimeError),
    "erlang_asyncio_loop_functions": raises(RuntimeError),
    "timeout": raises(TimeoutError),
    "erlang_asyncio_timeout": times_out,
    "erlang_asyncio_sleep": sleeps,
    "threads": in_threads("run_tasks"),
    "isolated_threads": in_threads("run_isolated_tasks"),
    "tcp_client": tcp_client,
    "tcp_server": tcp_server,
    "udp_endpoint": udp_endpoint,
    "udp_callbacks": udp_callbacks,
    "udp_unconnected": udp_unconnected,
    "udp_connected": udp_connected,
    "udp_broadcast": udp_broadcast,
    "udp_echo_client": udp_client,
    "fastapi": fastapi,
    "erlang_asyncio_fastapi": fastapi,
    "subprocess": subprocess,
    "signals": signals,
}

# They serve until somebody stops them: the suites do that each in its own way.
SERVERS = ("udp_echo_server", "udp_echo_server_erlang_loop")


def names() -> list[str]:
    """Those that `run` runs."""
    return [one.name for one in examples(".py") if one.name not in SERVERS]


def run(name: str) -> str:
    SCENARIOS.get(name, script)(example(name))
    return "ran"


def run_in_thread(name: str) -> str:
    outcome: list[Any] = []

    def body() -> None:
        try:
            outcome.append(run(name))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return str(outcome[0])


def scripts() -> list[list[str]]:
    """The names and the code of those that need nobody: they are run as they are."""
    with_checks = ("run", "basic_usage", "isolated_loops", "pattern_install", "erlang_loop_policy")
    alone = [name for name in names() if name not in SCENARIOS or name in with_checks]
    return [[name, example(name).text()] for name in alone]


def serve(name: str, host: str, port: int) -> None:
    example(name).run([], HOST=host, PORT=port)
