"""NVRTC from its wheel, without CUDA, a driver or a card.

    python -m tests.engines.cuda.compiling train.cu 99KB sm_86 [option ...]

It prints what ptxas says of the form of the kernel that a card with so much shared memory for a thread block takes.
"""

import ctypes
import importlib.util
import sys
from pathlib import Path

from cycletime.engines.cuda.forms import form_within, shared_bytes_of
from cycletime.engines.cuda.kernels import OPTIONS, kernel_source


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
    """The log of a kernel that is compiled for cards of an architecture."""
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


if __name__ == "__main__":
    print(compiled(*sys.argv[1:]))
