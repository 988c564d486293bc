"""Litestar."""

from litestar import Litestar, Request, WebSocket, get, post, websocket


@get("/hello", media_type="text/plain")
async def hello(name: str) -> str:
    return f"hello {name}"


@post("/echo", media_type="text/plain", status_code=200)
async def echo(request: Request) -> str:
    return (await request.body()).decode()


@websocket("/ws")
async def ws(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(await socket.receive_text())
    await socket.close()


app = Litestar([hello, echo, ws])
