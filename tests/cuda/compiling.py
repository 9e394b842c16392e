"""NVRTC from its wheel, without CUDA, a driver or a card.

    python -m tests.cuda.compiling                                   # registers and spills, all cards: minutes
    python -m tests.cuda.compiling train.cu 99KB sm_86 [option ...]  # what ptxas says of one

A card is known by its architecture and by the shared memory that a thread block may take there.
"""

import ctypes
import importlib.util
import re
import sys
from pathlib import Path
from typing import NamedTuple

from cycletime.cuda.kernels import KERNEL_FILES, OPTIONS, form_within, kernel_source
from tests.cuda.device_checks.limits import shared_bytes_of

CARDS = {"sm_80": "163KB", "sm_86": "99KB", "sm_89": "99KB", "sm_90": "227KB", "sm_100": "227KB", "sm_120": "99KB"}
"""By architecture, the shared memory that a thread block may take."""


class Counts(NamedTuple):
    """What ptxas says of a kernel."""

    registers: int
    """Of a thread."""
    spilled: int
    """Bytes that did not fit into them."""

    @classmethod
    def of(cls, log: str) -> "Counts":
        registers = [int(found) for found in re.findall(r"Used (\d+) registers", log)]
        return cls(max(registers), sum(int(found) for found in re.findall(r"(\d+) bytes spill stores", log)))


def nvrtc() -> ctypes.CDLL:
    """The library; what it loads by name is loaded before, since it looks on the system only."""
    found = importlib.util.find_spec("nvidia")
    places = found.submodule_search_locations if found else None
    assert places, "these tests need the wheel nvidia-cuda-nvrtc"
    libraries = [path for place in places for path in Path(place).rglob("libnvrtc*.so*")]
    by_name = {path.name.partition(".so")[0]: path for path in sorted(libraries, reverse=True)}
    ctypes.CDLL(str(by_name["libnvrtc-builtins"]), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(by_name["libnvrtc"]))


def compiled(kernel: str, shared_memory: str, architecture: str, *options: str) -> str:
    """What ptxas says of the form of a kernel that a card takes."""
    form = form_within(kernel, shared_bytes_of(shared_memory))
    assert form, f"{kernel} has no form for {shared_memory}"
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    assert (
        library.nvrtcCreateProgram(
            ctypes.byref(program), kernel_source(kernel).encode(), kernel.encode(), 0, None, None
        )
        == 0
    )
    words = [f"-arch={architecture}", *OPTIONS, *form.options, "--ptxas-options=-v", *options]
    given = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    failed = library.nvrtcCompileProgram(program, len(words), given)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert not failed, log.value.decode()
    return log.value.decode()


def print_counts() -> None:
    """A line for each kernel and card."""
    for kernel in KERNEL_FILES:
        for architecture, shared_memory in CARDS.items():
            counts = Counts.of(compiled(kernel, shared_memory, architecture))
            told = f"{counts.registers} registers, {counts.spilled} bytes spilled"
            print(f"{kernel:<9} {shared_memory:>5}  {architecture:<6}  {told}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(compiled(*sys.argv[1:]))
    else:
        print_counts()
