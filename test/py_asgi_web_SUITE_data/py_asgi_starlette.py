"""A Starlette application with a mounted part."""

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route


async def home(request):
    return PlainTextResponse(f"{request.url.path} {request.client.host}")


async def echo(request):
    return JSONResponse(await request.json())


inner = [Route("/echo", echo, methods=["POST"])]
app = Starlette(routes=[Route("/", home), Mount("/inner", routes=inner)])
