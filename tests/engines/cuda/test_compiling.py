"""The kernel compiled for real cards, which needs none: CI has no GPU, and must notice what no longer compiles."""

import re
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

ROOT = Path(__file__).parents[3]
ARCHITECTURES = {"sm_80": ("--Ofast-compile=max",), "sm_90": (), "sm_120": ("--Ofast-compile=max",)}
"""Without optimisation where nobody looks at the outcome, since that takes most of the time."""
MOST_REGISTERS, MOST_SPILLED = 255, 256
"""Of a thread, and the bytes that do not fit: some are unavoidable, many mean that tuning has gone."""


def test_the_kernel_compiles_for_all_generations_and_fits_into_registers() -> None:
    module = [sys.executable, "-m", "tests.engines.cuda.compiling"]
    processes = {
        name: subprocess.Popen([*module, name, *options], cwd=ROOT, stdout=PIPE, stderr=STDOUT, text=True)
        for name, options in ARCHITECTURES.items()
    }
    logs = {name: process.communicate()[0] for name, process in processes.items()}
    for name, process in processes.items():
        assert process.returncode == 0, f"{name}: {logs[name]}"
        assert f"for '{name}'" in logs[name]
    registers = [int(found) for found in re.findall(r"Used (\d+) registers", logs["sm_90"])]
    assert registers
    assert max(registers) <= MOST_REGISTERS
    spilled = [int(found) for found in re.findall(r"(\d+) bytes spill stores", logs["sm_90"])]
    assert sum(spilled) <= MOST_SPILLED, logs["sm_90"]
