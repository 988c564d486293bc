"""Clients that send and do not read: what is kept for them stays bounded."""

from __future__ import annotations

import asyncio
import gc
import zlib

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
START = {"type": "http.response.start", "status": 200, "headers": []}
BODY = b"x" * 10_000
# More than the kernel keeps for a connection.
MOST = 12_000_000


async def quiet(number) -> int:
    """Waits until a number has not changed for many turns of the loop."""
    same, last = 0, number()
    while same < 2000:
        await asyncio.sleep(0)
        same = same + 1 if number() == last else 0
        last = number()
    return last


def test_requests_of_a_client_that_reads_no_answers_wait(our_host, narrow):
    calls = 0

    async def app(scope, receive, send):
        nonlocal calls
        calls += 1
        await send(START)
        await send({"type": "http.response.body", "body": BODY})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            reader, writer = await narrow(peer.port)
            asked = 3 * MOST // len(BODY)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * asked)
            answered_unread = await quiet(lambda: calls)
            writer.transport.resume_reading()
            for _ in range(asked):
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 ")
                assert await reader.readexactly(len(BODY)) == BODY
            assert calls == asked
            writer.close()
            return answered_unread

    assert our_host.run(main) * len(BODY) < MOST


def test_the_last_send_of_an_answer_returns_though_the_client_has_not_read_it(host, narrow):
    body = b"x" * MOST
    sent = []

    async def app(scope, receive, send):
        await send({**START, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})
        sent.append(scope["path"])

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            reader, writer = await narrow(peer.port)
            for path in ("/a", "/b"):
                writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            while not sent:
                await asyncio.sleep(0)
            writer.transport.resume_reading()
            for _ in range(2):
                await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(len(body)) == body
            while len(sent) < 2:
                await asyncio.sleep(0)
            writer.close()

    host.run(main)
    assert sent == ["/a", "/b"]


def masked(first: int, payload: bytes) -> bytes:
    return bytes([first, 0x80 | len(payload)]) + b"\0\0\0\0" + payload


def test_pings_of_a_client_that_reads_no_pongs_are_answered_by_the_last(
    our_host, narrow, echo_socket
):
    async def main():
        async with our_host.serve(echo_socket(), lifespan="off") as peer:
            reader, writer = await narrow(peer.port)
            pings = [b"%0100d" % number for number in range(3 * MOST // 106)]
            writer.write(HANDSHAKE + b"".join(masked(0x89, ping) for ping in pings))
            transport = writer.transport
            assert await quiet(transport.get_write_buffer_size) == 0
            transport.resume_reading()
            await reader.readuntil(b"\r\n\r\n")
            pongs, pong = 0, b""
            while pong != pings[-1]:
                assert await reader.readexactly(2) == b"\x8a\x64"
                later = await reader.readexactly(100)
                assert later > pong
                pongs, pong = pongs + 1, later
            writer.close()
            return pongs

    assert our_host.run(main) * 106 < MOST


def test_frames_to_a_client_that_does_not_read_wait(our_host, narrow):
    """Each send waits until there is room for more."""
    payload = b"z" * 65_536
    frame = b"\x82\x7f" + len(payload).to_bytes(8, "big") + payload
    count = 3 * MOST // len(payload)
    sent = 0

    async def app(scope, receive, send):
        nonlocal sent
        await receive()
        await send({"type": "websocket.accept"})
        for _ in range(count):
            await send({"type": "websocket.send", "bytes": payload})
            sent += 1
        await receive()

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            reader, writer = await narrow(peer.port)
            writer.write(HANDSHAKE)
            sent_unread = await quiet(lambda: sent)
            writer.transport.resume_reading()
            await reader.readuntil(b"\r\n\r\n")
            for _ in range(count):
                assert await reader.readexactly(len(frame)) == frame
            assert sent == count
            writer.close()
            return sent_unread

    assert our_host.run(main) * len(payload) < MOST


def test_frames_before_the_accept_wait(our_host, narrow):
    accept = asyncio.Event()

    async def app(scope, receive, send):
        await receive()
        await accept.wait()
        await send({"type": "websocket.accept"})
        size = 0
        while size < 3 * MOST:
            size += len((await receive())["bytes"])
        await send({"type": "websocket.send", "text": str(size)})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            reader, writer = await narrow(peer.port)
            frame = masked(0x82, b"y" * 100)
            writer.write(HANDSHAKE + frame * (3 * MOST // 100))
            waiting = await quiet(writer.transport.get_write_buffer_size)
            accept.set()
            writer.transport.resume_reading()
            await reader.readuntil(b"\r\n\r\n")
            assert (await reader.readexactly(10))[2:] == str(3 * MOST).encode()
            writer.close()
            return waiting

    # Most of it has not left the client.
    assert our_host.run(main) > MOST


def test_a_client_that_was_told_to_close_and_goes_on_is_left(our_host):
    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})

    async def main():
        options = {"lifespan": "off", "ws_ping_interval": 0.04, "ws_ping_timeout": 0.04}
        async with our_host.serve(app, **options) as peer:
            wire = await peer.connect()
            wire.send(HANDSHAKE)
            assert (await wire.head())[0] == 101
            assert (await wire.reader.readexactly(4))[:2] == b"\x88\x02"
            # No pong is sent to these, and they buy no time.
            while not wire.reader.at_eof() and wire.reader.exception() is None:
                wire.send(masked(0x89, b"ping"))
                await asyncio.sleep(0.001)
            return await wire.is_closed()

    assert our_host.run(main)


def packed(payload: bytes) -> bytes:
    """A frame with a message that is compressed by itself."""
    packer = zlib.compressobj(wbits=-15)
    data = packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH)
    data = data.removesuffix(b"\0\0\xff\xff")
    head = b"\xc2\xfe" + len(data).to_bytes(2, "big")
    return head + b"\0\0\0\0" + data


def test_frames_that_grow_when_they_are_unpacked_wait_in_their_packed_form(our_host):
    """All of them come in one read; the ping behind them is answered when its turn comes."""
    message, count = b"\0" * 50_000, 200
    extension = b"Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n\r\n"

    async def main():
        read = asyncio.Event()
        taken = 0

        async def app(scope, receive, send):
            nonlocal taken
            await receive()
            await send({"type": "websocket.accept"})
            await read.wait()
            for _ in range(count):
                assert (await receive())["bytes"] == message
                taken += 1
            assert (await receive())["type"] == "websocket.disconnect"

        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(HANDSHAKE[:-2] + extension)
            assert (await wire.head())[0] == 101
            wire.send(packed(message) * count + masked(0x89, b"ping"))
            pong = asyncio.ensure_future(wire.reader.readexactly(6))
            assert not await quiet(pong.done)
            read.set()
            assert await pong == b"\x8a\x04ping"
            # What was before the ping is not more than what waits at most.
            assert taken >= count - 2
            while taken < count:
                await asyncio.sleep(0)
            wire.send(masked(0x88, b"\x03\xe8"))
            assert await wire.reader.readexactly(4) == b"\x88\x02\x03\xe8"

    our_host.run(main)


def futures() -> int:
    return sum(type(one) is asyncio.Future for one in gc.get_objects())


def test_a_receive_that_is_cancelled_leaves_nothing_behind(our_host):
    async def app(scope, receive, send):
        assert (await receive())["type"] == "http.request"

        async def heard():
            return await receive()

        stays = asyncio.ensure_future(heard())
        await asyncio.sleep(0)
        before = futures()
        for _ in range(100):
            waits = asyncio.ensure_future(heard())
            await asyncio.sleep(0)
            waits.cancel()
            await asyncio.wait([waits])
        after = futures()
        await send(START)
        await send({"type": "http.response.body", "body": b"%d" % (after - before)})
        # Who waits still hears of the end.
        assert (await stays)["type"] == "http.disconnect"

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            return int((await (await peer.connect()).get("/")).body)

    assert our_host.run(main) < 10
