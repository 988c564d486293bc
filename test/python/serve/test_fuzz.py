"""A fuzzer of HTTP and of WebSocket frames, bounded and seeded.

It prints its seed; `FUZZ_SEED=7` repeats a run, and `FUZZ_CASES=100000` makes it longer. h11 reads
the same bytes: what we serve, it must understand in the same way, or a proxy could be deceived.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import secrets
from typing import Any

import h11
import pytest

CASES = int(os.environ.get("FUZZ_CASES", "400"))
LIMIT = b"\r\n\r\n"


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("FUZZ_SEED", secrets.randbelow(1 << 32)))
    print(f"FUZZ_SEED={seed}")
    return random.Random(seed)


class Recorder:
    """An application that keeps what it was asked, and answers with the body."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            body += event["body"]
            more = event["more_body"]
        target = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        self.seen.append((scope["method"], target, body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "X-OWN"]


def word(chance: random.Random) -> bytes:
    return bytes(chance.choices(b"abcxyzABCXYZ0189-_.", k=chance.randrange(1, 12)))


def request(chance: random.Random) -> tuple[bytes, tuple[str, bytes, bytes]]:
    """A request as it should be, and what the application must see of it."""
    method = chance.choice(METHODS)
    target = b"/" + b"/".join(word(chance) for _ in range(chance.randrange(3)))
    if chance.random() < 0.3:
        target += b"?" + word(chance) + b"=" + word(chance)
    body = b"" if method == "GET" else bytes(chance.choices(b"body\r\n 0:", k=chance.randrange(60)))
    headers = [(b"Host", word(chance))]
    headers += [(b"X-" + word(chance), word(chance)) for _ in range(chance.randrange(4))]
    if not body and chance.random() < 0.5:
        data = b""
    elif chance.random() < 0.5:
        headers.append((b"Content-Length", b"%d" % len(body)))
        data = body
    else:
        headers.append((b"Transfer-Encoding", b"chunked"))
        data = chunked(chance, body)
    chance.shuffle(headers)
    lines = [b"%s %s HTTP/1.1" % (method.encode(), target)]
    lines += [
        b"%s:%s%s" % (name, chance.choice([b"", b" ", b"\t "]), text) for name, text in headers
    ]
    return b"\r\n".join(lines) + LIMIT + data, (method, target, body)


def chunked(chance: random.Random, body: bytes) -> bytes:
    out, at = b"", 0
    while at < len(body):
        piece = body[at : at + chance.randrange(1, 20)]
        at += len(piece)
        size = chance.choice([b"%x", b"%X", b"0%x"]) % len(piece)
        out += size + chance.choice([b"", b"", b";note=1"]) + b"\r\n" + piece + b"\r\n"
    return out + b"0\r\n" + chance.choice([b"", b"", b"X-Trailer: t\r\n"]) + b"\r\n"


def pieces(chance: random.Random, data: bytes) -> list[bytes]:
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(5)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


async def speak(peer: Any, parts: list[bytes]) -> bytes:
    """Sends in pieces, then ends; all that comes back."""
    wire = await peer.connect()
    try:
        for part in parts:
            wire.send(part)
            await asyncio.sleep(0)
        wire.writer.write_eof()
        return await wire.is_closed_or_answered()
    except OSError:
        return b""
    finally:
        await wire.close()
        peer.wires.remove(wire)


def test_requests_in_any_pieces_are_answered_in_their_order(our_host, chance):
    app = Recorder()

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            for _ in range(CASES // 4):
                made = [request(chance) for _ in range(chance.randrange(1, 5))]
                data = b"".join(one for one, _ in made)
                app.seen.clear()
                wire = await peer.connect()
                for part in pieces(chance, data):
                    wire.send(part)
                    await asyncio.sleep(0)
                for _, (_, _, body) in made:
                    assert (await wire.response()).body == body, data
                assert app.seen == [wanted for _, wanted in made], data
                await wire.close()
                peer.wires.remove(wire)

    our_host.run(main)


TRICKS = [
    b"\r", b"\n", b"\r\n", b":", b" ", b"\t", b"\x00", b"0", b",", b";", b"\xff", b"\x0b", b"%",
    b"Content-Length: 3\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding : chunked\r\n", b" chunked", b"@", b"#",
    b"Host: other\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n", b" HTTP/1.0",
    b"\r\n\r\n", b"0\r\n\r\n", b"GET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n",
]  # fmt: skip


def mutant(chance: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(out) + 1)
        action = chance.randrange(4)
        if action == 0 and at < len(out):
            out[at] = chance.randrange(256)
        elif action == 1:
            del out[at : at + chance.randrange(1, 8)]
        elif action == 2:
            end = at + chance.randrange(1, 30)
            out[at:at] = out[at:end]
        else:
            # Most tricks are worth something at the start of a line.
            line = out.find(b"\n", at) + 1
            at = line if line and chance.random() < 0.6 else at
            out[at:at] = chance.choice(TRICKS)
    return bytes(out)


def understood(data: bytes) -> tuple[list[tuple[str, bytes, bytes]], bool]:
    """The requests that h11 reads, and whether it read the last one to its end."""
    seen: list[tuple[str, bytes, bytes]] = []
    while data:
        machine, asked, body = h11.Connection(h11.SERVER), None, b""
        # Empty lines before a request are to be ignored (RFC 9112, 2.2); h11 does not.
        machine.receive_data(re.sub(rb"\A(\r\n)+", b"", data))
        machine.receive_data(b"")
        try:
            asked = machine.next_event()
            if not isinstance(asked, h11.Request):
                break
            while isinstance(event := machine.next_event(), h11.Data):
                body += bytes(event.data)
        except h11.RemoteProtocolError as error:
            # It looks at the names of trailers, which we skip.
            if asked is None or not re.search("Transfer-Encoding|Content-Length", str(error)):
                break
            event = None
        if isinstance(event, h11.ConnectionClosed):
            break
        path, _, query = bytes(asked.target).partition(b"?")
        target = path + b"?" + query if query else path
        seen.append((asked.method.decode().upper(), target, body))
        if event is None:
            return seen, False
        data = machine.trailing_data[0]
        if machine.their_state is h11.MUST_CLOSE:
            break
    return seen, True


def test_what_is_served_is_understood_alike_by_others(our_host, chance):
    app = Recorder()

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            for _ in range(CASES):
                count = chance.randrange(1, 4)
                data = mutant(chance, b"".join(request(chance)[0] for _ in range(count)))
                app.seen.clear()
                answer = await speak(peer, pieces(chance, data))
                check_answers(answer, data)
                others, all_of_it = understood(data)
                ours = app.seen if all_of_it else app.seen[: len(others)]
                assert ours == others[: len(ours)], data
            while peer.server.info()["connections"]:
                await asyncio.sleep(0)
            assert peer.server.info()["in_flight"] == 0
            assert (await (await peer.connect()).get("/")).status == 200

    our_host.run(main)


def check_answers(answer: bytes, data: bytes) -> None:
    """Whole responses, one after another; the last may be cut where the client had ended."""
    while answer:
        assert answer.startswith(b"HTTP/1.1 "), (answer, data)
        head, end, rest = answer.partition(LIMIT)
        if not end or head.startswith(b"HTTP/1.1 100 "):
            answer = rest
            continue
        assert head.lower().count(b"content-length:") == 1, (answer, data)
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        answer = rest[size:]


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)


def frame(chance: random.Random) -> bytes:
    payload = chance.randbytes(chance.choice([0, 1, 2, 125, 126, 300]))
    first = chance.choice([0x81, 0x82, 0x01, 0x80, 0x00, 0x88, 0x89, 0x8A, 0xC1, 0xC2, 0x41])
    if chance.random() < 0.1:
        first = chance.randrange(256)
    size = len(payload) if chance.random() < 0.95 else chance.randrange(1 << 20)
    length = (
        bytes([0x80 | size]) if size < 126 else bytes([0xFE]) + (size & 0xFFFF).to_bytes(2, "big")
    )
    return bytes([first]) + length + b"\0\0\0\0" + payload


def test_no_frames_stop_the_server(our_host, chance, echo_socket):
    async def main():
        async with our_host.serve(echo_socket(), lifespan="off", ws_max_size=10_000) as peer:
            for _ in range(CASES):
                data = HANDSHAKE + b"".join(frame(chance) for _ in range(chance.randrange(1, 8)))
                if chance.random() < 0.2:
                    data = mutant(chance, data)
                answer = await speak(peer, pieces(chance, data))
                assert answer == b"" or answer.startswith(b"HTTP/1.1 "), data
            while peer.server.info()["connections"] or peer.server.info()["in_flight"]:
                await asyncio.sleep(0)

    our_host.run(main)
