"""Subprocesses of the loop: native pipes, and a descriptor per process that tells of its end.

There is no watcher thread and no signal handler, so it works in any thread; and as nobody else
reaps the process, its number can't belong to another one when a signal is sent.
"""

# The private parts of asyncio have no types, and what is mixed in uses what the loop has.
# mypy: disable-error-code="attr-defined,assignment,override,misc,arg-type,no-any-return"

from __future__ import annotations

import errno
import functools
import os
import signal
import subprocess
import sys
import warnings
from asyncio import base_events, events, protocols, tasks, transports, unix_events
from asyncio.log import logger
from contextlib import suppress
from typing import Any


class _Pipe(protocols.Protocol):
    """The parent's end of one pipe of a process."""

    def __init__(self, process: ErlangSubprocessTransport, fd: int) -> None:
        self.process = process
        self.fd = fd
        self.pipe: Any = None
        self.disconnected = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} fd={self.fd} pipe={self.pipe!r}>"

    def data_received(self, data: bytes) -> None:
        process = self.process
        process._loop.call_soon(process._protocol.pipe_data_received, self.fd, data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.disconnected = True
        process = self.process
        process._loop.call_soon(process._protocol.pipe_connection_lost, self.fd, exc)
        process._try_finish()

    def pause_writing(self) -> None:
        self.process._protocol.pause_writing()

    def resume_writing(self) -> None:
        self.process._protocol.resume_writing()


class ErlangSubprocessTransport(transports.SubprocessTransport):
    """A process and its pipes."""

    def __init__(self, loop: Any, protocol: Any, proc: Any, pidfd: int, extra: Any) -> None:
        super().__init__(extra)
        self._extra["subprocess"] = proc
        self._loop = loop
        self._protocol = protocol
        self._proc = proc
        self._pid = proc.pid
        self._pidfd = pidfd
        self._closed = False
        self._returncode: int | None = None
        self._exit_waiters: dict[Any, None] = {}
        self._pipes: dict[int, _Pipe] = {}

    def _connect(self) -> None:
        """The pipes become transports, then the protocol is told."""
        loop, proc = self._loop, self._proc
        for fd, file in ((0, proc.stdin), (1, proc.stdout), (2, proc.stderr)):
            if file is not None:
                pipe = _Pipe(self, fd)
                self._pipes[fd] = pipe
                make = loop._make_read_pipe_transport if fd else loop._make_write_pipe_transport
                pipe.pipe = make(file, pipe)
        loop.call_soon(self._protocol.connection_made, self)
        loop._add_reader(self._pidfd, self._exited)

    def __repr__(self) -> str:
        info = [type(self).__name__]
        if self._closed:
            info.append("closed")
        info.append(f"pid={self._pid}")
        info.append("running" if self._returncode is None else f"returncode={self._returncode}")
        names = {0: "stdin", 1: "stdout", 2: "stderr"}
        info += [f"{names[fd]}={pipe.pipe}" for fd, pipe in self._pipes.items()]
        return f"<{' '.join(info)}>"

    def __del__(self, _warn: Any = warnings.warn) -> None:
        if not self._closed:
            _warn(f"unclosed transport {self!r}", ResourceWarning, source=self)
            self.close()
        self._forget_pidfd()

    def _forget_pidfd(self) -> None:
        pidfd, self._pidfd = self._pidfd, -1
        if pidfd != -1:
            os.close(pidfd)

    def _exited(self) -> None:
        """The process has ended: takes its exit status."""
        self._loop._remove_reader(self._pidfd)
        self._forget_pidfd()
        try:
            _, status = os.waitpid(self._pid, 0)
        except ChildProcessError:
            # Reaped elsewhere; if by the Popen object, it knows.
            returncode = self._proc.returncode
            if returncode is None:
                returncode = 255
                logger.warning(
                    "child process pid %d exit status already read: will report returncode 255",
                    self._pid,
                )
        else:
            returncode = os.waitstatus_to_exitcode(status)
            self._proc.returncode = returncode
        if self._loop.get_debug():
            logger.info("%r exited with return code %r", self, returncode)
        self._returncode = returncode
        self._loop.call_soon(self._protocol.process_exited)
        self._try_finish()
        # A pipe may stay open for long: whatever the process has started has it, too.
        for waiter in self._exit_waiters:
            if not waiter.done():
                waiter.set_result(returncode)
        self._exit_waiters = {}

    def _try_finish(self) -> None:
        """Once the process has ended and its pipes are closed, the connection is lost."""
        if self._returncode is not None and all(p.disconnected for p in self._pipes.values()):
            self._loop.call_soon(self._connection_lost)

    def _connection_lost(self) -> None:
        try:
            self._protocol.connection_lost(None)
        finally:
            self._loop = self._proc = self._protocol = None

    async def _wait(self) -> int:
        """The exit status, when the process has ended."""
        if self._returncode is not None:
            return self._returncode
        waiter = self._loop.create_future()
        self._exit_waiters[waiter] = None
        try:
            return await waiter
        finally:
            self._exit_waiters.pop(waiter, None)

    def set_protocol(self, protocol: Any) -> None:
        """Another protocol from now on."""
        self._protocol = protocol

    def get_protocol(self) -> Any:
        """The protocol."""
        return self._protocol

    def get_pid(self) -> int:
        """The number of the process."""
        return self._pid

    def get_returncode(self) -> int | None:
        """The exit status, or ``None`` while the process runs."""
        return self._returncode

    def get_pipe_transport(self, fd: int) -> Any:
        """The transport of the pipe that the process has as ``fd``."""
        pipe = self._pipes.get(fd)
        return None if pipe is None else pipe.pipe

    def is_closing(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def close(self) -> None:
        """Closes the pipes and kills the process if it runs."""
        if self._closed:
            return
        self._closed = True
        for pipe in self._pipes.values():
            pipe.pipe.close()
        # It may have ended and the loop not heard of it yet.
        if self._returncode is None and self._proc.poll() is None:
            if self._loop.get_debug():
                logger.warning("Close running child process: kill %r", self)
            # One that runs as another user may not be ours to kill.
            with suppress(ProcessLookupError, PermissionError):
                self._proc.kill()

    def send_signal(self, sig: int) -> None:
        """Sends a signal to the process; one that has ended gets none."""
        if self._proc is None:
            raise ProcessLookupError
        if self._returncode is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, sig)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _wants_asyncio(loop: Any) -> bool:
    """Whether what asyncio's own transport asks was replaced: a child watcher of another kind, as
    it could be set before 3.14, or the methods that connect pipes."""
    if sys.version_info < (3, 14):
        watcher = getattr(events._event_loop_policy, "_watcher", None)
        if watcher is not None and type(watcher).__module__ != "asyncio.unix_events":
            return True
    base = base_events.BaseEventLoop
    reads, writes = loop.connect_read_pipe, loop.connect_write_pipe
    return (
        getattr(reads, "__func__", None) is not base.connect_read_pipe
        or getattr(writes, "__func__", None) is not base.connect_write_pipe
    )


@functools.cache
def _has_pidfd() -> bool:
    """Whether the system has descriptors of processes: Linux since 5.3."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        # Out of descriptors is no answer: starting the process will say so.
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return True


class Subprocesses:
    """Mixed into ErlangEventLoop."""

    @functools.cached_property
    def _watcher(self) -> Any:
        """From 3.14 on asyncio's own transports, where they are wanted, ask the loop for it."""
        if unix_events.can_use_pidfd():
            return unix_events._PidfdChildWatcher()
        return unix_events._ThreadedChildWatcher()

    async def _make_subprocess_transport(
        self,
        protocol: Any,
        args: Any,
        shell: bool,
        stdin: Any,
        stdout: Any,
        stderr: Any,
        bufsize: int,
        extra: Any = None,
        **kwargs: Any,
    ) -> Any:
        if _wants_asyncio(self) or not _has_pidfd():
            return await super()._make_subprocess_transport(
                protocol, args, shell, stdin, stdout, stderr, bufsize, extra=extra, **kwargs
            )
        files = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        proc = subprocess.Popen(args, shell=shell, bufsize=bufsize, **files, **kwargs)
        try:
            pidfd = os.pidfd_open(proc.pid)
        except OSError:
            # Out of descriptors: nobody would hear of its end.
            proc.kill()
            with proc:
                raise
        transport = ErlangSubprocessTransport(self, protocol, proc, pidfd, extra)
        if self._debug:
            program = args if isinstance(args, (bytes, str)) else args[0]
            logger.debug("process %r created: pid %s", program, proc.pid)
        try:
            transport._connect()
            # What is ready runs in order: after this the protocol has its connection.
            await tasks.sleep(0)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:
            transport.close()
            await transport._wait()
            raise
        return transport
