"""Data under TLS: whole and in order, with flow control both ways; on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SIZES = [1, 1000, 16384, 16385, 100_000, 2_000_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_echo_gives_back_what_it_gets(tls: Any, size: int, version: ssl.TLSVersion) -> None:
    async def main() -> None:
        context = tls.client_context()
        context.minimum_version = context.maximum_version = version
        client = await tls.connect(tls.Recorder, await tls.serve(tls.Echo), ssl=context)
        sent = os.urandom(size)
        client.transport.write(sent)
        await tls.until(lambda: len(client.got) == size)
        assert bytes(client.got) == sent
        client.transport.close()
        assert await client.lost is None

    tls.run(main)
    assert tls.reports == []


def test_writes_of_any_size_and_kind_arrive_in_order(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        expected = bytearray()
        memory = bytearray(70_000)
        for step in range(200):
            part = os.urandom(step * step)
            kind = (bytes, bytearray, memoryview)[step % 3]
            client.transport.write(kind(part))
            client.transport.writelines([b"<", bytearray(part[:9]), memoryview(b">")])
            memory[: len(part)] = part
            client.transport.write(memoryview(memory)[: len(part)])
            memory[: len(part)] = bytes(len(part))
            expected += part + b"<" + part[:9] + b">" + part
            if step % 7 == 0:
                await asyncio.sleep(0)
        await tls.until(lambda: len(server.got) == len(expected))
        assert server.got == expected
        client.transport.close()
        await server.lost

    tls.run(main)


def test_what_is_written_before_close_arrives(tls: Any) -> None:
    async def main() -> None:
        class Answers(tls.Recorder):
            def data_received(self, data: bytes) -> None:
                for number in range(1000):
                    self.transport.write(b"%d," % number)
                self.transport.write(bytes(3_000_000))
                self.transport.close()
                self.transport.write(b"too late")

        server, client = await tls.pair(server=Answers)
        client.transport.write(b"?")
        assert await client.lost is None
        expected = b"".join(b"%d," % number for number in range(1000)) + bytes(3_000_000)
        assert bytes(client.got) == expected
        assert await server.lost is None

    tls.run(main)


def test_a_protocol_may_lend_its_own_memory(tls: Any) -> None:
    async def main() -> None:
        class Lends(tls.Recorder, asyncio.BufferedProtocol):
            memory = memoryview(bytearray(1000))

            def get_buffer(self, hint: int) -> memoryview:
                return self.memory

            def buffer_updated(self, count: int) -> None:
                self.got += self.memory[:count]

        server, client = await tls.pair(server=Lends)
        sent = os.urandom(300_000)
        client.transport.write(sent)
        await tls.until(lambda: len(server.got) == len(sent))
        assert bytes(server.got) == sent
        client.transport.close()
        assert await server.lost is None
        assert server.events == ["made", "eof", "lost"]

    tls.run(main)


def test_another_protocol_takes_over(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        client.transport.write(b"first")
        await tls.until(lambda: server.got)
        second = tls.Recorder()
        server.transport.set_protocol(second)
        assert server.transport.get_protocol() is second
        client.transport.write(b"second")
        await tls.until(lambda: second.got)
        assert (server.got, second.got) == (b"first", b"second")
        client.transport.close()
        assert await second.lost is None
        assert not server.lost.done()

    tls.run(main)


def test_no_data_comes_while_reading_is_paused(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        server.transport.pause_reading()
        server.transport.pause_reading()
        assert not server.transport.is_reading()
        sent = os.urandom(10_000_000)
        for start in range(0, len(sent), 100_000):
            client.transport.write(sent[start : start + 100_000])
        # The peer is told to wait: what it wrote is more than all buffers on the way hold.
        await tls.until(lambda: "pause" in client.events)
        assert server.got == b""
        _, high = server.transport.get_read_buffer_limits()
        await tls.until(lambda: server.transport.get_read_buffer_size() >= high)
        await asyncio.sleep(0.01)
        assert server.got == b""
        assert server.transport.get_read_buffer_size() < 2 * high + 300_000
        server.transport.resume_reading()
        assert server.transport.is_reading()
        await tls.until(lambda: len(server.got) == len(sent))
        assert bytes(server.got) == sent
        assert client.events[:3] == ["made", "pause", "resume"]
        client.transport.close()
        await server.lost

    tls.run(main)


def test_reading_paused_in_the_middle_goes_on_where_it_was(tls: Any) -> None:
    async def main() -> None:
        class Stops(tls.Recorder):
            def data_received(self, data: bytes) -> None:
                self.got += data
                self.transport.pause_reading()
                asyncio.get_running_loop().call_soon(self.transport.resume_reading)

        server, client = await tls.pair(server=Stops)
        sent = os.urandom(1_000_000)
        for start in range(0, len(sent), 10_000):
            client.transport.write(sent[start : start + 10_000])
        await tls.until(lambda: len(server.got) == len(sent))
        assert bytes(server.got) == sent
        client.transport.close()
        await server.lost

    tls.run(main)


def test_the_marks_of_flow_control_can_be_set(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        transport = client.transport
        assert transport.get_write_buffer_limits() == (128 * 1024, 512 * 1024)
        transport.set_write_buffer_limits(high=100_000)
        assert transport.get_write_buffer_limits() == (25_000, 100_000)
        transport.set_write_buffer_limits(low=1000)
        assert transport.get_write_buffer_limits() == (1000, 4000)
        with pytest.raises(ValueError, match="must be >="):
            transport.set_write_buffer_limits(high=1, low=2)
        transport.set_read_buffer_limits(high=50_000, low=100)
        assert transport.get_read_buffer_limits() == (100, 50_000)
        server.transport.pause_reading()
        for _ in range(200):
            transport.write(bytes(100_000))
        assert client.events[-1] == "pause"
        assert transport.get_write_buffer_size() > 4000
        server.transport.resume_reading()
        await tls.until(lambda: client.events[-1] == "resume")
        assert transport.get_write_buffer_size() <= 1000
        transport.close()
        await server.lost

    tls.run(main)


def test_streams_speak_tls(tls: Any) -> None:
    async def main() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async for line in reader:
                writer.write(line.upper())
                await writer.drain()
            writer.close()

        context = tls.server_context()
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        address = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(
            *address, ssl=tls.client_context(), server_hostname="localhost"
        )
        for number in range(100):
            writer.write(b"line ")
            writer.write(b"%d" % number * 300)
            writer.write(b"\n")
            await writer.drain()
            assert await reader.readline() == b"LINE " + b"%d" % number * 300 + b"\n"
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    tls.run(main)


def test_unix_sockets_speak_tls(tls: Any, tmp_path: Path) -> None:
    async def main() -> None:
        path = str(tmp_path / "socket")
        server = await tls.loop.create_unix_server(tls.Echo, path, ssl=tls.server_context())
        _, client = await tls.loop.create_unix_connection(
            tls.Recorder, path, ssl=tls.client_context(), server_hostname="localhost"
        )
        assert client.transport.get_extra_info("cipher")
        client.transport.write(b"hello")
        await tls.until(lambda: client.got == b"hello")
        client.transport.close()
        await client.lost
        # What is on the wire is TLS to others, too.
        assert await asyncio.to_thread(blocking_echo, tls.client_context(), path) == b"hello"
        server.close()
        await server.wait_closed()

    def blocking_echo(context: ssl.SSLContext, path: str) -> bytes:
        with socket.socket(socket.AF_UNIX) as plain:
            plain.settimeout(60)
            plain.connect(path)
            with context.wrap_socket(plain, server_hostname="localhost") as wrapped:
                wrapped.sendall(b"hello")
                return wrapped.recv(100)

    tls.run(main)


def test_a_socket_that_was_accepted_by_hand_speaks_tls(tls: Any) -> None:
    async def main() -> None:
        mine, theirs = socket.socketpair()
        context = tls.server_context()
        accepting = tls.loop.connect_accepted_socket(tls.Echo, mine, ssl=context)
        server = asyncio.ensure_future(accepting)
        _, client = await tls.loop.create_connection(
            tls.Recorder, sock=theirs, ssl=tls.client_context(), server_hostname="localhost"
        )
        client.transport.write(b"hello")
        await tls.until(lambda: client.got == b"hello")
        client.transport.close()
        await client.lost
        await (await server)[1].lost

    tls.run(main)


def test_a_file_is_sent_under_tls(tls: Any, tmp_path: Path) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        content = os.urandom(500_000)
        (tmp_path / "file").write_bytes(content)
        with (tmp_path / "file").open("rb") as file:
            assert await tls.loop.sendfile(client.transport, file) == len(content)
        await tls.until(lambda: len(server.got) == len(content))
        assert bytes(server.got) == content
        client.transport.close()
        await server.lost

    tls.run(main)


def test_tls_within_tls(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        options = {"server_side": True}
        inner_server, inner_client = tls.Recorder(), tls.Recorder()
        above = asyncio.gather(
            tls.loop.start_tls(server.transport, inner_server, tls.server_context(), **options),
            tls.loop.start_tls(
                client.transport, inner_client, tls.client_context(), server_hostname="localhost"
            ),
        )
        transports = await above
        sent = os.urandom(300_000)
        transports[1].write(sent)
        transports[0].write(b"back")
        await tls.until(lambda: len(inner_server.got) == len(sent) and inner_client.got)
        assert bytes(inner_server.got) == sent
        assert inner_client.got == b"back"
        transports[1].close()
        await inner_client.lost
        await inner_server.lost

    tls.run(main)
