"""Virtual environments in the running interpreter: the Python side of `py_venv`.

Runs on an interpreter thread, for `py:activate_venv/1` and its family. A refusal is a ValueError
whose text is a sentence for the user.
"""

from __future__ import annotations

import os
import site
import sys
import threading

from erlang import _boot, _path

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


class _Active:
    """What activation changed, and what was there before."""

    def __init__(self, path: str, site_packages: str) -> None:
        self.path = path
        self.site_packages = site_packages
        self.path_before = list(sys.path)
        self.path_after: list[str] = []
        self.finders_before = list(sys.meta_path)
        self.prefixes_before = (sys.prefix, sys.exec_prefix, sys.executable)
        self.variable_before = os.environ.get("VIRTUAL_ENV")


_lock = threading.Lock()
_active: _Active | None = None


def check(path: str) -> str:
    """The site-packages of the venv at `path`, if this interpreter can use it."""
    settings = _settings(path)
    made_by = settings.get("version") or settings.get("version_info") or ""
    if made_by and made_by.split(".")[:2] != _VERSION.split("."):
        raise ValueError(
            f"{path} is a virtual environment of Python {made_by}, and Python {_VERSION} is "
            "running: make it again with this Python, or start the node with that one"
        )
    found = _site_packages(path)
    if not os.path.isdir(found):
        raise ValueError(f"{path} is not a virtual environment of this Python: {found} is missing")
    return found


def activate(path: str) -> None:
    """Put the packages of the venv at `path` first; one that is active is left before."""
    global _active
    path = os.path.abspath(path)
    with _lock:
        site_packages = check(path)
        if _active is not None:
            _leave(_active)
            _active = None
        _active = _enter(path, site_packages)
        _boot.warn_of_wheel([place for place in sys.path if place not in _active.path_before])


def deactivate() -> None:
    """Undo `activate`. Modules that were imported stay imported."""
    global _active
    with _lock:
        if _active is not None:
            _leave(_active)
            _active = None


def info() -> dict[str, object]:
    """The environment in use: activated, or the one whose own Python was started."""
    with _lock:
        found: dict[str, object] = {
            "active": False,
            "activated": _active is not None,
            "path": None,
            "python": sys.executable,
            "version": ".".join(str(part) for part in sys.version_info[:3]),
            "site_packages": None,
        }
        if _active is not None:
            found.update(active=True, path=_active.path, site_packages=_active.site_packages)
        elif sys.prefix != sys.base_prefix:
            found.update(active=True, path=sys.prefix, site_packages=_site_packages(sys.prefix))
        return found


def running() -> dict[str, str]:
    """The Python to make a venv with: the base, never another venv."""
    named = [getattr(sys, "_base_executable", ""), sys.executable]
    names = [os.path.join(sys.base_prefix, "bin", f"python{_VERSION}"), *filter(None, named)]
    for name in reversed(names):
        if os.path.isfile(name) and not _is_venv(os.path.dirname(os.path.dirname(name))):
            return {"executable": name, "version": _VERSION}
    raise ValueError(f"the executable of the running Python is not at {names[0]}")


def _enter(path: str, site_packages: str) -> _Active:
    active = _Active(path, site_packages)
    # Runs the .pth files too, which may add further directories.
    site.addsitedir(site_packages)
    before = set(active.path_before)
    added = [entry for entry in sys.path if entry not in before or entry == site_packages]
    # The application's own package stays in front of everything, a wheel in the venv included.
    own = [entry for entry in active.path_before if entry == _OWN]
    rest = [entry for entry in active.path_before if entry not in (_OWN, site_packages)]
    sys.path[:] = own + added + rest
    _path.arrange()
    active.path_after = list(sys.path)
    sys.prefix = sys.exec_prefix = path
    sys.executable = os.path.join(path, "bin", "python")
    os.environ["VIRTUAL_ENV"] = path
    return active


def _leave(active: _Active) -> None:
    now = list(sys.path)
    kept = [entry for entry in active.path_before if entry in now]
    new = [entry for entry in now if entry not in active.path_after]
    sys.path[:] = kept + new
    _path.arrange()
    # Editable installations add finders.
    prefix = active.path + os.sep
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if finder in active.finders_before or not _comes_from(finder, prefix)
    ]
    sys.prefix, sys.exec_prefix, sys.executable = active.prefixes_before
    if active.variable_before is None:
        os.environ.pop("VIRTUAL_ENV", None)
    else:
        os.environ["VIRTUAL_ENV"] = active.variable_before


def _comes_from(finder: object, prefix: str) -> bool:
    owner = finder if isinstance(finder, type) else type(finder)
    module = sys.modules.get(owner.__module__)
    return str(getattr(module, "__file__", None) or "").startswith(prefix)


def _site_packages(path: str) -> str:
    # A free-threaded build keeps its packages apart: lib/python3.14t.
    flag = "t" if "t" in getattr(sys, "abiflags", "") else ""
    return os.path.join(path, "lib", f"python{_VERSION}{flag}", "site-packages")


def _is_venv(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "pyvenv.cfg"))


def _settings(path: str) -> dict[str, str]:
    if not _is_venv(path):
        raise ValueError(f"{path} is not a virtual environment: it has no pyvenv.cfg")
    with open(
        os.path.join(path, "pyvenv.cfg"), encoding="utf-8", errors="surrogateescape"
    ) as lines:
        pairs = (line.partition("=") for line in lines)
        return {key.strip().lower(): value.strip() for key, _, value in pairs}
