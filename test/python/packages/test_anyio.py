"""AnyIO's parts on asyncio's loop and ours: groups, scopes, sockets, files, processes, threads."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from anyio._backends._asyncio import find_root_task
from anyio.streams.tls import TLSListener, TLSStream

import erlang

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

Run = Any


@pytest.fixture(params=[asyncio.new_event_loop, erlang.new_event_loop], ids=["asyncio", "erlang"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[Any]]], Any]:
    def run(main: Callable[[], Awaitable[Any]]) -> Any:
        async def limited() -> Any:
            with anyio.fail_after(120):
                return await main()

        return anyio.run(limited, backend_options={"loop_factory": request.param})

    return run


@pytest.mark.smoke
def test_a_task_that_fails_cancels_its_group(run: Run) -> None:
    ended = []

    async def sleeper() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("sleeper")

    async def failing() -> None:
        await anyio.sleep(0)
        raise ZeroDivisionError

    async def in_a_group() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(sleeper)
            group.start_soon(sleeper)
            group.start_soon(failing)

    async def main() -> None:
        with pytest.raises(BaseExceptionGroup) as raised:
            await in_a_group()
        assert [type(error) for error in raised.value.exceptions] == [ZeroDivisionError]

    run(main)
    assert ended == ["sleeper", "sleeper"]


def test_a_task_says_when_it_has_started(run: Run) -> None:
    async def server(*, task_status: Any) -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener:
            task_status.started(listener.extra(anyio.abc.SocketAttribute.local_port))
            await listener.serve(answer)

    async def answer(stream: Any) -> None:
        async with stream:
            async for data in stream:
                await stream.send(data)

    async def client(port: int, body: bytes) -> None:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            async with anyio.create_task_group() as group:
                group.start_soon(stream.send, body)
                got = b""
                while len(got) < len(body):
                    got += await stream.receive()
            assert got == body
            await stream.send_eof()
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            port = await group.start(server)
            async with anyio.create_task_group() as clients:
                for number in range(20):
                    clients.start_soon(client, port, bytes([number]) * 300_000)
            group.cancel_scope.cancel()

    run(main)


def test_scopes_cancel_what_is_in_them_and_shields_what_is_not(run: Run) -> None:
    async def main() -> None:
        order = []
        with anyio.move_on_after(0.01) as outer:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0.01)
                    order.append("cleaned up")
        assert outer.cancelled_caught
        with pytest.raises(TimeoutError), anyio.fail_after(0.01):
            await anyio.sleep_forever()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            order.append("never")
        assert order == ["cleaned up"]

    run(main)


def test_events_locks_and_streams_of_memory(run: Run) -> None:
    async def main() -> None:
        send, receive = anyio.create_memory_object_stream[int](5)
        limiter, lock, got = anyio.CapacityLimiter(2), anyio.Lock(), []

        async def worker(mine: Any) -> None:
            async with mine:
                async for item in mine:
                    async with limiter, lock:
                        await anyio.sleep(0)
                        got.append(item)

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(worker, receive.clone())
            receive.close()
            async with send:
                for item in range(200):
                    await send.send(item)
        assert sorted(got) == list(range(200))

    run(main)


def test_datagrams_and_unix_sockets(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with await anyio.create_udp_socket(
            family=socket.AF_INET, local_host="127.0.0.1"
        ) as one:
            port = one.extra(anyio.abc.SocketAttribute.local_port)
            async with await anyio.create_connected_udp_socket("127.0.0.1", port) as two:
                await two.send(b"ping")
                data, address = await one.receive()
                await one.sendto(data + b" pong", *address)
                assert await two.receive() == b"ping pong"

        async def answer(stream: Any) -> None:
            async with stream:
                await stream.send(await stream.receive())

        listener = await anyio.create_unix_listener(tmp_path / "socket")
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, answer)
            async with await anyio.connect_unix(tmp_path / "socket") as stream:
                await stream.send(b"hello")
                assert await stream.receive() == b"hello"
            group.cancel_scope.cancel()

    run(main)


def test_tls_streams(run: Run, tls: Any) -> None:
    async def answer(stream: Any) -> None:
        async with stream:
            async for data in stream:
                await stream.send(data)

    async def main() -> None:
        plain = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = plain.extra(anyio.abc.SocketAttribute.local_port)
        async with TLSListener(plain, tls.server) as listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, answer)
            tcp = await anyio.connect_tcp("127.0.0.1", port)
            async with await TLSStream.wrap(
                tcp, hostname="127.0.0.1", ssl_context=tls.client
            ) as stream:
                for size in (1, 100_000):
                    await stream.send(b"x" * size)
                    got = b""
                    while len(got) < size:
                        got += await stream.receive()
                    assert got == b"x" * size
            group.cancel_scope.cancel()

    run(main)


def test_files_and_threads(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        path = anyio.Path(tmp_path / "file")
        async with await anyio.open_file(path, "w+") as file:
            await file.write("one\ntwo\n")
            await file.seek(0)
            assert [line async for line in file] == ["one\n", "two\n"]
        assert await path.read_text() == "one\ntwo\n"

        def in_thread() -> tuple[int, str]:
            there = threading.get_ident()
            return there, anyio.from_thread.run(path.read_text)

        thread, text = await anyio.to_thread.run_sync(in_thread)
        assert thread != threading.get_ident()
        assert text == "one\ntwo\n"
        with anyio.move_on_after(0.01):
            await anyio.to_thread.run_sync(threading.Event().wait, 0.2, abandon_on_cancel=True)

    run(main)


@pytest.mark.smoke
def test_processes(run: Run) -> None:
    async def main() -> None:
        done = await anyio.run_process([sys.executable, "-c", "print(input()[::-1])"], input=b"abc")
        assert done.stdout == b"cba\n"
        async with await anyio.open_process(["cat"]) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.send(b"x" * 1000)
            assert await process.stdout.receive(1000) == b"x" * 1000
            process.terminate()
            assert await process.wait() == -signal.SIGTERM

    run(main)


def test_signals(run: Run) -> None:
    async def main() -> None:
        with anyio.open_signal_receiver(signal.SIGUSR1, signal.SIGUSR2) as signals:
            signal.raise_signal(signal.SIGUSR2)
            async for number in signals:
                assert number == signal.SIGUSR2
                break

    run(main)


async def root_as_seen_from_a_child() -> Any:
    """By a task that AnyIO knows nothing of: it looks for the one that the loop runs for."""

    async def child() -> Any:
        return find_root_task()

    return await asyncio.create_task(child())


def test_the_root_task_is_the_one_that_the_loop_runs_for(run: Run) -> None:
    async def main() -> None:
        assert await root_as_seen_from_a_child() is asyncio.current_task()

    run(main)


def test_the_root_task_is_found_without_anyio_run() -> None:
    async def main() -> None:
        assert await root_as_seen_from_a_child() is asyncio.current_task()

    erlang.run(main())
