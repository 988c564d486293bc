"""A WebSocket that its client has closed, and an application that has not heard of it yet."""

from __future__ import annotations

import asyncio
import logging

import pytest
from websockets.asyncio.client import connect


def test_what_is_sent_after_the_client_has_closed_is_no_error_of_the_application(host, caplog, url):
    """The close frame comes with the messages before it, and is answered first."""

    async def main():
        ended = asyncio.get_running_loop().create_future()

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            heard = []
            try:
                while (event := await receive())["type"] == "websocket.receive":
                    heard.append(event["text"])
                    await send({"type": "websocket.send", "text": event["text"]})
            finally:
                ended.set_result(heard)

        async with host.serve(app, lifespan="off") as peer, connect(url(peer)) as client:
            words = b"".join(b"\x81\x81\0\0\0\0" + word for word in (b"a", b"b", b"c"))
            client.transport.write(words + b"\x88\x82\0\0\0\0\x03\xe8")
            await client.wait_closed()
            return await ended, client.close_code

    with caplog.at_level(logging.INFO):
        heard, code = host.run(main)
    assert heard[0] == "a"
    assert code == 1000
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("grouped", [False, True])
def test_the_same_for_a_client_that_does_not_read(our_host, grouped, caplog, narrow):
    """So the connection is still there when the application sends."""
    asks = (
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )

    async def main():
        loop = asyncio.get_running_loop()
        ready = loop.create_future()

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            flood = loop.create_task(send({"type": "websocket.send", "bytes": bytes(16 << 20)}))
            ready.set_result(asyncio.current_task())
            try:
                message = {"type": "websocket.send", "text": (await receive())["text"]}
                if not grouped:
                    await send(message)
                async with asyncio.TaskGroup() as group:
                    group.create_task(send(message))
            finally:
                flood.cancel()

        async with our_host.serve(app, lifespan="off") as peer:
            _, writer = await narrow(peer.port)
            writer.write(asks)
            task = await ready
            writer.write(b"\x81\x81\0\0\0\0a\x88\x82\0\0\0\0\x03\xe8")
            await asyncio.wait([task])
            writer.transport.abort()
            return task.exception()

    with caplog.at_level(logging.INFO):
        error = our_host.run(main)
    assert isinstance(error.exceptions[0] if grouped else error, OSError)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
