"""`print` inside a node: whole lines on their way to the caller's group leader, or to the logger.

Runs on whatever thread prints. `sink(text)` is given by the native side and knows for whom the
thread works. Each thread has a line of its own, so the output of two calls is never mixed within
one line.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import threading

# Not from `typing`: it is not imported before a program does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Sink = Callable[[str], object]
    # A thread has begun a line: whoever runs jobs on it calls `flush_thread` after them.
    Begun = Callable[[], object]


def _nobody_waits() -> None:
    """No jobs run on these threads."""


# A line that never ends is sent in pieces.
_MAX_LINE = 65_536


class _Line:
    """What one thread has written since its last newline."""

    def __init__(self, stream: NodeStream) -> None:
        self.stream = stream
        self.parts: list[str] = []
        self.size = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.owner = os.getpid()

    def take(self) -> str:
        text = "".join(self.parts)
        self.parts, self.size = [], 0
        return text

    def __del__(self) -> None:
        # The thread ends; in a forked child the line is still its parent's to send.
        if self.parts and self.owner == os.getpid():
            self.stream.send(self.take())


class _OfThread(threading.local):
    def __init__(self, stream: NodeStream) -> None:
        self.line = _Line(stream)


class _Bytes(io.RawIOBase):
    """The `buffer` of a stream: bytes are read as UTF-8, a character may come in two writes."""

    def __init__(self, text: NodeStream) -> None:
        self._text = text

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        self._text.write_bytes(bytes(view))
        return view.nbytes

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._text.flush()

    def close(self) -> None:
        self.flush()

    def fileno(self) -> int:
        return self._text.fileno()

    def isatty(self) -> bool:
        return False


class NodeStream(io.TextIOBase):
    """A text stream like `sys.stdout`, line-buffered by thread."""

    def __init__(self, sink: Sink, fd: int, name: str, begun: Begun = _nobody_waits) -> None:
        self.sink = sink
        self.begun = begun
        self.name = name
        self.mode = "w"
        self._fd = fd
        self._of_thread = _OfThread(self)
        self._bytes = _Bytes(self)

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        line = self._of_thread.line
        end = text.rfind("\n") + 1
        if end:
            line.parts.append(text[:end])
            # Taken before it is sent: a sink that prints finds an empty line.
            whole = line.take()
            rest = text[end:]
            if rest:
                line.parts.append(rest)
                line.size = len(rest)
                self.begun()
            self.send(whole)
        elif text:
            line.parts.append(text)
            line.size += len(text)
            self.begun()
        if line.size > _MAX_LINE:
            self.flush()
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        self.write(self._of_thread.line.decoder.decode(data))

    def writelines(self, lines: Iterable[str], /) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        line = self._of_thread.line
        if line.parts:
            self.send(line.take())

    def close(self) -> None:
        """Only flushes: the stream belongs to the node, not to who closes it."""
        self.flush()

    def reconfigure(self, **_options: object) -> None:
        """Accepted, as programs do it at start; the encoding stays UTF-8."""
        self.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._fd

    @property
    def buffer(self) -> _Bytes:
        return self._bytes

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    @property
    def line_buffering(self) -> bool:
        return True

    def send(self, text: str) -> None:
        if not text.isascii():
            # A lone surrogate becomes its escape, since the node takes UTF-8 only.
            text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        self.sink(text)

    def become_plain(self) -> None:
        """After a fork: the node's threads are not in the child, its descriptors are."""
        fd = self._fd
        self._of_thread = _OfThread(self)
        self.sink = lambda text: _write_all(fd, text.encode("utf-8"))


_KEYBOARD = (
    "the keyboard belongs to the Erlang shell of this node: input(), breakpoint() and pdb can't "
    "read from it. Give values as arguments, or debug over a socket (PYTHONBREAKPOINT names a "
    "function)"
)


class NoInput(io.TextIOBase):
    """`sys.stdin` where Erlang reads the standard input: who reads is told so at once, instead of
    taking every other keystroke from the shell."""

    name = "<stdin>"
    mode = "r"
    encoding = "utf-8"

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def read(self, _size: int | None = -1, /) -> str:
        raise RuntimeError(_KEYBOARD)

    def readline(self, _size: int = -1, /) -> str:  # type: ignore[override]
        raise RuntimeError(_KEYBOARD)

    def __next__(self) -> str:  # type: ignore[override]
        raise RuntimeError(_KEYBOARD)

    def close(self) -> None:
        """Nothing is open."""


def refuse_input() -> None:
    """Nobody in this interpreter reads the standard input: Erlang does."""
    if not isinstance(sys.stdin, NoInput):
        sys.stdin = NoInput()
    sys.breakpointhook = _breakpoint


def _breakpoint(*args: Any, **kwargs: Any) -> object:
    """Pdb asks at the keyboard; who has named another function in the environment gets that."""
    if os.environ.get("PYTHONBREAKPOINT", "") in ("", "pdb.set_trace"):
        raise RuntimeError(_KEYBOARD)
    return sys.__breakpointhook__(*args, **kwargs)


def install(out_sink: Sink, err_sink: Sink, begun: Begun = _nobody_waits) -> None:
    """Replace `sys.stdout` and `sys.stderr`; called again, only change the sinks."""
    sys.stdout = _replace(sys.stdout, out_sink, 1, "<stdout>", begun)
    sys.stderr = _replace(sys.stderr, err_sink, 2, "<stderr>", begun)


def flush_thread() -> None:
    """Send what the current thread has begun: after each job, for the next one is another's."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, NodeStream):
            stream.flush()


def _replace(now: object, sink: Sink, fd: int, name: str, begun: Begun) -> NodeStream:
    if isinstance(now, NodeStream):
        now.sink = sink
        now.begun = begun
        return now
    stream = NodeStream(sink, fd, name, begun)
    os.register_at_fork(after_in_child=stream.become_plain)
    return stream


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
