#: guides: 001

import erlang_asyncio

async def main():
    tasks = [
        erlang_asyncio.create_task(erlang_asyncio.sleep(0.01, result=i))
        for i in range(3)
    ]

    done, pending = await erlang_asyncio.wait(
        tasks,
        return_when=erlang_asyncio.ALL_COMPLETED
    )

    assert len(done) == 3
    assert len(pending) == 0

erlang_asyncio.run(main())
