"""Cards that are not there: what CuPy would say of them, their shared memory, and what was measured on an H200."""

import re
from pathlib import Path
from types import SimpleNamespace

SHARED_BYTES = {"H200": 232_448, "A100": 166_912, "RTX 4090": 101_376}
"""What a thread block of a card may take, by CUDA's tables."""


class CudaError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("cudaErrorSomething: words of CUDA.\nand more")
        self.status = status


def asked_cupy(count: int | Exception = 1, driver: int = 12080, **card: object) -> SimpleNamespace:
    """As much of CuPy as is asked before anything is computed."""

    def get_count() -> int:
        if isinstance(count, Exception):
            raise count
        return count

    told = {"name": b"NVIDIA Tesla V100", "major": 7, "minor": 0, "sharedMemPerBlockOptin": 98_304, **card}
    calls = {"getDeviceProperties": lambda _: told, "driverGetVersion": lambda: driver}
    runtime = SimpleNamespace(getDeviceCount=get_count, **calls)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime), __spec__=SimpleNamespace())


def cupy_of(card: str) -> SimpleNamespace:
    """CuPy on a machine with one of these cards."""
    return asked_cupy(name=card.encode(), major=8, minor=0, sharedMemPerBlockOptin=SHARED_BYTES[card])


def measured(line: str) -> tuple[str, ...]:
    """The groups of the first such line that `benchmarks/kernel.py` printed on an H200."""
    printed = (Path(__file__).parents[2] / "results/kernel-h200.txt").read_text()
    found = re.search(f"^{line}$", printed, re.MULTILINE)
    assert found, f"results/kernel-h200.txt has a line {line}"
    return found.groups()
