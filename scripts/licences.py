"""The crates that are part of what is handed out, and their licences.

``cargo metadata --format-version 1 --locked | python licences.py check|sbom|texts [VERSION]``

``check`` fails unless every licence is in licences-allowed.txt. ``sbom`` prints the list as
CycloneDX, ``texts`` the texts that must go with the libraries.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ALLOWED = Path(__file__).with_name("licences-allowed.txt")
# The libraries that are handed out: what they need is the rest.
ROOTS = ("loader", "nif", "wheel")
TEXTS = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "UNLICENSE*")

Package = dict[str, Any]


def shipped(metadata: dict[str, Any]) -> list[Package]:
    """The crates of others, by name and version, without those of tests and builds alone."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    members = set(metadata["workspace_members"])
    waiting = [member for member in members if packages[member]["name"] in ROOTS]
    seen = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if linked and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    others = [packages[crate] for crate in seen - members]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def allowed_licences() -> set[str]:
    lines = (line.strip() for line in ALLOWED.read_text().splitlines())
    return {line for line in lines if line and not line.startswith("#")}


def expression(package: Package) -> str:
    """Its licence as SPDX writes it; older crates have `/` for `OR`."""
    return (package["license"] or "").replace("/", " OR ")


class Choice:
    """Whether an SPDX expression can be met by the licences that are allowed."""

    def __init__(self, text: str, allowed: set[str]) -> None:
        plain = re.sub(r"\s+WITH\s+", "\0", text)
        self.words = re.findall(r"[()]|[^\s()]+", plain)
        self.allowed = allowed

    def met(self) -> bool:
        try:
            return self.either() and not self.words
        except IndexError:
            return False

    def either(self) -> bool:
        met = self.both()
        while self.words and self.words[0] == "OR":
            self.words.pop(0)
            # Both sides are read, whatever the first one was.
            met = self.both() or met
        return met

    def both(self) -> bool:
        met = self.one()
        while self.words and self.words[0] == "AND":
            self.words.pop(0)
            met = self.one() and met
        return met

    def one(self) -> bool:
        word = self.words.pop(0)
        if word == "(":
            met = self.either()
            self.words.pop(0)
            return met
        return word.replace("\0", " WITH ") in self.allowed


def refused(packages: list[Package]) -> Iterator[str]:
    allowed = allowed_licences()
    for package in packages:
        name = f"{package['name']} {package['version']}"
        licence = expression(package)
        if not licence:
            yield f"{name} names no licence"
        elif not Choice(licence, allowed).met():
            yield f"{name} has the licence {licence}, which {ALLOWED.name} does not allow"


def component(package: Package) -> dict[str, Any]:
    name, version = package["name"], package["version"]
    url = f"pkg:cargo/{name}@{version}"
    about = {"type": "library", "name": name, "version": version, "bom-ref": url, "purl": url}
    return {**about, "licenses": [{"expression": expression(package)}]}


def sbom(packages: list[Package], version: str) -> str:
    ours = {"type": "library", "name": "erlang_python", "version": version}
    ours["licenses"] = [{"expression": "Apache-2.0"}]  # type: ignore[assignment]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": ours},
        "components": [component(package) for package in packages],
    }
    return json.dumps(document, indent=2)


def texts(packages: list[Package]) -> str:
    """The licence files of every crate; one text that several have stands once."""
    owners: dict[str, list[str]] = {}
    for package in packages:
        folder = Path(package["manifest_path"]).parent
        for path in sorted({path for pattern in TEXTS for path in folder.glob(pattern)}):
            if path.is_file():
                text = path.read_text(errors="replace").replace("\r\n", "\n").strip()
                owners.setdefault(text, []).append(f"{package['name']} {package['version']}")
    parts = ["The libraries of erlang_python contain these crates, under these licences;"]
    parts += ["the standard library of Rust (MIT OR Apache-2.0), and LLVM's libunwind and"]
    parts += ["compiler-rt (Apache-2.0 WITH LLVM-exception)."]
    parts += [f"{p['name']} {p['version']}: {expression(p)}" for p in packages]
    for text, names in owners.items():
        parts += ["", "=" * 79, ", ".join(dict.fromkeys(names)), "-" * 79, text]
    return "\n".join(parts)


def main() -> None:
    what, *rest = sys.argv[1:]
    packages = shipped(json.load(sys.stdin))
    if what == "check":
        found = list(refused(packages))
        sys.stdout.write(f"{len(packages)} crates\n")
        sys.exit("\n".join(found) if found else 0)
    sys.stdout.write((sbom(packages, rest[0]) if what == "sbom" else texts(packages)) + "\n")


if __name__ == "__main__":
    main()
