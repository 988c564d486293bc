"""Datagram endpoints of the loop: native transports, and the parameter asyncio has given up."""

# The private parts of asyncio have no types, and what is mixed in uses what the loop has.
# mypy: disable-error-code="attr-defined,assignment,override,misc,arg-type,no-any-return"

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Datagrams:
    """Mixed into ErlangEventLoop."""

    def _make_datagram_transport(
        self, sock: Any, protocol: Any, address: Any = None, waiter: Any = None, extra: Any = None
    ) -> Any:
        if sock.family not in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
            return super()._make_datagram_transport(sock, protocol, address, waiter, extra)
        self._ensure_fd_no_transport(sock)
        return self._datagram(sock, protocol, address, waiter, extra)

    def _resolve_datagram(self, address: Any, ipv6: bool) -> Any:
        """The numeric address that a name stands for."""
        host, port = address[:2]
        family = socket.AF_INET6 if ipv6 else socket.AF_INET
        return socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)[0][4]

    async def create_datagram_endpoint(
        self,
        protocol_factory: Callable[[], Any],
        local_addr: Any = None,
        remote_addr: Any = None,
        *,
        family: int = 0,
        proto: int = 0,
        flags: int = 0,
        reuse_address: bool | None = None,
        reuse_port: bool | None = None,
        allow_broadcast: bool | None = None,
        sock: Any = None,
    ) -> tuple[Any, Any]:
        """As asyncio's, with ``reuse_address``: several sockets may have the same local address."""
        options = {"reuse_port": reuse_port, "allow_broadcast": allow_broadcast}
        if sock is not None and reuse_address:
            raise ValueError(
                "socket modifier keyword arguments can not be used when sock is specified. "
                f"(reuse_address: {reuse_address})"
            )
        if not (reuse_address and local_addr) or family == socket.AF_UNIX:
            # Without an address of its own there is nothing that could be used twice.
            return await super().create_datagram_endpoint(
                protocol_factory,
                local_addr,
                remote_addr,
                family=family,
                proto=proto,
                flags=flags,
                sock=sock,
                **options,
            )
        kind = {"family": family, "proto": proto, "flags": flags}
        errors = []
        for key, mine, theirs in await self._datagram_pairs(local_addr, remote_addr, kind):
            try:
                return await self._reusing_endpoint(protocol_factory, key, mine, theirs, options)
            except OSError as error:
                errors.append(error)
        raise errors[0]

    async def _datagram_pairs(self, local: Any, remote: Any, kind: dict[str, int]) -> list[Any]:
        """The families and protocols that both addresses have, with the addresses."""
        found: dict[Any, list[Any]] = {}
        for place, address in enumerate((local, remote)):
            if not address:
                continue
            if not (isinstance(address, tuple) and len(address) == 2):
                raise TypeError("2-tuple is expected")
            infos = await self._ensure_resolved(address, type=socket.SOCK_DGRAM, loop=self, **kind)
            for family, _, proto, _, resolved in infos:
                found.setdefault((family, proto), [None, None])[place] = resolved
        pairs = [
            (key, mine, theirs)
            for key, (mine, theirs) in found.items()
            if mine and (theirs or not remote)
        ]
        if not pairs:
            raise ValueError("can not get address information")
        return pairs

    async def _reusing_endpoint(
        self,
        protocol_factory: Callable[[], Any],
        key: tuple[int, int],
        local: Any,
        remote: Any,
        options: dict[str, bool | None],
    ) -> tuple[Any, Any]:
        sock = socket.socket(key[0], socket.SOCK_DGRAM, key[1])
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if options["reuse_port"]:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if options["allow_broadcast"]:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.bind(local)
            if remote and not options["allow_broadcast"]:
                await self.sock_connect(sock, remote)
            protocol = protocol_factory()
            waiter = self.create_future()
            transport = self._make_datagram_transport(sock, protocol, remote, waiter)
        except BaseException:
            sock.close()
            raise
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return transport, protocol
