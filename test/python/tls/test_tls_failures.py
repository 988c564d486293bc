"""What goes wrong under TLS, and who is told; on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import ssl
from typing import Any

import pytest


def test_a_certificate_that_nobody_vouches_for_is_refused(tls: Any) -> None:
    async def main() -> None:
        address = await tls.serve(tls.Recorder)
        context = ssl.create_default_context()
        with pytest.raises(ssl.SSLCertVerificationError):
            await tls.connect(tls.Recorder, address, ssl=context)
        with pytest.raises(ssl.SSLCertVerificationError):
            await tls.connect(tls.Recorder, address, server_hostname="other.test")

    tls.run(main)
    # The other end hears an alert, which is no error of the program.
    assert tls.reports == []


def test_a_handshake_that_takes_too_long_fails(tls: Any) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = silent.getsockname()
            with pytest.raises(ConnectionAbortedError, match=r"longer than 0\.05 seconds"):
                await tls.connect(tls.Recorder, address, ssl_handshake_timeout=0.05)

    tls.run(main)


def test_a_peer_that_never_says_goodbye_is_left(tls: Any) -> None:
    async def main() -> None:
        mine, theirs = socket.socketpair()
        theirs.settimeout(60)
        context = tls.server_context()

        def serve() -> ssl.SSLSocket:
            return context.wrap_socket(theirs, server_side=True)

        serving = tls.loop.run_in_executor(None, serve)
        _, client = await tls.loop.create_connection(
            tls.Recorder,
            sock=mine,
            ssl=tls.client_context(),
            server_hostname="localhost",
            ssl_shutdown_timeout=0.05,
        )
        with await serving:
            client.transport.close()
            assert client.transport.is_closing()
            assert isinstance(await client.lost, TimeoutError)

    tls.run(main)


# asyncio leaves the socket to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:Exception ignored")
@pytest.mark.parametrize("option", ["ssl_handshake_timeout", "ssl_shutdown_timeout"])
def test_a_timeout_must_be_positive(tls: Any, option: str) -> None:
    async def main() -> None:
        address = await tls.serve(tls.Recorder)
        with pytest.raises(ValueError, match="should be a positive number"):
            await tls.connect(tls.Recorder, address, **{option: -1})

    tls.run(main)
    gc.collect()


def test_what_is_no_tls_ends_the_connection(tls: Any) -> None:
    async def main() -> None:
        mine, theirs = socket.socketpair()
        context = tls.server_context()
        wrapped = tls.loop.run_in_executor(
            None, lambda: context.wrap_socket(theirs.dup(), server_side=True)
        )
        with theirs:
            _, client = await tls.loop.create_connection(
                tls.Recorder, sock=mine, ssl=tls.client_context(), server_hostname="localhost"
            )
            with await wrapped as peer:
                peer.sendall(b"fine")
                await tls.until(lambda: client.got == b"fine")
                theirs.sendall(b"please end this connection")
                assert isinstance(await client.lost, ssl.SSLError)

    tls.run(main)


@pytest.mark.parametrize("where", ["data_received", "eof_received", "connection_made"])
def test_a_protocol_that_raises_is_reported(tls: Any, where: str) -> None:
    async def main() -> None:
        class Raises(tls.Recorder):
            pass

        def fail(self: Any, *args: object) -> None:
            if where == "connection_made":
                self.transport = args[0]
            raise ZeroDivisionError(where)

        setattr(Raises, where, fail)
        server, client = await tls.pair(server=Raises)
        if where == "data_received":
            client.transport.write(b"?")
        if where != "connection_made":
            client.transport.close()
        error = await server.lost
        if where == "data_received":
            assert isinstance(error, ZeroDivisionError)
        await client.lost
        assert [type(report["exception"]) for report in tls.reports] == [ZeroDivisionError]
        messages = {
            "data_received": "Fatal error on SSL protocol",
            "eof_received": "Error calling eof_received()",
            "connection_made": "Fatal error: protocol.buffer_updated() call failed.",
        }
        assert tls.reports[0]["message"] == messages[where]

    tls.run(main)


def test_pause_writing_that_raises_is_reported(tls: Any) -> None:
    async def main() -> None:
        class Raises(tls.Recorder):
            def pause_writing(self) -> None:
                raise ZeroDivisionError

        server, client = await tls.pair(client=Raises)
        server.transport.pause_reading()
        for _ in range(200):
            client.transport.write(bytes(100_000))
        assert [report["message"] for report in tls.reports] == ["protocol.pause_writing() failed"]
        assert tls.reports[0]["transport"] is client.transport
        client.transport.abort()
        server.transport.resume_reading()
        await server.lost
        await client.lost

    tls.run(main)


def test_what_a_tls_transport_cannot_do(tls: Any, caplog: Any) -> None:
    async def main() -> None:
        server, client = await tls.pair()
        with pytest.raises(TypeError, match="bytes-like"):
            client.transport.write("text")
        assert not client.transport.can_write_eof()
        with pytest.raises(NotImplementedError):
            client.transport.write_eof()
        client.transport.write(b"")
        assert client.transport.get_write_buffer_size() == 0
        client.transport.close()
        await server.lost
        await client.lost
        for _ in range(10):
            client.transport.write(b"too late")
        client.transport.writelines([b"too late"])

    with caplog.at_level(logging.WARNING, logger="asyncio"):
        tls.run(main)
    assert "SSL connection is closed" in caplog.text


def test_an_interrupt_in_a_protocol_ends_the_run(tls: Any) -> None:
    ends: list[Any] = []

    async def main() -> None:
        class Interrupts(tls.Recorder):
            def data_received(self, data: bytes) -> None:
                raise KeyboardInterrupt

        ends.extend(await tls.pair(server=Interrupts))
        ends[1].transport.write(b"?")
        await asyncio.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        tls.loop.run_until_complete(main())

    async def end() -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        for protocol in ends:
            protocol.transport.abort()
            await protocol.lost

    tls.run(end)
    assert tls.reports == []
