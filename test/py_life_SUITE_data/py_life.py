"""Programs that end badly, or not at all."""

import _thread
import asyncio
import atexit
import os
import subprocess
import sys
import threading
import time

import erlang


def leave(code):
    sys.exit(code)


def interrupt():
    raise KeyboardInterrupt


def interrupt_main():
    _thread.interrupt_main()


def leave_in_a_thread():
    thread = threading.Thread(target=sys.exit, args=(3,))
    thread.start()
    thread.join()


def stop_iteration():
    raise StopIteration


def run(code):
    return subprocess.run(["sh", "-c", code], check=False).returncode


def output(code):
    done = subprocess.run(["sh", "-c", code], check=False, capture_output=True, text=True)
    return (done.returncode, done.stdout, done.stderr)


def system(code):
    return os.waitstatus_to_exitcode(os.system(code))


def fork():
    """A child that ends by itself is waited for."""
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sleeping_thread(daemon):
    threading.Thread(target=time.sleep, args=(600,), daemon=daemon).start()


def busy_thread(daemon):
    def body():
        while True:
            pass

    threading.Thread(target=body, daemon=daemon).start()


def calling_thread(daemon):
    def body():
        while True:
            try:
                erlang.call("nothing")
            except Exception:
                time.sleep(0.001)

    threading.Thread(target=body, daemon=daemon).start()


def thread_until_the_end(name):
    def body():
        stops.wait()
        time.sleep(0.3)

    def tell():
        how = "lives" if thread.is_alive() else "has ended"
        os.write(1, f"the thread of a {name} {how}\n".encode())

    stops = threading.Event()
    # Called when Python begins to join threads, and after it has.
    threading._register_atexit(stops.set)
    atexit.register(tell)
    thread = threading.Thread(target=body)
    thread.start()


async def thread_of_a_coroutine(name):
    thread_until_the_end(name)


def say_goodbye():
    atexit.register(lambda: os.write(1, b"goodbye from atexit\n"))


def tasks():
    return len(os.listdir("/proc/self/task"))


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def hangs(scope, receive, send):
    await asyncio.sleep(60)


heard = []


async def _asks():
    await erlang.async_call("life_waits")


def begin_to_wait():
    """A thread and a coroutine, neither of a job, that wait for Erlang until it says something."""

    def listen(ask):
        try:
            ask()
        except Exception as error:
            heard.append(type(error).__name__)

    for ask in (lambda: erlang.call("life_waits"), lambda: erlang.run(_asks())):
        threading.Thread(target=listen, args=(ask,), daemon=True).start()


def what_was_heard():
    return heard


def raise_at_exit(text):
    def fail():
        raise ValueError(text)

    say_goodbye()
    atexit.register(fail)
