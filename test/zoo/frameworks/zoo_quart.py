"""Quart."""

from quart import Quart, request, websocket

app = Quart(__name__)


@app.get("/hello")
async def hello():
    return f"hello {request.args['name']}"


@app.post("/echo")
async def echo():
    return await request.get_data()


@app.websocket("/ws")
async def ws():
    await websocket.send(await websocket.receive())
