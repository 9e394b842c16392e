"""Launching a kernel: runs and the launch argument are copied to the GPU, positions, episodes and reports back.

States of PPO's runs are small and travel with every slice. Those of SAC's runs and their replays are large: they are
placed on the device once and stay there between slices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.cuda.card import Card, check_memory
from cycletime.cuda.layout import POSITION, POSITION_WORDS, RECORD, Kernel, State, position_of

_COUNTS = slice(POSITION.fields["records"][1] // 4, POSITION.fields["reports"][1] // 4 + 1)  # type: ignore[index]
"""The words of a state that count what was recorded in a slice."""


@dataclass(frozen=True, eq=False)
class DeviceRun:
    record: NDArray[Any]
    """Its description; of a run that stays on the device, with the addresses of its state and replay."""
    state: Any
    """On the host, or on the device where the run stays there."""
    replay: Any = None


@dataclass(frozen=True)
class Slice:
    """Runs that are trained for a while, in the order in which the device takes them."""

    runs: Sequence[DeviceRun]
    most_records: int
    most_reports: int
    time_s: float
    """After which a run is left at the end of its update, and no other begun."""
    most_periods: int = 0
    """Updates after which a run is left; 0 for any number."""


@dataclass(frozen=True)
class RunResult:
    run: DeviceRun
    position: Any
    records: NDArray[Any]
    reports: NDArray[Any]


class Device:
    """Trains runs of a kernel on a card; tests give it one that is emulated."""

    def __init__(self, kernel: Kernel, card: Card) -> None:
        self.kernel, self.card = kernel, card
        self._begun: tuple[Slice, dict[str, Any]] | None = None
        self._scratch: Any = None

    @property
    def is_computing(self) -> bool:
        return self._begun is not None

    def place(self, record: NDArray[Any], state: State, rows: NDArray[np.float32] | None = None) -> DeviceRun:
        """Make a run ready; its state and the rows of its replay are copied to the device if they stay there."""
        kernel, card = self.kernel, self.card
        if not kernel.keeps_runs_on_device:
            return DeviceRun(record, state)
        kept = card.put(state)
        replay = card.zeros((int(record["capacity"]), kernel.replay_words), np.float32)
        if rows is not None:
            card.write(replay[: len(rows)], rows)
        record = record.copy()
        record["state"], record["replay"] = card.address(kept), card.address(replay)
        return DeviceRun(record, kept, replay)

    def state(self, run: DeviceRun) -> State:
        return self.card.get(run.state) if self.kernel.keeps_runs_on_device else run.state

    def replay_rows(self, run: DeviceRun, stored: int) -> NDArray[np.float32]:
        return self.card.get(run.replay[: min(stored, len(run.replay))])

    def train(self, work: Slice) -> list[RunResult]:
        self.begin(work)
        return self.finish()

    def begin(self, work: Slice) -> None:
        """Begin a slice; one at a time, and without waiting for its end."""
        assert not self.is_computing, "one slice at a time"
        kernel, card, count = self.kernel, self.card, len(work.runs)
        records = np.stack([run.record for run in work.runs])
        rows = kernel.most_rows(records)
        scratch_shape = (card.blocks, kernel.scratch_words(rows))
        if self._scratch is not None and self._scratch.shape != scratch_shape:
            self._scratch = None
        of_run = work.most_records * RECORD.itemsize + work.most_reports * kernel.report.itemsize
        if not kernel.keeps_runs_on_device:
            of_run += 4 * kernel.state_words
        scratch_bytes = 4 * scratch_shape[0] * scratch_shape[1] if self._scratch is None else 0
        check_memory(card.name, card.free_bytes, count * of_run + scratch_bytes)
        if self._scratch is None:
            self._scratch = card.empty(scratch_shape, np.float32)
        arrays = {
            "runs": card.put(records.view(np.uint8)),
            "tickets": card.zeros((1,), np.int32),
            "records": card.empty((count, work.most_records, RECORD.itemsize), np.uint8),
            "reports": card.empty((count, work.most_reports, kernel.report.itemsize), np.uint8),
            "scratch": self._scratch,
        }
        if not kernel.keeps_runs_on_device:
            arrays["queue"] = card.put(np.arange(count, dtype=np.int32))
            arrays["states"] = card.put(np.stack([run.state for run in work.runs]))
        launch = np.zeros(1, kernel.launch)
        for name, array in arrays.items():
            launch[name] = card.address(array)
        launch["queued"], launch["time_ns"] = count, int(work.time_s * 1e9)
        for name in ("most_records", "most_reports", "most_periods"):
            launch[name] = getattr(work, name)
        if rows:
            launch["most_rows"] = rows
        card.launch(launch, min(card.blocks, count))
        self._begun = work, arrays

    def finish(self) -> list[RunResult]:
        assert self._begun is not None, "there is something to wait for"
        (work, arrays), self._begun = self._begun, None
        runs, positions = self._fetch_positions(work, arrays)
        records, reports = (
            self.card.get(arrays[name][:, : max(int(each[name]) for each in positions)])
            for name in ("records", "reports")
        )
        return [
            RunResult(
                run,
                position,
                records[index, : int(position["records"])].view(RECORD)[:, 0],
                reports[index, : int(position["reports"])].view(self.kernel.report)[:, 0],
            )
            for index, (run, position) in enumerate(zip(runs, positions, strict=True))
        ]

    def _fetch_positions(self, work: Slice, arrays: Mapping[str, Any]) -> tuple[list[DeviceRun], list[Any]]:
        """The runs and their positions. What was recorded is counted once: a run may not be taken in the next slice."""
        if self.kernel.keeps_runs_on_device:
            positions = []
            for run in work.runs:
                positions.append(self.card.get(run.state[:POSITION_WORDS]).view(POSITION)[0])
                self.card.write(run.state[_COUNTS], np.zeros(2, np.float32))
            return list(work.runs), positions
        states = self.card.get(arrays["states"])
        positions = [position_of(state).copy() for state in states]
        states[:, _COUNTS] = 0
        runs = [replace(run, state=state.copy()) for run, state in zip(work.runs, states, strict=True)]
        return runs, positions


@cache
def find_device(kernel: Kernel) -> Device:
    return Device(kernel, Card(kernel.file))
