"""Trackers as listeners of a training: what they are told, and under which names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from cycletime.engines.record import Listener, Progress
from cycletime.runs.folder import RunFolder
from cycletime.runs.trackers import Guarded, RunInfo, Status, Tracker

POINTS = 500
"""A run has about so many points."""
_COUNTS = ("env_steps", "agent_steps", "learnings")


def tracked(trackers: Iterable[Tracker], warn: Callable[[str], None]) -> list[Listener]:
    """Listeners for trackers; one that fails in the middle of a run is warned of once, and left."""
    return [Tracking(Guarded(tracker, warn)) for tracker in trackers]


@dataclass
class _Point:
    """Numbers that are told together, at the last environment step among theirs."""

    env_steps: int = 0
    numbers: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, number: float) -> None:
        self.numbers.setdefault(name, []).append(number)

    def means(self) -> dict[str, float]:
        return {name: sum(each) / len(each) for name, each in self.numbers.items()}


@dataclass
class Tracking:
    """A listener that tells a tracker."""

    tracker: Tracker

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """Tell what is trained."""
        spec = folder.spec
        self._interval = max(1, ceil(spec.env_steps / POINTS))
        self._last_s, self._last_env_steps = time.monotonic(), resumed_from or 0
        self.tracker.begin(RunInfo(spec.name, spec.identity, folder.path, dict(_flat(spec.as_json())), resumed_from))

    def update(self, progress: Progress) -> None:
        """Tell the means of what came since the last time, interval by interval, and the speed."""
        points: dict[int, _Point] = {}
        episodes = progress.episodes
        for env_steps, total, length in zip(episodes.env_steps, episodes.returns, episodes.length_steps, strict=True):
            point = self._point(points, int(env_steps))
            point.add("charts/episodic_return", float(total))
            point.add("charts/episodic_length_env_steps", float(length))
        for line in progress.lines:
            point = self._point(points, line["env_steps"])
            for name, number in line.items():
                if name not in _COUNTS and number is not None:
                    point.add(f"losses/{name}", number)
        now = time.monotonic()
        rate = (progress.env_steps - self._last_env_steps) / max(now - self._last_s, 1e-9)
        self._last_s, self._last_env_steps = now, progress.env_steps
        for _, point in sorted(points.items()):
            self.tracker.log(point.env_steps, {**point.means(), "charts/env_steps_per_second": rate})

    def _point(self, points: dict[int, _Point], env_steps: int) -> _Point:
        """The point of the interval that an environment step lies in."""
        point = points.setdefault(ceil(env_steps / self._interval), _Point())
        point.env_steps = max(point.env_steps, env_steps)
        return point

    def remark(self, sentence: str) -> None:
        """Trackers take numbers only."""

    def end(self, status: Status) -> None:
        """Tell how it ended."""
        self.tracker.end(status)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Nested values under dotted names."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", ",".join(map(str, value)) if isinstance(value, list) else value
