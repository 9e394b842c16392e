"""The kernels' sources and the hash that tells versions apart, and the forms in which they are compiled.

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

from cycletime.errors import InputError

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


_AMOUNT = re.compile(r"(\d{1,9}) ?(KB|KiB)?")


@dataclass(frozen=True)
class Form:
    """A way to lay out a run; the kernel's static_assert holds the bytes against what they are."""

    shared_bytes: int
    """The shared memory of a thread block."""
    about: str = ""
    """What lies where."""
    constants: tuple[str, ...] = ()
    """What else the compiler is told, each as NAME=NUMBER."""

    @property
    def options(self) -> tuple[str, ...]:
        """The form as the compiler has it."""
        return tuple(f"-DFORM_{each}" for each in (f"BYTES={self.shared_bytes}", *self.constants))


def ppo_form(shared_bytes: int, samples: int, *, near: bool) -> Form:
    """A form of PPO's kernel.

    Args:
        shared_bytes: What it takes.
        samples: How many pass the networks at once: longer mini-batches pass in parts, which takes more time.
        near: Whether Adam's moments of the second layers are in shared memory; else they come from the L2 cache.
    """
    place = "shared memory" if near else "the L2 cache"
    constants = (f"SAMPLES={samples}", f"NEAR_MOMENTS={int(near)}")
    return Form(shared_bytes, f"{samples} samples at once, moments in {place}", constants)


def sac_form(shared_bytes: int, *, slabs: int, near: bool) -> Form:
    """A form of SAC's kernel.

    Args:
        shared_bytes: What it takes.
        slabs: The parts in which a matrix of 256 by 256 passes through shared memory.
        near: Whether sums of gradients over samples are in shared memory; else they come from the L2 cache.
    """
    matrices = "whole matrices" if slabs == 1 else f"matrices in {slabs} parts"
    place = "shared memory" if near else "the L2 cache"
    return Form(shared_bytes, f"{matrices}, sums in {place}", (f"SLABS={slabs}", f"NEAR_SUMS={int(near)}"))


FORMS: Mapping[str, tuple[Form, ...]] = MappingProxyType(
    {
        PPO: (
            ppo_form(208_880, 64, near=True),
            ppo_form(163_824, 32, near=True),
            ppo_form(98_320, 32, near=False),
        ),
        SAC: (
            sac_form(226_928, slabs=1, near=True),
            sac_form(161_392, slabs=2, near=True),
            sac_form(87_680, slabs=4, near=False),
        ),
    }
)
"""By kernel, the fastest first."""


def form_within(kernel: str, shared_bytes: int) -> Form | None:
    """The fastest form that takes no more shared memory; None where none does."""
    return next((form for form in FORMS[kernel] if form.shared_bytes <= shared_bytes), None)


def shared_bytes_of(text: str) -> int:
    """An amount of shared memory, such as 99KB; a KB has 1,024 bytes, as in NVIDIA's tables."""
    if (found := _AMOUNT.fullmatch(text)) is None:
        raise InputError(f"The shared memory is {text!r}: give an amount such as 99KB, or a number of bytes.")
    return int(found[1]) * (1024 if found[2] else 1)
