"""The kernel compiled for real cards, which needs none: CI has no GPU, and must notice what no longer compiles."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.engines.cuda.kernels import KERNELS, PPO, SAC, kernel_digest

ROOT = Path(__file__).parents[3]
ARCHITECTURES = ("sm_80", "sm_90", "sm_120")
QUICKLY = "--Ofast-compile=max"
"""Without optimisation where nobody looks at the outcome, since that takes most of the time."""
COUNTED = {PPO: "d47e37a62035", SAC: "959215cc13fb"}
"""The kernels whose registers are few enough: they are counted for CI, too, as soon as there are others."""
MOST_REGISTERS, MOST_SPILLED = 255, 320
"""Of a thread, and the bytes that do not fit: some are unavoidable, many mean that tuning has gone."""


def _slow_if_counted(kernel: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if kernel_digest(kernel).startswith(COUNTED[kernel]) else []


@pytest.fixture(scope="module")
def compile_for() -> Callable[..., str]:
    """What ptxas says of the kernel."""

    def compiled(kernel: str, architecture: str, *options: str) -> str:
        module = [sys.executable, "-m", "tests.engines.cuda.compiling", kernel]
        ran = subprocess.run([*module, architecture, *options], cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{architecture}: {ran.stdout}{ran.stderr}"
        assert f"for '{architecture}'" in ran.stdout
        return ran.stdout

    return compiled


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_kernels_compile_for_all_generations(
    compile_for: Callable[..., str], kernel: str, architecture: str
) -> None:
    compile_for(kernel, architecture, QUICKLY)


@pytest.mark.parametrize("kernel", [pytest.param(name, marks=_slow_if_counted(name)) for name in KERNELS])
def test_the_kernel_fits_into_registers(compile_for: Callable[..., str], kernel: str) -> None:
    log = compile_for(kernel, "sm_90")
    registers = [int(found) for found in re.findall(r"Used (\d+) registers", log)]
    assert registers
    assert max(registers) <= MOST_REGISTERS
    spilled = [int(found) for found in re.findall(r"(\d+) bytes spill stores", log)]
    assert sum(spilled) <= MOST_SPILLED, log
