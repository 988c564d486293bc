"""Where our server, h11 and llhttp do not agree about the same bytes, each with its reason.

A difference that no entry explains is a failure. Most entries are of what we refuse and another one
takes: the server is meant to be the strictest of them, since what two readers understand differently
smuggles a request past one of them.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from .readers import Request, Seen

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Case:
    """The first message of a connection that two readers do not agree about."""

    reader: str
    #: From its first byte to the end of what the client sent.
    data: bytes
    ours: Request | str
    theirs: Request | str
    #: The status we refused with.
    status: str
    #: The error of the other reader.
    error: str

    @property
    def head(self) -> bytes:
        """Up to the empty line, however its lines end; empty lines before it are left out."""
        data = self.data.lstrip(b"\r\n")
        end = re.search(rb"\r?\n\r?\n|\r\r", data)
        return data[: end.start()] if end else data

    @property
    def whole_head(self) -> bytes:
        """With the empty lines around it."""
        lead = len(self.data) - len(self.data.lstrip(b"\r\n"))
        end = re.search(rb"\r?\n\r?\n|\r\r", self.data[lead:])
        return self.data[: lead + end.end()] if end else self.data

    @property
    def body(self) -> bytes:
        return self.data[len(self.whole_head) :]

    @property
    def words(self) -> list[bytes]:
        return re.split(rb"[ \t]", re.split(rb"[\r\n]", self.head)[0])

    @property
    def target(self) -> bytes:
        return self.words[1] if len(self.words) > 1 else b""

    def values(self, name: bytes) -> list[bytes]:
        """The values of the header, as lines that begin with its name."""
        lines = re.split(rb"\r?\n|\r", self.head)[1:]
        pairs = [line.partition(b":") for line in lines]
        return [value.strip(b" \t") for key, _, value in pairs if key.strip().lower() == name]

    @property
    def chunked(self) -> bool:
        return bool(self.values(b"transfer-encoding"))


@dataclasses.dataclass(frozen=True)
class Difference:
    """One kind of disagreement that is meant to be."""

    what: str
    reason: str
    holds: Callable[[Case], bool]


def refused(status: str, pattern: bytes = b"") -> Callable[[Case], bool]:
    """We refuse with the status what the other one takes, and the head is like the pattern."""
    found = re.compile(pattern, re.IGNORECASE)
    return lambda case: (
        case.ours == "refused" and case.status == status and bool(found.search(case.head))
    )


def error(reader: str, pattern: str) -> Callable[[Case], bool]:
    """We take what the other one refuses with such an error."""
    found = re.compile(pattern)
    return lambda case: (
        case.reader == reader
        and isinstance(case.ours, Request)
        and case.theirs == "refused"
        and bool(found.search(case.error))
    )


def hosts(case: Case) -> bool:
    return refused("400")(case) and len(case.values(b"host")) != 1


def form_of_target(case: Case) -> bool:
    served = case.target.startswith(b"/") or (case.target == b"*" and case.words[0] == b"OPTIONS")
    absolute = re.match(rb"(?i)https?://(?!:)[-\w.~%!$&'()*+,;=:[\]]+([/?]|$)", case.target)
    return refused("400")(case) and (b"#" in case.target or not (served or absolute))


def several_lengths(case: Case) -> bool:
    count = len(case.values(b"content-length")) + len(case.values(b"transfer-encoding"))
    odd = any(not re.fullmatch(rb"\d{1,18}", value) for value in case.values(b"content-length"))
    return refused("400")(case) and (count > 1 or odd)


def coded_one_zero(case: Case) -> bool:
    return refused("400", rb"\A\S* \S* HTTP/[01]\.0")(case) and case.chunked


def another_coding(case: Case) -> bool:
    codings = [value.lower() for value in case.values(b"transfer-encoding")]
    return case.ours == "refused" and case.status == "501" and codings != [b"chunked"]


def other_line_ends(case: Case) -> bool:
    head = case.whole_head
    # Only the end is looked for in a long head.
    left = refused("400")(case) or (case.ours == "waits" and len(head) > 4096)
    return left and bool(re.search(rb"(?<!\r)\n|\r(?!\n)", head))


def odd_chunks(case: Case) -> bool:
    return refused("400")(case) and case.chunked and not is_chunked_well(case.body)


def is_chunked_well(data: bytes) -> bool:
    """Whether it begins as a body in the strict chunked coding; its end may be cut off."""
    while size := re.match(
        rb"([0-9a-f]{1,15})(;[\t\x20-\x7e\x80-\xff]*)?\r\n", data, re.IGNORECASE
    ):
        count = int(size[1], 16)
        data = data[size.end() :]
        if count == 0:
            return bool(
                re.match(rb"([!#-'*+\-.^-z|~0-9A-Z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n", data)
            )
        if len(data) < count + 2:
            return True
        if data[count : count + 2] != b"\r\n":
            return False
        data = data[count + 2 :]
    return False


def many_headers(case: Case) -> bool:
    return refused("431")(case) and (case.head.count(b"\n") > 100 or len(case.head) > 65_000)


def empty_lines(case: Case) -> bool:
    return case.reader == "h11" and case.data.startswith(b"\r\n") and isinstance(case.ours, Request)


def upgraded(case: Case) -> bool:
    body = case.ours == "waits" or is_body(case)
    return case.reader == "llhttp" and bool(case.values(b"upgrade")) and body


def kept_open(case: Case) -> bool:
    if isinstance(case.ours, str) or isinstance(case.theirs, str):
        return False
    old = bool(re.match(rb"[^ ]* [^ ]* HTTP/1\.0\r\n", case.head + b"\r\n"))
    alike = same(dataclasses.replace(case.ours, goes_on=case.theirs.goes_on), case.theirs)
    return old and alike and case.ours.goes_on == (case.reader == "h11")


def is_body(case: Case) -> bool:
    """Only the body differs."""
    if isinstance(case.ours, str) or isinstance(case.theirs, str):
        return False
    return same(dataclasses.replace(case.ours, body=case.theirs.body), case.theirs)


KNOWN = [
    Difference(
        "a line that ends in a bare CR or LF",
        "h11 takes LF for the end of a line, llhttp both before a request. RFC 9112, 2.2 allows it; a proxy"
        " that does not is deceived.",
        other_line_ends,
    ),
    Difference(
        "no Host, or several",
        "llhttp leaves this to its user, h11 asks for one of HTTP/1.1 only. RFC 9112, 3.2: 400.",
        hosts,
    ),
    Difference(
        "a target of another form",
        "The others give any target to their user. We serve the origin form, the absolute form of http and"
        " https with a host and without a name before it, and `OPTIONS *`; a fragment is never sent (RFC"
        " 9112, 3.2). So `*?` is 400.",
        form_of_target,
    ),
    Difference(
        "a folded header",
        "h11 joins the lines. RFC 9112, 5.2 lets a server refuse it, and readers that do not join them see"
        " another header.",
        refused("400", rb"\r\n[ \t]"),
    ),
    Difference(
        "head, in lower case",
        "The application hears HEAD, so the answer has no body; to a reader that compares bytes it has one.",
        refused("400", rb"\Ahead "),
    ),
    Difference(
        "several lengths, or one that is not a number of at most 18 digits",
        "h11 takes equal lengths, and lets transfer-encoding win over content-length. RFC 9112, 6.3 lets a"
        " server refuse both: that is how requests are smuggled.",
        several_lengths,
    ),
    Difference(
        "chunked in HTTP/1.0",
        "RFC 9112, 6.1: the framing is to be treated as faulty.",
        coded_one_zero,
    ),
    Difference(
        "another coding than chunked",
        "`gzip, chunked` is 501 (RFC 9112, 6.1): nobody would undo the gzip.",
        another_coding,
    ),
    Difference(
        "CONNECT",
        "501: we are no proxy. The others take a body after it, or none.",
        refused("501", rb"\Aconnect\b"),
    ),
    Difference(
        "another version",
        "505, since only 1.x is served. h11 takes any two digits, llhttp 0.9 and 2.0.",
        refused("505"),
    ),
    Difference(
        "a request line of other than three words",
        "llhttp takes several spaces, and a line without a version as HTTP/0.9. RFC 9112, 3: one space.",
        lambda case: (
            case.reader == "llhttp"
            and refused("400")(case)
            and not re.match(rb"[^ \t]+ [^ \t]+ HTTP/\d\.\d\r\n", case.head + b"\r\n")
        ),
    ),
    Difference(
        "more than 100 headers, or a head of more than 64 KiB",
        "431; the limits are options of the server.",
        many_headers,
    ),
    Difference(
        "a control character in a header",
        "h11 refuses NUL and white space only. RFC 9110, 5.5: none but tab.",
        refused("400", rb"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]"),
    ),
    Difference(
        "white space around the size of a chunk, or more than 15 digits",
        "RFC 9112, 7.1 has none; h11 takes white space after the size, llhttp leading zeros without end.",
        odd_chunks,
    ),
    Difference(
        "a WebSocket handshake that is not complete",
        "426 or 400. The others do not look at it.",
        lambda case: (
            case.ours == "refused"
            and case.status in ("400", "426")
            and any(value.lower() == b"websocket" for value in case.values(b"upgrade"))
        ),
    ),
    Difference(
        "a body before another protocol",
        "llhttp reads no body when a request asks to upgrade. We ignore the wish (RFC 9110, 7.8), and the"
        " request has the body that its headers say.",
        upgraded,
    ),
    Difference(
        "empty lines before a request",
        "RFC 9112, 2.2: a server should ignore them. h11 does not.",
        empty_lines,
    ),
    Difference(
        "a connection of HTTP/1.0 that is kept",
        "h11 ends each of them. llhttp keeps one that says both keep-alive and close; RFC 9112, 9.3: close wins.",
        kept_open,
    ),
    Difference(
        "a method that llhttp does not know",
        "RFC 9110, 9.1: methods are open. ASGI applications get any token, in upper case.",
        error(
            "llhttp",
            "Invalid method|Expected space after method|Expected HTTP/2 Connection Preface",
        ),
    ),
    Difference(
        "a later minor version",
        "RFC 9110, 2.5: HTTP/1.2 is read as 1.1. llhttp knows 1.0 and 1.1 only.",
        error("llhttp", "Invalid HTTP version"),
    ),
    Difference(
        "white space after the coding",
        "RFC 9110, 5.5: it is not part of the value. llhttp refuses a tab there.",
        error("llhttp", "Request has invalid `Transfer-Encoding`"),
    ),
    Difference(
        "the inside of a chunk extension",
        "Nobody reads it. We refuse control characters and line ends in it; llhttp checks its grammar.",
        error("llhttp", "chunk extensions"),
    ),
    Difference(
        "a trailer with the name of a framing header",
        "Trailers are not looked at, and never become headers. The others refuse some of them.",
        lambda case: (
            case.chunked
            and (
                error("llhttp", "Content-Length|Transfer-Encoding")(case)
                or error("h11", "Content-Length|Transfer-Encoding|multiple Host")(case)
            )
        ),
    ),
]


def compare(reader: str, data: bytes, ours: Seen, theirs: Seen) -> Case | None:
    """The first message that the two do not agree about.

    Who waits has taken nothing yet, so that is no other opinion than a refusal.
    """
    for index in range(len(ours.requests) + 1):
        mine, other = ours.at(index), theirs.at(index)
        if isinstance(mine, str) and isinstance(other, str):
            break
        if not same(mine, other):
            start = theirs.starts[min(index, len(theirs.starts) - 1)]
            return Case(reader, data[start:], mine, other, ours.why, theirs.why)
    return None


def same(mine: Request | str, other: Request | str) -> bool:
    if isinstance(mine, str) or isinstance(other, str):
        return False
    return dataclasses.replace(mine, headers=plain(mine)) == dataclasses.replace(
        other, headers=plain(other)
    )


def plain(request: Request) -> tuple[tuple[bytes, bytes], ...]:
    """h11 gives codings in lower case."""
    coded = b"transfer-encoding"
    return tuple((k, v.lower() if k == coded else v) for k, v in request.headers)


def explained(case: Case) -> str | None:
    """What is known of the difference."""
    return next((known.what for known in KNOWN if known.holds(case)), None)
