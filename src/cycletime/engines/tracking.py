"""Trackers as listeners of a training: what they are told, and under which names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cycletime.engines.training import Listener, Progress
from cycletime.runs.folder import RunFolder
from cycletime.runs.trackers import Guarded, RunInfo, Tracker

_COUNTS = ("env_steps", "agent_steps", "learnings")


def tracked(trackers: Iterable[Tracker], warn: Callable[[str], None]) -> list[Listener]:
    """Listeners for trackers; one that fails in the middle of a run is warned of once, and left."""
    return [Tracking(Guarded(tracker, warn)) for tracker in trackers]


@dataclass
class Tracking:
    """A listener that tells a tracker."""

    tracker: Tracker

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """Tell what is trained."""
        self._last_s, self._last_steps = time.monotonic(), resumed_from or 0
        spec = folder.spec
        self.tracker.begin(RunInfo(spec.name, spec.identity, folder.path, dict(_flat(spec.as_json())), resumed_from))

    def update(self, progress: Progress) -> None:
        """Tell the mean of what came since the last time, at the present environment step."""
        now = time.monotonic()
        rate = (progress.env_steps - self._last_steps) / max(now - self._last_s, 1e-9)
        self._last_s, self._last_steps = now, progress.env_steps
        values = {"charts/env_steps_per_second": rate, "charts/agent_steps": float(progress.agent_steps)}
        if len(progress.episodes):
            values["charts/episodic_return"] = float(progress.episodes.returns.mean())
            values["charts/episodic_length_env_steps"] = float(progress.episodes.length_steps.mean())
        self.tracker.log(progress.env_steps, {**values, **_losses(progress.lines)})

    def remark(self, sentence: str) -> None:
        """Trackers take numbers only."""

    def end(self, status: Literal["finished", "stopped", "failed"]) -> None:
        """Tell how it ended."""
        self.tracker.end(status)


def _losses(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The means of the metrics."""
    found: dict[str, list[float]] = {}
    for line in lines:
        for name, number in line.items():
            if name not in _COUNTS and number is not None:
                found.setdefault(f"losses/{name}", []).append(number)
    return {name: float(np.mean(numbers)) for name, numbers in found.items()}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Nested values under dotted names."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", ",".join(map(str, value)) if isinstance(value, list) else value
