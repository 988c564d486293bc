"""The lifespan part of the ASGI specification, and the end of a server."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

import pytest
import trustme

from erlang.serve import LifespanFailed, Options, Server

START = {"type": "http.response.start", "status": 200, "headers": []}


class App:
    """Has a lifespan with a state, and answers with it."""

    def __init__(self, name: bytes = b"app") -> None:
        self.name = name
        self.events: list[str] = []
        self.scope: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
            return
        scope["state"]["seen"] = scope["state"].get("seen", 0) + 1
        scope["state"]["shared"].append(1)
        counts = b" %d %d" % (scope["state"]["seen"], len(scope["state"]["shared"]))
        await send(START)
        await send({"type": "http.response.body", "body": self.name + counts})

    async def lifespan(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = scope
        scope["state"]["shared"] = []
        for what in ("startup", "shutdown"):
            event = await receive()
            self.events.append(event["type"])
            await send({"type": f"lifespan.{what}.complete"})


def test_each_request_gets_a_shallow_copy_of_the_state(host):
    app = App()

    async def main():
        async with host.serve(app) as peer:
            wire = await peer.connect()
            assert app.events == ["lifespan.startup"]
            return [(await wire.get("/")).body for _ in range(2)]

    assert host.run(main) == [b"app 1 1", b"app 1 2"]
    assert app.events == ["lifespan.startup", "lifespan.shutdown"]
    assert app.scope["asgi"]["version"] == "3.0"


def test_an_application_without_a_lifespan_is_served(host):
    async def app(scope, receive, send):
        assert scope["type"] == "http"
        await send(START)
        await send({"type": "http.response.body", "body": repr("state" in scope).encode()})

    async def main():
        async with host.serve(app) as peer:
            return (await (await peer.connect()).get("/")).status

    assert host.run(main) == 200


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_an_application_that_fails_to_start_stops_the_start(our_host, mode):
    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    async def main():
        with pytest.raises(LifespanFailed, match="no database"):
            await Server(app, Options(port=0, lifespan=mode)).start()

    our_host.run(main)


def test_an_application_that_must_have_a_lifespan_and_raises_stops_the_start(our_host):
    async def app(scope, receive, send):
        raise ZeroDivisionError

    async def main():
        with pytest.raises(LifespanFailed, match="ZeroDivisionError"):
            await Server(app, Options(port=0, lifespan="on")).start()

    our_host.run(main)


def test_another_application_takes_over_without_losing_a_connection(our_host):
    first, second = App(b"first"), App(b"second")

    async def main():
        async with our_host.serve(first) as peer:
            wire = await peer.connect()
            before = (await wire.get("/")).body
            await peer.server.reload(second)
            assert first.events == ["lifespan.startup", "lifespan.shutdown"]
            return before, (await wire.get("/")).body

    assert our_host.run(main) == (b"first 1 1", b"second 1 1")
    assert second.events == ["lifespan.startup", "lifespan.shutdown"]


# The end


def test_stop_lets_a_request_be_answered_and_closes_the_rest(our_host):
    async def main():
        go, started = asyncio.Event(), asyncio.Event()

        async def app(scope, receive, send):
            started.set()
            await go.wait()
            await send(START)
            await send({"type": "http.response.body", "body": b"done"})

        async with our_host.serve(app, lifespan="off") as peer:
            idle, busy = await peer.connect(), await peer.connect()
            busy.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            await started.wait()
            stopping = asyncio.create_task(peer.server.stop())
            assert await idle.is_closed()
            with pytest.raises(OSError, match=r"refused|Connect call failed"):
                await peer.connect()
            assert not stopping.done()
            go.set()
            response = await busy.response()
            assert await busy.is_closed()
            await stopping
            return response

    response = our_host.run(main)
    assert response.body == b"done"
    assert response.header("connection") == "close"


def test_stop_ends_what_does_not_end_in_time(our_host, caplog):
    async def main():
        started = asyncio.Event()
        ended = asyncio.get_running_loop().create_future()

        async def app(scope, receive, send):
            started.set()
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                ended.set_result(True)
                raise

        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            wire.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            await started.wait()
            await peer.server.stop(0.01)
            assert (await wire.response()).status == 500
            assert await wire.is_closed()
            return await ended

    assert our_host.run(main)
    assert "not answered within" in caplog.text


def test_stop_waits_for_work_after_the_answer(our_host):
    async def main():
        finished = []

        async def app(scope, receive, send):
            await send(START)
            await send({"type": "http.response.body", "body": b""})
            await asyncio.sleep(0.05)
            finished.append(True)

        async with our_host.serve(app, lifespan="off") as peer:
            await (await peer.connect()).get("/")
            await peer.server.stop()
        return finished

    assert our_host.run(main) == [True]


# Numbers and the log


def test_the_access_log_has_one_line_per_request(our_host, caplog):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            wire = await peer.connect()
            await wire.get("/a%20b?c=d")
            info = peer.server.info()
            return wire.writer.get_extra_info("sockname"), info

    with caplog.at_level(logging.INFO, "erlang.serve.access"):
        client, info = our_host.run(main)
    assert info == {"connections": 1, "in_flight": 0, "served": 1}
    line = f'{client[0]}:{client[1]} - "GET /a%20b?c=d HTTP/1.1" 404'
    assert [record.getMessage() for record in caplog.records] == [line]


def test_a_unix_socket_is_served_and_removed(our_host, tmp_path):
    scopes = []

    async def app(scope, receive, send):
        scopes.append(scope)
        await send(START)
        await send({"type": "http.response.body", "body": b"ok"})

    async def main():
        path = tmp_path / "s"
        server = Server(app, Options(uds=str(path), lifespan="off"))
        await server.start()
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        await server.stop()
        return answer, path.exists()

    answer, exists = our_host.run(main)
    assert answer.endswith(b"ok")
    assert not exists
    assert scopes[0]["server"] == (str(tmp_path / "s"), None)
    assert scopes[0]["client"] is None


def test_tls_is_served_by_certificate_files(our_host, tmp_path):
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    trusting = ssl.create_default_context()
    trusting.set_alpn_protocols(["h2", "http/1.1"])
    authority.configure_trust(trusting)

    async def app(scope, receive, send):
        body = b"".join([(await receive())["body"], scope["scheme"].encode(), b"x" * 200_000])
        await send(START)
        await send({"type": "http.response.body", "body": body})

    async def main():
        certificate = str(tmp_path / "both.pem")
        async with our_host.serve(app, lifespan="off", certificate=certificate) as peer:
            reader, writer = await asyncio.open_connection("127.0.0.1", peer.port, ssl=trusting)
            chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
            head = (
                b"POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 3\r\n\r\n"
            )
            writer.write(head + b"abc")
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return chosen, answer.partition(b"\r\n\r\n")[2]

    assert our_host.run(main) == ("http/1.1", b"abchttps" + b"x" * 200_000)
