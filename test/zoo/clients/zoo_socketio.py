"""The client of Socket.IO: by polling, by a WebSocket, and from the one to the other."""

import asyncio

import socketio


async def ask(base):
    for transports in (["polling"], ["websocket"], ["polling", "websocket"]):
        await session(base, transports)


async def session(base, transports):
    client = socketio.AsyncClient(reconnection=False)
    told = asyncio.get_running_loop().create_future()
    client.on("told", lambda text: told.done() or told.set_result(text))
    await client.connect(base, transports=transports, wait_timeout=20)
    try:
        assert await client.call("back", "text" * 1000, timeout=20) == "text" * 1000
        assert await client.call("back", b"\0\1\2", timeout=20) == b"\0\1\2"
        await client.emit("tell", "hello")
        assert await asyncio.wait_for(told, 20) == "hello"
        assert client.transport() == transports[-1], client.transport()
    finally:
        await client.disconnect()
