"""Applications that the suite serves."""

import asyncio
import contextlib
import os
import socket
import time

import erlang
from erlang.serve import Options, Server


async def respond(send, body, status=200, headers=()):
    head = {"type": "http.response.start", "status": status, "headers": list(headers)}
    await send(head)
    await send({"type": "http.response.body", "body": body})


async def app(scope, receive, send):
    kind = scope["type"]
    if kind == "lifespan":
        await lifespan(scope, receive, send)
    elif kind == "http":
        await globals()[scope["path"][1:].split("/")[0] or "hello"](scope, receive, send)
    else:
        await globals()["ws_" + scope["path"][1:]](scope, receive, send)


async def lifespan(scope, receive, send):
    while True:
        event = (await receive())["type"]
        scope["state"]["token"] = "of the lifespan"
        tell(event)
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


def tell(what):
    """The test's process hears it, if it wants to."""
    listener = erlang.whereis("py_asgi_test")
    if listener is not None:
        erlang.send(listener, what)


async def hello(scope, receive, send):
    await respond(send, b"hello", headers=[(b"content-type", b"text/plain")])


async def busy(scope, receive, send):
    """Keeps its loop from everything else, and so from letting the socket go."""
    tell("busy")
    time.sleep(1)
    await respond(send, b"late")


async def stay(scope, receive, send):
    """Does not let itself be cancelled."""
    tell("stays")
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()


async def state(scope, receive, send):
    await respond(send, scope["state"]["token"].encode())


async def leave_later(scope, receive, send):
    await asyncio.sleep(0)
    raise SystemExit(3)


async def fail(scope, receive, send):
    raise ValueError("the handler failed")


async def leave(scope, receive, send):
    raise SystemExit(3)


loops: list[asyncio.AbstractEventLoop] = []


async def loop(scope, receive, send):
    """Which of the loops there were this is."""
    running = asyncio.get_running_loop()
    if running not in loops:
        loops.append(running)
    await respond(send, str(loops.index(running)).encode())


async def wait(scope, receive, send):
    """Answers when the test says so."""
    box = erlang.receive()
    tell(("waits", box.pid))
    await respond(send, (await box.areceive()).encode())


async def no_lifespan(scope, receive, send):
    assert scope["type"] == "http"
    await respond(send, scope["root_path"].encode() + b" " + scope["path"].encode())


async def broken(scope, receive, send):
    await receive()
    raise KeyError("no database")


def make():
    return no_lifespan


def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"wsgi ", environ["SCRIPT_NAME"].encode(), b" ", environ["PATH_INFO"].encode()]


def make_hanging():
    async def hanging(scope, receive, send):
        await asyncio.get_running_loop().create_future()

    return hanging


async def never_shut(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    tell("hangs")
    await asyncio.get_running_loop().create_future()


starts: list[int] = []


async def starts_once(scope, receive, send):
    await receive()
    starts.append(1)
    if len(starts) > 1:
        raise RuntimeError("once is enough")
    await send({"type": "lifespan.startup.complete"})
    await receive()


async def ws_room(scope, receive, send):
    """What comes from the group goes to the client, and what the client says to the group."""
    await receive()
    await send({"type": "websocket.accept"})
    async with erlang.pg.subscribe("room") as messages:
        tell("joined")
        pump = asyncio.create_task(forward(messages, send))
        while (event := await receive())["type"] == "websocket.receive":
            erlang.pg.broadcast("room", event["text"])
        pump.cancel()
    tell("left")


async def forward(messages, send):
    async for message in messages:
        await send({"type": "websocket.send", "text": str(message)})


async def ws_mailbox(scope, receive, send):
    """Erlang writes to the client by the pid it is told."""
    await receive()
    await send({"type": "websocket.accept"})
    box = erlang.receive()
    tell(("at", erlang.self()))
    async for message in box:
        if message == "enough":
            return
        await send({"type": "websocket.send", "text": message})


async def calls(scope, receive, send):
    path = scope["path"].split("/")
    if path[2] == "sync":
        value = erlang.call("py_asgi_double", int(path[3]))
    else:
        value = await erlang.async_call("py_asgi_double", int(path[3]))
    await respond(send, str(value).encode())


async def cancelled_start(turns):
    """Whether the port of a server is free when its start was cancelled after so many turns."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Server(no_lifespan, Options(port=port, lifespan="off"))
    start = asyncio.create_task(server.start())
    for _ in range(turns):
        await asyncio.sleep(0)
    start.cancel()
    await asyncio.wait([start])
    await server.stop(0.0)
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def forked():
    """A child that does nothing for ten minutes."""
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    return pid
