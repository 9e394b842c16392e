"""The first GPU that CUDA finds: whether it can be used, which form of a kernel fits, and that kernel compiled for it.

Kernels are compiled for the card that is there, by NVRTC through CuPy, which keeps the outcome on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.cuda.kernels import FORMS, OPTIONS, THREADS, Form, form_within, kernel_source
from cycletime.errors import NoGpuError, RunError, first_line
from cycletime.extras import install_command

OLDEST = (8, 0)
"""The compute capability that the kernels' instructions need."""
_NO_DEVICE, _OLD_DRIVER = 100, 35


def import_cupy() -> Any:  # noqa: ANN401 - a module without types
    if find_spec("cupy") is None:
        raise NoGpuError(f"The engine cuda needs CuPy, which is not installed: {install_command('cuda')}.")
    try:
        import cupy
    except ImportError as error:
        raise NoGpuError(f"The engine cuda needs CuPy, which cannot be imported: {first_line(error)}.") from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CUDA's own kind, of which there are several
        raise NoGpuError(_runtime_error_text(cupy, error)) from error
    if not count:
        raise NoGpuError("The engine cuda needs an NVIDIA GPU, and CUDA finds none here.")
    card = cupy.cuda.runtime.getDeviceProperties(0)
    if (capability := (int(card["major"]), int(card["minor"]))) < OLDEST:
        has, needed = (f"{major}.{minor}" for major, minor in (capability, OLDEST))
        name = card["name"].decode()
        raise NoGpuError(f"{name} has compute capability {has}: the engine cuda needs at least {needed}.")
    return cupy


def choose_form(kernel: str) -> Form:
    card = import_cupy().cuda.runtime.getDeviceProperties(0)
    if form := form_within(kernel, card["sharedMemPerBlockOptin"]):
        return form
    there, least = (
        f"{count / 1024:.4g} KB" for count in (card["sharedMemPerBlockOptin"], FORMS[kernel][-1].shared_bytes)
    )
    needed = f"the engine cuda needs {least}, which cards of compute capability 8.0 and more have"
    raise NoGpuError(f"{card['name'].decode()} gives a thread block {there} of shared memory: {needed}.")


def _runtime_error_text(cupy: Any, error: Exception) -> str:  # noqa: ANN401 - a module without types
    status = getattr(error, "status", None)
    if status == _OLD_DRIVER and cupy.cuda.runtime.driverGetVersion():  # 0 where there is none at all
        return "The NVIDIA driver here is too old for CuPy's CUDA: update it, or pip install cupy-cuda12x instead."
    if status in (_NO_DEVICE, _OLD_DRIVER):
        return "The engine cuda needs an NVIDIA GPU, and CUDA finds none here."
    return f"The engine cuda needs an NVIDIA GPU, and CUDA does not answer: {first_line(error)}."


class Card:
    def __init__(self, kernel: str, form: Form | None = None) -> None:
        self._cupy = cupy = import_cupy()
        self._properties = card = cupy.cuda.runtime.getDeviceProperties(0)
        self.name = str(card["name"].decode())
        self._form = form or choose_form(kernel)
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
        cupy, card, form = self._cupy, self._properties, self._form
        return {
            "compute capability": f"{card['major']}.{card['minor']}",
            "multiprocessors": str(card["multiProcessorCount"]),
            "shared memory": f"{card['sharedMemPerBlockOptin']} bytes for a block, {form.shared_bytes} taken "
            f"({form.about})",
            "driver": f"for CUDA {_cuda_version(cupy.cuda.runtime.driverGetVersion())}",
            "CUDA": _cuda_version(cupy.cuda.runtime.runtimeGetVersion()),
            "NVRTC": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
            "CuPy": str(cupy.__version__),
        }

    @property
    def free_bytes(self) -> int:
        return int(self._cupy.cuda.runtime.memGetInfo()[0] + self._cupy.get_default_memory_pool().free_bytes())

    def put(self, array: NDArray[Any]) -> Any:  # noqa: ANN401 - an array of CuPy's
        with self._working():
            return self._cupy.asarray(np.ascontiguousarray(array))

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:  # noqa: ANN401
        with self._working():
            return self._cupy.zeros(shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:  # noqa: ANN401
        with self._working():
            return self._cupy.empty(shape, dtype)

    def get(self, array: Any) -> NDArray[Any]:  # noqa: ANN401
        """Copy an array, or a part of one, to the host; waits for what was launched before."""
        with self._working():
            found: NDArray[Any] = self._cupy.ascontiguousarray(array).get()
        return found

    def write(self, array: Any, numbers: NDArray[Any]) -> None:  # noqa: ANN401
        with self._working():
            array.set(np.ascontiguousarray(numbers))

    def address(self, array: Any) -> int:  # noqa: ANN401
        return int(array.data.ptr)

    def launch(self, argument: NDArray[Any], blocks: int) -> None:
        with self._working():
            self._argument = self._cupy.asarray(argument.view(np.uint8))  # kept, since the kernel reads it later
            self._kernel((blocks,), (THREADS,), (self._argument,), shared_mem=self._form.shared_bytes)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Use the card's stream, and turn CUDA's errors into a RunError."""
        try:
            with self._stream:
                yield
        except _errors_of(self._cupy) as error:
            raise RunError(f"{self.name} failed: {first_line(error)}.") from error


def _cuda_version(number: int) -> str:
    major, rest = divmod(number, 1000)
    return f"{major}.{round(rest / 10)}"


def check_memory(name: str, free: int, needed: int) -> None:
    if free < needed:
        remedy = "end what else computes there, or give fewer runs with smaller batches"
        sizes = f"{free / 2**20:,.0f} MiB free, and the runs need {needed / 2**20:,.0f} MiB"
        raise NoGpuError(f"{name} has {sizes}: {remedy}.")


def _errors_of(cupy: Any) -> tuple[type[Exception], ...]:  # noqa: ANN401 - a module without types
    cuda = cupy.cuda
    return cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError, cuda.memory.OutOfMemoryError
