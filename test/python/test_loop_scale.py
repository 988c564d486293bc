"""Much of everything: what was used is given back, and nothing is lost or late for ever."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
import weakref
from typing import Any

import pytest

import erlang

Loop = asyncio.AbstractEventLoop

BATCH = 200
PAGE = resource.getpagesize()


def full(usual: int, all_of_it: int) -> int:
    """How many of something: the second is for `./dev test --all`."""
    return all_of_it if "PY_TEST_FULL" in os.environ else usual


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


class Echo(asyncio.Protocol):
    open = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Echo.open += 1
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def connection_lost(self, error: BaseException | None) -> None:
        Echo.open -= 1


async def churn(address: Any, batches: int) -> None:
    """Batches of connections that are made, used and closed; the loop is their server."""
    for _ in range(batches):
        clients = [socket.create_connection(address) for _ in range(BATCH)]
        for client in clients:
            client.send(b"x")
            client.setblocking(False)
        left = list(clients)
        while left:
            await asyncio.sleep(0)
            left = [client for client in left if not answered(client)]
        for client in clients:
            client.close()
        while Echo.open:
            await asyncio.sleep(0)


def answered(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b"x"
    except BlockingIOError:
        return False


def test_ten_thousand_connections_leave_no_descriptor_and_no_memory(loop: Loop) -> None:
    async def main() -> None:
        Echo.open = 0
        server = await loop.create_server(Echo, "127.0.0.1", 0, backlog=BATCH)
        address = server.sockets[0].getsockname()
        await churn(address, 5)
        gc.collect()
        before = descriptors(), resident()
        await churn(address, full(2_000, 10_000) // BATCH)
        gc.collect()
        assert descriptors() == before[0]
        # A leak of a kilobyte for each of 2000, or of 200 bytes for each of 10 000, would be 2 MB.
        assert resident() - before[1] < 2_000_000
        server.close()
        await server.wait_closed()

    loop.run_until_complete(asyncio.wait_for(main(), 300))


def how_many(loop: Loop) -> int:
    """A million for `--all`; asyncio's own loop, with a tenth of it, takes as long."""
    count = full(100_000, 1_000_000)
    return count if isinstance(loop, erlang.ErlangEventLoop) else count // 10


def test_a_million_timers_due_at_once_all_fire_in_order(loop: Loop) -> None:
    count = how_many(loop)
    fired = 0
    began = loop.time()
    last = 0

    def fire(number: int) -> None:
        nonlocal fired, last
        assert number >= last
        last = number
        fired += 1

    # A thousand times, each with a thousand timers, the later ones first.
    for number in range(count):
        rank = 1000 - number % 1000
        loop.call_at(began - 2000 + rank, fire, rank)
    loop.stop()
    loop.run_forever()
    assert fired == count


def test_a_million_cancelled_timers_give_back_their_memory(loop: Loop) -> None:
    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)
    count, peaks = how_many(loop) // 4, []
    for _ in range(4):
        handles = [loop.call_later(3600, print, held) for _ in range(count)]
        for handle in handles:
            handle.cancel()
        peaks.append(resident())
        del handles, handle
        loop.stop()
        loop.run_forever()
    del held
    gc.collect()
    assert gone() is None
    # It is used again, whether or not the system has got it back in between: two rounds of timers
    # that stay are at least four times as much.
    assert peaks[-1] - peaks[1] < count * 50
    assert loop.run_until_complete(asyncio.sleep(0.001, "alive")) == "alive"


def test_hundreds_of_idle_connections_cost_no_time(loop: Loop) -> None:
    """Nothing happens, so the loop sleeps: the system counts how often it woke."""

    async def main() -> None:
        Echo.open = 0
        pairs = [socket.socketpair() for _ in range(400)]
        transports = [(await loop.create_connection(Echo, sock=mine))[0] for mine, _ in pairs]
        await asyncio.sleep(0.01)
        before = resource.getrusage(resource.RUSAGE_THREAD)
        await asyncio.sleep(0.5)
        after = resource.getrusage(resource.RUSAGE_THREAD)
        assert after.ru_nvcsw - before.ru_nvcsw <= 5
        for transport, (_, theirs) in zip(transports, pairs, strict=True):
            transport.close()
            theirs.close()
        while Echo.open:
            await asyncio.sleep(0)

    loop.run_until_complete(main())


@pytest.mark.parametrize("delay", [0.00025, 0.001])
def test_a_short_sleep_is_never_early_and_hardly_late(delay: float) -> None:
    """Our loop only: asyncio's rounds up to milliseconds. The benchmark tells the usual delay."""

    async def lateness() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(delay)
        return loop.time() - began - delay

    async def main() -> list[float]:
        return [await lateness() for _ in range(500)]

    # One of them meets a moment in which the machine has nothing else to do.
    assert 0 <= min(erlang.run(main())) < 0.0004
