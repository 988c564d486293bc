"""Gradio, mounted in FastAPI."""

import gradio
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse

app = FastAPI()


@app.get("/hello", response_class=PlainTextResponse)
async def hello(name: str):
    return f"hello {name}"


@app.post("/echo", response_class=PlainTextResponse)
async def echo(request: Request):
    return (await request.body()).decode()


app = gradio.mount_gradio_app(app, gradio.Interface(lambda text: text, "text", "text"), "/gradio")
paths = ["/gradio/"]
