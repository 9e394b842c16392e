"""The memory of a device that runs SAC's very kernel on a CPU."""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class EmulatedMemory:
    """A few blocks, which are computed one after the other."""

    library: ctypes.CDLL
    blocks: int = 2
    schedule: int = 1
    """Draws which of the threads that can run goes next."""
    free_bytes: int = 2**30

    @property
    def name(self) -> str:
        return "an emulated card"

    @property
    def about(self) -> dict[str, str]:
        return {"compiler": "g++"}

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.array(array)

    def make(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:  # noqa: ANN401
        return np.zeros(shape, dtype)

    def get(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.array(array)

    def write(self, array: NDArray[Any], numbers: NDArray[Any]) -> None:
        array[...] = numbers

    def address(self, array: NDArray[Any]) -> int:
        return array.ctypes.data

    def compute(self, launch: NDArray[Any], blocks: int) -> None:
        assert not self.library.emulate(launch.ctypes.data, blocks, self.schedule), "threads wait for one another"
