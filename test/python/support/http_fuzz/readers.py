"""What h11 and llhttp understand of the bytes of a connection, in the words of ASGI."""

from __future__ import annotations

import dataclasses
from typing import Any

import h11
import httptools


@dataclasses.dataclass(frozen=True)
class Request:
    """A request with its body, and whether the connection goes on after it."""

    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    goes_on: bool


@dataclasses.dataclass
class Seen:
    """The requests of a connection, where each begins, and how it ended."""

    requests: list[Request] = dataclasses.field(default_factory=list)
    #: Of each request, and of what follows the last one.
    starts: list[int] = dataclasses.field(default_factory=lambda: [0])
    #: "waits" for more bytes, has "refused" what came, or has "closed" after an answer.
    end: str = "waits"
    #: Why, if it was refused.
    why: str = ""

    def at(self, index: int) -> Request | str:
        return self.requests[index] if index < len(self.requests) else self.end


def as_asgi(
    method: bytes, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes, goes_on: bool
) -> Request:
    """What the application is to be given: methods in upper case, names in lower case, no `?`
    without a query, and the host of an absolute target in place of the header (RFC 9112, 3.2.2)."""
    fields = [(name.lower(), value.strip(b" \t")) for name, value in headers]
    scheme, colon, rest = target.partition(b"://")
    if colon and scheme.lower() in (b"http", b"https"):
        size = min((at for at in map(rest.find, (b"/", b"?")) if at >= 0), default=len(rest))
        host, target = rest[:size], rest[size:]
        target = target if target.startswith(b"/") else b"/" + target
        fields = [(name, host if name == b"host" else value) for name, value in fields]
        if b"host" not in dict(fields):
            fields.append((b"host", host))
    path, _, query = target.partition(b"?")
    target = path + b"?" + query if query else path
    return Request(method.decode("latin-1").upper(), target, tuple(fields), body, goes_on)


def by_h11(data: bytes) -> Seen:
    seen = Seen()
    while seen.starts[-1] < len(data):
        machine = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        machine.receive_data(data[seen.starts[-1] :])
        body = b""
        try:
            asked = machine.next_event()
            if asked is h11.NEED_DATA:
                return seen
            while isinstance(event := machine.next_event(), h11.Data):
                body += bytes(event.data)
        except h11.RemoteProtocolError as error:
            seen.end, seen.why = "refused", str(error)
            return seen
        if event is h11.NEED_DATA:
            return seen
        headers = list(asked.headers)
        goes_on = machine.their_state is not h11.MUST_CLOSE and not closes(asked)
        seen.requests.append(as_asgi(asked.method, asked.target, headers, body, goes_on))
        seen.starts.append(len(data) - len(machine.trailing_data[0]))
        if not goes_on:
            seen.end = "closed"
            break
    return seen


def closes(asked: h11.Request) -> bool:
    """h11 does not say so of a request that asks to upgrade."""
    values = b",".join(value for name, value in asked.headers if name == b"connection")
    words = [word.strip().lower() for word in values.split(b",")]
    return b"close" in words or asked.http_version < b"1.1"


class Collector:
    """Hears what llhttp reads of one request."""

    def __init__(self) -> None:
        self.parser: Any = None
        self.goes_on = True
        self.target = self.body = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.in_head, self.done = True, False

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        # Those after the body are trailers.
        if self.in_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.in_head = False

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        # The parser forgets it with the next byte.
        self.goes_on = self.parser.should_keep_alive()
        self.done = True


def by_llhttp(data: bytes) -> Seen:
    seen = Seen()
    while True:
        collector = Collector()
        parser = collector.parser = httptools.HttpRequestParser(collector)
        try:
            size = feed(parser, collector, data, seen.starts[-1])
        except httptools.HttpParserError as error:
            seen.end, seen.why = "refused", str(error)
            return seen
        if size is None:
            return seen
        goes_on = collector.goes_on
        made = as_asgi(
            parser.get_method(), collector.target, collector.headers, collector.body, goes_on
        )
        seen.requests.append(made)
        seen.starts.append(size)
        if not goes_on:
            seen.end = "closed"
            return seen


def feed(parser: Any, collector: Collector, data: bytes, start: int) -> int | None:
    """Gives the parser one byte at a time: where the request ends, if it does."""
    for at in range(start, len(data)):
        try:
            parser.feed_data(data[at : at + 1])
        except httptools.HttpParserUpgrade:
            # A server may ignore it, and ours does.
            return at + 1
        if collector.done:
            return at + 1
    return None


READERS = {"h11": by_h11, "llhttp": by_llhttp}
