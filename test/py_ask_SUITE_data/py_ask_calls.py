"""Coroutines that call Erlang and are cancelled meanwhile."""

import asyncio
import random

import erlang


async def wait(name, *args):
    return await erlang.async_call(name, *args)


async def cancelled_now_and_then(name, count):
    """How many answers were right; about half of the calls are cancelled at some moment."""

    async def ask(number):
        task = asyncio.ensure_future(erlang.async_call(name, number))
        if number % 2:
            for _ in range(random.randrange(5)):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            return None
        return await task == number

    limit = asyncio.Semaphore(50)

    async def ask_in_turn(number):
        async with limit:
            return await ask(number)

    answers = await asyncio.gather(*map(ask_in_turn, range(count)))
    return answers.count(True)


async def many(name, count, enough):
    """Starts calls until `enough` are refused; what those say; then cancels the others."""
    tasks = [asyncio.ensure_future(erlang.async_call(name)) for _ in range(count)]
    refused = []
    for done in asyncio.as_completed(tasks):
        try:
            await done
        except erlang.ErlangError as error:
            refused.append(error)
        if len(refused) == enough:
            break
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return sorted({str(error) for error in refused})
