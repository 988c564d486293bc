"""BlackSheep."""

from blacksheep import Application, Request, WebSocket, get, post, text, ws

app = Application()


@get("/hello")
async def hello(name: str):
    return text(f"hello {name}")


@post("/echo")
async def echo(request: Request):
    return text((await request.read()).decode())


@ws("/ws")
async def socket(websocket: WebSocket):
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()
