"""Prints what ./dev must know about the interpreter that runs this file: one line, tabs between.

sort key, tag, version, executable, base executable, shared library, can make a venv, verdict.
Runs on Pythons far too old for the project too, so that the verdict can be a sentence.
"""

import os
import platform
import sys
import sysconfig

OLDEST = (3, 11)


def library():
    """The path at which the shared libpython is, or should be."""
    var = sysconfig.get_config_var
    flags = getattr(sys, "abiflags", "")
    name = f"libpython{sys.version_info[0]}.{sys.version_info[1]}{flags}.so"
    known = [var("INSTSONAME"), var("LDLIBRARY"), name + ".1.0", name]
    folders = [var("LIBDIR"), os.path.join(sys.base_prefix, "lib"), var("LIBPL")]
    paths = [os.path.join(f, n) for f in folders if f for n in known if n and ".so" in n]
    return next((path for path in paths if os.path.exists(path)), paths[0])


def verdict(free_threaded, shared):
    version = sys.version_info[:2]
    implementation = platform.python_implementation()
    if implementation != "CPython":
        return f"is {implementation}, not CPython"
    if version < OLDEST:
        return f"is older than 3.{OLDEST[1]}"
    if free_threaded and version == (3, 13):
        return "is a free-threaded 3.13, an experiment; free threads begin with 3.14t"
    if not os.path.exists(shared):
        return f"has no shared library (looked for {shared})"
    return "ok"


def can_make_venv():
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "no"
    return "yes"


def main():
    major, minor = sys.version_info[:2]
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    suffix = "t" if free_threaded else ""
    base = getattr(sys, "_base_executable", None) or sys.executable
    shared = library()
    # Builds with a GIL come first, then the newer X.Y, then the later release.
    key = f"{int(not free_threaded)}{minor:03}{sys.hexversion & 0xFFFF:04x}"
    fields = [
        key,
        f"cp{major}{minor}{suffix}",
        platform.python_version() + suffix,
        sys.executable,
        os.path.realpath(base),
        shared,
        can_make_venv(),
        verdict(free_threaded, shared),
    ]
    print("\t".join(fields))


main()
