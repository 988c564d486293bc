"""Two ends of a connection under TLS, each with a protocol that notes what happens to it."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HERE = Path(__file__).parent


class Recorder(asyncio.Protocol):
    """Notes what happens to a connection."""

    transport: Any = None

    def __init__(self) -> None:
        self.got = bytearray()
        self.events: list[str] = []
        self.lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        assert type(data) is bytes
        assert data
        self.got += data

    def eof_received(self) -> bool | None:
        self.events.append("eof")
        return None

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, error: BaseException | None) -> None:
        self.events.append("lost")
        self.lost.set_result(error)


class Echo(Recorder):
    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Tls:
    """What a test of TLS needs."""

    Recorder, Echo = Recorder, Echo

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.reports: list[dict[str, Any]] = []
        self.servers: list[Any] = []
        loop.set_exception_handler(lambda _, context: self.reports.append(context))

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(HERE / "server.pem")
        return context

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(HERE / "server.pem"))

    def certificate(self, name: str) -> str:
        return str(HERE / f"{name}.pem")

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.001)

    async def serve(self, factory: Callable[[], Any], **options: Any) -> tuple[str, int]:
        """The address of a server that goes with the test."""
        options.setdefault("ssl", self.server_context())
        server = await self.loop.create_server(factory, "127.0.0.1", 0, **options)
        self.servers.append(server)
        address: tuple[str, int] = server.sockets[0].getsockname()
        return address

    async def connect(self, factory: Callable[[], Any], address: Any, **options: Any) -> Any:
        options.setdefault("ssl", self.client_context())
        options.setdefault("server_hostname", "localhost")
        return (await self.loop.create_connection(factory, *address, **options))[1]

    async def pair(self, server: type[Any] = Recorder, client: type[Any] = Recorder) -> Any:
        """The protocols of both ends."""
        made: list[Any] = []

        def factory() -> Any:
            made.append(server())
            return made[-1]

        connected = await self.connect(client, await self.serve(factory))
        await self.until(lambda: made[0].transport)
        return made[0], connected

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            async with asyncio.timeout(60):
                await main()
                for server in self.servers:
                    server.close()
                    await server.wait_closed()

        self.loop.run_until_complete(limited())


@pytest.fixture
def tls(loop: asyncio.AbstractEventLoop) -> Tls:
    return Tls(loop)
