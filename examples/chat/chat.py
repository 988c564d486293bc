"""The application: a page, who is here as server-sent events, and a WebSocket for each browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import FastAPI, WebSocket
from fastapi.responses import HTMLResponse, StreamingResponse

import erlang
import erlang.pg

ROOM = erlang.atom("room")

app = FastAPI()
page = Path(__file__).with_name("chat.html").read_text()
here: list[str] = []


@app.get("/")
async def read_page() -> HTMLResponse:
    return HTMLResponse(page)


@app.get("/here")
async def who_is_here() -> StreamingResponse:
    return StreamingResponse(headcounts(), media_type="text/event-stream")


async def headcounts():
    """One event at once, then one whenever something is said in the room."""
    async with erlang.pg.subscribe(ROOM) as messages:
        yield f"data: {len(here)}\n\n"
        async for _ in messages:
            yield f"data: {len(here)}\n\n"


@app.websocket("/room")
async def room(socket: WebSocket, name: str) -> None:
    await socket.accept()
    here.append(name)
    listener = asyncio.create_task(listen(socket, name))
    async for text in socket.iter_text():
        say(name, text)
    listener.cancel()
    here.remove(name)
    say("python", f"{name} has left")


async def listen(socket: WebSocket, name: str) -> None:
    """Whatever anyone says goes to this browser."""
    async with erlang.pg.subscribe(ROOM) as messages:
        say("python", f"{name} is here")
        async for who, text in messages:
            await socket.send_json({"who": who, "text": text})


def say(who: str, text: str) -> None:
    """Everyone in the room hears it, in whatever language they listen."""
    erlang.pg.broadcast(ROOM, (who, text))
