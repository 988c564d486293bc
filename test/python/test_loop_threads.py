"""A loop that other threads use, too: the same on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import threading

import pytest

import erlang

Loop = asyncio.AbstractEventLoop


def test_call_soon_threadsafe_wakes_a_loop_that_sleeps(loop: Loop) -> None:
    threads = [
        threading.Timer(0.01, loop.call_soon_threadsafe, (loop.stop,)),
        threading.Thread(target=lambda: [loop.call_soon_threadsafe(int) for _ in range(1000)]),
    ]
    loop.call_later(30, pytest.fail, "nobody woke the loop")
    for thread in threads:
        thread.start()
    loop.run_forever()
    for thread in threads:
        thread.join()


def test_many_threads_lose_no_callback(loop: Loop) -> None:
    count, ran = 2000, 0

    def one() -> None:
        nonlocal ran
        ran += 1
        if ran == 4 * count:
            loop.stop()

    def post() -> None:
        for _ in range(count):
            loop.call_soon_threadsafe(one)

    threads = [threading.Thread(target=post) for _ in range(4)]
    for thread in threads:
        thread.start()
    loop.run_forever()
    for thread in threads:
        thread.join()
    assert ran == 4 * count


def test_call_soon_from_a_foreign_thread_is_safe_without_debug() -> None:
    loop = erlang.new_event_loop()
    ran: list[int] = []

    def elsewhere() -> None:
        for number in range(100):
            loop.call_soon(ran.append, number)
            loop.call_later(0, ran.append, number).cancel()
        loop.call_later(0.001, loop.stop)

    thread = threading.Thread(target=elsewhere)
    loop.call_later(0.001, thread.start)
    loop.run_forever()
    thread.join()
    assert ran == list(range(100))
    loop.close()
