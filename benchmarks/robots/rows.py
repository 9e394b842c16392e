"""The rows of finished runs: read, merged without duplicates, and written as tables.

`rows.jsonl` is the master: a line for each run that ended and for each failure, as the trainings printed them.
`runs.csv` and `curves.npz` are made from it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = (
    "task",
    "dt_ms",
    "arm",
    "seed",
    "stage",
    "repeat",
    "status",
    "score",
    "final",
    "start",
    "fallen",
    "final_fallen",
    "intervals",
    "budget_intervals",
    "env_steps",
    "simulated_s",
    "wall_s",
    "setup_s",
    "side_by_side",
    "device",
    "versions",
    "code",
    "started",
    "also_counts_for",
    "setting",
    "uid",
)


@dataclass
class Rows:
    """What came of the trial so far."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    unfinished: dict[str, int] = field(default_factory=dict)
    """By run that was begun and has no row: its evaluations."""

    def add(self, record: dict[str, Any]) -> None:
        """Take a record; one that is there already is not taken twice."""
        kind = record.get("kind")
        if kind == "run":
            self.unfinished.pop(record["key"], None)
            if all(record["uid"] != run["uid"] for run in self.runs):
                self.runs.append(record)
        elif kind == "failure":
            self.unfinished.pop(record["key"], None)
            if all(record["uid"] != failure["uid"] for failure in self.failures):
                self.failures.append(record)
        elif kind in ("began", "evaluation"):
            begun = self.unfinished.get(record["key"], 0)
            self.unfinished[record["key"]] = begun + (kind == "evaluation")

    def finished(self) -> set[str]:
        """Keys of the runs that have a row."""
        return {run["key"] for run in self.runs}

    def failed(self, setting: str) -> int:
        """How often runs of a setting have failed."""
        return sum(setting in failure["key"].rpartition("/")[0] for failure in self.failures)

    def budget_intervals(self, task: str) -> int | None:
        """How long the runs of a task are, in intervals; None if no run has fixed it, or the task is left out."""
        return next((row["budget_intervals"] for row in self._budgets(task)), None)

    def left_out(self, task: str) -> bool:
        """Whether nothing was learned at the shipped cycle time."""
        return any(row["budget_intervals"] is None for row in self._budgets(task))

    def _budgets(self, task: str) -> Iterator[dict[str, Any]]:
        return (run for run in self.runs if run["task"] == task and "budget_intervals" in run)


def read_rows(files: Iterable[Path], *, rehearsal: bool = False) -> Rows:
    """All rows of some files, in order. A half-written last line, which a killed process leaves, is passed over."""
    rows = Rows()
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if bool(record.get("rehearsal")) == rehearsal:
                rows.add(record)
    return rows


def master_text(rows: Rows) -> str:
    """The master table: runs in the order in which they began, then failures."""
    runs = sorted(rows.runs, key=lambda run: (run["started"], run["key"], run["uid"]))
    return "".join(json.dumps(record) + "\n" for record in [*runs, *rows.failures])


def csv_text(rows: Rows) -> str:
    """A line for each run. A run that was trained twice has both; `repeat` tells them apart, and 0 is judged."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    seen: dict[str, int] = {}
    for run in sorted(rows.runs, key=lambda run: (run["started"], run["key"], run["uid"])):
        repeat = seen.get(run["key"], 0)
        seen[run["key"]] = repeat + 1
        versions = " ".join(f"{name}={value}" for name, value in run["versions"].items())
        others = " ".join(arm for arm in run["arms"] if arm != run["arm"])
        writer.writerow({**run, "repeat": repeat, "versions": versions, "also_counts_for": others})
    return out.getvalue()


def curve_arrays(rows: Rows) -> dict[str, Any]:
    """Learning curves by run: simulated seconds, return per second and length of episodes, in single precision."""
    import numpy as np

    found: dict[str, Any] = {}
    for run in rows.runs:
        curve: Mapping[str, Any] = run["curve"]
        simulated = [steps * run["dt_ms"] / 1000 for steps in curve["env_steps"]]
        columns = [simulated, curve["rate"], curve["length"]]
        found[f"{run['key']}#{run['uid']}"] = np.array(
            [[np.nan if value is None else value for value in column] for column in columns], np.float32
        )
    return found
