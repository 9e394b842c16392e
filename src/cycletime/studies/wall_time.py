"""How long a study was worked on: STUDY/sessions has a file for each command that looked after it, with its times.

A command may be killed, so the end is written again and again; and several may look after one study at once, so what
counts is the time in which at least one did.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from cycletime.errors import RunError
from cycletime.studies.events import RunEvent
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import RunState
from cycletime.studies.worker_pool import StudyObserver
from cycletime.training.atomic_files import disk_errors, write_last
from cycletime.training.sealed_json import parse_json

SAVE_INTERVAL_S = 5.0
"""How often the end is written while a study runs."""


class WallTimeRecorder:
    """A watcher that writes down how long a study runs, and tells another one."""

    def __init__(self, study: Path, watcher: StudyObserver, clock: Callable[[], float] = time.time) -> None:
        """Prepare to write into a study's folder."""
        self.file = study / "sessions" / f"{uuid4().hex[:12]}.json"
        self.watcher, self.clock = watcher, clock
        self.began: float | None = None

    def begin(self, plan: Plan, states: Mapping[str, RunState]) -> None:
        """Note the time, where something is left to do."""
        if any(state != "done" for state in states.values()):
            self.began = self.clock()
            self._save()
        self.watcher.begin(plan, states)

    def update(self, event: RunEvent) -> None:
        """Note it again, now and then."""
        if self.began is not None and self.clock() >= self.due:
            self._save()
        self.watcher.update(event)

    def wait(self, holders: Mapping[str, str]) -> None:
        """Tell it on."""
        self.watcher.wait(holders)

    def end(self) -> None:
        """Note it for the last time."""
        if self.began is not None:
            self._save()
        self.watcher.end()

    def _save(self) -> None:
        now = self.clock()
        self.due = now + SAVE_INTERVAL_S
        text = json.dumps({"began": self.began, "ended": now}) + "\n"
        with suppress(RunError):  # whoever writes runs will say what is wrong with the disk
            with disk_errors(self.file.parent):
                self.file.parent.mkdir(exist_ok=True)
            write_last(self.file, lambda unfinished: unfinished.write_text(text))


def recorded_wall_s(study: Path) -> float | None:
    """The seconds in which somebody worked on a study; None where that was not written down, or cannot be read."""
    try:
        told = [parse_json(file.read_bytes()) for file in (study / "sessions").glob("[!.]*.json")]
        times = sorted((float(each["began"]), float(each["ended"])) for each in told)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not times:
        return None
    total_s, until = 0.0, -float("inf")
    for began, ended in times:
        total_s += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total_s
