"""Packs a wheel of this project from the Python package and one native module.

The same files give the same bytes, whichever machine packs them. The metadata is what maturin
writes, so a wheel that pip builds from the source says the same of itself.
"""

import argparse
import base64
import hashlib
import sys
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE_FILES = {".py", ".pyi", ".typed"}


def package_files(root: Path) -> dict[str, bytes]:
    """The modules of every package that pyproject.toml names, by their place in the wheel."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["maturin"]
    source = root / settings["python-source"]
    return {
        str(path.relative_to(source)): path.read_bytes()
        for package in settings["python-packages"]
        for path in sorted((source / package).rglob("*"))
        if path.is_file() and (path.suffix in PACKAGE_FILES or path.name == "py.typed")
    }


def wheel_tag(tag: str, platform: str) -> str:
    """``cp314t`` is the ABI of the Python ``cp314``."""
    return f"{tag.removesuffix('t')}-{tag}-{platform}"


def description_of_wheel(tag: str) -> bytes:
    lines = [
        "Wheel-Version: 1.0",
        "Generator: erlang_python",
        "Root-Is-Purelib: false",
        f"Tag: {tag}",
    ]
    return ("\n".join(lines) + "\n").encode()


def record(files: dict[str, bytes], place: str) -> bytes:
    rows = []
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*rows, f"{place},,\n"]).encode()


def pack(files: dict[str, bytes], target: Path, epoch: int) -> None:
    date = time.gmtime(epoch)[:6]
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            archive.writestr(entry, content, compresslevel=9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", required=True, help="cp313, cp314t")
    parser.add_argument("--platform", required=True, help="manylinux_2_28_x86_64")
    parser.add_argument(
        "--native", required=True, type=Path, help="the library, under its final name"
    )
    parser.add_argument(
        "--metadata", required=True, type=Path, help="a .dist-info that maturin wrote"
    )
    parser.add_argument("--epoch", required=True, type=int, help="the date of every file")
    parser.add_argument("--out", required=True, type=Path, help="the directory for the wheel")
    given = parser.parse_args()
    info = given.metadata.name
    tag = wheel_tag(given.tag, given.platform)
    files = package_files(ROOT)
    files[f"erlang/{given.native.name}"] = given.native.read_bytes()
    files = dict(sorted(files.items()))
    for path in sorted(given.metadata.rglob("*")):
        if path.is_file() and path.name not in ("WHEEL", "RECORD"):
            files[f"{info}/{path.relative_to(given.metadata)}"] = path.read_bytes()
    files[f"{info}/WHEEL"] = description_of_wheel(tag)
    # Last, as installers expect.
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")
    target = given.out / f"{info.removesuffix('.dist-info')}-{tag}.whl"
    partial = target.with_suffix(".new")
    pack(files, partial, given.epoch)
    partial.replace(target)
    sys.stdout.write(f"{target}\n")


main()
