"""Builds the wheel: maturin, and ``PERF_BUILD=1 pip install .`` for this machine's processor.

Such a wheel is optimised as a whole and may not run on another machine.
"""

import os
import shlex

# What a build needs is looked up here by name.
from maturin import *  # noqa: F403


def tune(environment: os._Environ[str] | dict[str, str]) -> None:
    """Asks cargo for the profile `perf` and for every instruction of this processor."""
    if environment.get("PERF_BUILD", "0") in ("", "0"):
        return
    flags = [environment.get("RUSTFLAGS", ""), "-C target-cpu=native"]
    environment["RUSTFLAGS"] = " ".join(flag for flag in flags if flag)
    arguments = shlex.split(environment.get("MATURIN_PEP517_ARGS", ""))
    environment["MATURIN_PEP517_ARGS"] = shlex.join([*arguments, "--profile", "perf"])


tune(os.environ)
