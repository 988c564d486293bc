"""The Model Context Protocol's server, over HTTP."""

from mcp.server.fastmcp import FastMCP
from starlette.responses import PlainTextResponse

server = FastMCP("zoo")


@server.tool()
def add(one: int, two: int) -> int:
    return one + two


@server.custom_route("/hello", ["GET"])
async def hello(request):
    return PlainTextResponse(f"hello {request.query_params['name']}")


@server.custom_route("/echo", ["POST"])
async def echo(request):
    return PlainTextResponse(await request.body())


app = server.streamable_http_app()
