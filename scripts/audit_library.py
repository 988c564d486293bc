"""Fails unless libraries keep the promise of their target: processor, C library, no other library.

``python audit_library.py x86_64-linux-gnu FILE…``; needs pyelftools.
"""

import re
import sys
from collections.abc import Iterator

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
# Parts of the C library itself.
LIBRARIES = {
    "gnu": r"lib(c|m|dl|rt|pthread|util)\.so\.\d|ld-linux-.*\.so\.\d",
    "musl": r"libc\.musl-\w+\.so\.1",
}
NEWEST_GLIBC = (2, 28)


def faults(name: str, target: str) -> Iterator[str]:
    machine, _, libc = target.split("-")
    with open(name, "rb") as file:
        elf = ELFFile(file)
        if elf["e_machine"] != MACHINES[machine]:
            yield f"is for {elf['e_machine']}, not for {machine}"
        if elf.get_section_by_name(".symtab") is not None:
            yield "is not stripped"
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                for tag in section.iter_tags("DT_NEEDED"):
                    if not re.fullmatch(LIBRARIES[libc], tag.needed):
                        yield f"needs {tag.needed}"
            if isinstance(section, GNUVerNeedSection):
                for _, versions in section.iter_versions():
                    yield from too_new([version.name for version in versions])


def too_new(names: list[str]) -> Iterator[str]:
    for name in names:
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", name)
        if number and tuple(map(int, number.groups())) > NEWEST_GLIBC:
            yield f"needs {name}"


def main() -> None:
    target, *names = sys.argv[1:]
    found = [f"{name} {fault}" for name in names for fault in faults(name, target)]
    sys.exit("\n".join(found) if found else 0)


main()
