"""An application that does what servers get wrong."""

import asyncio

from py_tools import wait_at

import erlang

order: list[str] = []


def tell(what):
    erlang.send("py_asgi_web_test", what)


async def answer(send, body, headers=()):
    await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def app(scope, receive, send):
    await globals()[scope["path"].split("/")[1]](scope, receive, send)


async def show(scope, receive, send):
    await answer(send, f"{scope['method']} {scope['path']} {scope['headers']}".encode())


async def cookies(scope, receive, send):
    await answer(send, b"", [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")])


async def listens(scope, receive, send):
    """Hears that its client has left."""
    assert (await receive())["type"] == "http.request"
    tell("listens")
    tell((await receive())["type"])


async def late(scope, receive, send):
    """A WebSocket that is accepted when the test says so."""
    await receive()
    box = erlang.receive()
    tell(("asked", box.pid))
    if await box.areceive() == "accept":
        await send({"type": "websocket.accept"})
    else:
        await send({"type": "websocket.close"})


async def flood(scope, receive, send):
    """More than sockets hold; says in the end whether anybody had begun to read."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    piece = {"type": "http.response.body", "body": bytes(1 << 20), "more_body": True}
    tell("floods")
    for _ in range(64):
        await send(piece)
    tell(("flooded", erlang.state_get("py_asgi_reads", False)))
    await send({"type": "http.response.body", "body": b""})


async def ping(scope, receive, send):
    order.append("ping")
    await answer(send, b"pong")


async def block(scope, receive, send):
    """Blocks the loop's own thread."""
    order.append("begins")
    wait_at(scope["path"].split("/")[2], erlang.whereis("py_asgi_web_test"))
    order.append("ends")
    await answer(send, b"blocked")


async def block_worker(scope, receive, send):
    """The same in a thread."""
    order.append("begins")
    pid = erlang.whereis("py_asgi_web_test")
    await asyncio.to_thread(wait_at, scope["path"].split("/")[2], pid)
    order.append("ends")
    await answer(send, b"blocked")


def take_order():
    taken, order[:] = list(order), []
    return taken
