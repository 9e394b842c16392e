"""The kernels' sources: what is compiled for a card, and the hash that tells versions apart."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

KERNEL = Path(__file__).parent / "kernel"
PPO, SAC = KERNELS = ("train.cu", "sac.cu")
THREADS = 256
OPTIONS = ("-std=c++17", f"-I{KERNEL}")
_INCLUDED = re.compile(r'^#include [<"](.+)[>"]$', re.MULTILINE)


def kernel_files(name: str) -> list[Path]:
    """All files that a kernel is made of, itself first."""
    found: list[Path] = []

    def follow(path: Path) -> None:
        if path in found:
            return
        found.append(path)
        for included in _INCLUDED.findall(path.read_text()):
            beside = path.parent / included
            follow((beside if beside.exists() else KERNEL / included).resolve())

    follow((KERNEL / name).resolve())
    return found


def kernel_digest(name: str) -> str:
    """The hash of all files of a kernel."""
    files = {path.relative_to(KERNEL.resolve()).as_posix(): path for path in kernel_files(name)}
    return sha256(b"".join(each.encode() + files[each].read_bytes() for each in sorted(files))).hexdigest()


def kernel_source(name: str) -> str:
    """A kernel; it ends with its hash, since CuPy takes a program with the same text for the same."""
    return f"{(KERNEL / name).read_text()}\n// {kernel_digest(name)}\n"
