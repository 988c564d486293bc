"""Socket.IO over Starlette."""

import socketio
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def hello(request):
    return PlainTextResponse(f"hello {request.query_params['name']}")


async def echo(request):
    return PlainTextResponse(await request.body())


server = socketio.AsyncServer(async_mode="asgi")


@server.event
async def back(_session, value):
    return value


@server.event
async def tell(session, value):
    await server.emit("told", value, to=session)


routes = [Route("/hello", hello), Route("/echo", echo, methods=["POST"])]
app = socketio.ASGIApp(server, Starlette(routes=routes))
paths = ["/socket.io/?EIO=4&transport=polling"]
