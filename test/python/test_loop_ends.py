"""The end of a loop and of its process: descriptors, fork, daemon threads."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import weakref

import pytest

import erlang


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_closed_loop_gives_its_descriptors_back() -> None:
    before = descriptors()
    loops = [erlang.new_event_loop() for _ in range(10)]
    for loop in loops:
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        loop.close()
    assert descriptors() == before


class Held:
    """What a task has."""


def test_a_closed_loop_keeps_no_task_that_was_left_in_a_timeout() -> None:
    alive = []

    async def left() -> None:
        held = Held()
        alive.append(weakref.ref(held))
        async with asyncio.timeout(60):
            await asyncio.get_running_loop().create_future()

    async def begin() -> None:
        asyncio.get_running_loop().create_task(left())
        await asyncio.sleep(0)

    loop = erlang.new_event_loop()
    # "Task was destroyed but it is pending": it was left.
    loop.set_exception_handler(lambda _loop, _context: None)
    loop.run_until_complete(begin())
    assert alive[0]() is not None
    loop.close()
    gc.collect()
    assert alive[0]() is None


def test_a_closed_loop_keeps_no_timer_that_its_callback_has() -> None:
    class Owner:
        def __init__(self) -> None:
            self.timer = loop.call_later(60, self.called)

        def called(self) -> None:
            raise AssertionError("the loop was closed")

    loop = erlang.new_event_loop()
    alive = weakref.ref(Owner())
    gc.collect()
    assert alive() is not None
    loop.close()
    gc.collect()
    assert alive() is None


def ended(child: int) -> int:
    """Waits for a child; its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(body: object) -> None:
    """Runs in a forked child; its failure is a failure here."""
    child = os.fork()
    if child == 0:
        try:
            body()  # type: ignore[operator]
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert ended(child) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_is_refused_by_the_loop_of_its_parent_and_may_make_its_own() -> None:
    loop = erlang.new_event_loop()
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.setblocking(False)
        loop.add_reader(mine, loop.stop)

        def child() -> None:
            for call in (
                lambda: loop.call_soon(print),
                lambda: loop.call_soon_threadsafe(print),
                lambda: loop.run_forever(),
                lambda: loop.add_reader(mine, print),
            ):
                with pytest.raises(RuntimeError, match="parent process"):
                    call()
            loop.remove_reader(mine)
            loop.close()

            async def main() -> int:
                await asyncio.sleep(0.001)
                return 5

            assert erlang.run(main()) == 5

        in_child(child)
        theirs.send(b"x")
        loop.call_later(10, pytest.fail, "the parent lost its reader")
        loop.run_forever()
        assert loop.remove_reader(mine)
    loop.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_inside_a_callback_does_not_run_the_rest() -> None:
    read, write = os.pipe()
    loop = erlang.new_event_loop()
    children: list[int] = []

    def fork() -> None:
        children.append(os.fork())
        loop.call_soon_threadsafe(loop.stop) if children[0] else None

    loop.call_soon(fork)
    try:
        loop.run_forever()
    except RuntimeError as error:
        if children[0]:
            raise
        os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(children[0], 0)
    with os.fdopen(read) as pipe:
        assert "parent process" in pipe.read()
    assert status == 0
    loop.close()


class Answers(asyncio.Protocol):
    """Answers whatever comes, forks the first time, and notes which process was here."""

    def __init__(self, children: list[int], codes: list[int], notes: int) -> None:
        self.children, self.codes, self.notes = children, codes, notes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"answer")
        if not self.children:
            self.children.append(os.fork())
            self.codes.extend(map(ended, filter(None, self.children)))
        self.transport.write(b" of %d" % os.getpid())
        os.write(self.notes, b"%d " % os.getpid())


class Buffers(Answers, asyncio.BufferedProtocol):  # type: ignore[misc]
    """The same, for data in a buffer of its own."""

    def get_buffer(self, sizehint: int) -> bytearray:
        self.buffer = bytearray(100)
        return self.buffer

    def buffer_updated(self, count: int) -> None:
        self.data_received(self.buffer[:count])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("protocol", [Answers, Buffers])
def test_a_child_forked_while_data_is_received_sends_and_serves_nothing(
    protocol: type[Answers],
) -> None:
    children: list[int] = []
    codes: list[int] = []
    read, write = os.pipe()
    loop = erlang.new_event_loop()
    pairs = [socket.socketpair() for _ in range(3)]
    transports = []
    for mine, _ in pairs:
        made = loop.create_connection(lambda: protocol(children, codes, write), sock=mine)
        transports.append(loop.run_until_complete(made)[0])
    for _, theirs in pairs:
        theirs.send(b"question")
    loop.call_later(0.05, loop.stop)
    try:
        loop.run_forever()
    except RuntimeError as error:
        if children[0]:
            raise
        os._exit(0 if "parent process" in str(error) else 1)
    if not children[0]:
        os._exit(2)
    os.close(write)
    assert codes == [0]
    for transport in transports:
        transport.close()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    for _, theirs in pairs:
        with theirs, theirs.makefile("rb") as file:
            assert file.read() == b"answer of %d" % os.getpid()
    with os.fdopen(read) as pipe:
        assert pipe.read().split() == [str(children[0])] + [str(os.getpid())] * 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_while_a_datagram_is_received_takes_no_other() -> None:
    children: list[int] = []
    codes: list[int] = []
    taken: list[bytes] = []
    loop = erlang.new_event_loop()

    class Forks(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, address: object) -> None:
            taken.append(data)
            if not children:
                children.append(os.fork())
                codes.extend(map(ended, filter(None, children)))

    made = loop.create_datagram_endpoint(Forks, local_addr=("127.0.0.1", 0))
    transport, _ = loop.run_until_complete(made)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs:
        for number in range(5):
            theirs.sendto(b"%d" % number, transport.get_extra_info("sockname"))
    loop.call_later(0.05, loop.stop)
    try:
        loop.run_forever()
    except RuntimeError:
        os._exit(len(taken) if children and not children[0] else 100)
    if not children[0]:
        os._exit(101)
    # The child had one of them, and the parent all.
    assert codes == [1]
    assert len(taken) == 5
    transport.close()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_by_a_protocol_factory_accepts_nothing() -> None:
    children: list[int] = []
    codes: list[int] = []
    made: list[int] = []
    loop = erlang.new_event_loop()

    def factory() -> asyncio.Protocol:
        made.append(os.getpid())
        if not children:
            children.append(os.fork())
            codes.extend(map(ended, filter(None, children)))
        return asyncio.Protocol()

    server = loop.run_until_complete(loop.create_server(factory, "127.0.0.1", 0))
    address = server.sockets[0].getsockname()
    peers = [socket.create_connection(address) for _ in range(5)]
    loop.call_later(0.05, loop.stop)
    try:
        loop.run_forever()
    except RuntimeError:
        os._exit(len(made) if children and not children[0] else 100)
    if not children[0]:
        os._exit(101)
    assert codes == [1]
    assert len(made) == 5
    server.close()
    for peer in peers:
        peer.close()
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()


# Loops that are busy in every way when the interpreter exits: Python takes the GIL from them, or
# does not give it back.
BUSY = """
import asyncio, functools, threading, time
import erlang

begun = threading.Barrier(5)

def callbacks():
    loop = erlang.new_event_loop()
    def again():
        loop.call_soon(again)
    loop.call_soon(begun.wait)
    loop.call_soon(again)
    loop.run_forever()

def blocks():
    loop = erlang.new_event_loop()
    def again():
        time.sleep(0)
        loop.call_soon(again)
    loop.call_soon(begun.wait)
    loop.call_soon(again)
    loop.run_forever()

def tasks():
    async def main():
        begun.wait()
        while True:
            await asyncio.sleep(0)
    erlang.run(main())

class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        sum(range(100))
        self.transport.write(data)

def streams():
    async def main():
        server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        begun.wait()
        while True:
            writer.write(b"x")
            await reader.readexactly(1)
    erlang.run(main())

for body in callbacks, blocks, tasks, streams:
    threading.Thread(target=body, daemon=True).start()
begun.wait()
time.sleep(0.02)
"""


def test_the_interpreter_exits_while_loops_of_daemon_threads_are_busy() -> None:
    for _ in range(10):
        ended = subprocess.run(
            [sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=60
        )
        assert (ended.returncode, ended.stderr) == (0, "")
