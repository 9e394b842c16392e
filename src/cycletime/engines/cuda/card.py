"""The first GPU that CUDA finds, with a kernel compiled for it.

Kernels are compiled for the card that is there, by NVRTC through CuPy, which keeps the outcome on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.engines.cuda.forms import Form
from cycletime.engines.cuda.here import checked_cupy, first_line, form_here
from cycletime.engines.cuda.kernels import OPTIONS, THREADS, kernel_source
from cycletime.errors import NoGpuError, RunError


class Card:
    """A card and a kernel for it."""

    def __init__(self, kernel: str, form: Form | None = None) -> None:
        """Compile the kernel, in the fastest form that fits if none is given.

        Raises:
            NoGpuError: if there is no GPU that can run it; the sentence says why, and what would help.
        """
        self.cupy = cupy = checked_cupy()
        self._properties = card = cupy.cuda.runtime.getDeviceProperties(0)
        self.name = str(card["name"].decode())
        self._form = form or form_here(kernel)
        self.blocks = int(card["multiProcessorCount"])
        try:
            options = (*OPTIONS, *self._form.options)
            module = cupy.RawModule(code=kernel_source(kernel), options=options, backend="nvrtc")
            self._kernel = module.get_function("train")
            self._kernel.max_dynamic_shared_size_bytes = self._form.shared_bytes
            self._stream = cupy.cuda.Stream(non_blocking=True)
        except cupy.cuda.compiler.CompileException as error:
            raise NoGpuError(f"NVRTC cannot compile the kernel for {self.name}: {first_line(error)}.") from error
        except _errors_of(cupy) as error:  # a full card has no memory for the first of all calls
            raise NoGpuError(
                f"{self.name} takes no work: {first_line(error)}. End what else computes there."
            ) from error

    @property
    def about(self) -> Mapping[str, str]:
        """Its generation, and the software that drives it."""
        return _about(self.cupy, self._properties, self._form)

    @property
    def free_bytes(self) -> int:
        """The memory that can be had."""
        return int(self.cupy.cuda.runtime.memGetInfo()[0] + self.cupy.get_default_memory_pool().free_bytes())

    def check_memory(self, needed: int) -> None:
        """Refuse to take more memory than there is."""
        check_memory(self.name, self.free_bytes, needed)

    def launch(self, argument: NDArray[Any], blocks: int) -> Any:  # noqa: ANN401 - an array of CuPy's
        """Begin to compute; the argument on the card, which has to be kept until the end."""
        given = self.cupy.asarray(argument.view(np.uint8))
        self._kernel((blocks,), (THREADS,), (given,), shared_mem=self._form.shared_bytes)
        return given

    @contextmanager
    def working(self) -> Iterator[None]:
        """Have the card do things in their order; what CUDA says against it, as a sentence."""
        try:
            with self._stream:
                yield
        except _errors_of(self.cupy) as error:
            raise RunError(f"{self.name} failed: {first_line(error)}.") from error


def _about(cupy: Any, card: Mapping[str, Any], form: Form) -> dict[str, str]:  # noqa: ANN401
    runtime, words = cupy.cuda.runtime, f" ({form.about})" if form.about else ""
    return {
        "compute capability": f"{card['major']}.{card['minor']}",
        "multiprocessors": str(card["multiProcessorCount"]),
        "shared memory": f"{card['sharedMemPerBlockOptin']} bytes for a block, {form.shared_bytes} taken{words}",
        "driver": f"for CUDA {_cuda_version(runtime.driverGetVersion())}",
        "CUDA": _cuda_version(runtime.runtimeGetVersion()),
        "NVRTC": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "CuPy": str(cupy.__version__),
    }


def _cuda_version(number: int) -> str:
    major, rest = divmod(number, 1000)
    return f"{major}.{round(rest / 10)}"


def check_memory(name: str, free: int, needed: int) -> None:
    """Refuse to take more memory than there is."""
    if free < needed:
        raise NoGpuError(
            f"{name} has {free / 2**20:,.0f} MiB free, and the runs need {needed / 2**20:,.0f} MiB: end what else "
            "computes there, or give fewer runs with smaller batches."
        )


def _errors_of(cupy: Any) -> tuple[type[Exception], ...]:  # noqa: ANN401 - a module without types
    cuda = cupy.cuda
    return cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError, cuda.memory.OutOfMemoryError
