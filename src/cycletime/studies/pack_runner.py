"""Packed studies where they were taken to: `cycletime study run` without the command line, which is not there."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, RunError
from cycletime.streams import lenient_streams
from cycletime.studies.events import Event, StudyObserver, WallTimeRecorder
from cycletime.studies.executors import make_executor
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import RunState, StudyFolder, format_states
from cycletime.studies.worker_pool import run_study
from cycletime.training.process import stopping
from cycletime.training.run_recorder import SaveOptions

LINE_INTERVAL_S = 5.0


def run_pack(manifest: Mapping[str, Any], out: Path, workers: int | None, *, episodes: bool, policies: bool) -> int:
    with lenient_streams():
        return _run(manifest, out, workers, SaveOptions(episodes, policies))


def _run(manifest: Mapping[str, Any], out: Path, workers: int | None, wanted: SaveOptions) -> int:
    failed = False
    try:
        with stopping() as stopper:
            for part in manifest["studies"]:
                keep = SaveOptions(
                    part["keep"]["episodes"] or wanted.episodes, part["keep"]["policies"] or wanted.policies
                )
                folder = StudyFolder.create(out / part["folder"], study_from_table(part["study"]), keep=keep)
                executor = make_executor("local", folder.study.device, workers)
                counts = run_study(
                    folder,
                    executor,
                    observers=[WallTimeRecorder(folder.path), LineProgress(folder.study.name)],
                    stop=stopper,
                )
                print(f"{folder.study.name}: {format_states(counts)}", flush=True)
                failed |= bool(counts["failed"])
                if stopper():
                    print("Stopped: the same command goes on.")
                    return stopper.status
    except (InputError, RunError) as error:
        print(f"cycletime: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return int(failed)


class LineProgress(StudyObserver):
    def __init__(self, name: str) -> None:
        self.name = name

    def begin(self, plan: Plan, states: Mapping[str, RunState]) -> None:
        self.began = self.due = time.monotonic()
        self.all, self.counts = len(plan.runs), Counter(states.values())
        print(f"{self.name}: {self.all:,} runs, {self.counts['done']:,} finished before", flush=True)

    def update(self, event: Event) -> None:
        self.counts[event.outcome or "progress"] += 1  # type: ignore[index]
        if event.outcome == "failed":
            print(f"  {event.name} failed: {event.error}", flush=True)
        elif event.error is not None:
            print(f"  {event.name}: {event.error}; it is tried again", flush=True)
        now = time.monotonic()
        if now >= self.due:
            self.due = now + LINE_INTERVAL_S
            self._print(now)

    def wait(self, holders: Mapping[str, str]) -> None:
        now = time.monotonic()
        if now >= self.due:
            self.due = now + LINE_INTERVAL_S
            print(f"  waiting for {', '.join(sorted(set(holders.values())))}", flush=True)

    def end(self) -> None:
        self._print(time.monotonic())

    def _print(self, now: float) -> None:
        print(f"  {self.counts['done']:,} of {self.all:,} finished, {now - self.began:,.1f} s", flush=True)
