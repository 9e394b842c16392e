"""Runs of a study that are trained together: whoever is killed, each has the bytes that it has undisturbed."""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cycletime.engines.record import Trainee
from cycletime.errors import RunError
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.studies import work
from cycletime.studies.executors import local
from cycletime.studies.executors.executor import Event
from cycletime.studies.executors.local import Local
from cycletime.studies.folder import State, StudyFolder, add_failure, failure_of, failures_of
from cycletime.studies.lease import leased
from cycletime.studies.plan import Plan
from cycletime.studies.running import run_study
from cycletime.studies.work import work_together

FILES = ("spec.json", "curve.parquet", "metrics.jsonl", "policy.safetensors")
WORKER = """
import sys
from functools import partial
from cycletime.engines import training
from cycletime.loops import compiled
from cycletime.studies import work, worker

compiled.CHUNK_S, training.MOST_TIME_SAVING = 0.05, 1.0
work.train, work.train_together = (partial(each, checkpoint_s=0.1) for each in (work.train, work.train_together))
sys.exit(worker.main(sys.argv[1:]))
"""
KEYS = {
    "algorithm": "actor-critic",
    "dts": ["32ms", "64ms"],
    "seeds": 4,
    "env_steps": 120_000,
    "set": {"hidden": [8]},
    "rules": [],
    "tuned": {},
    "width": 3,
}
"""Eight runs in two programs, which carry three each."""


class Killer:
    """Kills a worker with three runs in its hands, once, when one of them has a checkpoint."""

    def __init__(self, folder: StudyFolder) -> None:
        self.folder, self.killed = folder, 0

    def begin(self, plan: Plan, states: dict[str, State]) -> None:
        assert set(states.values()) == {"pending"}

    def update(self, event: Event) -> None:
        run = self.folder.runs / event.name
        if self.killed or not list((run / "checkpoints").glob("[0-9]*")):
            return
        with suppress(OSError, ValueError):  # another worker's run, which has just ended
            pid = json.loads((run / "lease.json").read_text())["pid"]
            held = [
                lease for lease in self.folder.runs.glob("*/lease.json") if json.loads(lease.read_text())["pid"] == pid
            ]
            if len(held) == 3:
                os.kill(pid, signal.SIGKILL)
                self.killed = pid

    def end(self) -> None:
        pass


def bytes_of(folder: StudyFolder) -> dict[str, bytes]:
    runs = sorted(folder.runs.glob("*/result.json"))
    return {f"{run.parent.name}/{name}": (run.parent / name).read_bytes() for run in runs for name in FILES}


@pytest.mark.slow
def test_a_study_whose_worker_is_killed_has_the_bytes_of_one_that_nobody_touched(
    make_folder: Callable[..., StudyFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", WORKER))
    folder = make_folder(**KEYS)
    killer = Killer(folder)
    assert run_study(folder, Local(2), watcher=killer) == {"done": 8}
    assert killer.killed
    whole = StudyFolder.create(tmp_path / "whole", folder.study)
    assert run_study(whole, Local(1)) == {"done": 8}
    assert len(bytes_of(whole)) == 8 * len(FILES)
    assert bytes_of(folder) == bytes_of(whole)
    told = [json.loads(file.read_text()) for file in folder.runs.glob("*/result.json")]
    assert {each["resumed"] for each in told} == {"never", "resumed, identical"}
    assert not list(folder.runs.glob("*/lease.json"))


@pytest.fixture
def specs(make_folder: Callable[..., StudyFolder]) -> list[RunSpec]:
    plan = Plan.of(make_folder(**KEYS).study)
    return [plan.spec(planned) for planned in plan.runs[:4]]


@pytest.fixture
def folder(tmp_path: Path, specs: list[RunSpec]) -> StudyFolder:
    return StudyFolder.open(tmp_path / "study")


def test_only_what_is_nobody_s_and_not_done_is_trained_and_each_outcome_is_told_once(
    folder: StudyFolder,
    specs: list[RunSpec],
    finish: Callable[[RunFolder], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done, busy, hopeless, free = specs
    finish(folder.run_folder(done))
    add_failure(folder.run_folder(hopeless).path, failure_of("its worker died", gives_up=True))
    told: list[tuple[str, Any]] = []
    given: list[str] = []

    def train(trainees: list[Trainee], **_: object) -> list[str]:
        for trainee in trainees:
            given.append(trainee.folder.spec.name)
            trainee.listeners[0].begin(trainee.folder, None)
            finish(trainee.folder)
            trainee.listeners[0].end("finished")
        return ["finished"] * len(trainees)

    monkeypatch.setattr(work, "train_together", train)
    with leased(folder.run_folder(busy).path, "other"):
        outcomes = work_together(folder, specs, worker="w", tell=lambda name, what: told.append((name, what)))
    assert given == [free.name]
    assert outcomes == {done.name: "done", busy.name: "busy", hopeless.name: "failed", free.name: "done"}
    assert told == [
        (done.name, {"outcome": "done"}),
        (busy.name, {"outcome": "busy"}),
        (hopeless.name, {"outcome": "failed", "error": "its worker died"}),
        (free.name, {"env_steps": 0}),
        (free.name, {"outcome": "done"}),
    ]


def test_what_goes_wrong_with_one_run_is_noted_there_and_a_lost_lease_is_no_failure(
    folder: StudyFolder, specs: list[RunSpec], finish: Callable[[RunFolder], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, lost, stopped = specs

    def train(trainees: list[Trainee], **_: object) -> list[object]:
        finish(trainees[0].folder)
        lease = trainees[2].folder.path / "lease.json"
        lease.write_text(lease.read_text().replace('"token": "', '"token": "heir'))
        return ["finished", FloatingPointError("no number"), RunError("taken"), "stopped"]

    monkeypatch.setattr(work, "train_together", train)
    outcomes = work_together(folder, specs, worker="w")
    assert outcomes == {good.name: "done", bad.name: "failed", lost.name: "busy", stopped.name: "stopped"}
    assert [each["error"] for each in failures_of(folder.runs / bad.name)] == ["FloatingPointError: no number"]
    assert not any(failures_of(folder.runs / each.name) for each in (good, lost, stopped))
    assert [run.name for run in folder.runs.iterdir() if (run / "lease.json").exists()] == [lost.name]
