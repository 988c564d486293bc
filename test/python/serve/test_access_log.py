"""The access log: its formats, what is logged, and where it goes when it is not `logging`'s."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from erlang.serve import Options, Server

if TYPE_CHECKING:
    from pathlib import Path

START = {"type": "http.response.start", "status": 200, "headers": []}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SHORT = '"%(request)s" %(status)s %(bytes)s'


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"hello"})


def lines(our_host: Any, tmp_path: Path, app: Any, talk: Any, **options: Any) -> list[str]:
    """What is in the log when the server has ended, after `talk(peer)`."""
    path = tmp_path / "access.log"
    path.unlink(missing_ok=True)

    async def main() -> None:
        options.setdefault("lifespan", "off")
        async with our_host.serve(app, access_log_file=str(path), **options) as peer:
            await talk(peer)

    our_host.run(main)
    text = path.read_text()
    assert text == "" or text.endswith("\n")
    return text.splitlines()


# Formats


def test_the_common_format_is_that_of_other_servers(our_host, tmp_path):
    async def talk(peer):
        wire = await peer.connect()
        await wire.get("/a%20b?c=d")
        await wire.get("/", f"traceparent: 00-{TRACE}-00f067aa0ba902b7-01")

    first, second = lines(our_host, tmp_path, hello, talk)
    time = r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\]"
    assert re.fullmatch(rf'127\.0\.0\.1 - - {time} "GET /a%20b\?c=d HTTP/1\.1" 200 5', first)
    assert second.endswith(f'"GET / HTTP/1.1" 200 5 trace_id={TRACE}')


def test_json_has_a_member_for_each_part(our_host, tmp_path):
    async def talk(peer):
        wire = await peer.connect()
        ids = [f"traceparent: 00-{TRACE}-00f067aa0ba902b7-01", "X-Request-ID: r-1"]
        await wire.get("/a?b", "User-Agent: curl/8", "Referer: http://r/", *ids)

    (line,) = lines(our_host, tmp_path, hello, talk, access_log_format="json")
    found = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("time"))
    assert found.pop("port") > 0
    assert found.pop("ms") >= 0
    assert found == {
        "client": "127.0.0.1",
        "method": "GET",
        "target": "/a?b",
        "protocol": "HTTP/1.1",
        "status": 200,
        "bytes": 5,
        "referer": "http://r/",
        "user_agent": "curl/8",
        "request_id": "r-1",
        "trace_id": TRACE,
    }


def test_a_format_string_has_the_fields_it_names(our_host, tmp_path):
    async def talk(peer):
        await (await peer.connect()).get("/a?b", "X-Mine: 7")

    text = "%(client)s|%(method)s|%(path)s|%(query)s|%({x-mine}i)s|%(trace_id)s|%(status)s|100%%"
    (line,) = lines(our_host, tmp_path, hello, talk, access_log_format=text)
    client, *rest = line.split("|")
    assert re.fullmatch(r"127\.0\.0\.1:\d+", client)
    assert rest == ["GET", "/a", "b", "7", "-", "200", "100%"]


def test_how_long_a_request_took_is_logged(our_host, tmp_path):
    async def app(scope, receive, send):
        await asyncio.sleep(0.05)
        await hello(scope, receive, send)

    async def talk(peer):
        await (await peer.connect()).get("/")

    (line,) = lines(our_host, tmp_path, app, talk, access_log_format="%(seconds)s %(ms)s %(us)s")
    seconds, millis, micros = map(float, line.split())
    assert 0.04 < seconds < 60
    # One look at the clock for all fields of a line.
    assert millis == pytest.approx(seconds * 1e3)
    assert micros == pytest.approx(seconds * 1e6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("combined", "access_log_format: 'combined' is not common or json"),
        ("%(nothing)s", "there is no field %(nothing)s; the fields are host, "),
        ("%(status)d", "is written %(status)s"),
        ("%(status)s\n", "control characters"),
    ],
)
def test_a_format_that_can_not_be_read_ends_what_was_started(our_host, tmp_path, text, said):
    heard = []

    async def app(scope, receive, send):
        assert scope["type"] == "lifespan"
        for what in ("startup", "shutdown"):
            heard.append((await receive())["type"])
            await send({"type": f"lifespan.{what}.complete"})

    with pytest.raises(ValueError, match=re.escape(said)):
        lines(our_host, tmp_path, app, None, lifespan="on", access_log_format=text)
    assert heard == ["lifespan.startup", "lifespan.shutdown"]


# What a client sends


HOSTILE = [
    b'" 200 1\\',
    b"\xff\xfe\x80 caf\xe9",
    "caf\u00e9 \u2028\u202e \u0085".encode(),
    b"a\tb",
    b"%(status)s %s {0} \\x41",
    b"x" * 20000,
    b'"' * 20000,
]


@pytest.mark.parametrize("value", HOSTILE)
def test_what_a_client_sends_stays_in_its_field(our_host, tmp_path, value):
    request = b"".join(
        [
            b'GET /"\'\\<>{}|^`?" HTTP/1.1\r\nHost: test\r\n',
            *(b"%b: %b\r\n" % (name, value) for name in (b"User-Agent", b"Referer")),
            b"X-Request-ID: %b\r\ntraceparent: %b\r\n\r\n" % (value, value[:100]),
        ]
    )

    async def talk(peer):
        wire = await peer.connect()
        assert (await wire.ask(request)).status == 200

    (line,) = lines(our_host, tmp_path, hello, talk, access_log_format="json")
    found = json.loads(line)
    assert (found["target"], found["status"], found["trace_id"]) == ('/"\'\\<>{}|^`?"', 200, None)
    assert len(line.encode()) < 4096
    text = '"%(request)s" %(status)s "%(referer)s" "%(user_agent)s" "%(request_id)s"'
    (line,) = lines(our_host, tmp_path, hello, talk, access_log_format=text)
    assert len(line) < 4096
    assert line.isascii()
    assert line.isprintable()
    head = r'"GET /\x22\'\x5c<>{}|^`?\x22 HTTP/1.1" 200 '.replace(r"\'", "'")
    assert line.startswith(head)
    assert line.count('"') == 8


def test_a_client_that_a_proxy_names_is_logged(our_host, tmp_path):
    async def talk(peer):
        wire = await peer.connect()
        await wire.get("/", "X-Forwarded-For: 203.0.113.9")
        await wire.ask(b"GET /#a HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n")

    options = {"trusted_proxies": "127.0.0.1", "access_log_format": "%(host)s %(status)s"}
    assert lines(our_host, tmp_path, hello, talk, **options) == [
        "203.0.113.9 200",
        "203.0.113.9 400",
    ]


# What is logged


def test_the_bytes_of_a_body_are_counted(our_host, tmp_path):
    (tmp_path / "file").write_bytes(b"f" * 1000)

    async def app(scope, receive, send):
        await send(START)
        if scope["path"] == "/file":
            path = str(tmp_path / "file")
            await send({"type": "http.response.pathsend", "path": path})
            return
        for _ in range(3):
            await send({"type": "http.response.body", "body": b"x" * 100, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def talk(peer):
        wire = await peer.connect()
        await wire.get("/chunks")
        await wire.get("/file")
        await wire.ask(b"HEAD /chunks HTTP/1.1\r\nHost: test\r\n\r\n", head=True)
        await wire.ask(b"GET /old HTTP/1.0\r\n\r\n")

    options = {"pathsend": True, "access_log_format": SHORT}
    assert lines(our_host, tmp_path, app, talk, **options) == [
        '"GET /chunks HTTP/1.1" 200 300',
        '"GET /file HTTP/1.1" 200 1000',
        '"HEAD /chunks HTTP/1.1" 200 0',
        '"GET /old HTTP/1.0" 200 300',
    ]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_request_that_gets_no_whole_answer_is_logged(our_host, tmp_path):
    begun = {}

    async def app(scope, receive, send):
        if scope["path"] == "/raises":
            raise RuntimeError("on purpose")
        if scope["path"] == "/silent":
            return
        if scope["path"] in ("/half", "/breaks"):
            await send(START)
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        if scope["path"] == "/breaks":
            raise RuntimeError("on purpose")
        begun[scope["path"]].set()
        while (await receive())["type"] != "http.disconnect":
            pass
        begun[scope["path"]].clear()

    async def leave(peer, path):
        begun[path] = asyncio.Event()
        wire = await peer.connect()
        wire.send(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        await begun[path].wait()
        await wire.close()
        while begun[path].is_set():
            await asyncio.sleep(0.001)

    async def talk(peer):
        for path in ("/raises", "/silent"):
            assert (await (await peer.connect()).get(path)).status == 500
        wire = await peer.connect()
        wire.send(b"GET /breaks HTTP/1.1\r\nHost: test\r\n\r\n")
        assert b"half" in await wire.is_closed_or_answered()
        await leave(peer, "/waits")
        await leave(peer, "/half")

    assert lines(our_host, tmp_path, app, talk, access_log_format=SHORT) == [
        '"GET /raises HTTP/1.1" 500 0',
        '"GET /silent HTTP/1.1" 500 0',
        '"GET /breaks HTTP/1.1" 200 4',
        '"GET /waits HTTP/1.1" 499 0',
        '"GET /half HTTP/1.1" 200 4',
    ]


REFUSED = [
    (b"GET / HTTP/1.1\r\n\r\n", '"-" 400 0'),
    (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", '"-" 400 0'),
    (b"GET /%b HTTP/1.1\r\nHost: test\r\n\r\n" % (b"a" * 3000), '"-" 431 0'),
    (b"GET / HTTP/2.0\r\nHost: test\r\n\r\n", '"-" 505 0'),
    (b"GET /#a HTTP/1.1\r\nHost: test\r\n\r\n", '"GET /#a HTTP/1.1" 400 0'),
    (
        b"POST /p HTTP/1.1\r\nHost: test\r\nContent-Length: 11\r\n\r\n",
        '"POST /p HTTP/1.1" 413 0',
    ),
    (
        b"POST /q HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
        '"POST /q HTTP/1.1" 400 0',
    ),
]


def test_what_is_refused_is_logged(our_host, tmp_path):
    async def app(scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass

    async def talk(peer):
        for request, said in REFUSED:
            answer = await (await peer.connect()).ask(request)
            assert str(answer.status) == said.split()[-2]

    options = {"max_header_size": 2000, "max_body_size": 10, "access_log_format": SHORT}
    assert lines(our_host, tmp_path, app, talk, **options) == [said for _, said in REFUSED]


HANDSHAKE = (
    b"GET /%b HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: %b\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def test_a_websocket_is_logged_once(our_host, tmp_path):
    left = asyncio.Event()

    async def app(scope, receive, send):
        await receive()
        if scope["path"] == "/denied":
            await send({"type": "websocket.close"})
            return
        if scope["path"] == "/in-its-own-words":
            start = {**START, "type": "websocket.http.response.start", "status": 418}
            await send(start)
            await send({"type": "websocket.http.response.body", "body": b"tea"})
            return
        await send({"type": "websocket.accept"})
        await receive()
        left.set()

    async def talk(peer):
        for path in (b"open", b"denied", b"in-its-own-words"):
            wire = await peer.connect()
            wire.send(HANDSHAKE % (path, b"13"))
            await wire.head()
            await wire.close()
        wire = await peer.connect()
        assert (await wire.ask(HANDSHAKE % (b"old", b"12"))).status == 426
        await left.wait()

    assert lines(our_host, tmp_path, app, talk, access_log_format=SHORT) == [
        '"GET /open HTTP/1.1" 101 0',
        '"GET /denied HTTP/1.1" 403 0',
        '"GET /in-its-own-words HTTP/1.1" 418 3',
        '"GET /old HTTP/1.1" 426 0',
    ]


# Where it goes


def test_without_an_access_log_nothing_is_written(our_host, tmp_path):
    async def talk(peer):
        await (await peer.connect()).get("/")

    path = tmp_path / "access.log"
    with pytest.raises(FileNotFoundError):
        lines(our_host, tmp_path, hello, talk, access_log=False)
    assert not path.exists()


def test_a_log_that_can_not_be_opened_is_told(our_host, tmp_path):
    async def main():
        server = Server(hello, Options(port=0, access_log_file=str(tmp_path / "no" / "such")))
        await server.start()

    with pytest.raises(FileNotFoundError, match="no/such"):
        our_host.run(main)


def test_records_of_logging_have_the_arguments_of_uvicorn(our_host, caplog):
    async def main():
        async with our_host.serve(hello, lifespan="off") as peer:
            await (await peer.connect()).get("/a?b")
            await (await peer.connect()).ask(b"nothing\r\n\r\n")

    with caplog.at_level(logging.INFO, "erlang.serve.access"):
        our_host.run(main)
    first, second = caplog.records
    client, *rest = first.args
    assert re.fullmatch(r"127\.0\.0\.1:\d+", client)
    assert rest == ["GET", "/a?b", "1.1", 200]
    assert first.getMessage() == f'{client} - "GET /a?b HTTP/1.1" 200'
    assert second.args[1:] == ("-", "-", "-", 400)


def test_a_record_of_logging_has_the_format_that_was_asked_for(our_host, caplog):
    async def main():
        options = {"lifespan": "off", "access_log_format": "%(method)s %(status)s"}
        async with our_host.serve(hello, **options) as peer:
            await (await peer.connect()).get("/")

    with caplog.at_level(logging.INFO, "erlang.serve.access"):
        our_host.run(main)
    assert [record.getMessage() for record in caplog.records] == ["GET 200"]


def test_a_filter_of_logging_that_raises_holds_up_no_request(our_host, caplog, monkeypatch):
    begun, left, raised = asyncio.Event(), asyncio.Event(), []

    async def app(scope, receive, send):
        if scope["path"] == "/":
            await hello(scope, receive, send)
            return
        begun.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    def fails(record):
        raise ValueError("a filter of the user's")

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            assert (await wire.get("/")).status == 200
            assert (await wire.get("/")).status == 200
            assert (await (await peer.connect()).ask(b"nothing\r\n\r\n")).status == 400
            wire = await peer.connect()
            wire.send(b"GET /waits HTTP/1.1\r\nHost: test\r\n\r\n")
            await begun.wait()
            await wire.close()
            await asyncio.wait_for(left.wait(), 20)

    monkeypatch.setattr("sys.unraisablehook", lambda said: raised.append(said.exc_type))
    access = logging.getLogger("erlang.serve.access")
    access.addFilter(fails)
    try:
        with caplog.at_level(logging.INFO, access.name):
            our_host.run(main)
    finally:
        access.removeFilter(fails)
    assert raised == [ValueError] * 4
