"""A FastAPI application with most of what such applications have, over our server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import BackgroundTasks, FastAPI, Form, Request, UploadFile, WebSocket
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from pydantic import BaseModel
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.websockets import WebSocketDisconnect
from websockets.asyncio.client import connect


class Item(BaseModel):
    name: str
    price: float


def make_app(notes: list[str], file: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        notes.append("started")
        yield {"greeting": "hello"}
        notes.append("stopped")

    app = FastAPI(lifespan=lifespan)
    app.add_middleware(SessionMiddleware, secret_key="secret")
    app.add_middleware(GZipMiddleware, minimum_size=1000)

    async def add_header(request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-passed"] = "yes"
        return response

    app.add_middleware(BaseHTTPMiddleware, dispatch=add_header)
    add_pages(app, notes, file)
    return app


def add_pages(app: FastAPI, notes: list[str], file: str) -> None:
    @app.get("/items/{number}")
    async def item(number: int, q: str | None = None) -> dict[str, Any]:
        return {"number": number, "q": q}

    @app.post("/items", status_code=201)
    async def create(item: Item) -> Item:
        return item

    @app.post("/form")
    def form(name: str = Form(), age: int = Form()) -> dict[str, Any]:
        return {"name": name, "age": age}

    @app.post("/upload")
    async def upload(file: UploadFile) -> dict[str, Any]:
        data = await file.read()
        return {"name": file.filename, "size": len(data), "sum": sum(data)}

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def pieces() -> Any:
            for number in range(5):
                yield f"data: {number}\n\n"
                await asyncio.sleep(0)

        return StreamingResponse(pieces(), media_type="text/event-stream")

    @app.get("/background")
    async def background(tasks: BackgroundTasks) -> str:
        tasks.add_task(notes.append, "background")
        return "accepted"

    @app.get("/session")
    async def session(request: Request) -> int:
        request.session["visits"] = request.session.get("visits", 0) + 1
        return request.session["visits"]

    @app.get("/cookies")
    async def cookies() -> Response:
        response = JSONResponse({})
        response.set_cookie("a", "1")
        response.set_cookie("b", "2")
        return response

    @app.get("/state")
    async def state(request: Request) -> str:
        return request.state.greeting

    @app.get("/file")
    async def download() -> FileResponse:
        return FileResponse(file)

    @app.get("/fails")
    async def fails() -> None:
        raise ZeroDivisionError

    @app.websocket("/chat")
    async def chat(socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                await socket.send_json({"said": await socket.receive_text()})
        except WebSocketDisconnect as left:
            notes.append(f"left {left.code}")


@pytest.fixture
def ask(our_host, tmp_path):
    """Runs a coroutine function with a client, the server under test and what was noted."""
    notes: list[str] = []
    file = tmp_path / "large.bin"
    file.write_bytes(bytes(range(256)) * 4000)

    def ask(main):
        async def served():
            async with our_host.serve(make_app(notes, str(file)), lifespan="on") as peer:
                base = f"http://127.0.0.1:{peer.port}"
                async with httpx.AsyncClient(base_url=base) as client:
                    return await main(client, peer)

        result = our_host.run(served)
        assert (notes[0], notes[-1]) == ("started", "stopped")
        return result, notes[1:-1]

    return ask


def test_routes_validate_and_answer(ask):
    async def main(client, peer):
        return [
            (await client.get("/items/7?q=x")).json(),
            (await client.get("/items/seven")).status_code,
            (await client.post("/items", json={"name": "a", "price": 1})).status_code,
            (await client.post("/items", json={"name": "a"})).status_code,
            (await client.get("/nowhere")).status_code,
            (await client.get("/state")).json(),
            (await client.get("/state")).headers["x-passed"],
        ]

    answers, _ = ask(main)
    assert answers == [{"number": 7, "q": "x"}, 422, 201, 422, 404, "hello", "yes"]


def test_forms_and_uploads_are_read(ask):
    data = bytes(range(256)) * 8000

    async def main(client, peer):
        form = (await client.post("/form", data={"name": "Ada", "age": "36"})).json()
        files = {"file": ("a.bin", data)}
        return form, (await client.post("/upload", files=files)).json()

    (form, upload), _ = ask(main)
    assert form == {"name": "Ada", "age": 36}
    assert upload == {"name": "a.bin", "size": len(data), "sum": sum(data)}


def test_responses_stream_and_files_are_sent(ask, tmp_path):
    async def main(client, peer):
        async with client.stream("GET", "/stream") as response:
            pieces = "".join([piece async for piece in response.aiter_text()])
        file = await client.get("/file")
        part = await client.get("/file", headers={"range": "bytes=100-199"})
        head = await client.head("/file")
        return pieces, file.content, (part.status_code, part.content), head.status_code

    (pieces, file, part, head), _ = ask(main)
    assert pieces == "".join(f"data: {number}\n\n" for number in range(5))
    assert file == (tmp_path / "large.bin").read_bytes()
    assert part == (206, file[100:200])
    assert head == 405


def test_background_work_sessions_and_cookies(ask):
    async def main(client, peer):
        assert (await client.get("/background")).json() == "accepted"
        visits = [(await client.get("/session")).json() for _ in range(3)]
        cookies = (await client.get("/cookies")).headers.get_list("set-cookie")
        return visits, cookies

    (visits, cookies), notes = ask(main)
    assert visits == [1, 2, 3]
    assert [cookie.split(";")[0] for cookie in cookies] == ["a=1", "b=2"]
    assert notes == ["background"]


def test_an_exception_is_500_and_the_server_goes_on(ask, caplog):
    async def main(client, peer):
        first = (await client.get("/fails")).status_code
        return first, (await client.get("/items/1")).status_code

    assert ask(main)[0] == (500, 200)
    assert "ZeroDivisionError" in caplog.text


def test_a_websocket_talks_until_it_leaves(ask):
    async def main(client, peer):
        async with connect(f"ws://127.0.0.1:{peer.port}/chat") as socket:
            await socket.send("hello")
            answer = await socket.recv()
            await socket.close(4000)
        while peer.server.info()["in_flight"]:
            await asyncio.sleep(0)
        return answer

    answer, notes = ask(main)
    assert answer == '{"said":"hello"}'
    assert notes == ["left 4000"]
