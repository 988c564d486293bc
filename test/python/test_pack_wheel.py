"""The wheel that scripts/pack_wheel.py packs: its metadata, and the same bytes each time."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "scripts" / "pack_wheel.py"
EPOCH = "315532800"


def packed(out: Path, tag: str, platform: str, suffix: str) -> Path:
    info = out / "info" / "erlang_python-1.2.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: erlang-python\nVersion: 1.2.3\n")
    (info / "WHEEL").write_text("Tag: cp00-cp00-linux_z80\n")
    native = out / f"_native.{suffix}.so"
    native.write_bytes(b"\x7fELF of nobody")
    os.utime(native, (1, 2_000_000_000 + len(str(out))))
    about = ["--tag", tag, "--platform", platform, "--native", native, "--metadata", info]
    said = subprocess.run(
        [sys.executable, PROGRAM, *about, "--epoch", EPOCH, "--out", out],
        check=True,
        capture_output=True,
        text=True,
    )
    return Path(said.stdout.strip())


@pytest.mark.parametrize(
    ("tag", "platform", "suffix", "expected"),
    [
        (
            "cp313",
            "manylinux_2_28_x86_64",
            "cpython-313-x86_64-linux-gnu",
            "cp313-cp313-manylinux_2_28_x86_64",
        ),
        (
            "cp314t",
            "musllinux_1_2_aarch64",
            "cpython-314t-aarch64-linux-musl",
            "cp314-cp314t-musllinux_1_2_aarch64",
        ),
    ],
)
def test_a_wheel_says_which_python_and_platform_it_is_for(
    tmp_path: Path, tag: str, platform: str, suffix: str, expected: str
) -> None:
    wheel = packed(tmp_path, tag, platform, suffix)
    assert wheel.name == f"erlang_python-1.2.3-{expected}.whl"
    with zipfile.ZipFile(wheel) as archive:
        about = archive.read("erlang_python-1.2.3.dist-info/WHEEL").decode()
        assert f"Tag: {expected}\n" in about
        assert "Root-Is-Purelib: false\n" in about
        names = archive.namelist()
        assert f"erlang/_native.{suffix}.so" in names
        assert {"erlang/__init__.py", "erlang/py.typed"} <= set(names)
        assert not [name for name in names if "__pycache__" in name]
        rows = list(csv.reader(archive.read(names[-1]).decode().splitlines()))
        assert [row[0] for row in rows] == [*sorted(names[:-1]), names[-1]]
        for name, digest, size in rows[:-1]:
            content = archive.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            assert (digest, int(size)) == (f"sha256={found.rstrip('=')}", len(content))


def test_the_same_files_packed_elsewhere_and_later_are_the_same_bytes(tmp_path: Path) -> None:
    given = ("cp313", "manylinux_2_28_x86_64", "cpython-313-x86_64-linux-gnu")
    places = [tmp_path / "here", tmp_path / "over there"]
    first, second = (packed(place, *given).read_bytes() for place in places)
    assert first == second
