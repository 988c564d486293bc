"""No thread forks while another one starts a process.

The ends of pipes that a new process gets are open here, too, until it has them. A child that
another thread forks meanwhile would keep them as long as it lives: whoever reads from the new
process would hear of no end. ``subprocess.Popen`` itself reads from it, on an event loop with all
tasks waiting.
"""

from __future__ import annotations

import _thread
import os

from erlang._imports import when_imported

# Not from `typing`: it is not imported before a program does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_lock = _thread.RLock()
# Seconds. A start that hangs (in a `preexec_fn`) holds up others for so long, and not for ever.
_PATIENCE = 5.0


class Start:
    """For ``with``: the only thread that starts a process. In a child nobody else does."""

    def __enter__(self) -> None:
        self._held = _lock.acquire(timeout=_PATIENCE)

    def __exit__(self, *_: object) -> None:
        # Not in a child, which has come here with a lock that is new.
        if self._held and _lock._is_owned():  # type: ignore[attr-defined]
            _lock.release()


# The methods that make pipes and start a process.
_STARTS = {
    "subprocess": ("Popen", "__init__"),
    "multiprocessing.popen_fork": ("Popen", "_launch"),
}


def install() -> None:
    """In every interpreter: now, or when a program imports them."""
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined]
    for name in _STARTS:
        when_imported(name, _guard)


def _guard(module: ModuleType) -> None:
    class_name, method = _STARTS[module.__name__]
    place = getattr(module, class_name)
    setattr(place, method, _guarded(getattr(place, method)))


def _guarded(original: Callable[..., Any]) -> Callable[..., Any]:
    # What is guarded has imported it.
    import functools

    @functools.wraps(original)
    def starts(*args: Any, **kwargs: Any) -> Any:
        with Start():
            return original(*args, **kwargs)

    return starts
