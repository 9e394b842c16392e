"""The kernels compiled for real cards, which needs none: CI has no GPU, and must notice what no longer compiles."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.cuda.kernels import KERNEL_FILES, PPO, SAC, kernel_digest
from tests.cuda.compiling import CARDS, Counts

ROOT = Path(__file__).parents[2]
ALL = [(kernel, architecture) for kernel in KERNEL_FILES for architecture in CARDS]
BETWEEN = ("sm_89", "sm_100")
"""Cards that take the form of an older one, and that no code is apart for."""
QUICKLY = "--Ofast-compile=max"
"""Without optimisation where nobody looks at the outcome, since that takes most of the time."""
COUNTED = {PPO: "5e0a4d178291", SAC: "124d3758cab5"}
"""The kernels whose registers are few enough: they are counted for CI, too, as soon as there are others."""
MOST_REGISTERS, MOST_SPILLED = 255, {PPO: 0, SAC: 500}
"""Of a thread, and the bytes that do not fit. Where registers are scarce, the assembler puts reads right before their
use: PPO's kernel took a tenth longer with 60 bytes."""


def _slow_if_counted(kernel: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if kernel_digest(kernel).startswith(COUNTED[kernel]) else []


@pytest.fixture(scope="module")
def compile_for() -> Callable[..., str]:
    """What ptxas says of the form of a kernel for cards of an architecture."""

    def compiled(kernel: str, architecture: str, *options: str) -> str:
        module = [sys.executable, "-m", "tests.cuda.compiling", kernel, CARDS[architecture]]
        ran = subprocess.run([*module, architecture, *options], cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{architecture}: {ran.stdout}{ran.stderr}"
        assert f"for '{architecture}'" in ran.stdout
        return ran.stdout

    return compiled


@pytest.mark.parametrize(
    ("kernel", "architecture"),
    [pytest.param(*each, marks=[pytest.mark.slow] if each[1] in BETWEEN else []) for each in ALL],
)
def test_the_kernels_compile_for_the_cards_that_they_are_for(
    compile_for: Callable[..., str], kernel: str, architecture: str
) -> None:
    compile_for(kernel, architecture, QUICKLY)


@pytest.mark.parametrize(
    ("kernel", "architecture"), [pytest.param(*each, marks=_slow_if_counted(each[0])) for each in ALL]
)
def test_the_kernels_fit_into_registers(compile_for: Callable[..., str], kernel: str, architecture: str) -> None:
    counts = Counts.of(compile_for(kernel, architecture))
    assert counts.registers <= MOST_REGISTERS
    assert counts.spilled <= MOST_SPILLED[kernel]
