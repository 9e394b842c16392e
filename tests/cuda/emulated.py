"""A device that runs the very kernel on a CPU: g++ compiles it around the emulator's machine."""

import ctypes
import fcntl
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet
from numpy.typing import NDArray

from cycletime.cuda.card import Card
from cycletime.cuda.device import Device
from cycletime.cuda.kernels import FORMS, KERNEL, PPO, Form
from cycletime.cuda.layout import Kernel
from cycletime.cuda.ppo import PPO_KERNEL

EMULATOR = Path(__file__).parent / "emulator"
FLAGS = ["-O1", "-std=c++17", "-U_FORTIFY_SOURCE", "-fno-strict-aliasing", "-Wno-unknown-pragmas", "-shared", "-fPIC"]


FULL = FORMS[PPO][0]


def build(
    folder: Path, kernel: Path = KERNEL, *flags: str, form: Form = FULL, source: str = "emulate.cpp"
) -> ctypes.CDLL:
    """A kernel, or a copy of it, as a library; the first process that comes to a folder compiles it for all."""
    compiler = shutil.which("g++")
    assert compiler, "these tests need g++"
    library = folder / "emulator.so"
    includes = [f"-I{EMULATOR}", f"-I{kernel}", *form.options, *flags]
    folder.mkdir(exist_ok=True)
    with (folder / "emulator.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            subprocess.run([compiler, *FLAGS, *includes, "-o", library, EMULATOR / source], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.emulate.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
    return loaded


def slow_but_the_last(forms: Sequence[Form]) -> list[ParameterSet]:
    """Forms to be tested; those but the smallest have nothing that it has not."""
    return [*(pytest.param(form, marks=pytest.mark.slow) for form in forms[:-1]), pytest.param(forms[-1])]


def at_address(address: int, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """An array that lies somewhere in memory."""
    words = (ctypes.c_char * (dtype.itemsize * count)).from_address(int(address))
    return np.frombuffer(memoryview(words), dtype)


@dataclass
class EmulatedCard(Card):
    """A few blocks, which are computed one after the other when they are launched."""

    library: ctypes.CDLL
    blocks: int = 2
    name: str = "an emulated card"
    schedule: int = 1
    """Draws which of the threads that can run goes next."""
    available_bytes: int = 2**30
    launches: int = 0

    @property
    def free_bytes(self) -> int:
        return self.available_bytes

    @property
    def about(self) -> dict[str, str]:
        return {"compiler": "g++"}

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.array(array)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:  # noqa: ANN401
        return np.zeros(shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:  # noqa: ANN401
        """Memory is never zero by itself."""
        return np.full(shape, np.nan if np.issubdtype(dtype, np.floating) else 7, dtype)

    def get(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.array(array)

    def write(self, array: NDArray[Any], numbers: NDArray[Any]) -> None:
        array[...] = numbers

    def address(self, array: NDArray[Any]) -> int:
        return array.ctypes.data

    def launch(self, argument: NDArray[Any], blocks: int) -> None:
        assert not self.library.emulate(argument.ctypes.data, blocks, self.schedule), "threads wait for one another"
        self.launches += 1


class Emulated(Device):
    """A device that runs a kernel on a CPU."""

    card: EmulatedCard

    def __init__(self, library: ctypes.CDLL, blocks: int = 2, schedule: int = 1, kernel: Kernel = PPO_KERNEL) -> None:
        super().__init__(kernel, EmulatedCard(library, blocks, schedule=schedule))
