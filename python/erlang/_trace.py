"""`sys.settrace` and `sys.setprofile` of a job end with it: the thread's next job is another's.

What a debugger has set for all threads (`threading.settrace`, `threading.setprofile`) comes back.
"""

from __future__ import annotations

import sys
import threading
from types import MethodType

from erlang import _node

_settrace, _setprofile = sys.settrace, sys.setprofile


def install() -> None:
    """Notice who calls them, in this interpreter."""
    if sys.settrace is _settrace:
        sys.settrace = MethodType(_node.tracing, _settrace)
        sys.setprofile = MethodType(_node.tracing, _setprofile)


def untrace() -> None:
    """Called on the thread whose job is over and has traced or profiled."""
    _settrace(threading.gettrace())
    _setprofile(threading.getprofile())
