"""Slow callbacks are told without debug mode, whatever kind of callback they are."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Slow is what takes longer than this; the clock behind it ticks every few milliseconds.
LIMIT = 0.05


@pytest.fixture
def loop() -> Iterator[erlang.ErlangEventLoop]:
    with closing(erlang.new_event_loop()) as loop:
        loop.report_slow_callbacks(LIMIT)
        yield loop


def block(loop: asyncio.AbstractEventLoop) -> None:
    time.sleep(2 * LIMIT)
    loop.stop()


def soon(loop: asyncio.AbstractEventLoop) -> str:
    loop.call_soon(block, loop)
    return "block("


def later(loop: asyncio.AbstractEventLoop) -> str:
    loop.call_later(0.001, block, loop)
    return "block("


def reader(loop: asyncio.AbstractEventLoop) -> str:
    one, other = socket.socketpair()
    other.send(b"x")

    def read() -> None:
        one.close()
        other.close()
        block(loop)

    loop.add_reader(one, read)
    loop.call_soon(lambda: None)
    return "read("


def task(loop: asyncio.AbstractEventLoop) -> str:
    async def coroutine() -> None:
        await asyncio.sleep(0)
        block(loop)

    loop.made = loop.create_task(coroutine())  # type: ignore[attr-defined]
    return "coroutine()"


def protocol(loop: asyncio.AbstractEventLoop) -> str:
    class Slow(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            block(loop)
            self.transport.close()

        def connection_made(self, transport: Any) -> None:
            self.transport = transport

    one, other = socket.socketpair()
    with closing(other):
        other.send(b"x")
        loop.run_until_complete(loop.create_connection(Slow, sock=one))
    return "_ErlangSocketTransport"


@pytest.mark.parametrize("way", [soon, later, reader, task, protocol])
def test_a_slow_callback_is_told_once(
    way: Callable[[Any], str],
    loop: erlang.ErlangEventLoop,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "asyncio"):
        name = way(loop)
        loop.run_forever()
        loop.call_soon(loop.stop)
        loop.run_forever()
    (record,) = caplog.records
    assert record.name == "asyncio"
    assert record.getMessage().startswith("Executing <")
    assert name in record.getMessage()
    assert record.getMessage().endswith("seconds")


def test_a_quick_one_is_not_and_sleeping_is_no_work(
    loop: erlang.ErlangEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "asyncio"):
        loop.run_until_complete(asyncio.sleep(3 * LIMIT))
        loop.report_slow_callbacks(None)
        loop.call_soon(block, loop)
        loop.run_forever()
    assert caplog.records == []


def test_a_limit_must_be_positive(loop: erlang.ErlangEventLoop) -> None:
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="must be positive"):
            loop.report_slow_callbacks(wrong)
