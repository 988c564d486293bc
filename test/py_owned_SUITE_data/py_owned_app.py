"""An application with a request that is answered when the test says so."""

import asyncio
import threading

_told = threading.Event()
_waiting = 0


def waiting():
    return _waiting


def tell():
    _told.set()


async def app(scope, receive, send):
    global _waiting
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = b"here"
    if scope["path"] == "/until_told":
        _told.clear()
        _waiting += 1
        try:
            while not _told.is_set():
                await asyncio.sleep(0.01)
        finally:
            _waiting -= 1
        body = b"told"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
