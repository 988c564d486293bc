"""Coroutines that talk to Erlang."""

import asyncio

import erlang


async def ask(name, *args):
    return await erlang.async_call(name, *args)


def ask_by_run(name, *args):
    return erlang.run(ask(name, *args))


def ask_by_selector_loop(name, *args):
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(ask(name, *args))


async def ask_many(count, name, ms):
    return await asyncio.gather(*(erlang.async_call(name, ms, i) for i in range(count)))


async def ask_and_catch(name):
    try:
        await erlang.async_call(name)
    except erlang.ErlangError as error:
        return (error.kind, error.reason)


async def ask_with_timeout(name, seconds, *args):
    try:
        return await asyncio.wait_for(erlang.async_call(name, *args), seconds)
    except TimeoutError:
        return "timeout"


async def send_to_caller(text):
    await asyncio.sleep(0)
    erlang.send(erlang.self(), text)
    return erlang.self()


async def who(seconds):
    await asyncio.sleep(seconds)
    return erlang.self()


async def who_everywhere():
    task = asyncio.create_task(who(0.01))
    return [await task, await asyncio.to_thread(erlang.self), erlang.current().caller]


async def about():
    await asyncio.sleep(0)
    return list(erlang.current())


def about_now():
    return list(erlang.current())


async def sleep_together(count, seconds):
    await asyncio.gather(*(erlang.sleep(seconds) for _ in range(count)))


async def _sender(to, number):
    await asyncio.sleep(0.01)
    erlang.send(to, ("spawned", number))


async def spawn_sender(to, number):
    erlang.spawn_task(_sender(to, number))


def spawn_sender_now(to, number):
    erlang.spawn_task(_sender(to, number)).result(10)


async def double_all(source, target):
    count = 0
    target = erlang.Channel(target)
    async for value in erlang.Channel(source):
        await target.asend(2 * value)
        count += 1
    target.close()
    return count


def plain_pipe(count):
    channel = erlang.Channel()
    for i in range(count):
        channel.send(i)
    channel.close()
    return list(channel)


def try_send(channel, value):
    return erlang.Channel(channel).try_send(value)


def send(channel, value):
    erlang.Channel(channel).send(value)


async def send_all(channel, values):
    channel = erlang.Channel(channel)
    for value in values:
        await channel.asend(value)


async def all_of(channel):
    return [value async for value in erlang.Channel(channel)]


def receive_for(channel, seconds):
    return erlang.Channel(channel).receive(seconds)


async def receive_briefly(channel, seconds):
    try:
        return await asyncio.wait_for(erlang.Channel(channel).areceive(), seconds)
    except TimeoutError:
        return "timeout"


async def sum_of_mailbox():
    caller, mailbox = erlang.self(), erlang.receive()
    erlang.send(caller, ("mine", erlang.self()))
    total = 0
    async for message in mailbox:
        if message == "stop":
            break
        total += message
    return total


async def iter_until_stop(mailbox):
    async for message in mailbox:
        if message == "stop":
            return
        yield message


async def backlog():
    mailbox = erlang.receive()
    await erlang.async_call("task_fill", erlang.self())
    return [message async for message in iter_until_stop(mailbox)]


async def read_twice(seconds):
    caller, mailbox = erlang.self(), erlang.receive()
    try:
        await asyncio.wait_for(mailbox.areceive(), seconds)
    except TimeoutError:
        erlang.send(caller, ("waited", erlang.self()))
    return await mailbox.areceive()


async def note_at_the_end():
    try:
        erlang.call("task_note", "begun")
        await asyncio.Event().wait()
    finally:
        erlang.call("task_note", "called")
        await erlang.async_call("task_note", "awaited")
