"""Datagram endpoints, on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Loop = asyncio.AbstractEventLoop


class Recorder(asyncio.DatagramProtocol):
    transport: asyncio.DatagramTransport

    def __init__(self) -> None:
        self.got: asyncio.Queue[tuple[bytes, Any]] = asyncio.Queue()
        self.errors: asyncio.Queue[Exception] = asyncio.Queue()
        self.lost: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # asyncio's own is none to isinstance before Python 3.12.
        self.transport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.got.put_nowait((data, address))

    def error_received(self, error: Exception) -> None:
        self.errors.put_nowait(error)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)


def run(loop: Loop, main: Callable[[Loop], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await main(loop)

    loop.run_until_complete(limited())


async def endpoint(loop: Loop, **options: Any) -> Recorder:
    options = options or {"local_addr": ("127.0.0.1", 0)}
    _, protocol = await loop.create_datagram_endpoint(Recorder, **options)
    return protocol


async def close(*protocols: Recorder) -> None:
    for protocol in protocols:
        protocol.transport.close()
        assert protocol.transport.is_closing()
        assert await protocol.lost is None


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_datagrams_go_both_ways_and_say_where_they_came_from(loop: Loop, host: str) -> None:
    async def main(loop: Loop) -> None:
        one, two = [await endpoint(loop, local_addr=(host, 0)) for _ in range(2)]
        address = one.transport.get_extra_info("sockname")
        for data in (b"small", bytearray(b"b"), memoryview(b"m"), bytes(60_000)):
            two.transport.sendto(data, address)
            got, source = await one.got.get()
            assert got == bytes(data)
            assert source == two.transport.get_extra_info("sockname")
            one.transport.sendto(b"back", source)
            assert await two.got.get() == (b"back", address)
        assert one.transport.get_extra_info("socket").type == socket.SOCK_DGRAM
        assert one.transport.get_extra_info("peername") is None
        await close(one, two)

    run(loop, main)


def test_many_peers_are_told_apart(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        server = await endpoint(loop)
        address = server.transport.get_extra_info("sockname")
        peers = [await endpoint(loop) for _ in range(40)]
        for turn in range(3):
            for number, peer in enumerate(peers):
                peer.transport.sendto(b"%d.%d" % (turn, number), address)
            for _ in peers:
                data, source = await server.got.get()
                number = int(data.split(b".")[1])
                assert source == peers[number].transport.get_extra_info("sockname")
                server.transport.sendto(data, source)
            for number, peer in enumerate(peers):
                assert (await peer.got.get())[0] == b"%d.%d" % (turn, number)
        await close(server, *peers)

    run(loop, main)


def test_a_connected_endpoint_needs_no_address_and_takes_no_other(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        server = await endpoint(loop)
        address = server.transport.get_extra_info("sockname")
        client = await endpoint(loop, remote_addr=address)
        assert client.transport.get_extra_info("peername") == address
        client.transport.sendto(b"one")
        client.transport.sendto(b"two", address)
        assert [(await server.got.get())[0] for _ in range(2)] == [b"one", b"two"]
        with pytest.raises(ValueError, match="Invalid address"):
            client.transport.sendto(b"x", ("127.0.0.1", 1))
        await close(server, client)

    run(loop, main)


def test_a_refused_datagram_is_heard_of_and_the_endpoint_goes_on(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = nobody.getsockname()
        client = await endpoint(loop, remote_addr=address)
        client.transport.sendto(b"x")
        assert isinstance(await client.errors.get(), ConnectionRefusedError)
        assert not client.transport.is_closing()
        await close(client)

    run(loop, main)


def test_a_name_is_looked_up(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        one, two = await endpoint(loop), await endpoint(loop)
        port = one.transport.get_extra_info("sockname")[1]
        two.transport.sendto(b"x", ("localhost", port))
        assert (await one.got.get())[0] == b"x"
        await close(one, two)

    run(loop, main)


def test_what_is_no_buffer_is_refused(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        one = await endpoint(loop)
        with pytest.raises(TypeError, match="bytes-like"):
            one.transport.sendto("text", ("127.0.0.1", 9))  # type: ignore[arg-type]
        await close(one)

    run(loop, main)


def test_broadcast_needs_leave(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        allowed = await endpoint(loop, local_addr=("0.0.0.0", 0), allow_broadcast=True)
        sock = allowed.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST)
        refused = await endpoint(loop, local_addr=("0.0.0.0", 0))
        refused.transport.sendto(b"x", ("255.255.255.255", 9))
        assert isinstance(await refused.errors.get(), PermissionError)
        await close(allowed, refused)

    run(loop, main)


def test_a_protocol_that_raises_is_reported_and_the_endpoint_goes_on(loop: Loop) -> None:
    class Faulty(Recorder):
        def datagram_received(self, data: bytes, address: Any) -> None:
            super().datagram_received(data, address)
            raise ValueError("on purpose")

    async def main(loop: Loop) -> None:
        heard: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: heard.append(context))
        local = ("127.0.0.1", 0)
        _, server = await loop.create_datagram_endpoint(Faulty, local_addr=local)
        client = await endpoint(loop)
        for _ in range(2):
            client.transport.sendto(b"x", server.transport.get_extra_info("sockname"))
            await server.got.get()
        await asyncio.sleep(0)
        assert [type(context["exception"]) for context in heard] == [ValueError, ValueError]
        await close(server, client)

    run(loop, main)


def test_an_empty_datagram_arrives() -> None:
    # asyncio's loop sends none before Python 3.13.
    loop = erlang.new_event_loop()

    async def main(loop: Loop) -> None:
        one, two = await endpoint(loop), await endpoint(loop)
        assert isinstance(one.transport, asyncio.DatagramTransport)
        two.transport.sendto(b"", one.transport.get_extra_info("sockname"))
        two.transport.sendto(b"x", one.transport.get_extra_info("sockname"))
        assert [(await one.got.get())[0] for _ in range(2)] == [b"", b"x"]
        await close(one, two)

    run(loop, main)
    loop.close()


def test_unix_datagrams(loop: Loop, tmp_path: Any) -> None:
    async def main(loop: Loop) -> None:
        path = str(tmp_path / "socket")
        server = await endpoint(loop, local_addr=path, family=socket.AF_UNIX)
        client = await endpoint(loop, remote_addr=path, family=socket.AF_UNIX)
        client.transport.sendto(b"x")
        assert (await server.got.get())[0] == b"x"
        await close(server, client)

    run(loop, main)


@pytest.mark.parametrize("kind", ["path", "odd path", "abstract"])
def test_unix_addresses_are_those_of_the_socket_module(
    loop: Loop, tmp_path: Any, kind: str
) -> None:
    def name(which: int) -> Any:
        if kind == "abstract":
            return b"\0erlang-%d-%d" % (os.getpid(), which)
        return os.fsdecode(
            os.fsencode(tmp_path) + (b"/\xff%d" if "odd" in kind else b"/%d") % which
        )

    def bound(which: int) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.bind(name(which))
        return sock

    async def main(loop: Loop) -> None:
        one, two = [await endpoint(loop, sock=bound(which)) for which in (1, 2)]
        one.transport.sendto(b"there", name(2))
        data, source = await two.got.get()
        assert (data, source) == (b"there", name(1))
        two.transport.sendto(bytes(50_000), source)
        assert (await one.got.get())[0] == bytes(50_000)
        if kind != "abstract":
            two.transport.sendto(b"as bytes", os.fsencode(name(1)))
            assert await one.got.get() == (b"as bytes", name(2))
        await close(one, two)

    run(loop, main)


def test_a_unix_peer_without_a_name_and_one_that_is_not_there(loop: Loop, tmp_path: Any) -> None:
    async def main(loop: Loop) -> None:
        path = str(tmp_path / "socket")
        one = await endpoint(loop, family=socket.AF_UNIX, local_addr=path)
        two = await endpoint(loop, family=socket.AF_UNIX, remote_addr=path)
        two.transport.sendto(b"nameless")
        assert await one.got.get() == (b"nameless", None)
        one.transport.sendto(b"x", path + "-none")
        assert isinstance(await one.errors.get(), FileNotFoundError)
        one.transport.sendto(b"x", "/long" * 100)
        assert isinstance(await one.errors.get(), OSError)
        two.transport.sendto(b"still here")
        assert (await one.got.get())[0] == b"still here"
        await close(one, two)

    run(loop, main)


def test_a_unix_reader_that_is_slow_pauses_the_writer(loop: Loop, tmp_path: Any) -> None:
    class Slow(Recorder):
        def __init__(self) -> None:
            super().__init__()
            self.events: list[str] = []

        def pause_writing(self) -> None:
            self.events.append("pause")

        def resume_writing(self) -> None:
            self.events.append("resume")

    async def main(loop: Loop) -> None:
        path = str(tmp_path / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
            reader.bind(path)
            reader.setblocking(False)
            transport, writer = await loop.create_datagram_endpoint(
                Slow, family=socket.AF_UNIX, remote_addr=path
            )
            for number in range(300):
                transport.sendto(b"%d " % number + bytes(1000))
            assert writer.events == ["pause"]
            for number in range(300):
                data = await loop.sock_recv(reader, 2000)
                assert data.startswith(b"%d " % number)
            assert writer.events == ["pause", "resume"]
            await close(writer)

    run(loop, main)


# What `create_datagram_endpoint` takes; asyncio knows `reuse_address` no longer.


def option(protocol: Recorder, name: int) -> int:
    return protocol.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, name)


OPTIONS = {
    "reuse_address": socket.SO_REUSEADDR,
    "reuse_port": socket.SO_REUSEPORT,
    "allow_broadcast": socket.SO_BROADCAST,
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("given", [True, False, None])
def test_an_option_of_the_socket_is_set_as_asked(name: str, given: bool | None) -> None:
    async def main(loop: Loop) -> None:
        one = await endpoint(loop, local_addr=("127.0.0.1", 0), **{name: given})
        assert {known: bool(option(one, OPTIONS[known])) for known in OPTIONS} == {
            known: bool(given) and known == name for known in OPTIONS
        }
        await close(one)

    with closing(erlang.new_event_loop()) as loop:
        run(loop, main)


@pytest.mark.parametrize(
    ("host", "family"),
    [
        ("127.0.0.1", 0),
        ("::1", 0),
        # A name with two addresses: one that is in use is no failure while the other is free.
        ("localhost", socket.AF_INET),
    ],
)
def test_an_address_is_used_again_where_asked(host: str, family: int) -> None:
    async def opened(loop: Loop, **options: Any) -> Recorder:
        return await endpoint(loop, family=family, **options)

    async def main(loop: Loop) -> None:
        one = await opened(loop, local_addr=(host, 0), reuse_address=True)
        port = one.transport.get_extra_info("sockname")[1]
        two = await opened(loop, local_addr=(host, port), reuse_address=True, reuse_port=False)
        assert two.transport.get_extra_info("sockname")[1] == port
        with pytest.raises(OSError, match="in use"):
            await opened(loop, local_addr=(host, port))
        # The last one that was bound hears.
        sender = await opened(
            loop, local_addr=(host, 0), remote_addr=(host, port), reuse_address=True
        )
        sender.transport.sendto(b"x")
        assert (await two.got.get())[0] == b"x"
        with pytest.raises(ValueError, match="Invalid address"):
            sender.transport.sendto(b"x", (host, 1))
        await close(one, two, sender)

    with closing(erlang.new_event_loop()) as loop:
        run(loop, main)


def test_every_option_at_once() -> None:
    async def main(loop: Loop) -> None:
        one = await endpoint(loop, local_addr=("127.0.0.1", 0))
        address = one.transport.get_extra_info("sockname")
        every = await endpoint(
            loop,
            local_addr=("127.0.0.1", 0),
            remote_addr=address,
            family=socket.AF_INET,
            proto=socket.IPPROTO_UDP,
            flags=socket.AI_NUMERICHOST,
            reuse_address=True,
            reuse_port=True,
            allow_broadcast=True,
            sock=None,
        )
        assert [option(every, name) for name in OPTIONS.values()] == [1, 1, 1]
        every.transport.sendto(b"all", address)
        assert (await one.got.get())[0] == b"all"
        await close(one, every)

    with closing(erlang.new_event_loop()) as loop:
        run(loop, main)


def test_what_can_not_be_had_with_reuse_address_is_refused_and_leaves_no_socket() -> None:
    class Refused(Exception):
        pass

    def refuse() -> Recorder:
        raise Refused

    async def main(loop: Loop) -> None:
        before = os.listdir("/proc/self/fd")
        local = ("127.0.0.1", 0)
        with pytest.raises(Refused):
            await loop.create_datagram_endpoint(refuse, local_addr=local, reuse_address=True)
        with pytest.raises(TypeError, match="2-tuple"):
            await endpoint(loop, local_addr="127.0.0.1", reuse_address=True)
        with pytest.raises(ValueError, match="address information"):
            await endpoint(loop, local_addr=local, remote_addr=("::1", 9), reuse_address=True)
        with pytest.raises(OSError, match="assign"):
            await endpoint(loop, local_addr=("192.0.2.1", 9), reuse_address=True)
        with pytest.raises(ValueError, match="unexpected address family"):
            await endpoint(loop, reuse_address=True)
        assert os.listdir("/proc/self/fd") == before

    with closing(erlang.new_event_loop()) as loop:
        run(loop, main)


def test_a_socket_of_ones_own_takes_no_other_option(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            others: list[dict[str, Any]] = [
                {"local_addr": ("127.0.0.1", 0)},
                {"remote_addr": ("127.0.0.1", 9)},
                {"family": socket.AF_INET},
                {"proto": socket.IPPROTO_UDP},
                {"flags": socket.AI_PASSIVE},
                {"reuse_port": True},
                {"allow_broadcast": True},
            ]
            if isinstance(loop, erlang.ErlangEventLoop):
                others.append({"reuse_address": True})
            for other in others:
                with pytest.raises(ValueError, match="can not be used when sock is specified"):
                    await endpoint(loop, sock=sock, **other)
            sock.bind(("127.0.0.1", 0))
            one = await endpoint(loop, sock=sock)
            one.transport.sendto(b"self", sock.getsockname())
            assert await one.got.get() == (b"self", sock.getsockname())
            await close(one)

    run(loop, main)


def test_family_protocol_and_flags_say_which_address(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        for family in (socket.AF_INET, socket.AF_INET6):
            options = {"family": family, "proto": socket.IPPROTO_UDP}
            one = await endpoint(loop, local_addr=(None, 0), **options)
            own = one.transport.get_extra_info("socket")
            assert (own.family, own.proto) == (family, socket.IPPROTO_UDP)
            await close(one)
        unbound = await endpoint(loop, family=socket.AF_INET)
        assert unbound.transport.get_extra_info("socket").family == socket.AF_INET
        await close(unbound)
        with pytest.raises(socket.gaierror):
            await endpoint(loop, local_addr=("localhost", 0), flags=socket.AI_NUMERICHOST)

    run(loop, main)


def test_a_port_is_shared_where_asked(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        one = await endpoint(loop, local_addr=("127.0.0.1", 0), reuse_port=True)
        address = one.transport.get_extra_info("sockname")
        two = await endpoint(loop, local_addr=address, reuse_port=True)
        with pytest.raises(OSError, match="in use"):
            await endpoint(loop, local_addr=address)
        await close(one, two)

    run(loop, main)


def test_who_may_broadcast_sends_to_its_remote_address(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        one = await endpoint(loop)
        address = one.transport.get_extra_info("sockname")
        two = await endpoint(loop, remote_addr=address, allow_broadcast=True)
        assert two.transport.get_extra_info("peername") is None
        two.transport.sendto(b"one")
        two.transport.sendto(b"two", address)
        assert [(await one.got.get())[0] for _ in range(2)] == [b"one", b"two"]
        with pytest.raises(ValueError, match="Invalid address"):
            two.transport.sendto(b"x", ("127.0.0.1", 1))
        await close(one, two)

    run(loop, main)


def test_who_may_not_broadcast_is_told(loop: Loop) -> None:
    async def main(loop: Loop) -> None:
        to = ("255.255.255.255", 9)
        silent = await endpoint(loop)
        silent.transport.sendto(b"x", to)
        assert isinstance(await silent.errors.get(), PermissionError)
        loud = await endpoint(loop, local_addr=("0.0.0.0", 0), allow_broadcast=True)
        assert option(loud, socket.SO_BROADCAST) == 1
        await close(silent, loud)

    run(loop, main)


def link_local() -> tuple[str, int]:
    """An address of this machine that counts on one interface only, and the interface's number."""
    with open("/proc/net/if_inet6") as file:
        for line in file:
            address, number, _, scope, *_ = line.split()
            if scope == "20":
                groups = [address[place : place + 4] for place in range(0, 32, 4)]
                return ":".join(groups), int(number, 16)
    pytest.skip("no interface has a link-local address")


def test_a_datagram_by_an_interface_that_is_gone_ends_no_loop(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, number = link_local()

    def gone(index: int) -> str:
        raise OSError(errno.ENXIO, "No such device or address")

    monkeypatch.setattr(socket, "if_indextoname", gone)

    async def main() -> None:
        got: asyncio.Future[tuple[bytes, Any]] = loop.create_future()

        class Receives(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, address: Any) -> None:
                got.set_result((data, address))

        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as mine:
            mine.bind((host, 0, 0, number))
            mine.setblocking(False)
            transport, _ = await loop.create_datagram_endpoint(Receives, sock=mine)
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as theirs:
                theirs.bind((host, 0, 0, number))
                theirs.sendto(b"x", mine.getsockname())
                data, address = await asyncio.wait_for(got, 20)
                assert data == b"x"
                assert address[1:] == theirs.getsockname()[1:]
            transport.close()

    loop.run_until_complete(main())
