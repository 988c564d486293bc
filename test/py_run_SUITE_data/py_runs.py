"""Code that runs loops of its own."""

import asyncio
import threading
import warnings

import erlang

counts = {"ended": 0, "sleeping": 0}


async def loop_name():
    return type(asyncio.get_running_loop()).__name__


def loop_of_run():
    return erlang.run(loop_name())


def loop_of_asyncio_run():
    return asyncio.run(loop_name())


def loop_after_install():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        erlang.install()
    return asyncio.run(loop_name())


async def _naps(count, seconds):
    await asyncio.gather(*(asyncio.sleep(seconds) for _ in range(count)))
    return count


def naps(count, seconds):
    return erlang.run(_naps(count, seconds))


_here = {}


def meet(place, count):
    """Returns when so many loops have come to that place."""

    async def main():
        names = _here.setdefault(place, [])
        names.append(asyncio.get_running_loop())
        while len(names) < count:
            await asyncio.sleep(0.001)
        return len({id(loop) for loop in names})

    return erlang.run(main())


def in_threads(count):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(erlang.run(_naps(1, 0.01))))
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


async def _sleep_for_ever():
    try:
        counts["sleeping"] += 1
        await asyncio.Event().wait()
    finally:
        counts["sleeping"] -= 1
        counts["ended"] += 1


def sleep_for_ever():
    erlang.run(_sleep_for_ever())


def ended():
    return counts["ended"]


def sleeps():
    return counts["sleeping"] > 0


async def _echo(text):
    async def serve(reader, writer):
        writer.write(b"echo: " + await reader.readline())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(text.encode() + b"\n")
        answer = await reader.read()
        writer.close()
        return answer.decode().strip()


def echo(text):
    return erlang.run(_echo(text))


async def _child(command):
    child = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate()
    return (child.returncode, out.decode())


def child(command):
    return erlang.run(_child(command))


async def child_code(command):
    return (await _child(command))[0]


def by_hand():
    loop = erlang.new_event_loop()
    ran = []
    loop.call_soon(ran.append, 1)
    loop.call_soon(ran.append, 2)
    loop._run_once()
    loop.close()
    return ran
