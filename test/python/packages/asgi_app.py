"""The application that `test_uvicorn.py` and `test_hypercorn.py` serve."""

from __future__ import annotations

import asyncio
from typing import Any


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Says on which loop it runs, `/later` after a moment; `/stream` is in pieces."""
    await {"http": http, "websocket": websocket, "lifespan": lifespan}[scope["type"]](
        scope, receive, send
    )


async def http(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/later":
        await asyncio.sleep(0.05)
    pieces = [type(asyncio.get_running_loop()).__name__.encode()]
    if scope["path"] == "/stream":
        pieces = [bytes([number]) * 20_000 for number in range(30)]
    headers = [(b"x-http", scope["http_version"].encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def websocket(scope: Any, receive: Any, send: Any) -> None:
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        elif message.get("text") is not None:
            await send({"type": "websocket.send", "text": message["text"].upper()})
        else:
            await send({"type": "websocket.send", "bytes": message["bytes"][::-1]})


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    while (message := await receive())["type"] != "lifespan.shutdown":
        assert message["type"] == "lifespan.startup"
        await send({"type": "lifespan.startup.complete"})
    print("the lifespan ended", flush=True)
    await send({"type": "lifespan.shutdown.complete"})
