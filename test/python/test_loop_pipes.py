"""Pipes: both ends as transports, flow control, ends and errors; on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import tempfile
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Loop = asyncio.AbstractEventLoop
Ends = tuple[IO[bytes], IO[bytes]]


class Reading(asyncio.Protocol):
    """Notes what comes out of a pipe."""

    transport: asyncio.ReadTransport

    def __init__(self) -> None:
        self.got = bytearray()
        self.events: list[str] = []
        self.lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self.changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.changed.set()

    def eof_received(self) -> None:
        self.events.append("closing" if self.transport.is_closing() else "open")
        self.events.append("eof")

    def connection_lost(self, exc: BaseException | None) -> None:
        self.events.append("lost")
        self.lost.set_result(exc)

    async def until(self, size: int) -> None:
        while len(self.got) < size:
            self.changed.clear()
            await self.changed.wait()


class Writing(asyncio.BaseProtocol):
    """Notes what happens to the writing end."""

    transport: asyncio.WriteTransport

    def __init__(self) -> None:
        self.events: list[str] = []
        self.lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self.resumed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        self.events.append("made")

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")
        self.resumed.set()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.events.append("lost")
        self.lost.set_result(exc)


def fifo_ends(path: str) -> Ends:
    os.mkfifo(path)
    # Opened for both: neither waits for the other.
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(path, os.O_WRONLY)
    return os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0)


def pipe_ends(_path: str) -> Ends:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0)


def socket_ends(_path: str) -> Ends:
    first, second = socket.socketpair()
    return os.fdopen(first.detach(), "rb", 0), os.fdopen(second.detach(), "wb", 0)


@pytest.fixture(params=[pipe_ends, fifo_ends, socket_ends], ids=["pipe", "fifo", "socket"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    with tempfile.TemporaryDirectory() as folder:
        reading, writing = request.param(os.path.join(folder, "fifo"))
        yield reading, writing
        for end in (reading, writing):
            with suppress(OSError):
                end.close()


def run(loop: Loop, scenario: Callable[[], Any]) -> Any:
    return loop.run_until_complete(asyncio.wait_for(scenario(), 20))


def test_data_goes_through_both_ends_and_the_reader_sees_the_end(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        reader, reading = await loop.connect_read_pipe(Reading, ends[0])
        writer, writing = await loop.connect_write_pipe(Writing, ends[1])
        assert reader.get_extra_info("pipe") is ends[0]
        assert writer.get_extra_info("pipe") is ends[1]
        assert reader.get_extra_info("peername") is None
        assert writer.get_extra_info("nothing", 7) == 7
        assert reader.get_protocol() is reading
        assert writer.can_write_eof()
        writer.write(b"one ")
        writer.write(bytearray(b"two "))
        writer.writelines([b"three ", memoryview(b"four")])
        await reading.until(18)
        assert bytes(reading.got) == b"one two three four"
        writer.write_eof()
        assert writer.is_closing()
        assert await reading.lost is None
        assert await writing.lost is None
        assert reading.events == ["made", "closing", "eof", "lost"]
        assert writing.events == ["made", "lost"]
        assert ends[0].closed
        assert ends[1].closed

    run(loop, scenario)


def test_a_pipe_that_is_full_pauses_its_writer(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        writer, writing = await loop.connect_write_pipe(Writing, ends[1])
        writer.set_write_buffer_limits(high=100_000, low=1_000)
        assert writer.get_write_buffer_limits() == (1_000, 100_000)
        data = os.urandom(3_000_000)
        writer.write(data)
        assert writing.events == ["made", "pause"]
        assert writer.get_write_buffer_size() > 100_000
        writer.close()
        _, reading = await loop.connect_read_pipe(Reading, ends[0])
        await reading.lost
        assert bytes(reading.got) == data
        assert await writing.lost is None
        assert writing.events == ["made", "pause", "resume", "lost"]

    run(loop, scenario)


def test_a_writer_hears_that_nobody_reads_any_more(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        writer, writing = await loop.connect_write_pipe(Writing, ends[1])
        ends[0].close()
        # Nothing was queued: this is no error.
        assert await writing.lost is None
        assert writer.is_closing()
        writer.write(b"for nobody")
        assert writer.get_write_buffer_size() == 0

    run(loop, scenario)


def test_what_was_queued_for_a_reader_that_went_is_a_broken_pipe(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        writer, writing = await loop.connect_write_pipe(Writing, ends[1])
        writer.write(bytes(3_000_000))
        ends[0].close()
        error = await writing.lost
        assert isinstance(error, (BrokenPipeError, ConnectionResetError))

    run(loop, scenario)


def test_a_write_to_a_closed_pipe_ends_the_transport_with_the_error(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        reported: list[Any] = []
        loop.set_exception_handler(lambda _, context: reported.append(context))
        writer, writing = await loop.connect_write_pipe(Writing, ends[1])
        ends[0].close()
        writer.write(b"x")
        assert isinstance(await writing.lost, BrokenPipeError)
        assert reported == []

    run(loop, scenario)


def test_a_writer_that_aborts_drops_what_is_queued(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        writer, writing = await loop.connect_write_pipe(Writing, ends[1])
        writer.write(bytes(3_000_000))
        assert writer.get_write_buffer_size() > 0
        writer.abort()
        assert writer.get_write_buffer_size() == 0
        assert await writing.lost is None
        assert ends[1].closed

    run(loop, scenario)


def test_a_paused_reader_gets_nothing_until_it_resumes(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        reader, reading = await loop.connect_read_pipe(Reading, ends[0])
        _, second = await loop.connect_read_pipe(Reading, clock_reader)
        assert reader.is_reading()
        reader.pause_reading()
        reader.pause_reading()
        assert not reader.is_reading()
        ends[1].write(b"data")
        # Readable later than the paused one: once it is served, the paused one was passed over.
        clock_writer.write(b"tick")
        await second.until(4)
        assert not reading.got
        reader.resume_reading()
        await reading.until(4)
        for transport, protocol in ((reader, reading), (second.transport, second)):
            transport.close()
            assert not transport.is_reading()
            transport.resume_reading()
            assert await protocol.lost is None
        assert reading.events == ["made", "lost"]

    clock_reader, clock_writer = pipe_ends("")
    with clock_reader, clock_writer:
        run(loop, scenario)


def test_a_protocol_that_raises_is_reported_and_the_pipe_goes_on(loop: Loop, ends: Ends) -> None:
    class Bad(Reading):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if data == b"bad":
                raise LookupError("no")

        def eof_received(self) -> None:
            raise LookupError("neither")

    async def scenario() -> None:
        reported: list[BaseException] = []
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        _, reading = await loop.connect_read_pipe(Bad, ends[0])
        ends[1].write(b"bad")
        await reading.until(3)
        ends[1].write(b"good")
        await reading.until(7)
        ends[1].close()
        assert await reading.lost is None
        assert [str(error) for error in reported] == ["no", "neither"]

    run(loop, scenario)


def test_a_protocol_may_be_changed(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        reader, first = await loop.connect_read_pipe(Reading, ends[0])
        second = Reading()
        second.transport = reader
        reader.set_protocol(second)
        assert reader.get_protocol() is second
        ends[1].write(b"new")
        await second.until(3)
        assert not first.got
        ends[1].close()
        await second.lost

    run(loop, scenario)


@pytest.mark.parametrize("write", [False, True])
def test_a_regular_file_is_refused(loop: Loop, write: bool) -> None:
    async def scenario() -> None:
        with tempfile.TemporaryFile() as file:
            connect: Any = loop.connect_write_pipe if write else loop.connect_read_pipe
            with pytest.raises(ValueError, match="Pipe transport is"):
                await connect(Writing if write else Reading, file)
            assert not file.closed

    run(loop, scenario)


def test_a_factory_that_raises_is_the_callers_error(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        def factory() -> Any:
            raise LookupError("no protocol")

        with pytest.raises(LookupError, match="no protocol"):
            await loop.connect_read_pipe(factory, ends[0])
        with pytest.raises(LookupError, match="no protocol"):
            await loop.connect_write_pipe(factory, ends[1])

    run(loop, scenario)


def test_a_device_that_takes_everything_can_be_written(loop: Loop) -> None:
    async def scenario() -> None:
        with open("/dev/null", "wb", 0) as null:
            writer, writing = await loop.connect_write_pipe(Writing, null)
            writer.write(bytes(1_000_000))
            assert writer.get_write_buffer_size() == 0
            writer.close()
            assert await writing.lost is None

    run(loop, scenario)


def test_a_device_that_cant_be_watched_is_reported(loop: Loop) -> None:
    async def scenario() -> None:
        reported: list[BaseException] = []
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        with open("/dev/null", "rb", 0) as null:
            reader, reading = await loop.connect_read_pipe(Reading, null)
            reader.close()
            await reading.lost
        assert [type(error) for error in reported] == [PermissionError]

    run(loop, scenario)


def test_one_terminal_serves_both_ways_on_one_descriptor(loop: Loop) -> None:
    async def scenario() -> None:
        master, slave = pty.openpty()
        with (
            os.fdopen(master, "rb", 0, closefd=False) as source,
            os.fdopen(master, "wb", 0, closefd=False) as sink,
        ):
            _, reading = await loop.connect_read_pipe(Reading, source)
            writer, writing = await loop.connect_write_pipe(Writing, sink)
            writer.write(b"ask\n")
            assert os.read(slave, 100) == b"ask\n"
            os.write(slave, b"answer\n")
            await reading.until(len(b"ask\r\nanswer\r\n"))
            assert bytes(reading.got) == b"ask\r\nanswer\r\n"
            # A terminal says EIO when its other side is closed: no data, and nothing to report.
            reported: list[Any] = []
            loop.set_exception_handler(lambda _, context: reported.append(context))
            os.close(slave)
            assert isinstance(await reading.lost, OSError)
            assert reported == []
            writer.close()
            assert await writing.lost is None
        os.close(master)

    run(loop, scenario)


def test_streams_read_lines_from_a_pipe(loop: Loop, ends: Ends) -> None:
    async def scenario() -> None:
        stream = asyncio.StreamReader(limit=1000)
        protocol = asyncio.StreamReaderProtocol(stream)
        transport, _ = await loop.connect_read_pipe(lambda: protocol, ends[0])
        ends[1].write(b"first\nsecond\n" + b"x" * 5000)
        assert await stream.readline() == b"first\n"
        assert await stream.readline() == b"second\n"
        assert await stream.readexactly(5000) == b"x" * 5000
        ends[1].close()
        assert await stream.read() == b""
        transport.close()

    run(loop, scenario)


def test_no_descriptor_is_left(loop: Loop) -> None:
    async def scenario() -> None:
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(20):
            reading, writing = pipe_ends("")
            _, source = await loop.connect_read_pipe(Reading, reading)
            sink, drain = await loop.connect_write_pipe(Writing, writing)
            sink.write(b"x" * 1000)
            sink.close()
            await source.lost
            await drain.lost
            assert len(source.got) == 1000
        assert sorted(os.listdir("/proc/self/fd")) == before

    async def warm() -> None:
        await asyncio.sleep(0)

    run(loop, warm)
    run(loop, scenario)
