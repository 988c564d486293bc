"""The Model Context Protocol's server, over HTTP."""

from mcp.server.mcpserver import Context, MCPServer
from starlette.responses import PlainTextResponse

server = MCPServer("zoo")


@server.tool()
def add(one: int, two: int) -> int:
    return one + two


@server.tool()
async def steps(count: int, context: Context) -> int:
    for number in range(1, count + 1):
        await context.report_progress(number, count)
    return count


@server.tool()
def fail() -> int:
    raise ValueError("on purpose")


@server.custom_route("/hello", ["GET"])
async def hello(request):
    return PlainTextResponse(f"hello {request.query_params['name']}")


@server.custom_route("/echo", ["POST"])
async def echo(request):
    return PlainTextResponse(await request.body())


app = server.streamable_http_app()
