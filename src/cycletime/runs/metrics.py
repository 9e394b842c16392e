"""What learning tells of itself, on disk: `metrics.jsonl`, one line for every so many learnings.

An agent that learns at each step would write more than anyone reads. The lines of a run are therefore means over
windows of as many learnings as give about a thousand lines; which learnings share a line depends on the spec alone, so
that a resumed run writes the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import RunError
from cycletime.loops import Episodes
from cycletime.runs.files import disk_errors

LINES = 1000
"""About so many lines has a run."""
_STEPS = "agent_steps"

Metrics = Mapping[str, NDArray[Any]]


def window_of(env_steps: int, cycle_steps: int, period: int) -> int:
    """The learnings of one line, for a budget, the environment steps of a cycle and the agent steps of a learning."""
    return max(1, ceil(env_steps / cycle_steps / period / LINES))


@dataclass
class MetricsFile:
    """The file while a run goes on."""

    path: Path
    window: int
    cycle_steps: int
    """k, to tell environment steps between the ends of episodes."""
    pending: dict[str, NDArray[Any]] = field(default_factory=dict)
    """By name, what was told since the last line."""

    def resume(self, length: int, pending: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a length of the file, whatever was written after it.

        Raises:
            RunError: if the file is shorter.
        """
        if self.length < length:
            raise RunError(
                f"{self.path} has {self.length} bytes, and {length} when the checkpoint was written: restore it, or "
                f"delete {self.path.parent} to begin anew."
            )
        self.pending = dict(pending)
        with disk_errors(self.path), self.path.open("ab") as file:
            file.truncate(length)

    def add(self, told: Metrics, curve: Episodes) -> list[dict[str, Any]]:
        """Append the lines that are full; and give them back."""
        joined = {name: np.concatenate([self.pending.get(name, each[:0]), each]) for name, each in told.items()}
        if not joined:
            return []
        full = len(joined[_STEPS]) - len(joined[_STEPS]) % self.window
        self.pending = {name: each[full:] for name, each in joined.items()}
        return self._append(
            [
                {name: each[at : at + self.window] for name, each in joined.items()}
                for at in range(0, full, self.window)
            ],
            curve,
        )

    def finish(self, curve: Episodes) -> list[dict[str, Any]]:
        """Append the last, short line."""
        left, self.pending = self.pending, {}
        return self._append([left], curve) if left and len(left[_STEPS]) else []

    @property
    def length(self) -> int:
        """The bytes of the file."""
        return self.path.stat().st_size if self.path.exists() else 0

    def flush(self) -> None:
        """Have the disk hold it."""
        if self.path.exists():
            with disk_errors(self.path), self.path.open("rb") as file:
                os.fsync(file.fileno())

    def _append(self, windows: list[dict[str, NDArray[Any]]], curve: Episodes) -> list[dict[str, Any]]:
        lines = [self._line(window, curve) for window in windows]
        with disk_errors(self.path), self.path.open("ab") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        return lines

    def _line(self, window: dict[str, NDArray[Any]], curve: Episodes) -> dict[str, Any]:
        agent_steps = int(window[_STEPS][-1])
        means = {name: _number(numbers) for name, numbers in window.items() if name != _STEPS}
        return {
            "env_steps": self._env_steps_at(agent_steps, curve),
            _STEPS: agent_steps,
            "learnings": len(window[_STEPS]),
            **means,
        }

    def _env_steps_at(self, agent_steps: int, curve: Episodes) -> int:
        """The environment steps at an agent step: only the last cycle of an episode can be shorter than k."""
        ended = int(np.searchsorted(curve.agent_steps, agent_steps, side="right"))
        steps, env_steps = (curve.agent_steps[ended - 1], curve.env_steps[ended - 1]) if ended else (0, 0)
        return int(env_steps + (agent_steps - steps) * self.cycle_steps)


def _number(numbers: NDArray[Any]) -> float | None:
    """Their mean with as many digits as float32 has; JSON knows no infinity."""
    mean = float(np.mean(numbers, dtype=np.float64))
    return float(f"{mean:.7g}") if np.isfinite(mean) else None
