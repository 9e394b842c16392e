"""A GPU that trains runs for a while: what goes to it, what comes back, and a sentence for every GPU that cannot.

The kernel is compiled for the card that is there, by NVRTC through CuPy, which keeps the outcome on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cycletime.engines.cuda.layout import LAUNCH, RECORD, REPORT, STATE_WORDS, position_of, scratch_words
from cycletime.errors import NoGpuError, RunError

KERNEL = Path(__file__).parent / "kernel"
THREADS = 256
OPTIONS = ("-std=c++17", f"-I{KERNEL}")
OLDEST = (8, 0)
"""The compute capability that the kernel's instructions need."""
_NO_DEVICE, _OLD_DRIVER = 100, 35
"""Error numbers of CUDA's runtime."""


@dataclass(frozen=True)
class Work:
    """Runs that are trained for a while, in the order in which the card takes them."""

    runs: NDArray[Any]
    """[runs] of layout.RUN."""
    states: NDArray[np.float32]
    """[runs, STATE_WORDS]."""
    most_records: int
    """Room for the episodes of each run."""
    most_reports: int
    """Room for the reports of each."""
    most_rows: int
    """Rows of each block's own memory, a multiple of 8."""
    time_s: float
    """After which a run is left at the end of its learning, and no other begun."""
    most_periods: int = 0
    """Learnings after which a run is left; 0 for any number."""


@dataclass(frozen=True)
class Done:
    """What became of them."""

    states: NDArray[np.float32]
    """[runs, STATE_WORDS]."""
    records: list[NDArray[Any]]
    """By run, the episodes that ended, of layout.RECORD."""
    reports: list[NDArray[Any]]
    """By run, the learnings that were reported, of layout.REPORT."""


class Device(Protocol):
    """Whatever computes as the kernel says: a GPU, or its emulation in tests."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def blocks(self) -> int:
        """The runs that it trains at a time."""

    @property
    def about(self) -> Mapping[str, str]:
        """What else there is to say of it, by name."""

    def begin(self, work: Work) -> None:
        """Begin with work; one at a time, and without waiting for its end."""

    def finish(self) -> Done:
        """Wait for what was begun."""

    def left_behind(self) -> NDArray[np.float32]:
        """What the blocks of the last work have in their own memory, [blocks, words]: their last batches."""


def kernel_digest() -> str:
    """The hash of all files of the kernel."""
    files = sorted(each for each in KERNEL.iterdir() if each.suffix in (".cu", ".cuh"))
    return sha256(b"".join(each.name.encode() + each.read_bytes() for each in files)).hexdigest()


def kernel_source() -> str:
    """The kernel, with the size of its shared memory as a variable to be read.

    It ends with its hash, since CuPy takes a program with the same text for the same.
    """
    exported = 'extern "C" __device__ int shared_bytes = sizeof(Shared);'
    return f"{(KERNEL / 'train.cu').read_text()}\n{exported}\n// {kernel_digest()}\n"


def read_back(states: NDArray[np.float32], records: NDArray[Any], reports: NDArray[Any]) -> Done:
    """What was written for each run, by the counts in its state, which are zero again thereafter."""
    told: tuple[list[NDArray[Any]], list[NDArray[Any]]] = ([], [])
    for index, state in enumerate(states):
        position = position_of(state)
        told[0].append(records[index, : position["records"]].copy())
        told[1].append(reports[index, : position["reports"]].copy())
        position["records"] = position["reports"] = 0
    return Done(states, *told)


@cache
def find_device() -> Device:
    """The GPU that is here.

    Raises:
        NoGpuError: if there is none that can be used; the sentence says why, and what would help.
    """
    return CupyDevice()


class CupyDevice:
    """The first GPU that CUDA finds."""

    def __init__(self) -> None:
        """Compile the kernel for it."""
        self._cupy = cupy = checked_cupy()
        card = cupy.cuda.runtime.getDeviceProperties(0)
        self._name = str(card["name"].decode())
        self._blocks = int(card["multiProcessorCount"])
        try:
            module = cupy.RawModule(code=kernel_source(), options=OPTIONS, backend="nvrtc")
            self._kernel = module.get_function("train")
            size = cupy.ndarray((1,), np.int32, memptr=module.get_global("shared_bytes"))
            self._shared_bytes = int(size.get()[0])
            check_shared_memory(self._name, int(card["sharedMemPerBlockOptin"]), self._shared_bytes)
            self._kernel.max_dynamic_shared_size_bytes = self._shared_bytes
            self._stream = cupy.cuda.Stream(non_blocking=True)
        except cupy.cuda.compiler.CompileException as error:
            raise NoGpuError(f"NVRTC cannot compile the kernel for {self._name}: {_first_line(error)}.") from error
        except _errors_of(cupy) as error:  # a full card has no memory for the first of all calls
            raise NoGpuError(
                f"{self._name} takes no work: {_first_line(error)}. End what else computes there."
            ) from error
        self._given: dict[str, Any] = {}
        self._scratch: Any = None
        self._card = card

    @property
    def name(self) -> str:
        """The card's."""
        return self._name

    @property
    def blocks(self) -> int:
        """One for each of its multiprocessors, whose shared memory a run fills."""
        return self._blocks

    @property
    def about(self) -> Mapping[str, str]:
        """Its generation, and the software that drives it."""
        return _about(self._cupy, self._card, self._shared_bytes)

    def begin(self, work: Work) -> None:
        """Give it work."""
        assert not self._given, "one at a time"
        self._scratch = None
        cupy, count = self._cupy, len(work.runs)
        blocks = min(self._blocks, count)
        self._check_memory(work, blocks)
        with self._errors(), self._stream:
            given = {
                "runs": cupy.asarray(work.runs.view(np.uint8)),
                "queue": cupy.arange(count, dtype=np.int32),
                "tickets": cupy.zeros(1, np.int32),
                "states": cupy.asarray(work.states),
                "records": cupy.empty((count, work.most_records, RECORD.itemsize), np.uint8),
                "reports": cupy.empty((count, work.most_reports, REPORT.itemsize), np.uint8),
                "scratch": cupy.empty((blocks, scratch_words(work.most_rows)), np.float32),
            }
            launch = launch_of(work, {name: array.data.ptr for name, array in given.items()})
            argument = cupy.asarray(launch.view(np.uint8))
            self._kernel((blocks,), (THREADS,), (argument,), shared_mem=self._shared_bytes)
        self._given = {**given, "argument": argument}

    def finish(self) -> Done:
        """Wait for it."""
        given, self._given = self._given, {}
        self._scratch = given["scratch"]
        with self._errors(), self._stream:
            states = given["states"].get()
            counts = [position_of(state) for state in states]
            records, reports = (
                given[name][:, : max(int(count[name]) for count in counts)].get() for name in ("records", "reports")
            )
        return read_back(states, records.view(RECORD)[..., 0], reports.view(REPORT)[..., 0])

    def left_behind(self) -> NDArray[np.float32]:
        """The blocks' own memory."""
        with self._errors(), self._stream:
            words: NDArray[np.float32] = self._scratch.get()
        return words

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What CUDA says, as a sentence."""
        try:
            yield
        except _errors_of(self._cupy) as error:
            raise RunError(f"{self._name} failed: {_first_line(error)}.") from error

    def _check_memory(self, work: Work, blocks: int) -> None:
        count = len(work.runs)
        needed = (
            count * (STATE_WORDS * 4 + work.most_records * RECORD.itemsize + work.most_reports * REPORT.itemsize)
            + blocks * scratch_words(work.most_rows) * 4
        )
        free = self._cupy.cuda.runtime.memGetInfo()[0] + self._cupy.get_default_memory_pool().free_bytes()
        check_memory(self._name, free, needed)


def _about(cupy: Any, card: Mapping[str, Any], shared_bytes: int) -> dict[str, str]:  # noqa: ANN401
    runtime = cupy.cuda.runtime
    return {
        "compute capability": f"{card['major']}.{card['minor']}",
        "multiprocessors": str(card["multiProcessorCount"]),
        "shared memory": f"{card['sharedMemPerBlockOptin']} bytes for a block, {shared_bytes} needed",
        "driver": f"for CUDA {_cuda_version(runtime.driverGetVersion())}",
        "CUDA": _cuda_version(runtime.runtimeGetVersion()),
        "NVRTC": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "CuPy": str(cupy.__version__),
    }


def _cuda_version(number: int) -> str:
    major, rest = divmod(number, 1000)
    return f"{major}.{round(rest / 10)}"


def launch_of(work: Work, addresses: dict[str, int]) -> NDArray[Any]:
    """The kernel's argument."""
    launch = np.zeros(1, LAUNCH)
    for name, address in addresses.items():
        launch[name] = address
    launch["queued"], launch["time_ns"] = len(work.runs), int(work.time_s * 1e9)
    for name in ("most_records", "most_reports", "most_rows", "most_periods"):
        launch[name] = getattr(work, name)
    return launch


def checked_cupy() -> Any:  # noqa: ANN401 - a module without types
    """CuPy, where it is installed and finds a GPU that can be used.

    Raises:
        NoGpuError: if not.
    """
    if find_spec("cupy") is None:
        raise NoGpuError("The engine cuda needs CuPy, which is not installed: pip install 'cycletime[cuda]'.")
    try:
        import cupy
    except ImportError as error:
        raise NoGpuError(f"The engine cuda needs CuPy, which cannot be imported: {_first_line(error)}.") from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CUDA's own kind, of which there are several
        raise NoGpuError(_runtime_sentence(cupy, error)) from error
    if not count:
        raise NoGpuError("The engine cuda needs an NVIDIA GPU, and CUDA finds none here.")
    card = cupy.cuda.runtime.getDeviceProperties(0)
    check_capability(card["name"].decode(), (int(card["major"]), int(card["minor"])))
    return cupy


def check_capability(name: str, capability: tuple[int, int]) -> None:
    """Refuse a card without the kernel's instructions."""
    if capability < OLDEST:
        has, needed = (f"{major}.{minor}" for major, minor in (capability, OLDEST))
        raise NoGpuError(f"{name} has compute capability {has}: the engine cuda needs at least {needed}.")


def check_shared_memory(name: str, there: int, needed: int) -> None:
    """Refuse a card whose multiprocessors are too small for a run."""
    if there < needed:
        raise NoGpuError(
            f"{name} has {there / 1024:,.0f} KiB of shared memory for a thread block: the engine cuda needs "
            f"{needed / 1024:,.0f} KiB, which the data-centre cards of compute capability 9.0 and 10.0 have."
        )


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


def _runtime_sentence(cupy: Any, error: Exception) -> str:  # noqa: ANN401 - a module without types
    status = getattr(error, "status", None)
    if status == _OLD_DRIVER and cupy.cuda.runtime.driverGetVersion():  # 0 where there is none at all
        return "The NVIDIA driver here is too old for CuPy's CUDA: update it, or pip install cupy-cuda12x instead."
    if status in (_NO_DEVICE, _OLD_DRIVER):
        return "The engine cuda needs an NVIDIA GPU, and CUDA finds none here."
    return f"The engine cuda needs an NVIDIA GPU, and CUDA does not answer: {_first_line(error)}."


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
