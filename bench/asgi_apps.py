"""The applications that `bench_asgi.py` serves."""

from __future__ import annotations

from typing import Any

TEXT = [(b"content-type", b"text/plain"), (b"content-length", b"13")]
LARGE = [(b"content-type", b"text/plain"), (b"content-length", b"10240")]
BODIES = {"/": (TEXT, b"Hello, world!"), "/10k": (LARGE, b"x" * 10240)}


async def plain(scope: Any, receive: Any, send: Any) -> None:
    """Answers, or echoes in a WebSocket."""
    if scope["type"] == "websocket":
        await echo(receive, send)
        return
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    headers, body = BODIES[scope["path"]]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def echo(receive: Any, send: Any) -> None:
    while (event := await receive())["type"] != "websocket.disconnect":
        if event["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        else:
            await send({"type": "websocket.send", "bytes": event["bytes"]})


def fastapi() -> Any:
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/json/{number}")
    async def page(number: int, q: str = "") -> dict[str, Any]:
        return {"number": number, "q": q, "items": list(range(10))}

    return app
