"""The handler that hands Python's log records to the logger of the node."""

import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from erlang import _logging


class Sink:
    def __init__(self) -> None:
        self.records: list[tuple[int, str, str, dict[str, object]]] = []

    def __call__(self, level: int, name: str, message: str, meta: dict[str, object]) -> None:
        self.records.append((level, name, message, meta))

    @property
    def messages(self) -> list[str]:
        return [message for _, _, message, _ in self.records]


@pytest.fixture
def sink() -> Iterator[Sink]:
    root = logging.getLogger()
    before = root.level, list(root.handlers), threading.excepthook, sys.unraisablehook
    sink = Sink()
    _logging.install(sink, logging.DEBUG)
    yield sink
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    threading.excepthook, sys.unraisablehook = before[2:]


log = logging.getLogger("shop.orders")


def without_pytests_handler() -> None:
    """That one raises on a record which cannot be formatted."""
    root = logging.getLogger()
    root.handlers[:] = [each for each in root.handlers if isinstance(each, _logging.NodeHandler)]


def test_a_record_arrives_with_level_name_text_and_place(sink: Sink) -> None:
    log.warning("%d orders, %s", 3, "late")
    [(level, name, message, meta)] = sink.records
    assert (level, name, message) == (30, "shop.orders", "3 orders, late")
    assert meta["file"] == __file__
    assert isinstance(meta["line"], int)
    assert meta["line"] > 0
    assert meta["function"] == "test_a_record_arrives_with_level_name_text_and_place"
    assert meta["thread"] == "MainThread"
    assert isinstance(meta["time"], int)


def test_the_text_of_an_exception_is_included(sink: Sink) -> None:
    try:
        raise KeyError("order 7")
    except KeyError:
        log.exception("failed")
    [message] = sink.messages
    assert message.startswith("failed\nTraceback (most recent call last):")
    assert message.endswith("KeyError: 'order 7'")


def test_installing_twice_logs_once_and_to_the_new_sink(sink: Sink) -> None:
    second = Sink()
    _logging.install(second, logging.WARNING)
    log.warning("once")
    log.info("below the level")
    assert second.messages == ["once"]
    assert sink.messages == []


def test_a_record_that_cannot_be_formatted_is_logged_as_it_is(sink: Sink) -> None:
    without_pytests_handler()
    log.info("%d", "not a number")
    [message] = sink.messages
    assert "cannot be formatted: '%d' ('not a number',) TypeError(" in message


def test_an_argument_whose_str_raises_does_not_raise_at_the_caller(sink: Sink) -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError("no text")

        __repr__ = __str__

    without_pytests_handler()
    log.info("%s", Bad())
    [message] = sink.messages
    assert "cannot be formatted: '%s'" in message


def test_a_sink_that_raises_does_not_raise_at_the_caller(
    sink: Sink, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the node is gone")

    _logging.install(broken, logging.DEBUG)
    log.info("lost")
    assert sink.records == []
    assert "a log record of 'shop.orders' was lost" in capfd.readouterr().err


def test_a_sink_that_logs_does_not_recurse(sink: Sink) -> None:
    def logs(level: int, name: str, message: str, meta: dict[str, object]) -> None:
        sink(level, name, message, meta)
        log.info("from the sink")

    _logging.install(logs, logging.DEBUG)
    log.info("outer")
    assert sink.messages == ["outer"]


def test_a_lone_surrogate_becomes_its_escape(sink: Sink) -> None:
    # pytest's own would keep the text for its report, which can't be sent to another process.
    without_pytests_handler()
    log.info("bad \udc80, good é")
    assert sink.messages == ["bad \\udc80, good é"]


def test_filters_are_honoured(sink: Sink) -> None:
    assert _logging._handler is not None

    def no_secrets(record: logging.LogRecord) -> bool:
        return "secret" not in record.getMessage()

    _logging._handler.addFilter(no_secrets)
    try:
        log.info("secret")
        log.info("open")
    finally:
        _logging._handler.removeFilter(no_secrets)
    assert sink.messages == ["open"]


def test_an_uncaught_exception_of_a_thread_is_logged_with_its_place(sink: Sink) -> None:
    def fails() -> None:
        raise ValueError("nobody catches this")

    thread = threading.Thread(target=fails, name="worker-9")
    thread.start()
    thread.join()
    [(level, name, message, meta)] = sink.records
    assert (level, name) == (40, "erlang.uncaught")
    assert message.startswith("uncaught exception in Python thread worker-9\nTraceback")
    assert message.endswith("ValueError: nobody catches this")
    assert (meta["file"], meta["function"], meta["thread"]) == (__file__, "fails", "worker-9")


def test_a_thread_that_ends_itself_is_not_an_error(sink: Sink) -> None:
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
    assert sink.records == []


def test_an_exception_that_python_ignores_is_logged(sink: Sink) -> None:
    class Leaky:
        def __del__(self) -> None:
            raise OSError("in the destructor")

        def __repr__(self) -> str:
            raise RuntimeError("half destroyed")

    Leaky()
    [(level, _, message, _)] = sink.records
    assert level == 40
    assert "OSError: in the destructor" in message


def test_an_uncaught_exception_is_logged_whatever_level_a_user_has_set(sink: Sink) -> None:
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.disable(logging.CRITICAL)
    try:
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
    finally:
        logging.disable(logging.NOTSET)
    assert len(sink.records) == 1
