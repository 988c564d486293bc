"""The streams that replace sys.stdout and sys.stderr inside a node."""

import os
import sys
import threading
from collections.abc import Iterator

import pytest

from erlang import _stdio


class Sink(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def stream(sink: Sink) -> _stdio.NodeStream:
    return _stdio.NodeStream(sink, 1, "<stdout>")


@pytest.fixture
def restored() -> Iterator[None]:
    before = sys.stdout, sys.stderr
    yield
    sys.stdout, sys.stderr = before


def test_a_print_of_several_arguments_is_sent_as_one_line(
    stream: _stdio.NodeStream, sink: Sink
) -> None:
    print("a", 1, None, file=stream)
    assert sink == ["a 1 None\n"]


def test_a_text_of_several_lines_is_sent_at_once_and_its_rest_kept(
    stream: _stdio.NodeStream, sink: Sink
) -> None:
    assert stream.write("one\ntwo\nthr") == 11
    assert sink == ["one\ntwo\n"]
    stream.write("ee\n")
    assert sink == ["one\ntwo\n", "three\n"]


def test_flush_sends_what_has_no_newline_yet_and_only_once(
    stream: _stdio.NodeStream, sink: Sink
) -> None:
    print("50 %", end="", flush=True, file=stream)
    stream.flush()
    assert sink == ["50 %"]


def test_a_line_that_never_ends_is_sent_in_pieces(stream: _stdio.NodeStream, sink: Sink) -> None:
    for _ in range(200):
        stream.write("x" * 1000)
    assert len(sink) >= 3
    stream.flush()
    assert "".join(sink) == "x" * 200_000


def test_two_threads_never_share_a_line(stream: _stdio.NodeStream, sink: Sink) -> None:
    turns = threading.Barrier(2)

    def print_slowly(word: str) -> None:
        for _ in range(50):
            stream.write(word)
            turns.wait()
            stream.write(word)
            turns.wait()
            stream.write("\n")

    threads = [threading.Thread(target=print_slowly, args=(word,)) for word in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sink) == ["aa\n"] * 50 + ["bb\n"] * 50


def test_the_unfinished_line_of_a_thread_that_ends_is_sent(
    stream: _stdio.NodeStream, sink: Sink
) -> None:
    thread = threading.Thread(target=stream.write, args=("last words",))
    thread.start()
    thread.join()
    assert sink == ["last words"]


def test_bytes_go_through_buffer_and_a_character_may_come_in_two_writes(
    stream: _stdio.NodeStream, sink: Sink
) -> None:
    first, second = "é\n".encode()[:1], "é\n".encode()[1:]
    assert stream.buffer.write(first) == 1
    assert stream.buffer.write(memoryview(second)) == 2
    assert sink == ["é\n"]


def test_bytes_that_are_no_utf8_are_replaced_not_refused(
    stream: _stdio.NodeStream, sink: Sink
) -> None:
    stream.buffer.write(b"\xff\n")
    assert sink == ["\N{REPLACEMENT CHARACTER}\n"]


def test_a_lone_surrogate_becomes_its_escape(stream: _stdio.NodeStream, sink: Sink) -> None:
    stream.write("bad \udc80, good é\n")
    assert sink == ["bad \\udc80, good é\n"]


def test_what_is_no_text_is_refused_as_by_any_text_stream(stream: _stdio.NodeStream) -> None:
    with pytest.raises(TypeError, match="must be str, not bytes"):
        stream.write(b"bytes")  # type: ignore[arg-type]


def test_it_looks_like_a_text_stream_that_is_no_terminal(stream: _stdio.NodeStream) -> None:
    assert stream.encoding == "utf-8"
    assert stream.writable()
    assert not stream.readable()
    assert not stream.isatty()
    assert stream.fileno() == 1
    assert stream.buffer.fileno() == 1
    assert stream.name == "<stdout>"
    assert stream.line_buffering


def test_closing_it_leaves_it_open_for_the_others(stream: _stdio.NodeStream, sink: Sink) -> None:
    stream.write("rest")
    stream.close()
    stream.buffer.close()
    print("still here", file=stream)
    assert sink == ["rest", "still here\n"]


def test_a_program_may_reconfigure_it(stream: _stdio.NodeStream) -> None:
    stream.reconfigure(encoding="utf-8", line_buffering=True)


def test_writelines_sends_each_line(stream: _stdio.NodeStream, sink: Sink) -> None:
    stream.writelines(["a\n", "b\n"])
    assert "".join(sink) == "a\nb\n"


def test_a_sink_that_prints_does_not_repeat_the_line() -> None:
    sent: list[str] = []

    def sink(text: str) -> None:
        sent.append(text)
        if len(sent) == 1:
            printed.write("nested\n")

    printed = _stdio.NodeStream(sink, 1, "<stdout>")
    printed.write("outer\n")
    assert sent == ["outer\n", "nested\n"]


@pytest.mark.usefixtures("restored")
def test_install_replaces_both_streams_and_again_only_the_sinks() -> None:
    out, err, later = Sink(), Sink(), Sink()
    _stdio.install(out, err)
    stdout = sys.stdout
    print("to out")
    print("to err", file=sys.stderr)
    _stdio.install(later, err)
    assert sys.stdout is stdout
    print("to later")
    assert (out, err, later) == (["to out\n"], ["to err\n"], ["to later\n"])


@pytest.mark.usefixtures("restored")
def test_flush_thread_sends_what_a_job_left_unfinished() -> None:
    out, err = Sink(), Sink()
    _stdio.install(out, err)
    print("no newline", end="")
    _stdio.flush_thread()
    assert out == ["no newline"]


@pytest.mark.usefixtures("restored")
def test_a_forked_child_writes_to_the_descriptor_and_repeats_nothing() -> None:
    sink = Sink()
    reading, writing = os.pipe()
    stream = _stdio.NodeStream(sink, writing, "<stdout>")
    os.register_at_fork(after_in_child=stream.become_plain)
    stream.write("parent's ")
    child = os.fork()
    if child == 0:
        print("child", file=stream)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, "rb") as pipe:
        assert pipe.read() == b"child\n"
    stream.write("line\n")
    assert sink == ["parent's line\n"]
