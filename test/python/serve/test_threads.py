"""Other threads in the objects of a server while its loop serves: nothing is lost or breaks."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading

import pytest

from erlang._native import HttpServer

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
ROUNDS = 1000


async def echo(scope, receive, send):
    """Gives back the body, in pieces."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        event = await receive()
        more = event.get("more_body", False)
        body = event.get("body", b"")
        await send({"type": "http.response.body", "body": body, "more_body": more})
        if not more:
            return


class Seen:
    """The application, which keeps what it was given last."""

    def __init__(self) -> None:
        self.request = self.connection = None

    async def __call__(self, scope, receive, send):
        self.request = send.__self__
        [self.connection] = [o for o in gc.get_referents(self.request) if "Connection" in repr(o)]
        await echo(scope, receive, send)


async def talk(peer, until):
    """Requests whose bodies come in pieces, until it is over; how many."""
    wire, count = await peer.connect(), 0
    head = b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
    while count == 0 or not until.is_set():
        wire.send(head)
        for _ in range(10):
            wire.send(b"5\r\nhello\r\n")
            await asyncio.sleep(0)
        answer = await wire.ask(b"0\r\n\r\n")
        assert (answer.status, answer.body) == (200, b"hello" * 10)
        count += 1
    return count


def served_meanwhile(host, app, work):
    """Serves two clients while `work` runs in another thread; what that gave."""

    async def main():
        over = asyncio.Event()
        async with host.serve(app, lifespan="off") as peer:
            clients = [asyncio.ensure_future(talk(peer, over)) for _ in range(2)]
            while app.request is None:
                await asyncio.sleep(0)
            result = await asyncio.to_thread(work, peer.server)
            over.set()
            counts = await asyncio.gather(*clients)
            assert peer.server.info()["served"] == sum(counts)
            return result

    return host.run(main)


def test_a_server_tells_its_numbers_to_any_thread(our_host, hammer):
    def work(server):
        def ask():
            assert server.info()["connections"] == 2
            assert server.info()["in_flight"] <= 2
            assert server._core.draining is False

        return hammer(ask)

    assert served_meanwhile(our_host, Seen(), work) == []


def test_receive_and_send_may_be_called_anywhere_and_are_awaited_on_the_loop(our_host, hammer):
    app = Seen()

    def work(server):
        def call():
            app.request.receive()
            app.request.send({"type": "http.response.body", "body": b"never sent"})

        return hammer(call)

    assert served_meanwhile(our_host, app, work) == []


def test_what_they_give_can_not_be_awaited_by_another_thread(our_host, hammer):
    app, message = Seen(), {"type": "http.response.body", "body": b"never sent"}

    def work(server):
        return hammer(
            lambda: app.request.receive().send(None),
            lambda: next(app.request.send(message).__await__()),
        )

    raised = served_meanwhile(our_host, app, work)
    assert len(raised) == 4 * ROUNDS
    assert {str(error) for error in raised} == {
        "this is for the thread that runs the loop of the server"
    }


@pytest.mark.skipif(HAS_GIL, reason="with a GIL every thread may")
def test_without_a_gil_the_rest_is_for_the_thread_of_the_loop(our_host, hammer):
    app = Seen()

    def work(server):
        core = server._core
        works = [
            lambda: app.connection.data_received(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"),
            lambda: app.connection.pause_writing(),
            lambda: app.connection.resume_writing(),
            lambda: app.connection._pump(),
            lambda: app.connection.connection_lost(None),
            lambda: app.request._file_begins(7),
            lambda: app.request._file_ended(),
            core.connection,
            core.tasks,
            core.abort,
            core._tick,
        ]
        raised = hammer(*works)
        assert len(raised) == 2 * len(works) * ROUNDS
        return {type(error) for error in raised}

    assert served_meanwhile(our_host, app, work) == {RuntimeError}


def test_a_server_that_was_not_started_makes_no_connections():
    with pytest.raises(RuntimeError, match="not started"):
        HttpServer().connection()


def test_a_server_goes_on_when_another_thread_runs_its_loop(our_host):
    if our_host.name == "ours-on-asyncio":
        pytest.skip("other loops do not say where they run")
    loop, app = our_host.new_loop(), Seen()
    peers, answers = [], []

    async def begin():
        peers.append(our_host.serve(app, lifespan="off"))
        peers.append(await peers[0].__aenter__())

    async def ask():
        over = asyncio.Event()
        over.set()
        answers.append(await talk(peers[1], over))

    loop.run_until_complete(begin())
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.wait_for(ask(), 20)))
    thread.start()
    thread.join()
    loop.run_until_complete(ask())
    loop.run_until_complete(peers[0].__aexit__(None, None, None))
    loop.close()
    assert answers == [1, 1]
