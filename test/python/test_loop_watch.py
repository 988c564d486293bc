"""add_reader, add_writer and signals: the same on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Iterator

Loop = asyncio.AbstractEventLoop
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.setblocking(False)
        theirs.setblocking(False)
        yield mine, theirs


def test_a_reader_that_leaves_bytes_is_called_again(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair
    got: list[bytes] = []

    def read() -> None:
        got.append(mine.recv(1))
        if len(got) == 3:
            loop.stop()

    loop.add_reader(mine, read)
    theirs.send(b"abc")
    loop.run_forever()
    assert got == [b"a", b"b", b"c"]
    assert loop.remove_reader(mine)
    assert not loop.remove_reader(mine)


def test_reader_and_writer_of_one_descriptor_are_both_served(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair
    ran: list[str] = []
    loop.add_reader(mine.fileno(), ran.append, "read")
    loop.add_writer(mine.fileno(), ran.append, "write")
    theirs.send(b"x")
    loop.stop()
    loop.run_forever()
    assert sorted(ran) == ["read", "write"]
    assert loop.remove_writer(mine.fileno())
    ran.clear()
    loop.stop()
    loop.run_forever()
    assert ran == ["read"]
    loop.remove_reader(mine.fileno())


def test_a_reader_removed_in_the_same_batch_is_not_called(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair
    ran: list[str] = []

    def first(name: str) -> None:
        ran.append(name)
        loop.remove_reader(mine)
        loop.remove_reader(theirs)

    loop.add_reader(mine, first, "mine")
    loop.add_reader(theirs, first, "theirs")
    mine.send(b"x")
    theirs.send(b"x")
    loop.stop()
    loop.run_forever()
    assert len(ran) == 1


def test_a_second_reader_takes_the_place_of_the_first(loop: Loop, pair: Pair) -> None:
    mine, theirs = pair
    ran: list[str] = []
    loop.add_reader(mine, ran.append, "first")
    loop.add_reader(mine, ran.append, "second")
    theirs.send(b"x")
    loop.stop()
    loop.run_forever()
    assert ran == ["second"]
    loop.remove_reader(mine)


def test_a_number_used_again_is_a_new_descriptor(loop: Loop) -> None:
    ran: list[str] = []
    mine, theirs = socket.socketpair()
    loop.add_reader(mine, ran.append, "old")
    loop.remove_reader(mine)
    number = mine.fileno()
    mine.close()
    theirs.close()
    mine, theirs = socket.socketpair()
    with mine, theirs:
        assert number in (mine.fileno(), theirs.fileno())
        loop.add_reader(number, ran.append, "new")
        (theirs if mine.fileno() == number else mine).send(b"x")
        loop.stop()
        loop.run_forever()
        loop.remove_reader(number)
    assert ran == ["new"]


WATCHES = [(old, new) for old in ("reader", "writer", "both") for new in ("reader", "writer")]


@pytest.mark.parametrize("twin", [False, True], ids=["alone", "with a twin"])
@pytest.mark.parametrize(("old", "new"), WATCHES, ids=[" then ".join(pair) for pair in WATCHES])
def test_who_watched_a_closed_descriptor_is_not_called_for_the_next_one_of_its_number(
    old: str, new: str, twin: bool
) -> None:
    """Our loop only: asyncio's refuses the new callback once, or never calls it."""
    ran: list[str] = []
    with closing(erlang.new_event_loop()) as loop, ExitStack() as stack:
        ways = {"reader": loop.add_reader, "writer": loop.add_writer}
        first, other = (stack.enter_context(end) for end in socket.socketpair())
        number = first.fileno()
        for way in ways if old == "both" else [old]:
            ways[way](number, ran.append, f"old {way}")
        if twin:
            stack.callback(os.close, os.dup(number))
            other.send(b"x")
        first.close()
        second, peer = (stack.enter_context(end) for end in socket.socketpair())
        assert second.fileno() == number
        ways[new](number, ran.append, f"new {new}")
        peer.send(b"x")
        for _ in range(3):
            loop.stop()
            loop.run_forever()
        assert ran == [f"new {new}"] * 3
        assert loop.remove_reader(number) == (new == "reader")
        assert loop.remove_writer(number) == (new == "writer")


def test_who_watched_a_closed_descriptor_is_not_called_for_a_transport_of_its_number() -> None:
    ran: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        first, other = socket.socketpair()
        number = first.fileno()
        loop.add_reader(number, ran.append, "old")
        other.send(b"x")
        # Its callback is in the queue of the next turn.
        await asyncio.sleep(0)
        ran.clear()
        first.close()
        second, peer = socket.socketpair()
        assert second.fileno() == number
        reader, writer = await asyncio.open_connection(sock=second)
        peer.send(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        await writer.wait_closed()
        peer.close()
        other.close()

    erlang.run(main())
    assert ran == []


@pytest.mark.parametrize("way", ["reader", "writer"])
def test_a_socket_that_was_closed_while_watched_can_be_removed(loop: Loop, way: str) -> None:
    add, remove = getattr(loop, f"add_{way}"), getattr(loop, f"remove_{way}")
    mine, theirs = socket.socketpair()
    add(mine, pytest.fail, "it is closed")
    mine.close()
    theirs.close()
    assert remove(mine) is True
    with pytest.raises(ValueError, match="Invalid file descriptor: -1"):
        remove(mine)
    mine, theirs = socket.socketpair()
    with mine, theirs:
        ran: list[str] = []
        add(mine, ran.append, "new")
        theirs.send(b"x")
        loop.stop()
        loop.run_forever()
        assert ran == ["new"]
        assert remove(mine) is True


def test_bad_descriptors_are_refused(loop: Loop) -> None:
    with pytest.raises(ValueError, match="Invalid file"):
        loop.add_reader(-1, print)
    with pytest.raises(OSError, match="Bad file descriptor"):
        loop.add_reader(999_999, print)
    assert not loop.remove_reader(999_999)


def test_a_signal_handler_runs_in_the_loop(loop: Loop) -> None:
    got: list[int] = []

    def note(number: int) -> None:
        got.append(number)
        loop.stop()

    loop.add_signal_handler(signal.SIGUSR1, note, 7)
    loop.call_later(30, pytest.fail, "no signal came")
    loop.call_later(0.001, os.kill, os.getpid(), signal.SIGUSR1)
    loop.run_forever()
    assert got == [7]
    assert loop.remove_signal_handler(signal.SIGUSR1)
    assert not loop.remove_signal_handler(signal.SIGUSR1)


def test_control_c_interrupts_a_loop_that_sleeps(loop: Loop) -> None:
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(asyncio.sleep(30))
    finally:
        signal.signal(signal.SIGALRM, old)
    for task in asyncio.all_tasks(loop):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)


def test_a_descriptor_of_a_transport_is_not_for_readers(loop: Loop) -> None:
    async def main() -> None:
        mine, theirs = socket.socketpair()
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=mine)
        number = transport.get_extra_info("socket").fileno()
        with theirs, contextlib.closing(transport), pytest.raises(RuntimeError, match="is used by"):
            loop.add_reader(number, print)

    loop.run_until_complete(main())
