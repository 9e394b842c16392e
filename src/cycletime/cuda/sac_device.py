"""A GPU that trains SAC's runs for a while. Their states and replays are large, and stay there between slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cycletime.cuda.card import Card, choose_form
from cycletime.cuda.kernels import SAC, Form
from cycletime.cuda.layout import POSITION, POSITION_WORDS, RECORD
from cycletime.cuda.sac import LAUNCH, REPORT, ROW, SCRATCH_WORDS

_COUNTS = slice(POSITION.fields["records"][1] // 4, POSITION.fields["reports"][1] // 4 + 1)  # type: ignore[index]
"""The words of a state that count what was recorded in a slice."""


@dataclass(frozen=True, eq=False)
class DeviceRun:
    """A run on a device."""

    run: NDArray[Any]
    """One record of layout.RUN, which knows where the arrays are."""
    state: Any
    replay: Any


@dataclass(frozen=True)
class Slice:
    """Runs that are trained for a while, in the order in which the device takes them."""

    residents: Sequence[DeviceRun]
    most_records: int
    """Room for the episodes of each run."""
    most_reports: int
    """Room for the reports of each."""
    time_s: float
    """After which a run is left at the end of its learning, and no other begun."""
    most_periods: int = 0
    """Learnings after which a run is left; 0 for any number."""


@dataclass(frozen=True)
class RunResult:
    """What became of a run."""

    position: Any
    """One record of layout.POSITION."""
    records: NDArray[Any]
    """The episodes that ended, of layout.RECORD."""
    reports: NDArray[Any]
    """The learnings that were reported, of layout.REPORT."""


class DeviceMemory(Protocol):
    """Whatever has memory and computes as the kernel says: a GPU, or its emulation in tests."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def blocks(self) -> int:
        """The runs that it trains at a time."""

    @property
    def about(self) -> Mapping[str, str]:
        """What else there is to say of it, by name."""

    @property
    def free_bytes(self) -> int:
        """The memory that can be had."""

    def put(self, array: NDArray[Any]) -> Any:  # noqa: ANN401 - an array there
        """Copy an array there."""

    def make(self, shape: tuple[int, ...], dtype: Any) -> Any:  # noqa: ANN401
        """An array there, of zeros."""

    def get(self, array: Any) -> NDArray[Any]:  # noqa: ANN401
        """Copy an array, or a part of one, from there."""

    def write(self, array: Any, numbers: NDArray[Any]) -> None:  # noqa: ANN401
        """Copy numbers into an array there, or into a part of one."""

    def address(self, array: Any) -> int:  # noqa: ANN401
        """Where an array is."""

    def compute(self, launch: NDArray[Any], blocks: int) -> None:
        """Run the kernel, and wait for its end."""


class SACDevice:
    """Trains runs that are on a device."""

    def __init__(self, memory: DeviceMemory) -> None:
        """Take a device's memory; nothing is there yet."""
        self.memory = memory
        self._scratch: Any = None

    def place(
        self, run: NDArray[Any], state: NDArray[np.float32], rows: NDArray[np.float32] | None = None
    ) -> DeviceRun:
        """Bring a run there: its description, its state, and what its replay holds already, if anything."""
        kept = self.memory.put(state)
        replay = self.memory.make((int(run["capacity"]), ROW.itemsize // 4), np.float32)
        if rows is not None:
            self.memory.write(replay[: len(rows)], rows)
        run = run.copy()
        run["state"], run["replay"] = self.memory.address(kept), self.memory.address(replay)
        return DeviceRun(run, kept, replay)

    def state(self, resident: DeviceRun) -> NDArray[np.float32]:
        """A run's state."""
        return self.memory.get(resident.state)

    def rows(self, resident: DeviceRun, stored: int) -> NDArray[np.float32]:
        """What a run's replay holds, after so many rows were stored."""
        return self.memory.get(resident.replay[: min(stored, len(resident.replay))])

    def train(self, work: Slice) -> list[RunResult]:
        """Train runs; what became of each."""
        memory, count = self.memory, len(work.residents)
        if self._scratch is None:
            self._scratch = memory.make((memory.blocks, SCRATCH_WORDS), np.uint32)
        arrays = {
            "runs": memory.put(np.stack([each.run for each in work.residents]).view(np.uint8)),
            "tickets": memory.make((1,), np.int32),
            "records": memory.make((count, work.most_records, RECORD.itemsize), np.uint8),
            "reports": memory.make((count, work.most_reports, REPORT.itemsize), np.uint8),
            "scratch": self._scratch,
        }
        launch = np.zeros(1, LAUNCH)
        for name, array in arrays.items():
            launch[name] = memory.address(array)
        launch["queued"], launch["time_ns"] = count, int(work.time_s * 1e9)
        for name in ("most_records", "most_reports", "most_periods"):
            launch[name] = getattr(work, name)
        memory.compute(launch, min(memory.blocks, count))
        positions = [self._told_position(each) for each in work.residents]
        records, reports = (
            memory.get(arrays[name][:, : max(int(each[name]) for each in positions)]) for name in ("records", "reports")
        )
        return [
            RunResult(
                position,
                records[index, : int(position["records"])].view(RECORD)[:, 0],
                reports[index, : int(position["reports"])].view(REPORT)[:, 0],
            )
            for index, position in enumerate(positions)
        ]

    def _told_position(self, resident: DeviceRun) -> Any:  # noqa: ANN401 - one record
        """Where a run is. What it recorded is counted once: it may not be taken at all in the next slice."""
        position = self.memory.get(resident.state[:POSITION_WORDS]).view(POSITION)[0]
        self.memory.write(resident.state[_COUNTS], np.zeros(2, np.float32))
        return position


class CardMemory:
    """The memory of the first GPU that CUDA finds, with the kernel compiled for it."""

    def __init__(self, form: Form | None = None) -> None:
        """Compile the kernel."""
        self._card = Card(SAC, form)

    @property
    def name(self) -> str:
        """The card's."""
        return self._card.name

    @property
    def blocks(self) -> int:
        """One for each of its multiprocessors, whose shared memory a run fills."""
        return self._card.blocks

    @property
    def about(self) -> Mapping[str, str]:
        """Its generation, and the software that drives it."""
        return self._card.about

    @property
    def free_bytes(self) -> int:
        """What no one has taken."""
        return self._card.free_bytes

    def put(self, array: NDArray[Any]) -> Any:  # noqa: ANN401
        """Copy an array there."""
        with self._card.working():
            return self._card.cupy.asarray(np.ascontiguousarray(array))

    def make(self, shape: tuple[int, ...], dtype: Any) -> Any:  # noqa: ANN401
        """An array there, of zeros."""
        with self._card.working():
            return self._card.cupy.zeros(shape, dtype)

    def get(self, array: Any) -> NDArray[Any]:  # noqa: ANN401
        """Copy an array, or a part of one, from there."""
        with self._card.working():
            found: NDArray[Any] = self._card.cupy.ascontiguousarray(array).get()
        return found

    def write(self, array: Any, numbers: NDArray[Any]) -> None:  # noqa: ANN401
        """Copy numbers into an array there, or into a part of one."""
        with self._card.working():
            array.set(np.ascontiguousarray(numbers))

    def address(self, array: Any) -> int:  # noqa: ANN401
        return int(array.data.ptr)

    def compute(self, launch: NDArray[Any], blocks: int) -> None:
        """Run the kernel, and wait for its end."""
        with self._card.working():
            argument = self._card.launch(launch, blocks)
            self._card.cupy.cuda.get_current_stream().synchronize()
            del argument


@cache
def find_sac_device(most_bytes: int | None = None) -> SACDevice:
    """The GPU that is here; with a limit, a thread block takes no more shared memory, as on a smaller card."""
    return SACDevice(CardMemory(choose_form(SAC, most_bytes)))
