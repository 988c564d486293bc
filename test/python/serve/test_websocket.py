"""The websocket part of the ASGI specification, section by section; the same against uvicorn."""

from __future__ import annotations

import asyncio
import logging

import pytest
import websockets
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory

# Connection scope, connect, accept


def test_the_scope_is_that_of_a_websocket(host, url, echo_socket):
    app = echo_socket()

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            protocols = ["chat", "superchat"]
            async with connect(url(peer, "/a%20b?c=d"), subprotocols=protocols):
                return peer.port

    port = host.run(main)
    (scope,) = app.scopes
    assert scope["type"] == "websocket"
    assert scope["scheme"] == "ws"
    assert scope["http_version"] == "1.1"
    assert (scope["path"], scope["raw_path"]) == ("/a b", b"/a%20b")
    assert scope["query_string"] == b"c=d"
    assert scope["subprotocols"] == ["chat", "superchat"]
    assert tuple(scope["server"]) == ("127.0.0.1", port)
    assert scope["extensions"] == {"websocket.http.response": {}}
    assert (b"upgrade", b"websocket") in scope["headers"]
    assert "method" not in scope
    assert app.events[0] == {"type": "websocket.connect"}


def test_nothing_is_accepted_before_the_application_accepts(host, url):
    async def main():
        asked, go = asyncio.Event(), asyncio.Event()

        async def app(scope, receive, send):
            await receive()
            asked.set()
            await go.wait()
            await send({"type": "websocket.accept"})
            await receive()

        async with host.serve(app, lifespan="off") as peer:
            opening = asyncio.create_task(connect(url(peer)).__aenter__())
            await asked.wait()
            assert not opening.done()
            go.set()
            await (await opening).close()

    host.run(main)


def test_accept_has_a_subprotocol_and_headers(host, url, echo_socket):
    app = echo_socket({"subprotocol": "superchat", "headers": [(b"x-a", b"1"), (b"x-a", b"2")]})

    async def main():
        async with (
            host.serve(app, lifespan="off") as peer,
            connect(url(peer), subprotocols=["chat", "superchat"]) as client,
        ):
            return client.subprotocol, client.response.headers.get_all("x-a")

    assert host.run(main) == ("superchat", ["1", "2"])


# Receive and send


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_messages_come_back_as_they_were_sent(host, compression, url, echo_socket):
    messages = ["", "text", "caf\u00e9 \U0001f600", b"", b"\x00\xff", "x" * 70_000, b"y" * 300_000]

    async def main():
        async with host.serve(echo_socket(), lifespan="off") as peer:
            options = {"compression": compression, "max_size": None}
            async with connect(url(peer), **options) as client:
                back = []
                for message in messages:
                    await client.send(message)
                    back.append(await client.recv())
                return back, client.protocol.extensions

    back, extensions = host.run(main)
    assert back == messages
    assert bool(extensions) is (compression is not None)


@pytest.mark.parametrize("server_forgets", [False, True])
@pytest.mark.parametrize("client_forgets", [False, True])
@pytest.mark.parametrize("bits", [9, 15])
def test_compression_is_as_agreed(our_host, server_forgets, client_forgets, bits, url, echo_socket):
    offer = ClientPerMessageDeflateFactory(
        server_no_context_takeover=server_forgets,
        client_no_context_takeover=client_forgets,
        server_max_window_bits=bits,
        client_max_window_bits=bits,
    )

    async def main():
        async with (
            our_host.serve(echo_socket(), lifespan="off") as peer,
            connect(url(peer), extensions=[offer], compression=None) as client,
        ):
            agreed = client.response.headers["sec-websocket-extensions"]
            for turn in range(20):
                message = f"{turn} and the same again " * 100 * (turn + 1)
                await client.send(message)
                assert await client.recv() == message
            return agreed

    agreed = our_host.run(main)
    assert ("server_no_context_takeover" in agreed) is server_forgets
    assert f"server_max_window_bits={min(bits, 12)}" in agreed


def test_a_message_may_come_in_fragments(host, url, echo_socket):
    async def main():
        async with host.serve(echo_socket(), lifespan="off") as peer, connect(url(peer)) as client:
            await client.send(["frag", "men", "ted"])
            return await client.recv()

    assert host.run(main) == "fragmented"


def test_a_ping_is_answered_within_a_message(host, url, echo_socket):
    async def main():
        async with host.serve(echo_socket(), lifespan="off") as peer, connect(url(peer)) as client:
            return await (await client.ping(b"payload")) >= 0

    assert host.run(main)


def test_messages_wait_for_an_application_that_does_not_receive(our_host, url):
    async def main():
        go = asyncio.Event()
        total = 0

        async def app(scope, receive, send):
            nonlocal total
            await receive()
            await send({"type": "websocket.accept"})
            await go.wait()
            while (event := await receive())["type"] == "websocket.receive":
                total += len(event["bytes"])

        async with (
            our_host.serve(app, lifespan="off") as peer,
            connect(url(peer), compression=None) as client,
        ):
            sent = 0

            async def send_all():
                nonlocal sent
                for _ in range(1000):
                    await client.send(b"x" * 65536)
                    sent += 1

            sending = asyncio.create_task(send_all())
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.05)
            assert sent < 500
            go.set()
            await sending
        return total

    assert our_host.run(main) == 1000 * 65536


# Close and disconnect


def test_the_application_closes_with_code_and_reason(host, url):
    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 4001, "reason": "enough"})
        await receive()

    async def main():
        async with host.serve(app, lifespan="off") as peer, connect(url(peer)) as client:
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            return closed.value.rcvd.code, closed.value.rcvd.reason

    assert host.run(main) == (4001, "enough")


def test_the_client_closes_with_code_and_reason(host, url, echo_socket):
    app = echo_socket()

    async def main():
        async with host.serve(app, lifespan="off") as peer, connect(url(peer)) as client:
            await client.close(4002, "bye")
            return await app.heard("websocket.disconnect")

    event = host.run(main)
    assert (event["code"], event["reason"]) == (4002, "bye")


def test_a_client_that_vanishes_is_1006(our_host, url, echo_socket):
    app = echo_socket()

    async def main():
        async with our_host.serve(app, lifespan="off") as peer, connect(url(peer)) as client:
            client.transport.abort()
            return await app.heard("websocket.disconnect")

    assert our_host.run(main)["code"] == 1006


def test_close_before_accept_is_403(host, url):
    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.close"})

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            with pytest.raises(InvalidStatus) as refused:
                await connect(url(peer)).__aenter__()
            return refused.value.response.status_code

    assert host.run(main) == 403


def test_a_response_of_the_applications_own_denies(host, url):
    async def app(scope, receive, send):
        await receive()
        headers = [(b"x-why", b"busy")]
        start = {"type": "websocket.http.response.start", "status": 429, "headers": headers}
        await send(start)
        body = {"type": "websocket.http.response.body", "body": b"come ", "more_body": True}
        await send(body)
        await send({**body, "body": b"later", "more_body": False})

    async def main():
        async with host.serve(app, lifespan="off") as peer:
            with pytest.raises(InvalidStatus) as refused:
                await connect(url(peer)).__aenter__()
            response = refused.value.response
            return response.status_code, response.headers["x-why"], bytes(response.body)

    assert host.run(main) == (429, "busy", b"come later")


@pytest.mark.parametrize("accepts", [False, True])
def test_an_exception_is_500_or_1011(our_host, accepts, caplog, url):
    async def app(scope, receive, send):
        await receive()
        if accepts:
            await send({"type": "websocket.accept"})
        raise ZeroDivisionError("on purpose")

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            try:
                async with connect(url(peer)) as client:
                    await client.recv()
            except InvalidStatus as refused:
                return refused.response.status_code
            except ConnectionClosed as closed:
                return closed.rcvd.code

    with caplog.at_level(logging.ERROR):
        assert our_host.run(main) == (1011 if accepts else 500)
    assert "ZeroDivisionError" in caplog.text


def test_an_application_that_returns_closes_with_1000(our_host, url):
    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer, connect(url(peer)) as client:
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            return closed.value.rcvd.code

    assert our_host.run(main) == 1000


def test_sending_to_a_client_that_left_is_an_oserror(our_host, caplog, url):
    async def main():
        ended = asyncio.get_running_loop().create_future()

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            while (await receive())["type"] != "websocket.disconnect":
                pass
            try:
                await send({"type": "websocket.send", "text": "hello?"})
            except OSError as error:
                ended.set_result(error)
                raise

        async with our_host.serve(app, lifespan="off") as peer:
            async with connect(url(peer)):
                pass
            return await ended

    with caplog.at_level(logging.INFO, "erlang.serve"):
        assert isinstance(our_host.run(main), OSError)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "websocket.accept"},
        {"type": "websocket.send"},
        {"type": "websocket.close", "code": 1005},
        {"type": "http.response.start", "status": 200},
        {"type": "websocket.send", "text": b"bytes"},
    ],
)
def test_an_event_out_of_place_raises_in_the_application(our_host, event, caplog, url):
    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await send(event)

    async def main():
        async with our_host.serve(app, lifespan="off") as peer, connect(url(peer)) as client:
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            return closed.value.rcvd.code

    assert our_host.run(main) == 1011


# The end, and time


def test_a_server_that_stops_says_so(our_host, url, echo_socket):
    app = echo_socket()

    async def main():
        async with our_host.serve(app, lifespan="off") as peer, connect(url(peer)) as client:
            await peer.server.stop()
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            return closed.value.rcvd.code, app.events[-1]["code"]

    assert our_host.run(main) == (1012, 1012)


def test_a_silent_client_is_pinged_and_stays_if_it_answers(our_host, url, echo_socket):
    async def main():
        options = {"ws_ping_interval": 0.05, "ws_ping_timeout": 5.0}
        async with (
            our_host.serve(echo_socket(), lifespan="off", **options) as peer,
            connect(url(peer), ping_interval=None) as client,
        ):
            pings = 0
            answer = client.protocol.recv_frame

            def recv_frame(frame):
                nonlocal pings
                pings += frame.opcode is websockets.frames.Opcode.PING
                return answer(frame)

            client.protocol.recv_frame = recv_frame
            while pings < 3:
                await asyncio.sleep(0.01)
            await client.send("still here")
            return await client.recv()

    assert our_host.run(main) == "still here"
