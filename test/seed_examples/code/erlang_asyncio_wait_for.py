#: guides: 001

import erlang_asyncio

async def fast_task():
    await erlang_asyncio.sleep(0.01)
    return 'done'

async def main():
    try:
        result = await erlang_asyncio.wait_for(fast_task(), timeout=1.0)
    except erlang_asyncio.TimeoutError:
        print("Task timed out")

erlang_asyncio.run(main())
