"""Extensions of the specification, proxies, mounts and WSGI."""

from __future__ import annotations

import asyncio
import socket
import wsgiref.validate
from typing import Any

import pytest

from erlang.serve import Mounts, Options, Server, Wsgi

START = {"type": "http.response.start", "status": 200, "headers": []}
GET = b"GET %b HTTP/1.1\r\nHost: test\r\n%b\r\n"


def answer(
    our_host: Any, app: Any, path: bytes = b"/", headers: bytes = b"", **options: Any
) -> Any:
    async def main():
        async with our_host.serve(app, lifespan="off", **options) as peer:
            return await (await peer.connect()).ask(GET % (path, headers))

    return our_host.run(main)


async def who(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    text = f"{scope['client'][0]} {scope['scheme']}"
    await send({"type": "http.response.body", "body": text.encode()})


# http.response.early_hint


def test_early_hints_come_before_the_response(our_host):
    async def app(scope, receive, send):
        assert "http.response.early_hint" in scope["extensions"]
        links = [b"</a.css>; rel=preload", b"</b.js>; rel=preload"]
        await send({"type": "http.response.early_hint", "links": links})
        await send(START)
        await send({"type": "http.response.body", "body": b"page"})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(GET % (b"/", b""))
            hints = await wire.head()
            page = await wire.response()
            old = await (await peer.connect()).ask(b"GET / HTTP/1.0\r\n\r\n")
            return hints, page.body, old

    (status, links), page, old = our_host.run(main)
    assert status == 103
    assert links == [("link", "</a.css>; rel=preload"), ("link", "</b.js>; rel=preload")]
    assert page == b"page"
    assert (old.status, old.body) == (200, b"page")


# http.response.trailers


@pytest.mark.parametrize("wanted", [True, False])
def test_trailers_follow_the_body_for_a_client_that_takes_them(our_host, wanted):
    async def app(scope, receive, send):
        assert "http.response.trailers" in scope["extensions"]
        await send({**START, "trailers": True})
        await send({"type": "http.response.body", "body": b"abc"})
        first = {"type": "http.response.trailers", "headers": [(b"x-sum", b"1")]}
        await send({**first, "more_trailers": True})
        await send({"type": "http.response.trailers", "headers": [(b"x-end", b"2")]})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            for _ in range(2):
                wire.send(GET % (b"/", b"TE: trailers\r\n" if wanted else b""))
                await wire.head()
                rest = await wire.reader.readuntil(b"0\r\n")
                trailers = b""
                while not (rest + trailers).endswith(b"\r\n\r\n"):
                    trailers += await wire.reader.readline()
            return rest, trailers

    rest, trailers = our_host.run(main)
    assert rest == b"3\r\nabc\r\n0\r\n"
    assert trailers == (b"x-sum: 1\r\nx-end: 2\r\n\r\n" if wanted else b"\r\n")


# http.response.pathsend


@pytest.mark.parametrize("size", [0, 10, 3_000_000])
def test_a_file_is_sent_by_its_path(our_host, tmp_path, size):
    file = tmp_path / "file"
    file.write_bytes(b"0123456789" * (size // 10))

    async def app(scope, receive, send):
        assert "http.response.pathsend" in scope["extensions"]
        await send(START)
        await send({"type": "http.response.pathsend", "path": str(file)})

    async def main():
        async with our_host.serve(app, lifespan="off", pathsend=True) as peer:
            wire = await peer.connect()
            head = await wire.ask(b"HEAD / HTTP/1.1\r\nHost: test\r\n\r\n", head=True)
            first = await wire.get("/")
            return head, first, await wire.get("/")

    head, first, second = our_host.run(main)
    assert first.body == second.body == file.read_bytes()
    assert first.header("content-length") == str(size)
    assert size == 0 or head.header("content-length") == str(size)


def test_a_file_that_is_not_there_raises_in_the_application(our_host, caplog):
    async def app(scope, receive, send):
        await send(START)
        await send({"type": "http.response.pathsend", "path": "/no/such/file"})

    assert answer(our_host, app).status == 500
    assert "FileNotFoundError" in caplog.text


# Forwarded headers

FORWARDED = b"X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\nX-Forwarded-Proto: https\r\n"


@pytest.mark.parametrize(
    ("trusted", "seen"),
    [
        ("", b"127.0.0.1 http"),
        ("10.0.0.1", b"127.0.0.1 http"),
        ("127.0.0.1", b"1.2.3.4 https"),
        ("127.0.0.0/8, 1.2.3.0/24", b"6.6.6.6 https"),
    ],
)
def test_forwarded_headers_are_believed_of_trusted_proxies_only(our_host, trusted, seen):
    assert answer(our_host, who, headers=FORWARDED, trusted_proxies=trusted).body == seen


@pytest.mark.parametrize(
    ("headers", "seen"),
    [
        (b"X-Forwarded-For: \xff, 203.0.113.9", b"203.0.113.9 http"),
        (b"X-Forwarded-For: 6.6.6.6, 203.0.113.9, \xff", b"127.0.0.1 http"),
        (b"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: \xfe, 203.0.113.9", b"203.0.113.9 http"),
        (b"X-Forwarded-Proto: \xff, https", b"127.0.0.1 https"),
        (b"X-Forwarded-Proto: https\r\nX-Forwarded-Proto: \xff", b"127.0.0.1 http"),
    ],
)
def test_what_is_no_text_hides_nothing_that_a_proxy_says(our_host, headers, seen):
    assert (
        answer(our_host, who, headers=headers + b"\r\n", trusted_proxies="127.0.0.1").body == seen
    )


@pytest.mark.parametrize(
    ("trusted", "seen"),
    [("127.0.0.1", b"127.0.0.1 http"), ("unix", b"1.2.3.4 https"), ("*", b"6.6.6.6 https")],
)
def test_a_path_of_a_unix_socket_is_no_address(our_host, tmp_path, monkeypatch, trusted, seen):
    monkeypatch.chdir(tmp_path)

    async def main():
        options = Options(uds="server", lifespan="off", trusted_proxies=trusted)
        server = Server(who, options)
        await server.start()
        with socket.socket(socket.AF_UNIX) as client:
            client.bind("127.0.0.1")
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(client, "server")
            await loop.sock_sendall(client, GET % (b"/", FORWARDED + b"Connection: close\r\n"))
            got = b""
            while piece := await loop.sock_recv(client, 1000):
                got += piece
        await server.stop(5.0)
        return got.partition(b"\r\n\r\n")[2]

    assert our_host.run(main) == seen


def test_a_proxy_that_is_no_address_is_refused(our_host):
    async def main():
        with pytest.raises(ValueError, match="'proxy' is no address"):
            await Server(who, Options(port=0, lifespan="off", trusted_proxies="proxy")).start()

    our_host.run(main)


# Mounts


def test_mounts_choose_by_the_longest_prefix(our_host):
    events: list[str] = []

    def named(name: str) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "lifespan":
                scope["state"]["name"] = name
                for what in ("startup", "shutdown"):
                    await receive()
                    events.append(f"{name} {what}")
                    await send({"type": f"lifespan.{what}.complete"})
                return
            text = f"{scope['state']['name']} {scope['root_path']} {scope['path']}"
            await send(START)
            await send({"type": "http.response.body", "body": text.encode()})

        return app

    async def main():
        apps = {"/api": named("api"), "/api/v2": named("v2"), "/site": named("site")}
        async with our_host.serve(Mounts(apps), root_path="/root") as peer:
            wire = await peer.connect()
            paths = ["/api/users", "/api/v2/users", "/apiary", "/site"]
            return [await wire.get(path) for path in paths]

    answers = our_host.run(main)
    assert [answer.status for answer in answers] == [200, 200, 404, 200]
    assert answers[0].body == b"api /root/api /root/api/users"
    assert answers[1].body == b"v2 /root/api/v2 /root/api/v2/users"
    assert answers[3].body == b"site /root/site /root/site"
    assert sorted(events[:3]) == ["api startup", "site startup", "v2 startup"]
    assert sorted(events[3:]) == ["api shutdown", "site shutdown", "v2 shutdown"]


# WSGI


@wsgiref.validate.validator
def wsgi_app(environ: Any, start_response: Any) -> Any:
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response("201 Created", [("Content-Type", "text/plain"), ("Set-Cookie", "a=1")])
    names = ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "HTTP_X_TWO")
    return [" ".join(environ.get(name, "-") for name in names).encode(), b"|", body]


def test_a_wsgi_application_is_served_and_mounted(our_host):
    async def main():
        app = Mounts({"/old": Wsgi(wsgi_app), "/": who})
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            head = (
                b"POST /old/a%20b?c=d HTTP/1.1\r\nHost: test\r\nContent-Length: 200000\r\n"
                b"X-Two: 1\r\nX-Two: 2\r\nX_Two: 3\r\n\r\n"
            )
            old = await wire.ask(head + b"x" * 200_000)
            return old, await wire.get("/new")

    old, new = our_host.run(main)
    assert (old.status, old.header("set-cookie")) == (201, "a=1")
    assert old.body == b"POST /old /a b c=d 1,2|" + b"x" * 200_000
    assert new.body == b"127.0.0.1 http"


def test_a_wsgi_application_that_waits_blocks_nobody(our_host):
    async def main():
        go = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(environ, start_response):
            asyncio.run_coroutine_threadsafe(go.wait(), loop).result()
            start_response("200 OK", [])
            return [b"slow"]

        async with our_host.serve(Mounts({"/slow": Wsgi(slow), "/": who}), lifespan="off") as peer:
            first = await peer.connect()
            first.send(GET % (b"/slow", b""))
            assert (await (await peer.connect()).get("/")).status == 200
            go.set()
            return (await first.response()).body

    assert our_host.run(main) == b"slow"


def test_an_exception_of_a_wsgi_application_is_500(our_host, caplog):
    def fails(environ, start_response):
        raise ZeroDivisionError

    assert answer(our_host, Wsgi(fails)).status == 500
    assert "ZeroDivisionError" in caplog.text
