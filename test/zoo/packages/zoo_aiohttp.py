"""aiohttp: client and server on one loop."""

import asyncio

from aiohttp import ClientSession, web


async def _hello(request):
    return web.Response(text=request.path)


async def work_async():
    app = web.Application()
    app.router.add_get("/path", _hello)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    try:
        url = f"http://127.0.0.1:{port}/path"
        async with ClientSession() as session, session.get(url) as response:
            return await response.text()
    finally:
        await runner.cleanup()


def work():
    return asyncio.run(work_async())
