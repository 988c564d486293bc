"""The cases of the Autobahn test suite, in a driver of our own: frames byte by byte.

The sections have its names and order. A case is what the client sends, and the frames it gets back
from an application that echoes.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import NamedTuple

import pytest

CONTINUES, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
LAST, PACKED = 0x80, 0x40
KEY = b"\x37\xfa\x21\x3d"


class Frame(NamedTuple):
    """As it is on the wire."""

    opcode: int
    payload: bytes = b""
    last: bool = True
    bits: int = 0

    def masked(self) -> bytes:
        size = len(self.payload)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 65536:
            length = bytes([0x80 | 126]) + size.to_bytes(2, "big")
        else:
            length = bytes([0x80 | 127]) + size.to_bytes(8, "big")
        stretched = (KEY * (size // 4 + 1))[:size]
        mixed = int.from_bytes(self.payload, "big") ^ int.from_bytes(stretched, "big")
        first = (LAST if self.last else 0) | self.bits | self.opcode
        return bytes([first]) + length + KEY + mixed.to_bytes(size, "big")


def closing(code: int | None = 1000, reason: bytes = b"") -> Frame:
    return Frame(CLOSE, b"" if code is None else code.to_bytes(2, "big") + reason)


def text(words: str | bytes, last: bool = True, opcode: int = TEXT) -> Frame:
    return Frame(opcode, words.encode() if isinstance(words, str) else words, last)


def binary(data: bytes, last: bool = True, opcode: int = BINARY) -> Frame:
    return Frame(opcode, data, last)


class Case(NamedTuple):
    """What is sent, in pieces of `chop` bytes, and what comes back."""

    sent: list[Frame]
    heard: list[Frame]
    chop: int = 0


def echoed(*frames: Frame, chop: int = 0) -> Case:
    """All comes back, and the end is in order."""
    return Case([*frames, closing()], [*frames, closing()], chop)


def fails(code: int, *sent: Frame, chop: int = 0) -> Case:
    return Case(list(sent), [closing(code)], chop)


FRAMING = {
    f"1.{part}.{number} {len(data)} bytes, {chop or 'no'} chops": echoed(
        Frame(opcode, data), chop=chop
    )
    for part, opcode in ((1, TEXT), (2, BINARY))
    for number, (data, chop) in enumerate(
        [(b"*" * size, 0) for size in (0, 125, 126, 127, 128, 65535, 65536)]
        + [(b"*" * 65536, 997)],
        1,
    )
}

PINGS = {
    "2.1 without payload": Case([Frame(PING), closing()], [Frame(PONG), closing()]),
    "2.2 payload": Case([Frame(PING, b"Hi"), closing()], [Frame(PONG, b"Hi"), closing()]),
    "2.3 binary payload": Case(
        [Frame(PING, b"\x00\xff\xfe"), closing()], [Frame(PONG, b"\x00\xff\xfe"), closing()]
    ),
    "2.4 125 bytes": Case(
        [Frame(PING, b"\xfe" * 125), closing()], [Frame(PONG, b"\xfe" * 125), closing()]
    ),
    "2.5 126 bytes": fails(1002, Frame(PING, b"\xfe" * 126)),
    "2.6 125 bytes, byte by byte": Case(
        [Frame(PING, b"\xfe" * 125), closing()], [Frame(PONG, b"\xfe" * 125), closing()], 1
    ),
    "2.7 a pong nobody asked for": Case([Frame(PONG), closing()], [closing()]),
    "2.8 with payload": Case([Frame(PONG, b"unasked"), closing()], [closing()]),
    "2.9 and a ping": Case(
        [Frame(PONG, b"unasked"), Frame(PING, b"p"), closing()], [Frame(PONG, b"p"), closing()]
    ),
    "2.10 ten pings": Case(
        [*(Frame(PING, b"%d" % at) for at in range(10)), closing()],
        [*(Frame(PONG, b"%d" % at) for at in range(10)), closing()],
    ),
}

RESERVED = {
    f"3.{number} bits {bits:#x}": fails(1002, Frame(opcode, b"Hi", bits=bits), chop=chop)
    for number, (opcode, bits, chop) in enumerate(
        [
            (TEXT, 0x10, 0),
            (TEXT, 0x20, 0),
            (TEXT, 0x30, 1),
            (BINARY, 0x50, 0),
            (PING, 0x60, 0),
            (CLOSE, 0x70, 0),
        ],
        1,
    )
}

OPCODES = {
    f"4.{number} opcode {opcode}": fails(1002, Frame(opcode, payload), chop=chop)
    for number, (opcode, payload, chop) in enumerate(
        [(opcode, payload, chop) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)
         for payload, chop in ((b"", 0), (b"payload", 1))],
        1,
    )
}  # fmt: skip

FRAGMENTS = {
    "5.1 a ping in two": fails(
        1002, Frame(PING, b"a", last=False), Frame(CONTINUES, b"b")
    ),
    "5.2 a pong in two": fails(
        1002, Frame(PONG, b"a", last=False), Frame(CONTINUES, b"b")
    ),
    "5.3 text in two": Case(
        [text("fragment1", False), text("fragment2", opcode=CONTINUES), closing()],
        [text("fragment1fragment2"), closing()],
    ),
    "5.5 byte by byte": Case(
        [text("fragment1", False), text("fragment2", opcode=CONTINUES), closing()],
        [text("fragment1fragment2"), closing()],
        1,
    ),
    "5.6 a ping between": Case(
        [text("a", False), Frame(PING, b"p"), text("b", opcode=CONTINUES), closing()],
        [Frame(PONG, b"p"), text("ab"), closing()],
    ),
    "5.9 a continuation of nothing": fails(1002, text("no", opcode=CONTINUES), text("Hi")),
    "5.12 one that goes on": fails(1002, text("no", False, CONTINUES), text("Hi")),
    "5.15 after a message": fails(
        1002, text("a", False), text("b", opcode=CONTINUES), text("c", False, CONTINUES)
    ),
    "5.18 text within text": fails(1002, text("a", False), text("b")),
    "5.19 six parts with two pings": Case(
        [
            text("1", False),
            text("2", False, CONTINUES),
            Frame(PING, b"x"),
            text("3", False, CONTINUES),
            text("4", False, CONTINUES),
            Frame(PING, b"y"),
            text("5", opcode=CONTINUES),
            closing(),
        ],
        [Frame(PONG, b"x"), Frame(PONG, b"y"), text("12345"), closing()],
    ),
    "5.20 empty parts": Case(
        [text("", False), text("", False, CONTINUES), text("", opcode=CONTINUES), closing()],
        [text(""), closing()],
    ),
}  # fmt: skip

GREEK = "Hello-µ@ßöäüàá-UTF-8!!"
GOOD_UTF8 = [
    "",
    "κόσμε",
    "\x00",
    "\x7f\x80\u07ff\u0800\ud7ff\ue000\ufffd\U00010000\U0010ffff",
    "\ufffe\uffff",
]
BAD_UTF8 = [
    b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
    b"\x80",
    b"\xbf",
    b"\xc2",
    b"\xe0\x80",
    b"\xf0\x80\x80",
    b"\xc0\xaf",
    b"\xe0\x80\xaf",
    b"\xf0\x80\x80\xaf",
    b"\xf8\x88\x80\x80\x80",
    b"\xf4\x90\x80\x80",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xfe",
    b"\xff",
]
UTF8 = {
    "6.1 empty": echoed(text("")),
    "6.2.1 valid": echoed(text(GREEK)),
    "6.2.3 a frame for each byte": Case(
        [
            text(GREEK.encode()[:1], False),
            *(text(bytes([byte]), False, CONTINUES) for byte in GREEK.encode()[1:]),
            text("", opcode=CONTINUES),
            closing(),
        ],
        [text(GREEK), closing()],
    ),
    **{f"6.5 valid {at}": echoed(text(words)) for at, words in enumerate(GOOD_UTF8)},
    **{f"6.6 invalid {at}": fails(1007, text(words)) for at, words in enumerate(BAD_UTF8)},
    "6.4 invalid in a later part": fails(
        1007,
        text("κόσμε", False),
        text(b"\xed\xa0\x80", False, CONTINUES),
        text("", True, CONTINUES),
    ),
}

GOOD_CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999]
BAD_CODES = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535]
CLOSES = {
    "7.1.1 after a message": echoed(text("Hello")),
    "7.1.2 twice": Case([closing(), closing()], [closing()]),
    "7.1.3 a ping after it": Case([closing(), Frame(PING)], [closing()]),
    "7.1.4 text after it": Case([closing(), text("late")], [closing()]),
    "7.1.5 within a message": Case([text("a", False), closing(), text("b", True, 0)], [closing()]),
    "7.3.1 without a code": Case([closing(None)], [closing(None)]),
    "7.3.2 one byte": fails(1002, Frame(CLOSE, b"a")),
    "7.3.4 a reason": Case([closing(1000, b"Hello")], [closing()]),
    "7.3.5 123 bytes of reason": Case([closing(1000, b"*" * 123)], [closing()]),
    "7.3.6 124 bytes of reason": fails(1002, Frame(CLOSE, b"\x03\xe8" + b"*" * 124)),
    "7.5.1 a reason that is not UTF-8": fails(1007, closing(1000, b"\xed\xa0\x80")),
    **{f"7.7 code {code}": Case([closing(code)], [closing(code)]) for code in GOOD_CODES},
    **{f"7.9 code {code}": fails(1002, closing(code)) for code in BAD_CODES},
}


def packed(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-15)
    out = machine.compress(data) + machine.flush(zlib.Z_SYNC_FLUSH)
    return out[:-4]


def stored(data: bytes) -> bytes:
    """Compressed data that is not: DEFLATE's block of plain bytes."""
    size = len(data).to_bytes(2, "little")
    other = (len(data) ^ 0xFFFF).to_bytes(2, "little")
    return b"\x00" + size + other + data + b"\x00"


LONG = b"the same again and again, " * 400
DEFLATE = {
    "12.1 a message": Case([Frame(TEXT, packed(b"Hello"), bits=PACKED)], [text("Hello")]),
    "12.2 a long one": Case([Frame(BINARY, packed(LONG), bits=PACKED)], [binary(LONG)]),
    "12.3 in parts": Case(
        [
            Frame(BINARY, packed(LONG)[:7], last=False, bits=PACKED),
            Frame(PING, b"between"),
            Frame(CONTINUES, packed(LONG)[7:]),
        ],
        [Frame(PONG, b"between"), binary(LONG)],
    ),
    "12.4 byte by byte": Case([Frame(BINARY, packed(LONG), bits=PACKED)], [binary(LONG)], 1),
    "12.5 one that is not": Case([text("plain")], [text("plain")]),
    "12.6 a stored block": Case([Frame(TEXT, stored(b"Hello"), bits=PACKED)], [text("Hello")]),
    "12.7 an empty one": Case([Frame(TEXT, b"\x00", bits=PACKED)], [text("")]),
    "13.1 broken": fails(1007, Frame(TEXT, b"\xff" * 9, bits=PACKED)),
    "13.2 bit on a later part": fails(
        1002, Frame(TEXT, b"a", last=False), Frame(CONTINUES, b"b", bits=PACKED)
    ),
    "13.3 a packed ping": fails(1002, Frame(PING, b"a", bits=PACKED)),
    "13.4 text that is not UTF-8": fails(1007, Frame(TEXT, packed(b"\xff"), bits=PACKED)),
}

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n"
)


class Driver:
    """A client that reads frames as they are."""

    def __init__(self, wire) -> None:
        self.wire = wire
        self.inflate = zlib.decompressobj(wbits=-15)

    async def open(self, extension: bytes = b"") -> None:
        self.wire.send(HANDSHAKE % extension)
        status, headers = await self.wire.head()
        assert status == 101
        assert dict(headers)["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    async def send(self, frames: list[Frame], chop: int) -> None:
        data = b"".join(frame.masked() for frame in frames)
        step = chop or len(data) or 1
        for at in range(0, len(data), step):
            self.wire.send(data[at : at + step])
            await asyncio.sleep(0)

    async def frame(self) -> Frame:
        first, second = await self.wire.reader.readexactly(2)
        # A server does not mask, and does not use what was not agreed on.
        assert second < 0x80
        assert not first & 0x30
        size = second
        if size > 125:
            size = int.from_bytes(
                await self.wire.reader.readexactly(2 if size == 126 else 8), "big"
            )
        payload = await self.wire.reader.readexactly(size)
        if first & PACKED:
            payload = self.inflate.decompress(payload + b"\x00\x00\xff\xff")
        if first & 15 == CLOSE:
            payload = payload[:2]
        return Frame(first & 15, payload, bool(first & LAST))


def play(host, case: Case, app, extension: bytes = b"", **options):
    """The frames that come back; nothing follows a close."""

    async def main():
        async with host.serve(app, lifespan="off", **options) as peer:
            driver = Driver(await peer.connect())
            await driver.open(extension)
            opcodes = [frame.opcode for frame in case.sent]
            end = opcodes.index(CLOSE) if CLOSE in opcodes else len(opcodes)
            await driver.send(case.sent[:end], case.chop)
            heard = [await driver.frame() for frame in case.heard if frame.opcode != CLOSE]
            # Who closes has heard all.
            await driver.send(case.sent[end:], case.chop)
            if len(heard) < len(case.heard):
                heard.append(await driver.frame())
                assert await driver.wire.is_closed()
            return heard

    return host.run(main)


def first_two(frames: list[Frame]) -> list[Frame]:
    """With the code of a close, which is what a peer must see."""
    return [Frame(at.opcode, at.payload[:2]) if at.opcode == CLOSE else at for at in frames]


# uvicorn's way: it resets the connection under a client that still sends, and takes broken
# compression for a broken rule.
ONLY_OURS = {name for name, case in OPCODES.items() if case.chop} | {
    "7.1.5 within a message",
    "13.1 broken",
}


def skip_difference(host, name: str) -> None:
    if host.name == "uvicorn" and name in ONLY_OURS:
        pytest.skip("uvicorn does it another way")


PLAIN = {**FRAMING, **PINGS, **RESERVED, **OPCODES, **FRAGMENTS, **UTF8, **CLOSES}


@pytest.mark.parametrize("name", PLAIN)
def test_frames_are_answered_as_the_rules_say(host, name, echo_socket):
    skip_difference(host, name)
    case = PLAIN[name]
    assert play(host, case, echo_socket()) == first_two(case.heard)


OFFER = b"Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n"


@pytest.mark.parametrize("name", DEFLATE)
def test_packed_messages_are_unpacked(host, name, echo_socket):
    skip_difference(host, name)
    case = DEFLATE[name]
    assert play(host, case, echo_socket(), OFFER) == first_two(case.heard)
