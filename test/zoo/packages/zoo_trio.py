"""trio: a nursery on its own loop."""

import trio


async def _main():
    done = []

    async def one(number):
        await trio.sleep(0.01)
        done.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(one, number)
    return sorted(done)


def work():
    return trio.run(_main)
