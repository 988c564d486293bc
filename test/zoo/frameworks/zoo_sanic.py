"""Sanic, as an ASGI application."""

from sanic import Sanic
from sanic.response import raw, text

app = Sanic("zoo")


@app.get("/hello")
async def hello(request):
    return text(f"hello {request.args.get('name')}")


@app.post("/echo")
async def echo(request):
    return raw(request.body)


@app.websocket("/ws")
async def ws(_request, socket):
    await socket.send(await socket.recv())
