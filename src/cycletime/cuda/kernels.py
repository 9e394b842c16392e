"""The kernels' sources, the hash that tells versions apart, and their forms; `card.py` compiles them.

A form says where a run's data lie: cards have more or less shared memory, and each takes the fastest form that fits. A
number of a run does not depend on the form, since only the place of the data changes: bits are the same in all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

KERNEL = Path(__file__).parent / "kernel"
PPO, SAC = KERNEL_FILES = ("train.cu", "sac.cu")
THREADS = 256
OPTIONS = ("-std=c++17", f"-I{KERNEL}")
_INCLUDED = re.compile(r'^#include [<"](.+)[>"]$', re.MULTILINE)


def kernel_digest(name: str) -> str:
    found = [(KERNEL / name).resolve()]
    for path in found:  # which grows by what is included
        for included in _INCLUDED.findall(path.read_text()):
            beside = path.parent / included
            file = (beside if beside.exists() else KERNEL / included).resolve()
            if file not in found:
                found.append(file)
    files = {path.relative_to(KERNEL.resolve()).as_posix(): path for path in found}
    return sha256(b"".join(each.encode() + files[each].read_bytes() for each in sorted(files))).hexdigest()


def kernel_source(name: str) -> str:
    """A kernel; it ends with its hash, since CuPy takes a program with the same text for the same."""
    return f"{(KERNEL / name).read_text()}\n// {kernel_digest(name)}\n"


@dataclass(frozen=True)
class Form:
    """A way to lay out a run; the kernel's static_assert holds the bytes against what they are."""

    shared_bytes: int
    about: str
    constants: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(f"-DFORM_{each}" for each in (f"BYTES={self.shared_bytes}", *self.constants))


# PPO's SAMPLES pass the networks at once: longer mini-batches pass in parts, which takes more time. SAC's matrices of
# 256 by 256 pass through shared memory in SLABS. What is not NEAR comes from the L2 cache.
FORMS: Mapping[str, tuple[Form, ...]] = MappingProxyType(
    {
        PPO: (
            Form(208_880, "64 samples at once, moments in shared memory", ("SAMPLES=64", "NEAR_MOMENTS=1")),
            Form(163_824, "32 samples at once, moments in shared memory", ("SAMPLES=32", "NEAR_MOMENTS=1")),
            Form(98_320, "32 samples at once, moments in the L2 cache", ("SAMPLES=32", "NEAR_MOMENTS=0")),
        ),
        SAC: (
            Form(226_928, "whole matrices, sums in shared memory", ("SLABS=1", "NEAR_SUMS=1")),
            Form(161_392, "matrices in 2 parts, sums in shared memory", ("SLABS=2", "NEAR_SUMS=1")),
            Form(87_680, "matrices in 4 parts, sums in the L2 cache", ("SLABS=4", "NEAR_SUMS=0")),
        ),
    }
)
"""By kernel, the fastest first."""


def form_within(kernel: str, shared_bytes: int) -> Form | None:
    return next((form for form in FORMS[kernel] if form.shared_bytes <= shared_bytes), None)
