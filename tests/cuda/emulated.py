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

from cycletime.cuda.device import Slice, SliceResult, launch_of, read_back
from cycletime.cuda.kernels import FORMS, KERNEL, PPO, Form
from cycletime.cuda.layout import RECORD, REPORT, scratch_words

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


@dataclass
class Emulated:
    """A device of a few blocks, which are computed one after the other when their work is waited for."""

    library: ctypes.CDLL
    blocks: int = 2
    schedule: int = 1
    """Draws which of the threads that can run goes next."""
    given: Slice | None = None
    scratch: NDArray[np.float32] | None = None
    """What the blocks left behind in their own memory."""
    launches: int = 0

    @property
    def name(self) -> str:
        return "an emulated card"

    @property
    def about(self) -> dict[str, str]:
        return {"compiler": "g++"}

    def left_behind(self) -> NDArray[np.float32]:
        assert self.scratch is not None, "it has computed"
        return self.scratch

    def begin(self, work: Slice) -> None:
        assert self.given is None, "one at a time"
        self.given = work

    def finish(self) -> SliceResult:
        assert self.given is not None, "there is something to wait for"
        work, self.given = self.given, None
        count, blocks = len(work.runs), min(self.blocks, len(work.runs))
        states = work.states.copy()
        arrays: dict[str, NDArray[Any]] = {
            "runs": work.runs,
            "queue": np.arange(count, dtype=np.int32),
            "tickets": np.zeros(1, np.int32),
            "states": states,
            "records": np.zeros((count, work.most_records), RECORD),
            "reports": np.zeros((count, work.most_reports), REPORT),
            "scratch": np.full((blocks, scratch_words(work.most_rows)), np.nan, np.float32),
        }
        launch = launch_of(work, {name: array.ctypes.data for name, array in arrays.items()})
        stuck = self.library.emulate(launch.ctypes.data, blocks, self.schedule)
        assert not stuck, "threads wait for one another"
        self.launches += 1
        self.scratch = arrays["scratch"]
        return read_back(states, arrays["records"], arrays["reports"])
