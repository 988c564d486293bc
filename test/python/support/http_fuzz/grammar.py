"""HTTP/1.1 as it should be, as it should not be, and bytes changed at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "X-OWN"]
LIMIT = b"\r\n\r\n"


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


def mostly(chance: random.Random, usual: Sequence[bytes], odd: Sequence[bytes]) -> bytes:
    """One of `usual`, and now and then one of `odd`."""
    return chance.choice(usual if chance.random() < 0.94 else odd)


def message(chance: random.Random) -> bytes:
    """A request whose parts are each as they should be, or one of the ways they should not."""
    lead = mostly(chance, [b""], [b"\r\n", b"\n", b"\r\n\r\n", b"\r", b" ", b"\t"])
    framing = chance.choices(["none", "length", "chunked", "both"], [30, 30, 30, 2])[0]
    head = request_line(chance) + fields(chance, framing)
    return lead + head + line_end(chance) + body(chance, framing)


def request_line(chance: random.Random) -> bytes:
    method = mostly(
        chance,
        [b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"HEAD"],
        [b"CONNECT", b"connect", b"head", b"get", b"X-OWN", b"M-SEARCH", b"PRI", b"SOURCE", b"",
         b"G,T", b"G\tT", b"G\x00T", b"G\xe9T", b'"GET"', b"TRACE", b"QUERY", b"DESCRIBE"],
    )  # fmt: skip
    version = mostly(
        chance,
        [b"HTTP/1.1"],
        [b"HTTP/1.0", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/1.9", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/3.0",
         b"http/1.1", b"HTTP/1.10", b"HTTP/01.1", b"HTTP/1,1", b"HTTP /1.1", b"HTTP/1", b"HTTP/",
         b"", b"HTTPS/1.1", b"ICE/1.0", b"RTSP/1.0", b"HTTP/1.1 ", b"HTTP/1.1 x"],
    )  # fmt: skip
    gaps = [mostly(chance, [b" "], [b"  ", b"\t", b"", b"\x0b", b"\xa0"]) for _ in range(2)]
    return method + gaps[0] + target(chance) + gaps[1] + version + line_end(chance)


def target(chance: random.Random) -> bytes:
    path = b"/" + b"/".join(word(chance) for _ in range(chance.randrange(3)))
    if chance.random() < 0.3:
        path += b"?" + word(chance)
    if chance.random() < 0.9:
        return path
    odd = bytes([chance.randrange(256)])
    return chance.choice(
        [b"*", b"*?", b"*?a", b"*a", b"", b"//", b"//a", b"/?", b"?a", b"/a#b", b"/a?b#c", b"/a b",
         b"a", b"a/b", b"host:443", b":443", b"/%zz", b"/%00", b"/a?b?c", b"/\xc3\xa9", b"/..", b"/;a",
         b"http://host/a", b"HTTP://Host:80", b"https://h?q", b"http://h#f", b"http://u@h/", b"http://",
         b"http:///a", b"http://:80/", b"http:/a", b"ftp://h/a", b"http://[::1]:8/a", b"http://h:x/a",
         b"http://h\\a/b", path + odd, odd + path, b"http://h" + odd + b"/a", b"/" + odd + b"a"],
    )  # fmt: skip


def line_end(chance: random.Random) -> bytes:
    odd = [b"\n", b"\r", b"\r\r\n", b"\n\r", b" \r\n", b"\t\r\n", b"\r \n", b"\x00\r\n", b"\r\n "]
    return b"\r\n" if chance.random() < 0.98 else chance.choice(odd)


def fields(chance: random.Random, framing: str) -> bytes:
    lines = [plain_field(chance) for _ in range(chance.randrange(4))]
    hosts = chance.choices([1, 0, 2], [95, 3, 2])[0]
    lines += [field(chance, b"Host", host(chance)) for _ in range(hosts)]
    if framing in ("length", "both"):
        lines.append(field(chance, b"Content-Length", LENGTH))
    if framing in ("chunked", "both"):
        lines.append(field(chance, b"Transfer-Encoding", coding(chance)))
    if chance.random() < 0.1:
        lines.append(chance.choice(STRANGE))
    if chance.random() < 0.15:
        lines.append(field(chance, b"Connection", chance.choice(CONNECTION)))
    if chance.random() < 0.04:
        lines.append(field(chance, b"Upgrade", chance.choice([b"h2c", b"x", b"", b"websocket"])))
    if chance.random() < 0.04:
        lines.append(
            field(chance, b"Expect", chance.choice([b"100-continue", b"x", b"100-CONTINUE"]))
        )
    if chance.random() < 0.002:
        lines.append(
            b"".join(b"N: %d\r\n" % count for count in range(chance.choice([97, 101, 300])))
        )
    if chance.random() < 0.001:
        lines.append(b"L: " + b"x" * chance.choice([9000, 60_000, 70_000]) + b"\r\n")
    chance.shuffle(lines)
    return b"".join(lines)


#: Stands for the true length of the body, once that is known.
LENGTH = b"<length>"
CONNECTION = [
    b"close", b"keep-alive", b"Close", b"close, keep-alive", b"keep-alive, close", b"upgrade", b"x",
    b"close,", b",close", b"close x", b"xclose", b"", b"keep-alive, upgrade", b"\tclose", b'"close"',
]  # fmt: skip
STRANGE = [
    b"g:Host: host\r\n", b": empty\r\n", b"No colon\r\n", b"A b: c\r\n", b"A : b\r\n", b"A\t: b\r\n",
    b" A: b\r\n", b"\tA: b\r\n", b"A: b\r\n c\r\n", b"A: b\r\n\tc\r\n", b"A:\r\n b\r\n", b"A:\r\n",
    b"A: b\x00c\r\n", b"A: b\x7fc\r\n", b"A: b\x01c\r\n", b"A: \xff\xfe\r\n", b"A: b\rc\r\n",
    b"A: b\nc: d\r\n", b"A\xe9: b\r\n", b"(A): b\r\n", b"A@: b\r\n", b"A: \x0b\r\n", b"A: b\x0c\r\n",
    b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
    b"Content-Length: +5\r\n", b"Content-Length: 5, 5\r\n", b"Content-Length:\r\n",
    b"Content-Length: 0x5\r\n", b"Content-Length: 5 5\r\n", b"Content-Length: 05\r\n",
    b"Content-Length: 99999999999999999999\r\n", b"Content-Length: 1_0\r\n", b"content-length: 5 \r\n",
    b"Content-Length : 5\r\n", b"Content_Length: 5\r\n", b"Content-Length: \x0b5\r\n",
    b"Content-Length: \xd9\xa5\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding:\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer_Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\n , identity\r\n", b"Trailer: x\r\n", b"TE: trailers\r\n",
]  # fmt: skip


def field(chance: random.Random, name: bytes, value: bytes) -> bytes:
    before = mostly(chance, [b": ", b":", b":\t", b":  "], [b" :", b" ", b":\x0b", b"::", b":\xa0"])
    if chance.random() < 0.1:
        name = chance.choice([name.lower(), name.upper()])
    return (
        name
        + before
        + value
        + mostly(chance, [b"", b"", b" ", b"\t"], [b"\x0b"])
        + line_end(chance)
    )


def plain_field(chance: random.Random) -> bytes:
    return field(chance, b"X-" + word(chance), word(chance))


def host(chance: random.Random) -> bytes:
    return mostly(
        chance,
        [b"host", b"a:80", b"[::1]", b"1.2.3.4:5"],
        [
            b"",
            b" ",
            b"a b",
            b"a,b",
            b"a/b",
            b"a@b",
            b"h\xe9",
            b"http://h",
            b"a?b",
            b"a#b",
            b":",
            b"%",
        ],
    )


def coding(chance: random.Random) -> bytes:
    return mostly(
        chance,
        [b"chunked", b"chunked", b"Chunked"],
        [b"gzip, chunked", b"chunked, chunked", b"chunked, gzip", b"gzip", b"identity", b"", b"x",
         b"chunked,", b",chunked", b"chunked;q=1", b'"chunked"', b"chunke", b"xchunked", b"chunked x"],
    )  # fmt: skip


def body(chance: random.Random, framing: str) -> bytes:
    data = bytes(chance.choices(b"body\r\n 0:", k=chance.randrange(30)))
    if framing == "none":
        return b""
    if framing == "length" or chance.random() < 0.1:
        return data
    return odd_chunks(chance, data)


def odd_chunks(chance: random.Random, data: bytes) -> bytes:
    out, at = b"", 0
    while at < len(data):
        piece = data[at : at + chance.randrange(1, 20)]
        at += len(piece)
        size = chance.choice([b"%x", b"%X", b"0%x"]) % len(piece)
        size = mostly(
            chance, [size], [b"-" + size, b"+" + size, b"0x" + size, b" " + size, size + b" ", b"",
                             size + b"\t", size + b"g", b"f" * 16, b"f" * 17, b"0" * 20 + size, b"_" + size]
        )  # fmt: skip
        out += size + extension(chance) + line_end(chance) + piece
        out += mostly(chance, [b"\r\n"], [b"", b"\n", b"\r", b"x\r\n", b"\r\r\n"])
    return (
        out
        + mostly(chance, [b"0"], [b"00", b"", b"0 ", b"-0"])
        + extension(chance)
        + trailer(chance)
    )


def extension(chance: random.Random) -> bytes:
    odd = [b";", b";a", b";a=b", b';a="b"', b" ;a", b"; a", b";a = b", b';a="\r\n"', b";\x00", b";\xff",
           b";a;b", b";a=b;", b';a="', b";=b", b";a\t", b";a=b c", b";\x7f", b";a\n"]  # fmt: skip
    return b"" if chance.random() < 0.9 else chance.choice(odd)


def trailer(chance: random.Random) -> bytes:
    odd = [b"X: t\r\n", b"X:t\r\nY: t\r\n", b"no colon\r\n", b"X : t\r\n", b" X: t\r\n", b"X: t\r\n u\r\n",
           b": t\r\n", b"X: \x00\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
           b"Host: other\r\n", b"X: t\n", b"X\xff: t\r\n", b"X: \xff\r\n"]  # fmt: skip
    return (
        line_end(chance)
        + (b"" if chance.random() < 0.85 else chance.choice(odd))
        + line_end(chance)
    )


def case(chance: random.Random) -> bytes:
    """The bytes of one connection."""
    made = []
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        data = request(chance)[0] if chance.random() < 0.2 else message(chance)
        made.append(with_length(chance, data))
    data = b"".join(made)
    return mutant(chance, data) if chance.random() < 0.25 else data


def with_length(chance: random.Random, data: bytes) -> bytes:
    """The true length of the body in its place, or nearly."""
    size = len(data.partition(LIMIT)[2])
    if chance.random() < 0.05:
        size = max(0, size + chance.choice([-1, 1, 10]))
    return data.replace(LENGTH, b"%d" % size)
