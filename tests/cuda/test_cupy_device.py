"""The device for real cards, with a stand-in for CuPy that keeps arrays in host memory and emulates the kernel."""

import ctypes
import sys
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.cuda.card import Card
from cycletime.cuda.device import Device, Slice
from cycletime.cuda.kernels import FORMS, PPO
from cycletime.cuda.layout import INPUTS
from cycletime.cuda.ppo import PPO_KERNEL, initial_state_of
from cycletime.errors import InputError, RunError
from tests.cuda.device_checks.limits import limited_device
from tests.cuda.emulated import Emulated
from tests.cuda.small import make_psi, make_slice, make_spec


class CudaError(Exception):
    pass


class Array:
    """An array that host code can reach by `get` only."""

    def __init__(self, numbers: NDArray[Any]) -> None:
        self.numbers = numbers
        self.data = SimpleNamespace(ptr=numbers.ctypes.data)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    def get(self) -> NDArray[Any]:
        return np.array(self.numbers)

    def __getitem__(self, index: Any) -> "Array":  # noqa: ANN401
        return Array(np.ascontiguousarray(self.numbers[index]))


class Cupy(SimpleNamespace):
    """As much of CuPy as the device uses."""

    def __init__(self, library: ctypes.CDLL, shared_bytes: int = 232_448, free_bytes: int = 2**30) -> None:
        card = {
            "name": b"A card",
            "major": 9,
            "minor": 0,
            "multiProcessorCount": 2,
            "sharedMemPerBlockOptin": shared_bytes,
        }
        runtime = SimpleNamespace(
            getDeviceCount=lambda: 1,
            getDeviceProperties=lambda _: card,
            memGetInfo=lambda: (free_bytes, free_bytes),
            driverGetVersion=lambda: 13010,
            runtimeGetVersion=lambda: 12090,
            CUDARuntimeError=CudaError,
        )
        nvrtc = SimpleNamespace(getVersion=lambda: (12, 9))
        errors = {
            "driver": SimpleNamespace(CUDADriverError=CudaError),
            "memory": SimpleNamespace(OutOfMemoryError=MemoryError),
            "compiler": SimpleNamespace(CompileException=SyntaxError),
        }
        super().__init__(
            library=library,
            options=(),
            fails=False,
            __version__="14.2.0",
            __spec__=SimpleNamespace(),
            cuda=SimpleNamespace(runtime=runtime, Stream=lambda non_blocking: nullcontext(), nvrtc=nvrtc, **errors),
            get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
            asarray=lambda numbers: Array(np.array(numbers)),
            ascontiguousarray=lambda array: array,
            zeros=lambda shape, dtype: Array(np.zeros(shape, dtype)),
            empty=lambda shape, dtype: Array(np.full(shape, 7, dtype)),  # memory is never zero by itself
        )

    def RawModule(self, *, code: str, options: tuple[str, ...], backend: str) -> SimpleNamespace:  # noqa: N802
        assert "train" in code
        assert backend == "nvrtc"
        assert any(option.startswith("-I") for option in options)
        self.options = options
        return SimpleNamespace(get_function=lambda name: partial(self.launch))

    def launch(self, grid: tuple[int], block: tuple[int], arguments: tuple[Array], shared_mem: int) -> None:
        if self.fails:
            raise CudaError("cudaErrorIllegalAddress: an illegal memory access was encountered")
        assert block == (256,)
        assert f"-DFORM_BYTES={shared_mem}" in self.options
        assert self.library.emulate(arguments[0].data.ptr, grid[0], 1) == 0


@pytest.fixture
def cupy(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Cupy:
    made = Cupy(library)
    monkeypatch.setitem(sys.modules, "cupy", made)
    return made


@pytest.fixture
def work() -> Slice:
    specs = [make_spec(batch=20, epochs=1), make_spec("double-pendulum", batch=20, epochs=1, env_steps=100)]
    return make_slice(specs, [initial_state_of(make_psi(2)), initial_state_of(make_psi(1))], periods=2)


@pytest.mark.usefixtures("cupy")
def test_it_gives_what_the_kernel_gives(device: Emulated, work: Slice) -> None:
    real = Device(PPO_KERNEL, Card(PPO))
    assert (real.card.name, real.card.blocks) == ("A card", 2)
    for _ in range(2):
        for each in (real, device):
            each.begin(work)
        ours, theirs = real.finish(), device.finish()
        for one, other in zip(ours, theirs, strict=True):
            assert one.run.state.tobytes() == other.run.state.tobytes()
            assert one.records.tobytes() == other.records.tobytes()
            assert one.reports.tobytes() == other.reports.tobytes()
    assert len(ours[1].records) > 0


@pytest.mark.usefixtures("cupy")
def test_it_tells_what_it_is_and_what_blocks_left_behind(device: Emulated, work: Slice) -> None:
    real = Device(PPO_KERNEL, Card(PPO))
    assert real.card.about == {
        "compute capability": "9.0",
        "multiprocessors": "2",
        "shared memory": "232448 bytes for a block, 208880 taken (64 samples at once, moments in shared memory)",
        "driver": "for CUDA 13.1",
        "CUDA": "12.9",
        "NVRTC": "12.9",
        "CuPy": "14.2.0",
    }
    for each in (real, device):
        each.train(work)
    batch = slice(0, 20 * INPUTS)
    scratches = [each.card.get(each._scratch)[0, batch] for each in (real, device)]
    np.testing.assert_array_equal(scratches[0], scratches[1])


def test_what_cuda_says_is_a_sentence(cupy: Cupy, work: Slice) -> None:
    real = Device(PPO_KERNEL, Card(PPO))
    cupy.fails = True
    with pytest.raises(RunError, match=r"^A card failed: cudaErrorIllegalAddress: an illegal memory access was enc"):
        real.begin(work)


def test_a_full_card_is_refused(cupy: Cupy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> SimpleNamespace:
        def load(name: str) -> None:
            raise CudaError("cudaErrorMemoryAllocation: out of memory")

        return SimpleNamespace(get_function=load)

    monkeypatch.setattr(cupy, "RawModule", fail)
    with pytest.raises(InputError, match=r"^A card takes no work: .*: out of memory\. End what else computes there\.$"):
        Device(PPO_KERNEL, Card(PPO))


def test_cards_that_are_too_small_are_refused(
    library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, work: Slice
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", Cupy(library, shared_bytes=65_536))
    with pytest.raises(
        InputError, match=r"^A card gives a thread block 64 KB .*: the engine cuda needs 96.02 KB, which"
    ):
        Device(PPO_KERNEL, Card(PPO))
    monkeypatch.setitem(sys.modules, "cupy", Cupy(library, free_bytes=1000))
    with pytest.raises(InputError, match=r"^A card has 0 MiB free, and the runs need"):
        Device(PPO_KERNEL, Card(PPO)).begin(work)


@pytest.mark.parametrize(("limit", "form"), [(None, 0), ("163KB", 1), ("99KB", -1)])
def test_a_limit_has_the_card_take_the_form_of_a_smaller_one(cupy: Cupy, limit: str | None, form: int) -> None:
    chosen = FORMS[PPO][form]
    about = limited_device(PPO_KERNEL, limit).card.about
    assert f"232448 bytes for a block, {chosen.shared_bytes} taken" in about["shared memory"]
    assert set(chosen.options) <= set(cupy.options)


def test_a_limit_that_no_form_keeps_is_refused() -> None:
    with pytest.raises(InputError, match=r"^train\.cu has no form for 64KB of shared memory\.$"):
        limited_device(PPO_KERNEL, "64KB")
