"""A GPU that trains PPO's runs for a while: what goes to it, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cycletime.cuda.card import Card, choose_form
from cycletime.cuda.kernels import PPO, Form
from cycletime.cuda.layout import LAUNCH, RECORD, REPORT, STATE_WORDS, position_of, scratch_words


@dataclass(frozen=True)
class Slice:
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
class SliceResult:
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

    def begin(self, work: Slice) -> None:
        """Begin with work; one at a time, and without waiting for its end."""

    def finish(self) -> SliceResult:
        """Wait for what was begun."""

    def left_behind(self) -> NDArray[np.float32]:
        """What the blocks of the last work have in their own memory, [blocks, words]: their last batches."""


def read_back(states: NDArray[np.float32], records: NDArray[Any], reports: NDArray[Any]) -> SliceResult:
    """What was written for each run, by the counts in its state, which are zero again thereafter."""
    told: tuple[list[NDArray[Any]], list[NDArray[Any]]] = ([], [])
    for index, state in enumerate(states):
        position = position_of(state)
        told[0].append(records[index, : position["records"]].copy())
        told[1].append(reports[index, : position["reports"]].copy())
        position["records"] = position["reports"] = 0
    return SliceResult(states, *told)


@cache
def find_device(most_bytes: int | None = None) -> Device:
    """The GPU that is here; with a limit, a thread block takes no more shared memory, as on a smaller card."""
    return CupyDevice(choose_form(PPO, most_bytes))


class CupyDevice:
    """The first GPU that CUDA finds."""

    def __init__(self, form: Form | None = None) -> None:
        """Compile the kernel for it, in the fastest form that fits if none is given."""
        self._card = Card(PPO, form)
        self._given: dict[str, Any] = {}
        self._scratch: Any = None

    @property
    def name(self) -> str:
        """The card's."""
        return self._card.name

    @property
    def blocks(self) -> int:
        """One for each of its multiprocessors, or as many as the form has there."""
        return self._card.blocks

    @property
    def about(self) -> Mapping[str, str]:
        """Its generation, and the software that drives it."""
        return self._card.about

    def begin(self, work: Slice) -> None:
        """Give it work."""
        assert not self._given, "one at a time"
        self._scratch = None
        cupy, count = self._card.cupy, len(work.runs)
        blocks = min(self.blocks, count)
        self._card.check_memory(_bytes_for(work, blocks))
        with self._card.working():
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
            given["argument"] = self._card.launch(launch, blocks)
        self._given = given

    def finish(self) -> SliceResult:
        """Wait for it."""
        given, self._given = self._given, {}
        self._scratch = given["scratch"]
        with self._card.working():
            states = given["states"].get()
            counts = [position_of(state) for state in states]
            records, reports = (
                given[name][:, : max(int(count[name]) for count in counts)].get() for name in ("records", "reports")
            )
        return read_back(states, records.view(RECORD)[..., 0], reports.view(REPORT)[..., 0])

    def left_behind(self) -> NDArray[np.float32]:
        """The blocks' own memory."""
        with self._card.working():
            words: NDArray[np.float32] = self._scratch.get()
        return words


def _bytes_for(work: Slice, blocks: int) -> int:
    """The device memory that work takes."""
    of_a_run = STATE_WORDS * 4 + work.most_records * RECORD.itemsize + work.most_reports * REPORT.itemsize
    return len(work.runs) * of_a_run + blocks * scratch_words(work.most_rows) * 4


def launch_of(work: Slice, addresses: dict[str, int]) -> NDArray[Any]:
    """The kernel's argument."""
    launch = np.zeros(1, LAUNCH)
    for name, address in addresses.items():
        launch[name] = address
    launch["queued"], launch["time_ns"] = len(work.runs), int(work.time_s * 1e9)
    for name in ("most_records", "most_reports", "most_rows", "most_periods"):
        launch[name] = getattr(work, name)
    return launch
