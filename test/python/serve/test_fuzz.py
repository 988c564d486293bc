"""A fuzzer of HTTP and of WebSocket frames, bounded and seeded, over real connections.

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

from http_fuzz.grammar import LIMIT, mutant, pieces, request
from http_fuzz.ours import Recorder

CASES = int(os.environ.get("FUZZ_CASES", "400"))


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("FUZZ_SEED", secrets.randbelow(1 << 32)))
    print(f"FUZZ_SEED={seed}")
    return random.Random(seed)


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
