"""The directories of the setting ``python_path``, in front of ``sys.path``.

In the main interpreter only: the others take its ``sys.path`` as it is. Python programs that are
started from here look there too, by ``PYTHONPATH``.
"""

from __future__ import annotations

import importlib
import os
import sys

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_configured: list[str] = []


def configure(directories: list[str]) -> list[str]:
    """From now on these, and those of an earlier start no more. Gives the whole path."""
    global _configured
    earlier, _configured = _configured, list(directories)
    sys.path[:] = [entry for entry in sys.path if entry not in earlier]
    _export(earlier)
    arrange()
    return list(sys.path)


def arrange() -> None:
    """Puts them in front again, behind the package of the application."""
    if _configured:
        others = [entry for entry in sys.path if entry not in _configured]
        own = [entry for entry in others if entry == _OWN]
        sys.path[:] = own + _configured + [entry for entry in others if entry != _OWN]
    importlib.invalidate_caches()


def export() -> None:
    """Puts them in front of ``PYTHONPATH`` again, which may have another value now."""
    _export(_configured)


def _export(earlier: list[str]) -> None:
    told = os.environ.get("PYTHONPATH", "")
    ours = {*earlier, *_configured}
    others = [entry for entry in told.split(os.pathsep) if entry and entry not in ours]
    wanted = os.pathsep.join(_configured + others) if ours else told
    if wanted == told:
        return
    if wanted:
        os.environ["PYTHONPATH"] = wanted
    else:
        del os.environ["PYTHONPATH"]
