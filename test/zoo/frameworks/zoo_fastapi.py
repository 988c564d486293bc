"""FastAPI."""

from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import PlainTextResponse

app = FastAPI()


@app.get("/hello", response_class=PlainTextResponse)
async def hello(name: str):
    return f"hello {name}"


@app.post("/echo", response_class=PlainTextResponse)
async def echo(request: Request):
    return (await request.body()).decode()


@app.websocket("/ws")
async def ws(socket: WebSocket):
    await socket.accept()
    await socket.send_text(await socket.receive_text())
    await socket.close()
