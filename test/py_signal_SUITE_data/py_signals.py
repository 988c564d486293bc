"""Signal handlers on loops of the node."""

import asyncio
import os
import signal

import erlang


async def hear(name):
    """Handles a signal that the node sends itself; what the handler was given."""
    loop = asyncio.get_running_loop()
    heard = loop.create_future()
    sig = signal.Signals[name]
    loop.add_signal_handler(sig, heard.set_result, name)
    try:
        os.kill(os.getpid(), sig)
        return await heard
    finally:
        loop.remove_signal_handler(sig)


def hear_on_own_loop(name):
    return erlang.run(hear(name))


async def tell(pid, name, what):
    """Tells a process of every signal, for as long as the loop lives."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.Signals[name], erlang.send, pid, what)


async def tell_and_wait(pid, name, what):
    await tell(pid, name, what)
    erlang.send(pid, "ready")
    await asyncio.Event().wait()


async def forget(name):
    return asyncio.get_running_loop().remove_signal_handler(signal.Signals[name])


def tell_on_own_loop(pid, name, what):
    erlang.run(tell_and_wait(pid, name, what))


async def _tell_twice(pid):
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, erlang.send, pid, 1)
    erlang.send(pid, "ready")
    while loop._signals is not None:
        await asyncio.sleep(0.01)
    # Its successor may not have started yet.
    while True:
        try:
            loop.add_signal_handler(signal.SIGUSR1, erlang.send, pid, 2)
            break
        except erlang.ErlangError:
            await asyncio.sleep(0.01)
    erlang.send(pid, "again")
    await asyncio.Event().wait()


def tell_twice(pid):
    erlang.run(_tell_twice(pid))


async def refused(what):
    """The exception that a handler for this gives."""
    loop = asyncio.get_running_loop()
    try:
        if what == "coroutine":
            loop.add_signal_handler(signal.SIGUSR1, hear)
        else:
            loop.add_signal_handler(what, print)
    except Exception as error:
        return [type(error).__name__, str(error)]


async def child(command, name):
    """A child's exit code, and whether the signal of its end came."""
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()
    loop.add_signal_handler(signal.Signals[name], heard.set)
    try:
        process = await asyncio.create_subprocess_shell(command)
        code = await process.wait()
        await heard.wait()
        return code
    finally:
        loop.remove_signal_handler(signal.Signals[name])
