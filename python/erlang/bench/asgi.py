"""What a request costs where uvicorn serves on a loop, its parser being httptools."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from typing import Any

from erlang.bench.network import Loop, address_of, listening, per_message

BODY = b"Hello, world!"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(BODY)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})


async def server(loop: Loop, kept: list[Any]) -> str:
    """The address of a uvicorn that serves on the running loop."""
    uvicorn: Any = importlib.import_module("uvicorn")
    config = uvicorn.Config(
        hello, http="httptools", ws="none", lifespan="off", access_log=False, log_level="error"
    )
    sock, made = listening(), uvicorn.Server(config)
    kept.append(loop.create_task(made.serve(sockets=[sock])))
    while not made.started:
        await asyncio.sleep(0.001)
    return address_of(sock)


def requests(loop: Loop, scale: float) -> dict[str, float]:
    """Nothing where there is no uvicorn, or no httptools."""
    if not all(importlib.util.find_spec(name) for name in ("uvicorn", "httptools")):
        return {}
    kept: list[Any] = []
    seconds = max(0.1, scale / 2)
    cost = per_message(loop, lambda: server(loop, kept), "http", 10, 0, seconds)
    return {"uvicorn, httptools, a request": cost}


GROUPS = {"uvicorn": requests}
