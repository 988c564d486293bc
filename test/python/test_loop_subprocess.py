"""Subprocesses: pipes, exit statuses, signals, many at once; on asyncio's loop and ours."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import erlang

if TYPE_CHECKING:
    from collections.abc import Callable

Loop = asyncio.AbstractEventLoop
PIPE = asyncio.subprocess.PIPE


class Process(asyncio.SubprocessProtocol):
    """Notes what happens to a process."""

    transport: asyncio.SubprocessTransport

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.got: dict[int, bytes] = {}
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        self.events.append("made")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.got[fd] = self.got.get(fd, b"") + data

    def pipe_connection_lost(self, fd: int, exc: BaseException | None) -> None:
        self.events.append(("pipe", fd, exc))

    def process_exited(self) -> None:
        self.events.append(("exited", self.transport.get_returncode()))

    def connection_lost(self, exc: BaseException | None) -> None:
        self.events.append(("lost", exc))
        self.ended.set_result(None)


def run(loop: Loop, scenario: Callable[[], Any]) -> Any:
    return loop.run_until_complete(asyncio.wait_for(scenario(), 60))


def test_a_process_gets_its_input_and_gives_its_output(loop: Loop) -> None:
    async def scenario() -> None:
        transport, process = await loop.subprocess_exec(
            Process, "sh", "-c", "cat; echo error >&2; exit 3"
        )
        pids = transport.get_pid()
        assert pids == transport.get_extra_info("subprocess").pid
        assert process.events == ["made"]
        stdin = transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(b"some input")
        stdin.write_eof()
        await process.ended
        assert process.got == {1: b"some input", 2: b"error\n"}
        assert transport.get_returncode() == 3
        assert process.events[0] == "made"
        assert process.events[-1] == ("lost", None)
        assert sorted(map(str, process.events[1:-1])) == sorted(
            map(str, [("exited", 3), ("pipe", 0, None), ("pipe", 1, None), ("pipe", 2, None)])
        )
        transport.close()

    run(loop, scenario)


def test_a_shell_command_runs(loop: Loop) -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_shell("echo $((6 * 7)); exit 5", stdout=PIPE)
        assert await process.communicate() == (b"42\n", None)
        assert process.returncode == 5

    run(loop, scenario)


@pytest.mark.parametrize("code", [0, 1, 127, 255])
def test_the_exit_status_is_the_one_of_the_process(loop: Loop, code: int) -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec("sh", "-c", f"exit {code}")
        assert await process.wait() == code
        assert await process.wait() == code
        assert process.returncode == code

    run(loop, scenario)


@pytest.mark.parametrize("how", ["terminate", "kill", "send_signal"])
def test_a_signal_ends_a_process_and_is_its_status(loop: Loop, how: str) -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec("sleep", "3600")
        number = {"terminate": signal.SIGTERM, "kill": signal.SIGKILL}.get(how, signal.SIGUSR1)
        if how == "send_signal":
            process.send_signal(number)
        else:
            getattr(process, how)()
        assert await process.wait() == -number

    run(loop, scenario)


# With asyncio each cancelled wait stays until the process ends.
@pytest.mark.parametrize("loop", [erlang.new_event_loop], indirect=True)
def test_a_cancelled_wait_for_a_process_leaves_nothing_behind(loop: Loop) -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
        ended = asyncio.ensure_future(process.wait())
        for _ in range(100):
            waits = asyncio.ensure_future(process.wait())
            await asyncio.sleep(0)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
        waiting = len(process._transport._exit_waiters)  # type: ignore[attr-defined]
        assert process.stdin is not None
        process.stdin.close()
        assert (await ended, waiting) == (0, 1)

    run(loop, scenario)


def test_a_process_that_has_ended_gets_no_signal(loop: Loop) -> None:
    async def scenario() -> None:
        # Dead, and the loop has not yet heard of it.
        process = await asyncio.create_subprocess_exec("true")
        with suppress(ChildProcessError):  # asyncio's watcher thread was faster
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        process.send_signal(signal.SIGTERM)
        process.kill()
        # asyncio before 3.13 may reap it twice, and then says 255.
        ours = isinstance(loop, erlang.ErlangEventLoop)
        assert await process.wait() in ((0,) if ours else (0, 255))
        # Reaped, and its connection is lost; asyncio of 3.14 may take a little longer for that.
        gone = pytest.raises(ProcessLookupError) if ours else suppress(ProcessLookupError)
        with gone:
            process.kill()

    run(loop, scenario)


def test_what_a_pipe_can_not_take_waits(loop: Loop) -> None:
    data = os.urandom(2_000_000)

    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        output, _ = await process.communicate(data)
        assert output == data
        assert process.returncode == 0

    run(loop, scenario)


def test_a_process_that_does_not_read_closes_its_input(loop: Loop) -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "pass", stdin=PIPE, stdout=PIPE
        )
        # The pipe breaks while data waits; communicate does not mind.
        assert await process.communicate(bytes(2_000_000)) == (b"", None)
        assert process.returncode == 0

    run(loop, scenario)


def test_closing_the_transport_kills_the_process(loop: Loop) -> None:
    async def scenario() -> None:
        transport, process = await loop.subprocess_exec(
            Process, "sleep", "3600", stdin=None, stdout=None, stderr=None
        )
        assert not transport.is_closing()
        transport.close()
        transport.close()
        assert transport.is_closing()
        await process.ended
        assert transport.get_returncode() == -signal.SIGKILL
        assert process.events == ["made", ("exited", -signal.SIGKILL), ("lost", None)]
        assert transport.get_pipe_transport(1) is None

    run(loop, scenario)


def test_the_connection_outlives_the_process_while_a_pipe_is_open(loop: Loop) -> None:
    async def scenario() -> None:
        reading, writing = os.pipe()
        # A grandchild keeps the output open until it is told to end.
        transport, process = await loop.subprocess_exec(
            Process,
            "sh",
            "-c",
            "exec 3<&0; (read line <&3) & exit 7",
            stdin=reading,
            stderr=None,
        )
        os.close(reading)
        while ("exited", 7) not in process.events:
            await asyncio.sleep(0.001)
        assert process.events == ["made", ("exited", 7)]
        os.close(writing)
        await process.ended
        assert process.events[2:] == [("pipe", 1, None), ("lost", None)]
        transport.close()

    run(loop, scenario)


def test_wait_is_over_with_the_process_though_a_pipe_is_open() -> None:
    # asyncio's loop waits for the pipe, too, in its older releases.
    loop = erlang.new_event_loop()

    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(
            # The grandchild keeps both pipes open until its input ends.
            "sh",
            "-c",
            "exec 3<&0; (echo begun; read line <&3; echo over) & wait",
            stdin=PIPE,
            stdout=PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        waits = asyncio.ensure_future(process.wait())
        assert await process.stdout.readline() == b"begun\n"
        process.kill()
        assert await waits == -signal.SIGKILL
        process.stdin.close()
        assert await process.stdout.read() == b"over\n"

    run(loop, scenario)
    loop.close()


def test_both_outputs_may_be_one_pipe(loop: Loop) -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", "echo one; echo two >&2", stdout=PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert await process.communicate() == (b"one\ntwo\n", None)

    run(loop, scenario)


def test_a_program_that_is_not_there_is_an_error_and_leaves_nothing(loop: Loop) -> None:
    async def scenario() -> None:
        await asyncio.sleep(0)
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(5):
            with pytest.raises(FileNotFoundError):
                await asyncio.create_subprocess_exec("/no/such/program", stdin=PIPE, stdout=PIPE)
        assert sorted(os.listdir("/proc/self/fd")) == before

    run(loop, scenario)


def test_many_at_once_each_with_its_own_status_and_nothing_left(loop: Loop) -> None:
    async def one(number: int) -> None:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", f"cat; exit {number % 200}", stdin=PIPE, stdout=PIPE
        )
        output, _ = await process.communicate(b"%d" % number)
        assert output == b"%d" % number
        assert process.returncode == number % 200

    async def scenario() -> None:
        await one(1)
        threads = threading.active_count()
        before = sorted(os.listdir("/proc/self/fd"))
        await asyncio.gather(*[one(number) for number in range(60)])
        assert sorted(os.listdir("/proc/self/fd")) == before
        if isinstance(loop, erlang.ErlangEventLoop):
            assert threading.active_count() == threads

    run(loop, scenario)


def test_a_loop_in_another_thread_has_processes_too(loop: Loop) -> None:
    result: list[Any] = []

    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec("sh", "-c", "echo hi; exit 4", stdout=PIPE)
        result.append(await process.communicate())
        result.append(process.returncode)

    def body() -> None:
        asyncio.set_event_loop(loop)
        run(loop, scenario)
        asyncio.set_event_loop(None)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert result == [(b"hi\n", None), 4]


def test_a_cancelled_start_leaves_no_process(loop: Loop) -> None:
    async def scenario() -> None:
        start = asyncio.ensure_future(asyncio.create_subprocess_exec("sleep", "3600"))
        await asyncio.sleep(0)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start

    run(loop, scenario)
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, check=False
    )
    assert b"sleep 3600" not in children.stdout


def test_one_whose_status_was_taken_by_its_popen_keeps_it(loop: Loop) -> None:
    async def scenario() -> None:
        transport, process = await loop.subprocess_exec(
            Process, "sh", "-c", "exit 9", stdin=None, stdout=None, stderr=None
        )
        # asyncio says 255 here, and warns.
        if isinstance(loop, erlang.ErlangEventLoop):
            transport.get_extra_info("subprocess").wait()
        await process.ended
        assert transport.get_returncode() == 9
        transport.close()

    run(loop, scenario)


def test_text_mode_is_refused(loop: Loop) -> None:
    async def scenario() -> None:
        for options in ({"text": True}, {"bufsize": 1}, {"shell": True}, {"encoding": "utf-8"}):
            given: dict[str, Any] = options
            with pytest.raises(ValueError, match="must be"):
                await loop.subprocess_exec(Process, "true", **given)

    run(loop, scenario)
