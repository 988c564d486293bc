"""The text that Python prints for an exception, and the lines of its source.

The node tells an exception as a story, a dictionary: its frames are not kept, as they would keep
every local variable alive.
"""

from __future__ import annotations

import linecache
import traceback
from typing import Any

_MOST_FRAMES = 1000
_MOST_CHARACTERS = 64_000


def written(error: BaseException) -> str:
    """With `traceback => true`, while the exception is there."""
    trace = error.__traceback__
    # What runs code of Elixir is no part of it.
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == "erlang._sigil":
        trace = trace.tb_next
    told = traceback.TracebackException(
        type(error), error, trace, limit=-_MOST_FRAMES, compact=True
    )
    return _bounded("".join(told.format()))


def describe(story: dict[str, Any]) -> tuple[Any, str]:
    """`py:last_error/0`: the source line of each frame, of every exception, and the text."""
    return _texts(story), _bounded("".join(_told(story).format()))


def _bounded(text: str) -> str:
    """Both ends of it, if it is long."""
    left_out = len(text) - _MOST_CHARACTERS
    if left_out <= 0:
        return text
    half = _MOST_CHARACTERS // 2
    return f"{text[:half]}\n[{left_out} characters left out]\n{text[-half:]}"


def _texts(story: dict[str, Any] | None) -> Any:
    if story is None:
        return None
    frames = [linecache.getline(one["file"], one["line"] or 0) for one in story["traceback"]]
    return (
        [line.strip() for line in frames],
        _texts(story["cause"]),
        _texts(story["context"]),
        [_texts(one) for one in story.get("exceptions", [])],
    )


class _Ends(traceback.StackSummary):
    """The first and the last frames of a deep stack."""

    left_out = 0

    def format(self, **options: Any) -> list[str]:
        half = len(self) // 2
        first, last = traceback.StackSummary(self[:half]), traceback.StackSummary(self[half:])
        between = f"  [{self.left_out} frames left out]\n"
        return [*first.format(**options), between, *last.format(**options)]


def _told(story: dict[str, Any]) -> traceback.TracebackException:
    """What Python's own module would have made of the exception itself, for it to print."""
    stand_in = _stand_in(story)
    told = traceback.TracebackException(type(stand_in), stand_in, None)
    told.stack = _stack(story)
    told.__cause__ = _told(story["cause"]) if story["cause"] else None
    told.__context__ = _told(story["context"]) if story["context"] else None
    told.__suppress_context__ = story.get("suppress_context", False)
    if "exceptions" in story:
        told.exceptions = [_told(one) for one in story["exceptions"]]
    return told


def _stack(story: dict[str, Any]) -> traceback.StackSummary:
    frames = [(one["file"], one["line"], one["function"], None) for one in story["traceback"]]
    stack = traceback.StackSummary.from_list(frames)
    if "left_out" not in story:
        return stack
    ends = _Ends(stack)
    ends.left_out = story["left_out"]
    return ends


def _stand_in(story: dict[str, Any]) -> BaseException:
    """An exception that is called so and says so."""
    module, _, name = story["type"].rpartition(".")
    message = story["message"]
    body = {"__module__": module or "builtins", "__str__": lambda _: message}
    if "syntax" in story:
        at = story["syntax"]
        places = ("file", "line", "column", "text", "end_line", "end_column")
        where = tuple(at[place] for place in places)
        error: BaseException = type(name, (SyntaxError,), body)(at["message"], where)
    else:
        error = type(name, (Exception,), body)()
    for note in story["notes"]:
        error.add_note(note)
    return error
