"""Tasks in groups."""

import erlang


async def first_two(group, listener):
    messages = erlang.pg.subscribe(group)
    erlang.send(listener, "subscribed")
    return [await messages.areceive() for _ in range(2)]


async def until_closed(group):
    got = []
    async with erlang.pg.subscribe(group) as messages:
        erlang.pg.broadcast(group, "one")
        async for message in messages:
            got.append(message)
            messages.close()
    return got
