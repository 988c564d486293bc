"""The client of the Model Context Protocol, with and without sessions: tools, progress, failure."""

import asyncio

from mcp import Client


async def ask(base):
    async with asyncio.timeout(60):
        modes = ["legacy", "auto"] * 3
        await asyncio.gather(*(session(base, mode) for mode in modes))


async def session(base, mode):
    async with Client(f"{base}/mcp", mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {"add", "fail", "steps"}, tools
        for number in range(5):
            told = await client.call_tool("add", {"one": number, "two": 2})
            assert told.content[0].text == str(number + 2), told
        seen = []

        async def progress(done, _total, _message):
            seen.append(done)

        told = await client.call_tool("steps", {"count": 3}, progress_callback=progress)
        assert told.content[0].text == "3", told
        assert seen == [1.0, 2.0, 3.0], seen
        assert (await client.call_tool("fail", {})).is_error
