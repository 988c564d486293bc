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


def with_cargo(monkeypatch: pytest.MonkeyPatch, directory: Path, version: str | None) -> None:
    """Leaves a cargo of that version, or none, on PATH."""
    if version is not None:
        cargo = directory / "cargo"
        cargo.write_text(f"#!/bin/sh\necho 'cargo {version} (abc 2026-01-01)'\n")
        cargo.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))


@pytest.mark.parametrize(
    ("version", "found"), [(None, "found no cargo on PATH"), ("1.85.0", "found cargo 1.85")]
)
def test_without_a_rust_that_can_build_it_pip_shows_what_to_do(
    backend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str | None, found: str
) -> None:
    with_cargo(monkeypatch, tmp_path, version)
    for ask in (backend.get_requires_for_build_wheel, backend.get_requires_for_build_editable):
        with pytest.raises(SystemExit) as refused:
            ask()
        assert found in str(refused.value)
        assert "needs Rust 1.91 or newer" in str(refused.value)
        assert "https://rustup.rs" in str(refused.value)
        assert "--find-links" in str(refused.value)


def test_with_rust_pip_is_asked_for_maturin(
    backend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_cargo(monkeypatch, tmp_path, "2.0.0")
    assert backend.get_requires_for_build_wheel() == ["maturin>=1.9,<2"]


def test_the_hooks_of_the_build_are_those_of_maturin(backend: Any) -> None:
    sys.modules["maturin"].build_wheel = lambda *given: given  # type: ignore[attr-defined]
    assert backend.build_wheel("there", None, None) == ("there", None, None)


def test_pip_is_told_of_it() -> None:
    system = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    assert system["requires"] == []
    assert system["build-backend"] == "wheel_backend"
    assert system["backend-path"] == ["scripts"]
