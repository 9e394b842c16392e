"""NVRTC from its wheel, without CUDA, a driver or a card.

    python -m tests.engines.cuda.compiling train.cu sm_90 [option ...]

It prints what ptxas says of the kernel.
"""

import ctypes
import importlib.util
import sys
from pathlib import Path

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


def compiled(kernel: str, architecture: str, *options: str) -> tuple[str, bytes]:
    """The log and the machine code of a kernel for an architecture."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    assert (
        library.nvrtcCreateProgram(
            ctypes.byref(program), kernel_source(kernel).encode(), kernel.encode(), 0, None, None
        )
        == 0
    )
    words = [f"-arch={architecture}", *OPTIONS, "--ptxas-options=-v", *options]
    given = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    failed = library.nvrtcCompileProgram(program, len(words), given)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert not failed, log.value.decode()
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, code)
    return log.value.decode(), code.raw


if __name__ == "__main__":
    log, code = compiled(*sys.argv[1:])
    assert b"shared_bytes" in code, "the host reads the size of the shared memory there"
    print(log)
