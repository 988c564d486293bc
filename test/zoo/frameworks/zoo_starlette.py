"""Starlette."""

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute


async def hello(request):
    return PlainTextResponse(f"hello {request.query_params['name']}")


async def echo(request):
    return PlainTextResponse(await request.body())


async def ws(socket):
    await socket.accept()
    await socket.send_text(await socket.receive_text())
    await socket.close()


app = Starlette(
    routes=[
        Route("/hello", hello),
        Route("/echo", echo, methods=["POST"]),
        WebSocketRoute("/ws", ws),
    ]
)
