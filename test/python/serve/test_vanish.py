"""Clients that vanish in every phase: nothing is left of them, and the server goes on."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct

import pytest

HEAD = b"POST / HTTP/1.1\r\nHost: test\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SOCKET = (
    b"GET / HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
# What a client has sent when it vanishes, and what it has waited to hear before that.
PHASES = {
    "connected": (b"", b""),
    "in the request line": (b"GET /somewh", b""),
    "after the request line": (b"GET / HTTP/1.1\r\n", b""),
    "in a header": (HEAD + b"X-Long: aaaa", b""),
    "before the body": (HEAD + b"Content-Length: 10\r\n\r\n", b""),
    "in the body": (HEAD + b"Content-Length: 10\r\n\r\nabc", b""),
    "while told to go on": (HEAD + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", b"100"),
    "in a chunk size": (CHUNKED + b"1", b""),
    "in a chunk": (CHUNKED + b"5\r\nab", b""),
    "between chunks": (CHUNKED + b"2\r\nab\r\n", b""),
    "in the trailers": (CHUNKED + b"2\r\nab\r\n0\r\nX-T: ", b""),
    "while it waits": (HEAD + b"X-Wait: 1\r\n\r\n", b""),
    "in the response": (HEAD + b"X-Stream: 1\r\n\r\n", b"piece"),
    "after the response": (HEAD + b"\r\n", b"done"),
    "with a request waiting": (HEAD + b"X-Wait: 1\r\n\r\n" + HEAD + b"\r\n", b""),
    "before the accept": (SOCKET.replace(b"Host", b"X-Wait: 1\r\nHost"), b""),
    "accepted": (SOCKET, b"\r\n\r\n"),
    "in the head of a frame": (SOCKET + b"\x81", b"\r\n\r\n"),
    "in a frame": (SOCKET + b"\x81\x85\0\0\0\0ab", b"\r\n\r\n"),
    "in a fragmented message": (SOCKET + b"\x01\x82\0\0\0\0ab", b"\r\n\r\n"),
    "with a message unanswered": (SOCKET + b"\x81\x82\0\0\0\0ab", b"\r\n\r\n"),
    "in the closing handshake": (SOCKET + b"\x81\x83\0\0\0\0bye", b"\x88"),
}
HOW = ["ends", "resets"]


async def app(scope, receive, send):
    names = {name for name, _ in scope["headers"]}
    if scope["type"] == "websocket":
        await websocket(receive, send, b"x-wait" in names)
        return
    more = True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        more = event["more_body"]
    if b"x-wait" in names:
        assert (await receive())["type"] == "http.disconnect"
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while b"x-stream" in names:
        await send({"type": "http.response.body", "body": b"piece" * 1000, "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"done"})


async def websocket(receive, send, waits):
    await receive()
    if waits:
        assert (await receive())["type"] == "websocket.disconnect"
        return
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] != "websocket.disconnect":
        if event.get("text") == "bye":
            await send({"type": "websocket.close"})
            continue
        await send({"type": "websocket.send", "text": event["text"]})


async def vanish(port: int, sent: bytes, until: bytes, how: str) -> None:
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, sent)
        got = b""
        while until not in got:
            got += await loop.sock_recv(client, 65536)
        if how == "resets":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def of_requests() -> int:
    gc.collect()
    kinds = ("HttpConnection", "HttpRequest", "HttpWait")
    return sum(type(thing).__name__ in kinds for thing in gc.get_objects())


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("phase", PHASES)
def test_nothing_is_left_of_a_client_that_vanished(our_host, phase, how, caplog):
    sent, until = PHASES[phase]

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            before = of_requests()
            for _ in range(3):
                await vanish(peer.port, sent, until, how)
            # Accepted after the others: they are known by now.
            wire = await peer.connect()
            assert (await wire.get("/")).body == b"done"
            await wire.close()
            info = peer.server.info
            while info()["connections"] or info()["in_flight"]:
                await asyncio.sleep(0)
            return of_requests() - before

    assert our_host.run(main) == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
