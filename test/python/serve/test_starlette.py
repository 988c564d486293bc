"""A Starlette application: what FastAPI does not use of it, over our server."""

from __future__ import annotations

import asyncio
import functools
import types
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint, WebSocketEndpoint
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from erlang.serve import Mounts
from erlang.serve._load import as_asgi3


class Home(HTTPEndpoint):
    async def get(self, request: Any) -> PlainTextResponse:
        return PlainTextResponse(str(request.url_for("home")))


class Upper(WebSocketEndpoint):
    encoding = "text"

    async def on_connect(self, websocket: Any) -> None:
        await websocket.accept(subprotocol="upper")

    async def on_receive(self, websocket: Any, data: str) -> None:
        await websocket.send_text(data.upper())


async def denied(websocket: Any) -> None:
    await websocket.send_denial_response(PlainTextResponse("members only", 401))


async def missing(request: Any) -> None:
    raise HTTPException(404, "nothing here")


def make_app(folder: Any) -> Starlette:
    async def endless(request: Any) -> StreamingResponse:
        async def pieces() -> Any:
            yield "data: tick\n\n"
            if "quiet" in request.query_params:
                await asyncio.Event().wait()
            while True:
                yield "data: tick\n\n"
                await asyncio.sleep(0)

        return StreamingResponse(pieces(), media_type="text/event-stream")

    async def sub(request: Any) -> PlainTextResponse:
        return PlainTextResponse(f"{request.scope['root_path']} {request.url.path}")

    return Starlette(
        routes=[
            Route("/", Home, name="home"),
            Route("/old", lambda request: RedirectResponse("/")),
            Route("/missing", missing),
            Route("/endless", endless),
            Mount("/sub", routes=[Route("/page", sub)]),
            Mount("/static", StaticFiles(directory=folder)),
            WebSocketRoute("/upper", Upper),
            WebSocketRoute("/denied", denied),
        ]
    )


def test_routes_mounts_and_static_files_answer(our_host, tmp_path):
    (tmp_path / "page.txt").write_text("0123456789")

    async def main():
        async with our_host.serve(make_app(tmp_path)) as peer:
            base = f"http://127.0.0.1:{peer.port}"
            async with httpx.AsyncClient(base_url=base, follow_redirects=True) as client:
                home = await client.get("/old")
                assert home.text == base + "/"
                assert (await client.get("/missing")).text == "nothing here"
                assert (await client.post("/")).status_code == 405
                assert (await client.get("/sub/page")).text == "/sub /sub/page"
                whole = await client.get("/static/page.txt")
                part = await client.get("/static/page.txt", headers={"range": "bytes=2-4"})
                same = {"if-none-match": whole.headers["etag"]}
                again = await client.get("/static/page.txt", headers=same)
                return whole.text, (part.status_code, part.text), again.status_code

    assert our_host.run(main) == ("0123456789", (206, "234"), 304)


@pytest.mark.parametrize("query", ["", "?quiet"])
def test_a_stream_ends_when_its_reader_leaves(our_host, tmp_path, query):
    async def main():
        async with our_host.serve(make_app(tmp_path)) as peer:
            url = f"http://127.0.0.1:{peer.port}/endless{query}"
            async with httpx.AsyncClient() as client, client.stream("GET", url) as response:
                async for line in response.aiter_lines():
                    assert line == "data: tick"
                    break
            while peer.server.info()["in_flight"]:
                await asyncio.sleep(0)

    our_host.run(main)


class Page(HTTPEndpoint):
    """An application whose call gives an instance, which is awaited; as ``Upper`` is."""

    async def get(self, request: Any) -> PlainTextResponse:
        return PlainTextResponse("page")


class Returns:
    def __call__(self, scope: Any, receive: Any, send: Any) -> Page:
        return Page(scope, receive, send)


class Waits:
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await Page(scope, receive, send)


async def partly(endpoint: Any, scope: Any, receive: Any, send: Any) -> None:
    await endpoint(scope, receive, send)


@types.coroutine
def generator(scope: Any, receive: Any, send: Any) -> Any:
    yield from Page(scope, receive, send).__await__()


FORMS = {
    "class": Page,
    "object": Returns(),
    "async object": Waits(),
    "function": lambda scope, receive, send: Page(scope, receive, send),
    "partial": functools.partial(partly, Page),
    "generator": generator,
}


@pytest.mark.parametrize("mounted", [False, True], ids=["alone", "mounted"])
@pytest.mark.parametrize("form", FORMS)
def test_an_application_may_return_anything_that_can_be_awaited(our_host, url, form, mounted):
    app = Mounts({"/": FORMS[form]}) if mounted else as_asgi3(FORMS[form])
    socket = Mounts({"/": Upper}) if mounted else as_asgi3(Upper)

    async def main():
        async with our_host.serve(app, lifespan="off") as peer:
            answer = await (await peer.connect()).get("/")
        async with (
            our_host.serve(socket, lifespan="off") as peer,
            connect(url(peer, "/"), subprotocols=["upper"]) as client,
        ):
            await client.send("shout")
            return answer.status, answer.body, await client.recv()

    assert our_host.run(main) == (200, b"page", "SHOUT")


def test_an_application_that_returns_nothing_to_await_is_told_so(our_host, caplog):
    async def main():
        async with our_host.serve(lambda scope, receive, send: 7, lifespan="off") as peer:
            return (await (await peer.connect()).get("/")).status

    assert our_host.run(main) == 500
    assert "the application returned 7, which can't be awaited" in caplog.text


def test_websocket_endpoints_talk_and_deny(our_host, url, tmp_path):
    async def main():
        async with our_host.serve(make_app(tmp_path)) as peer:
            async with connect(url(peer, "/upper"), subprotocols=["upper"]) as client:
                assert client.subprotocol == "upper"
                await client.send("shout")
                heard = await client.recv()
            try:
                async with connect(url(peer, "/denied")):
                    pass
            except InvalidStatus as refused:
                return heard, refused.response.status_code, refused.response.body

    assert our_host.run(main) == ("SHOUT", 401, b"members only")
