"""The end of a loop and of its process: descriptors, fork."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

import erlang


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_closed_loop_gives_its_descriptors_back() -> None:
    before = descriptors()
    loops = [erlang.new_event_loop() for _ in range(10)]
    for loop in loops:
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        loop.close()
    assert descriptors() == before


def in_child(body: object) -> None:
    """Runs in a forked child; its failure is a failure here."""
    child = os.fork()
    if child == 0:
        try:
            body()  # type: ignore[operator]
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_is_refused_by_the_loop_of_its_parent_and_may_make_its_own() -> None:
    loop = erlang.new_event_loop()
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.setblocking(False)
        loop.add_reader(mine, loop.stop)

        def child() -> None:
            for call in (
                lambda: loop.call_soon(print),
                lambda: loop.call_soon_threadsafe(print),
                lambda: loop.run_forever(),
                lambda: loop.add_reader(mine, print),
            ):
                with pytest.raises(RuntimeError, match="parent process"):
                    call()
            loop.remove_reader(mine)
            loop.close()

            async def main() -> int:
                await asyncio.sleep(0.001)
                return 5

            assert erlang.run(main()) == 5

        in_child(child)
        theirs.send(b"x")
        loop.call_later(10, pytest.fail, "the parent lost its reader")
        loop.run_forever()
        assert loop.remove_reader(mine)
    loop.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_inside_a_callback_does_not_run_the_rest() -> None:
    read, write = os.pipe()
    loop = erlang.new_event_loop()
    children: list[int] = []

    def fork() -> None:
        children.append(os.fork())
        loop.call_soon_threadsafe(loop.stop) if children[0] else None

    loop.call_soon(fork)
    try:
        loop.run_forever()
    except RuntimeError as error:
        if children[0]:
            raise
        os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(children[0], 0)
    with os.fdopen(read) as pipe:
        assert "parent process" in pipe.read()
    assert status == 0
    loop.close()
