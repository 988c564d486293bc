"""How connections under TLS begin and end; on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import ssl
import warnings
import weakref
from typing import Any

import pytest

import erlang


def test_both_ends_know_what_was_agreed_on(tls: Any) -> None:
    async def main() -> None:
        names: list[Any] = []
        server_context, client_context = tls.server_context(), tls.client_context()
        server_context.set_alpn_protocols(["h2", "http/1.1"])
        client_context.set_alpn_protocols(["http/1.1"])
        server_context.sni_callback = lambda engine, name, context: names.append(name)
        server_context.verify_mode = ssl.CERT_REQUIRED
        server_context.load_verify_locations(tls.certificate("client"))
        client_context.load_cert_chain(tls.certificate("client"))
        made: list[Any] = []

        def factory() -> Any:
            made.append(tls.Recorder())
            return made[-1]

        address = await tls.serve(factory, ssl=server_context)
        client = await tls.connect(tls.Recorder, address, ssl=client_context)
        await tls.until(lambda: made[0].transport)
        info = client.transport.get_extra_info
        assert isinstance(client.transport, asyncio.Transport)
        assert "ssl" in client.transport.__class__.__name__.lower()
        assert names == ["localhost"]
        assert info("ssl_object").selected_alpn_protocol() == "http/1.1"
        assert info("ssl_object").server_hostname == "localhost"
        assert info("sslcontext") is client_context
        assert info("cipher") == info("ssl_object").cipher()
        assert info("compression") is None
        assert info("peercert")["subject"] == ((("commonName", "server.test"),),)
        assert info("peername") == address
        assert info("sockname") == made[0].transport.get_extra_info("peername")
        assert info("socket").family == socket.AF_INET
        assert info("nothing", 5) == 5
        seen = made[0].transport.get_extra_info("peercert")
        assert seen["subject"] == ((("commonName", "client.test"),),)
        client.transport.close()
        await client.lost
        assert info("sslcontext") is client_context

    tls.run(main)


@pytest.mark.parametrize("above", ["plain", "streams"])
def test_tls_is_started_on_a_connection_in_use(tls: Any, above: str) -> None:
    async def main() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert await reader.readline() == b"STARTTLS\n"
            writer.write(b"go\n")
            await writer.start_tls(tls.server_context())
            while data := await reader.read(1000):
                writer.write(data)
                await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        context = tls.client_context()
        if above == "streams":
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"STARTTLS\n")
            assert await reader.readline() == b"go\n"
            await writer.start_tls(context, server_hostname="localhost")
            writer.write(b"secret" * 10_000)
            assert await reader.readexactly(60_000) == b"secret" * 10_000
            writer.close()
            await writer.wait_closed()
        else:
            plain = await tls.connect(tls.Recorder, address, ssl=None, server_hostname=None)
            plain.transport.write(b"STARTTLS\n")
            await tls.until(lambda: plain.got == b"go\n")
            protocol = tls.Recorder()
            transport = await tls.loop.start_tls(
                plain.transport, protocol, context, server_hostname="localhost"
            )
            assert protocol.events == []
            assert transport.get_extra_info("ssl_object").version() == "TLSv1.3"
            transport.write(b"secret")
            await tls.until(lambda: protocol.got == b"secret")
            transport.close()
            assert await protocol.lost is None
            assert plain.got == b"go\n"
        server.close()
        await server.wait_closed()

    tls.run(main)


def test_a_client_that_begins_before_the_server_is_heard(tls: Any) -> None:
    if not isinstance(tls.loop, erlang.ErlangEventLoop):
        pytest.skip("asyncio loses what a stream's reader has already, but in its newest releases")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The first record of the handshake is in the reader, not in the kernel.
        await tls.until(lambda: reader._buffer)  # type: ignore[attr-defined]
        await writer.start_tls(tls.server_context())
        writer.write(await reader.readexactly(5))
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await writer.start_tls(tls.client_context(), server_hostname="localhost")
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    tls.run(main)


def test_start_tls_refuses_what_it_cannot_use(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        with pytest.raises(TypeError, match="sslcontext is expected"):
            await tls.loop.start_tls(client.transport, client, None)
        with pytest.raises(TypeError, match="is not supported by start_tls"):
            await tls.loop.start_tls(object(), client, tls.client_context())
        client.transport.close()
        await server.lost

    tls.run(main)


def test_close_says_goodbye_and_both_ends_end(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        client.transport.close()
        assert client.transport.is_closing()
        assert await client.lost is None
        assert await server.lost is None
        assert server.events == ["made", "eof", "lost"]
        assert client.events[-1] == "lost"
        assert client.transport.get_protocol() is None
        client.transport.close()
        client.transport.close()
        client.transport.abort()

    tls.run(main)
    assert tls.reports == []


def test_a_peer_that_ends_while_reading_is_paused_loses_nothing(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        server.transport.pause_reading()
        client.transport.write(bytes(100_000))
        client.transport.close()
        client.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
        await asyncio.sleep(0.01)
        assert server.events == ["made"]
        server.transport.resume_reading()
        await server.lost
        assert len(server.got) == 100_000
        assert server.events == ["made", "eof", "lost"]

    tls.run(main)


def test_abort_ends_at_once(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        server.transport.pause_reading()
        client.transport.write(bytes(10_000_000))
        client.transport.abort()
        assert client.transport.is_closing()
        assert await client.lost is None
        server.transport.resume_reading()
        await server.lost
        assert len(server.got) < 10_000_000

    tls.run(main)


def test_a_peer_that_vanishes_is_an_end_of_data(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        client.transport.write(b"last words")
        await tls.until(lambda: server.got)
        client.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
        await server.lost
        assert server.events == ["made", "eof", "lost"]
        await client.lost

    tls.run(main)


def test_keeping_the_connection_open_has_no_effect(tls: Any, caplog: Any) -> None:
    async def main() -> None:
        class Keeps(tls.Recorder):
            def eof_received(self) -> bool:
                return True

        server, client = await tls.pair(server=Keeps)
        client.transport.close()
        assert await server.lost is None

    with caplog.at_level(logging.WARNING, logger="asyncio"):
        tls.run(main)
    assert "returning true from eof_received() has no effect when using ssl" in caplog.text


def test_an_engine_of_the_users_own_is_used(tls: Any) -> None:
    class Counts(ssl.SSLObject):
        written = 0

        def write(self, data: Any) -> int:
            Counts.written += len(data)
            return super().write(data)

    async def main() -> None:
        context = tls.client_context()
        context.sslobject_class = Counts
        client = await tls.connect(tls.Recorder, await tls.serve(tls.Echo), ssl=context)
        client.transport.write(b"hello")
        await tls.until(lambda: client.got == b"hello")
        assert Counts.written == 5
        client.transport.close()
        await client.lost

    tls.run(main)


def test_a_connection_that_ended_leaves_nothing_behind(tls: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair(server=tls.Echo)
        client.transport.write(b"hello")
        await tls.until(lambda: client.got == b"hello")
        context = client.transport.get_extra_info("sslcontext")
        client.transport.close()
        await client.lost
        await server.lost
        # The protocols keep their transports.
        references.extend(map(weakref.ref, (server, client, context)))

    references: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        tls.run(main)
        # What made the protocols knows them.
        tls.servers.clear()
        gone = tls.until(lambda: [reference() for reference in references] == [None] * 3)
        tls.loop.run_until_complete(gone)
    finally:
        gc.enable()


def test_connections_in_debug_mode_leave_no_objects_behind(tls: Any) -> None:
    tls.loop.set_debug(True)
    # To say how slow a callback was makes objects, too.
    tls.loop.slow_callback_duration = 3600
    counts: list[int] = []

    async def main() -> None:
        address = await tls.serve(tls.Echo)
        for number in range(121):
            client = await tls.connect(tls.Recorder, address)
            client.transport.write(b"x")
            await tls.until(lambda client=client: client.got == b"x")
            client.transport.close()
            await client.lost
            if number in (20, 120):
                await asyncio.sleep(0)
                gc.collect()
                # By their types: isinstance would ask proxies, such as the settings of Django.
                kinds = map(type, gc.get_objects())
                counts.append(sum(issubclass(kind, asyncio.TimerHandle) for kind in kinds))

    tls.run(main)
    # asyncio keeps up to a hundred cancelled timers, each connection has four.
    assert counts[1] - counts[0] <= 150


def test_a_connection_that_nobody_closes_is_told(tls: Any) -> None:
    async def main() -> None:
        await tls.pair()

    tls.loop.run_until_complete(main())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tls.servers.pop().close()
        tls.loop.close()
        gc.collect()
    texts = [str(warning.message) for warning in told if warning.category is ResourceWarning]
    both = [text for text in texts if text.startswith("unclosed transport") and "SSL" in text]
    assert len(both) == 2


# asyncio leaves the socket to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:Exception ignored")
def test_a_connection_that_comes_while_its_server_closes_is_dropped(tls: Any) -> None:
    async def main() -> None:
        made: list[Any] = []

        def factory() -> Any:
            tls.servers[0].close()
            made.append(tls.Recorder())
            return made[-1]

        with socket.create_connection(await tls.serve(factory)) as plain:
            await tls.until(lambda: made)
            await asyncio.sleep(0)
            gc.collect()
            plain.setblocking(False)
            with contextlib.suppress(ConnectionResetError):
                assert await tls.loop.sock_recv(plain, 1) == b""
        assert made[0].events == []

    tls.run(main)
