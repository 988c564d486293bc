"""What the tests with packages from PyPI share: certificates, and a coroutine with a limit."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trustme

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

Loop = asyncio.AbstractEventLoop


class Tls(NamedTuple):
    """A server of 127.0.0.1 and who trusts it, as contexts and as files."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    certificate: str
    key: str


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    folder: Path = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    certificate, key = folder / "server.pem", folder / "server.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issued.configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return Tls(server, client, str(certificate), str(key))


@pytest.fixture
def run(loop: Loop) -> Callable[[Callable[[], Awaitable[Any]]], Any]:
    """Runs a coroutine function on the loop under test, within two minutes."""

    def run(main: Callable[[], Awaitable[Any]]) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(120):
                return await main()

        return loop.run_until_complete(limited())

    return run
