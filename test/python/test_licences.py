"""The list of crates that are handed out, and which of their licences are allowed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def licences() -> Any:
    spec = importlib.util.spec_from_file_location("licences", ROOT / "scripts" / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def crate(name: str, licence: str | None, folder: Path = Path("/nowhere")) -> dict[str, Any]:
    manifest = str(folder / name / "Cargo.toml")
    return {
        "id": name,
        "name": name,
        "version": "1.0.0",
        "license": licence,
        "manifest_path": manifest,
    }


def needs(name: str, **kinds: str | None) -> dict[str, Any]:
    deps = [{"pkg": other, "dep_kinds": [{"kind": kind}]} for other, kind in kinds.items()]
    return {"id": name, "deps": deps}


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT/GPL-3.0-only", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR GPL-3.0-only) AND ISC", True),
        ("MIT OR ISC AND GPL-3.0-only", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH Something-exception", False),
        ("(MIT", False),
        ("", False),
    ],
)
def test_an_expression_is_allowed_if_one_of_its_choices_is(
    licences: Any, expression: str, allowed: bool
) -> None:
    said = list(licences.refused([crate("some", expression)]))
    assert (said == []) is allowed, said


def test_a_licence_that_is_not_allowed_is_named_with_its_crate(licences: Any) -> None:
    assert list(licences.refused([crate("left", "GPL-3.0-only"), crate("bare", None)])) == [
        "left 1.0.0 has the licence GPL-3.0-only, which licences-allowed.txt does not allow",
        "bare 1.0.0 names no licence",
    ]


def test_what_only_tests_and_builds_need_is_not_on_the_list(licences: Any) -> None:
    names = ["nif", "soak", "direct", "deep", "of_build", "of_tests", "of_soak"]
    found = licences.shipped(
        {
            "packages": [crate(name, "MIT") for name in names],
            "workspace_members": ["nif", "soak"],
            "resolve": {
                "nodes": [
                    needs("nif", direct=None, of_build="build", of_tests="dev"),
                    needs("soak", of_soak=None),
                    needs("direct", deep=None),
                    *(needs(name) for name in names[3:]),
                ]
            },
        }
    )
    assert [package["name"] for package in found] == ["deep", "direct"]


def test_the_list_is_a_cyclonedx_document(licences: Any) -> None:
    document = json.loads(licences.sbom([crate("ring", "Apache-2.0 AND ISC")], "1.2.3"))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert document["metadata"]["component"]["version"] == "1.2.3"
    [component] = document["components"]
    assert component["purl"] == "pkg:cargo/ring@1.0.0"
    assert component["licenses"] == [{"expression": "Apache-2.0 AND ISC"}]


def test_a_text_that_several_crates_have_stands_once(licences: Any, tmp_path: Path) -> None:
    for name, text in {"one": "Same\r\n", "two": "Same\n", "three": "Other\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "LICENSE-MIT").write_text(text, newline="")
    text = licences.texts([crate(name, "MIT", tmp_path) for name in ("one", "two", "three")])
    assert text.count("Same") == 1
    assert "one 1.0.0, two 1.0.0" in text
    assert "Other" in text
