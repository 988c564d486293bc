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


def same(text):
    return text


page = gradio.Interface(same, "text", "text", api_name="predict")
app = gradio.mount_gradio_app(app, page, "/gradio")
paths = ["/gradio/"]
