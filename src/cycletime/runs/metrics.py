"""Metrics of learning: means over every so many updates, `metrics.jsonl` in a run's folder.

An agent that learns at each step would write more than anyone reads. The lines of a run are therefore means over
windows of as many learnings as give about a thousand lines; which learnings share a line depends on the spec alone, so
that a resumed run has the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.loops import Episodes

LINES = 1000
"""About so many lines has a run."""
_STEPS = ("env_steps", "agent_steps")
_LINES, _PENDING = "lines/", "pending/"

Columns = Mapping[str, NDArray[Any]]
"""By name, a number for each line."""


def window_of(env_steps: int, cycle_steps: int, period: int) -> int:
    """The learnings of one line, for a budget, the environment steps of a cycle and the agent steps of a learning."""
    return max(1, ceil(env_steps / cycle_steps / period / LINES))


@dataclass
class MetricsLog:
    """The metrics of a run while it goes on."""

    window: int
    cycle_steps: int
    """k, to tell environment steps between the ends of episodes."""
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    """The lines that are full."""
    pending: dict[str, NDArray[Any]] = field(default_factory=dict)
    """By name, what was told since the last line."""
    last_end: tuple[int, int] = (0, 0)
    """Environment and agent steps at the end of the last episode."""

    def add(self, told: Columns, ended: Episodes) -> list[dict[str, Any]]:
        """Take what learning told, and the episodes that ended meanwhile; the lines that are full."""
        env_ends = np.concatenate([[self.last_end[0]], ended.env_steps])
        agent_ends = np.concatenate([[self.last_end[1]], ended.agent_steps])
        self.last_end = int(env_ends[-1]), int(agent_ends[-1])
        if not told:
            return []
        # Only the last cycle of an episode can be shorter than k.
        steps = np.asarray(told["agent_steps"], np.int64)
        last = np.searchsorted(agent_ends, steps, side="right") - 1
        new = {**told, "env_steps": env_ends[last] + (steps - agent_ends[last]) * self.cycle_steps}
        self.pending = _joined(self.pending, new)
        return self._take(len(self.pending["agent_steps"]) // self.window, self.window)

    def finish(self) -> list[dict[str, Any]]:
        """The last, short line."""
        count = len(self.pending.get("agent_steps", ()))
        return self._take(1, count) if count else []

    def _take(self, lines: int, size: int) -> list[dict[str, Any]]:
        """Make lines of the first learnings that are pending, so many in each."""
        taken, end = self.pending, lines * size
        self.pending = {name: each[end:] for name, each in taken.items()}
        if not lines:
            return []
        made = _means({name: each[:end].reshape(lines, size) for name, each in taken.items()})
        self.columns = _joined(self.columns, made)
        return lines_of(made)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, for a checkpoint."""
        return {
            **{_LINES + name: each for name, each in self.columns.items()},
            **{_PENDING + name: each for name, each in self.pending.items()},
            "last_end": np.array(self.last_end, np.int64),
        }

    def resume(self, arrays: Columns) -> None:
        """Go on from what `arrays` gave."""
        self.columns, self.pending = (
            {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}
            for prefix in (_LINES, _PENDING)
        )
        self.last_end = int(arrays["last_end"][0]), int(arrays["last_end"][1])


def columns_of(lines: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Lines as columns; what is no finite number is NaN."""
    found = {}
    for name in lines[0] if lines else ():
        numbers = [np.nan if line[name] is None else line[name] for line in lines]
        found[name] = np.array(numbers, np.int64 if name in (*_STEPS, "learnings") else np.float64)
    return found


def lines_of(columns: Columns) -> list[dict[str, Any]]:
    """The lines of columns; JSON knows no infinity."""
    names = list(columns)
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    return [{name: None if value != value else value for name, value in zip(names, row, strict=True)} for row in rows]


def metrics_text(columns: Columns) -> str:
    """What metrics.jsonl holds."""
    return "".join(json.dumps(line) + "\n" for line in lines_of(columns))


def _joined(before: Columns, after: Columns) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([before.get(name, each[:0]), each]) for name, each in after.items()}


def _means(windows: Columns) -> dict[str, NDArray[Any]]:
    """A line for each window, as columns; what is not finite is NaN."""
    lines, size = windows["agent_steps"].shape
    steps = {name: windows[name][:, -1].astype(np.int64) for name in _STEPS}
    means = {
        name: _rounded(np.mean(numbers, axis=1, dtype=np.float64))
        for name, numbers in windows.items()
        if name not in _STEPS
    }
    return {**steps, "learnings": np.full(lines, size, np.int64), **means}


def _rounded(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers with as many digits as float32 has."""
    return np.array([float(f"{number:.7g}") if isfinite(number) else nan for number in numbers.tolist()])
