"""WebSocket clients that break the rules: the right code, and the server goes on."""

from __future__ import annotations

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"Version: 13", b"Version: 8", 426),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"short", 400),
        (b"Sec-WebSocket-Key: ", b"X-Key: ", 400),
        (b"\r\n\r\n", b"\r\nContent-Length: 1\r\n\r\n", 400),
    ],
)
def test_a_handshake_that_is_not_one_is_refused(our_host, old, new, status, echo_socket):
    app = echo_socket()

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            return await wire.ask(HANDSHAKE.replace(old, new))

    response = our_host.run(main)
    assert response.status == status
    assert not app.scopes
    if status == 426:
        assert response.header("sec-websocket-version") == "13"


def test_a_word_that_is_no_text_hides_none_beside_it(our_host, echo_socket):
    app = echo_socket({"subprotocol": "chat"})
    extensions = b"Sec-WebSocket-Extensions: "
    protocols = b"Sec-WebSocket-Protocol: \xff, chat\r\n"

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(HANDSHAKE.replace(extensions, protocols + extensions + b"\xff, "))
            return await wire.head()

    status, headers = our_host.run(main)
    fields = dict(headers)
    assert status == 101
    assert fields["sec-websocket-protocol"] == "chat"
    assert fields["sec-websocket-extensions"].startswith("permessage-deflate")


def masked(first: int, payload: bytes = b"") -> bytes:
    mask = b"\x01\x02\x03\x04"
    body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    if len(payload) < 126:
        return bytes([first, 0x80 | len(payload)]) + mask + body
    return bytes([first, 0x80 | 126]) + len(payload).to_bytes(2, "big") + mask + body


BAD_FRAMES = {
    "not masked": (b"\x81\x01a", 1002),
    "reserved bit": (masked(0xA1, b"a"), 1002),
    "unknown opcode": (masked(0x83, b"a"), 1002),
    "unknown control": (masked(0x8B), 1002),
    "continuation of nothing": (masked(0x80, b"a"), 1002),
    "message within a message": (masked(0x01, b"a") + masked(0x81, b"b"), 1002),
    "ping in fragments": (masked(0x09), 1002),
    "long ping": (masked(0x89, b"a" * 126), 1002),
    "compressed ping": (masked(0xC9, b"a"), 1002),
    "close of one byte": (masked(0x88, b"a"), 1002),
    "close code that is none": (masked(0x88, (1005).to_bytes(2, "big")), 1002),
    "text that is not UTF-8": (masked(0x81, b"\xff"), 1007),
    "split character": (masked(0x01, b"\xc3") + masked(0x80, b"("), 1007),
    "reason that is not UTF-8": (masked(0x88, b"\x03\xe8\xff"), 1007),
    "broken compression": (masked(0xC1, b"\xff\xff\xff"), 1007),
    "too big": (masked(0x82, b"a" * 1001), 1009),
    "too big in fragments": (masked(0x02, b"a" * 600) + masked(0x80, b"a" * 600), 1009),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_frame_out_of_rule_closes_with_its_code(our_host, name, url, echo_socket):
    app = echo_socket()
    data, code = BAD_FRAMES[name]

    async def main():
        async with our_host.serve(app, lifespan="off", ws_max_size=1000) as peer:
            wire = await peer.connect()
            # The client does not wait for the answer: frames follow the head at once.
            wire.send(HANDSHAKE + data)
            assert (await wire.head())[0] == 101
            frame = await wire.reader.readexactly(4)
            assert await wire.is_closed()
            event = await app.heard("websocket.disconnect")
            async with connect(url(peer)) as client:
                await client.send("fine")
                assert await client.recv() == "fine"
            return frame[0], int.from_bytes(frame[2:], "big"), event["code"]

    assert our_host.run(main) == (0x88, code, code)


def test_a_compressed_bomb_is_too_big(our_host, url, echo_socket):
    async def main():
        async with (
            our_host.serve(echo_socket(), lifespan="off", ws_max_size=100_000) as peer,
            connect(url(peer)) as client,
        ):
            await client.send(b"\x00" * 10_000_000)
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            return closed.value.rcvd.code

    assert our_host.run(main) == 1009


def test_a_client_that_does_not_answer_a_ping_is_left(our_host, echo_socket):
    app = echo_socket()

    async def main():
        options = {"ws_ping_interval": 0.05, "ws_ping_timeout": 0.05}
        async with our_host.serve(app, lifespan="off", **options) as peer:
            wire = await peer.connect()
            wire.send(HANDSHAKE)
            assert (await wire.head())[0] == 101
            await wire.reader.read()
            return await app.heard("websocket.disconnect")

    assert our_host.run(main)["code"] == 1011
