"""Builds the wheel: maturin, and ``PERF_BUILD=1 pip install .`` for this machine's processor.

Such a wheel is optimised as a whole and may not run on another machine.

maturin is asked for only if there is a Rust that can build this: without one, the user reads a
sentence that says what to do.
"""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUILD_TOOL = "maturin>=1.9,<2"
ROOT = Path(__file__).resolve().parent.parent


def tune(environment: os._Environ[str] | dict[str, str]) -> None:
    """Asks cargo for the profile `perf` and for every instruction of this processor."""
    if environment.get("PERF_BUILD", "0") in ("", "0"):
        return
    flags = [environment.get("RUSTFLAGS", ""), "-C target-cpu=native"]
    environment["RUSTFLAGS"] = " ".join(flag for flag in flags if flag)
    arguments = shlex.split(environment.get("MATURIN_PEP517_ARGS", ""))
    environment["MATURIN_PEP517_ARGS"] = shlex.join([*arguments, "--profile", "perf"])


def oldest_rust() -> tuple[int, ...]:
    settings = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return numbers(settings["workspace"]["package"]["rust-version"])


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def rust_found() -> tuple[int, ...] | None:
    """The release of the cargo on PATH."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return None
    said = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"cargo (\d+\.\d+)", said)
    return numbers(found[1]) if found else None


def want_rust() -> None:
    """Ends the build with a sentence where there is no Rust, or one that is too old."""
    wanted, found = oldest_rust(), rust_found()
    if found is not None and found >= wanted:
        return
    oldest = ".".join(map(str, wanted))
    python = ".".join(map(str, sys.version_info[:2]))
    here = f"found cargo {'.'.join(map(str, found))}" if found else "found no cargo on PATH"
    raise SystemExit(
        f"erlang-python: pip found no wheel for this Python {python} and machine, and building one "
        f"needs Rust {oldest} or newer ({here}).\n"
        "Install Rust from https://rustup.rs and try again, or build the wheel elsewhere with "
        "./dev wheel and install it from its directory: "
        "pip install erlang-python --no-index --find-links DIRECTORY"
    )


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    want_rust()
    return [BUILD_TOOL]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    return [BUILD_TOOL]


def hook(name: str) -> Callable[..., Any]:
    """A hook that is maturin's, which is there when it is called."""

    def call(*given: Any, **named: Any) -> Any:
        return getattr(importlib.import_module("maturin"), name)(*given, **named)

    return call


build_wheel = hook("build_wheel")
build_sdist = hook("build_sdist")
build_editable = hook("build_editable")
prepare_metadata_for_build_wheel = hook("prepare_metadata_for_build_wheel")
prepare_metadata_for_build_editable = hook("prepare_metadata_for_build_editable")

tune(os.environ)
