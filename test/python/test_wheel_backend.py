"""How a wheel is built: plainly, or for the processor of the machine."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("PERF_BUILD", raising=False)
    # pip installs maturin for the build alone.
    monkeypatch.setitem(sys.modules, "maturin", types.ModuleType("maturin"))
    spec = importlib.util.spec_from_file_location(
        "wheel_backend", ROOT / "scripts" / "wheel_backend.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_plain_build_changes_nothing(backend: Any) -> None:
    for environment in ({}, {"PERF_BUILD": "0"}, {"PERF_BUILD": ""}):
        before = dict(environment)
        backend.tune(environment)
        assert environment == before


def test_a_perf_build_asks_for_the_profile_and_the_processor(backend: Any) -> None:
    environment = {"PERF_BUILD": "1", "RUSTFLAGS": "-g", "MATURIN_PEP517_ARGS": "--locked"}
    backend.tune(environment)
    assert environment["RUSTFLAGS"] == "-g -C target-cpu=native"
    assert environment["MATURIN_PEP517_ARGS"] == "--locked --profile perf"


def test_pip_is_told_of_it() -> None:
    system = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    assert system["build-backend"] == "wheel_backend"
    assert system["backend-path"] == ["scripts"]
