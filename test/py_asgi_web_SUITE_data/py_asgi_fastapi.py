"""A FastAPI application that knows it is in a node."""

from contextlib import asynccontextmanager

from fastapi import BackgroundTasks, FastAPI, Form, Request, UploadFile, WebSocket
from fastapi.responses import Response, StreamingResponse
from starlette.middleware.sessions import SessionMiddleware

import erlang


def tell(what):
    erlang.send("py_asgi_web_test", what)


@asynccontextmanager
async def lifespan(app):
    yield {"greeting": "hello"}
    tell("stopped")


app = FastAPI(lifespan=lifespan)
app.add_middleware(SessionMiddleware, secret_key="secret")


@app.get("/items/{number}")
async def item(number: int, request: Request, q: str | None = None):
    return {"number": number, "q": q, "greeting": request.state.greeting}


@app.post("/form")
def form(name: str = Form(), age: int = Form()):
    return {"name": name, "age": age}


@app.post("/upload")
async def upload(file: UploadFile):
    return {"name": file.filename, "size": len(await file.read())}


@app.get("/stream")
async def stream():
    async def pieces():
        for number in range(5):
            yield f"data: {await erlang.async_call('py_asgi_web_double', number)}\n\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


@app.get("/background")
async def background(tasks: BackgroundTasks):
    tasks.add_task(tell, "in the background")
    return "accepted"


@app.get("/session")
async def session(request: Request):
    request.session["visits"] = request.session.get("visits", 0) + 1
    return request.session["visits"]


@app.get("/cookies")
async def cookies(response: Response):
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return "baked"


@app.get("/sync")
def in_a_thread():
    return erlang.call("py_asgi_web_double", 21)


@app.get("/fails")
async def fails():
    raise ZeroDivisionError("in FastAPI")


@app.websocket("/chat")
async def chat(socket: WebSocket):
    await socket.accept()
    async with erlang.pg.subscribe("py_asgi_web") as messages:
        tell("in the chat")
        async for message in messages:
            await socket.send_json(message)
            said = await socket.receive_text()
            tell(said)
