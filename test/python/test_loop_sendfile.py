"""sendfile and sock_sendfile: whole files and parts, to slow readers, to none; on both loops."""

from __future__ import annotations

import asyncio
import io
import os
import socket
from contextlib import closing
from typing import IO, TYPE_CHECKING, Any

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Loop = asyncio.AbstractEventLoop
SIZE = 3_000_000


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IO[bytes]]:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(SIZE))
    with path.open("rb", 0) as opened:
        yield opened


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.setblocking(False)
        theirs.setblocking(False)
        yield mine, theirs


def run(loop: Loop, scenario: Callable[[], Any]) -> Any:
    return loop.run_until_complete(asyncio.wait_for(scenario(), 30))


async def receive(loop: Loop, sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = await loop.sock_recv(sock, size - len(data))
        if not more:
            break
        data += more
    return bytes(data)


@pytest.mark.parametrize(
    ("offset", "count"), [(0, None), (1000, None), (0, 2_000_000), (5, 10), (SIZE - 1, 50)]
)
def test_a_file_or_a_part_of_it_is_sent(
    loop: Loop, pair: Any, file: IO[bytes], offset: int, count: int | None
) -> None:
    async def scenario() -> None:
        data = file.read()[offset:]
        data = data if count is None else data[:count]
        file.seek(0)
        received = asyncio.ensure_future(receive(loop, pair[1], len(data)))
        sent = await loop.sock_sendfile(pair[0], file, offset, count)
        assert sent == len(data)
        assert await received == data
        # The next read goes on where this ended.
        assert file.tell() == offset + sent

    run(loop, scenario)


def test_a_file_is_left_where_the_sending_ended_though_that_was_at_once(
    pair: Any, file: IO[bytes]
) -> None:
    # asyncio's loop leaves it where it was, in its older releases.
    loop = erlang.new_event_loop()

    async def scenario() -> None:
        file.seek(123)
        assert await loop.sock_sendfile(pair[0], file, SIZE, fallback=False) == 0
        assert file.tell() == SIZE

    run(loop, scenario)
    loop.close()


def test_what_has_no_places_is_read_and_sent(pair: Any) -> None:
    # asyncio's loop looks for one even so, in its newer releases.
    loop = erlang.new_event_loop()

    class Pipe:
        def __init__(self, reading: int) -> None:
            self.reading = reading

        def fileno(self) -> int:
            return self.reading

        def readinto(self, buffer: bytearray) -> int:
            return os.readv(self.reading, [buffer])

    async def scenario() -> None:
        reading, writing = os.pipe()
        os.write(writing, b"of a pipe")
        os.close(writing)
        file: Any = Pipe(reading)
        assert await loop.sock_sendfile(pair[0], file, 0, 9) == 9
        os.close(reading)
        assert await loop.sock_recv(pair[1], 100) == b"of a pipe"

    run(loop, scenario)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_an_empty_file_sends_nothing(loop: Loop, pair: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "empty"
        path.touch()
        with path.open("rb") as empty:
            assert await loop.sock_sendfile(pair[0], empty) == 0

    run(loop, scenario)


def test_what_is_no_file_is_read_and_sent_or_refused(loop: Loop, pair: Any) -> None:
    async def scenario() -> None:
        memory = io.BytesIO(b"in memory")
        assert await loop.sock_sendfile(pair[0], memory) == 9
        assert await loop.sock_recv(pair[1], 100) == b"in memory"
        memory.seek(0)
        with pytest.raises(asyncio.SendfileNotAvailableError):
            await loop.sock_sendfile(pair[0], memory, fallback=False)

    run(loop, scenario)


def test_bad_arguments_are_refused(loop: Loop, pair: Any, file: IO[bytes]) -> None:
    async def scenario() -> None:
        for arguments in ((-1, None), (0, 0), (0, -5)):
            with pytest.raises(ValueError, match="must be a"):
                await loop.sock_sendfile(pair[0], file, *arguments)
        with pytest.raises(TypeError):
            await loop.sock_sendfile(pair[0], file, 0, "10")  # type: ignore[arg-type]
        with open(file.name) as text, pytest.raises(ValueError, match="binary mode"):
            await loop.sock_sendfile(pair[0], text)  # type: ignore[arg-type]

    run(loop, scenario)


def test_a_peer_that_goes_away_is_an_error_after_what_was_sent(
    loop: Loop, pair: Any, file: IO[bytes]
) -> None:
    async def scenario() -> None:
        sending = asyncio.ensure_future(loop.sock_sendfile(pair[0], file))
        await receive(loop, pair[1], 1000)
        pair[1].close()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            await sending
        assert 0 < file.tell() < SIZE

    run(loop, scenario)


def test_one_that_is_cancelled_stops_and_the_socket_can_be_used(
    loop: Loop, pair: Any, file: IO[bytes]
) -> None:
    async def scenario() -> None:
        sending = asyncio.ensure_future(loop.sock_sendfile(pair[0], file))
        first = await receive(loop, pair[1], 1000)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        rest = asyncio.ensure_future(receive(loop, pair[1], SIZE))
        await loop.sock_sendall(pair[0], b"tail")
        pair[0].shutdown(socket.SHUT_WR)
        got = first + await rest
        file.seek(0)
        assert len(got) < SIZE
        assert got == file.read(len(got) - 4) + b"tail"

    run(loop, scenario)


def test_others_run_while_a_file_is_sent(loop: Loop, pair: Any, file: IO[bytes]) -> None:
    async def scenario() -> None:
        turns = 0

        def count() -> None:
            nonlocal turns
            turns += 1
            if not sending.done():
                loop.call_soon(count)

        sending = asyncio.ensure_future(loop.sock_sendfile(pair[0], file))
        loop.call_soon(count)
        await receive(loop, pair[1], SIZE)
        await sending
        assert turns > 3

    run(loop, scenario)


class Sink(asyncio.Protocol):
    """Keeps what comes."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.lost = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.got += data

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost.set_result(exc)


@pytest.mark.parametrize("fallback", [False, True])
def test_a_transport_sends_a_file_between_its_writes(
    loop: Loop, file: IO[bytes], fallback: bool
) -> None:
    async def scenario() -> None:
        sinks: list[Sink] = []

        def factory() -> Sink:
            sinks.append(Sink())
            return sinks[-1]

        server = await loop.create_server(factory, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        transport, _ = await loop.create_connection(asyncio.Protocol, *address)
        transport.write(b"before")
        source: Any = io.BytesIO(file.read()) if fallback else file
        assert await loop.sendfile(transport, source) == SIZE
        transport.write(b"after")
        transport.close()
        while not sinks:
            await asyncio.sleep(0)
        await sinks[0].lost
        file.seek(0)
        assert bytes(sinks[0].got) == b"before" + file.read() + b"after"
        with pytest.raises(RuntimeError, match="closing"):
            await loop.sendfile(transport, file)
        server.close()
        await server.wait_closed()

    run(loop, scenario)


@pytest.mark.parametrize("queued", [False, True], ids=["sending", "queued"])
@pytest.mark.parametrize("way", ["abort", "close"])
def test_who_sends_a_file_hears_that_the_connection_was_ended(
    pair: Any, file: IO[bytes], way: str, queued: bool
) -> None:
    """Our loop only: on asyncio's nobody hears of it."""

    async def scenario() -> None:
        mine, theirs = pair
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=mine)
        if queued:
            transport.write(bytes(SIZE))
        sending = asyncio.create_task(loop.sendfile(transport, file))
        # Nobody reads: it waits for the queue, or for the socket.
        for _ in range(10):
            await asyncio.sleep(0)
        assert not sending.done()
        getattr(transport, way)()
        if queued and way == "close":
            await receive(loop, theirs, SIZE)
        with pytest.raises((ConnectionError, RuntimeError)):
            await sending

    with closing(erlang.new_event_loop()) as loop:
        run(loop, scenario)
