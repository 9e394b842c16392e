"""The real Slurm, with one node on loopback: jobs are requeued, preempted and killed, and so is who submitted them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import RunError
from cycletime.studies.executors.executor import Event
from cycletime.studies.executors.on_slurm import OnSlurm, queued
from cycletime.studies.executors.remote import Batch
from cycletime.studies.folder import StudyFolder
from cycletime.studies.running import run_study

pytestmark = pytest.mark.slurm
LONG = {"env_steps": 8_000_000, "seeds": 3}
"""Long enough for something to happen in the middle."""


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    yield
    subprocess.run(["scancel", "--me"], check=True)


@pytest.fixture(autouse=True, scope="module")
def _slurm(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("slurm")
    command = [sys.executable, str(Path(__file__).with_name("slurm_node.py")), str(folder)]
    # It ends with its input, and the end of this block closes that and waits.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        ready, _, conf = node.stdout.readline().strip().partition(" ")
        assert ready == "ready"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", conf)
            yield


class Hand:
    """Does something to each run once, when it is under way."""

    def __init__(self, folder: StudyFolder, *deeds: Callable[[str, int], object]) -> None:
        names = [spec.name for _, spec in folder.study.runs()]
        self.folder, self.deeds = folder, dict(zip(names, deeds, strict=False))
        self.done: list[str] = []
        self.outcomes: dict[str, list[str]] = {}

    def begin(self, plan: object, states: object) -> None:
        pass

    def update(self, event: Event) -> None:
        if event.outcome:
            self.outcomes.setdefault(event.name, []).append(event.outcome)
        elif event.env_steps and event.name in self.deeds and event.name not in self.done:
            self.done.append(event.name)
            lease = json.loads((self.folder.runs / event.name / "lease.json").read_text())
            index, _, batch = lease["worker"].removeprefix("Slurm job ").partition(" of ")
            jobs = queued()
            assert jobs is not None
            self.deeds[event.name](jobs[batch, int(index)], int(lease["pid"]))

    def end(self) -> None:
        pass


def requeue(job: str, pid: int) -> None:
    subprocess.run(["scontrol", "requeue", job], check=True)


def preempt(job: str, pid: int) -> None:
    subprocess.run(["scancel", "--signal=USR2", job], check=True)


def kill(job: str, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def sessions(folder: StudyFolder) -> dict[str, int]:
    found = [json.loads(file.read_text()) for file in sorted(folder.runs.glob("*/result.json"))]
    return {f"seed {told['seed']}": told["sessions"] for told in found}


def test_jobs_that_are_requeued_preempted_and_killed_end_with_the_same_bits(
    make_study: Callable[..., StudyFolder], undisturbed: Callable[..., Any], hashes: Callable[..., Any]
) -> None:
    folder = make_study(**LONG)
    hand = Hand(folder, requeue, preempt, kill)
    assert run_study(folder, OnSlurm(workers=3, minutes=30), watcher=hand) == {"done": 3}
    assert len(hand.done) == 3
    assert hashes(folder) == undisturbed(**LONG)
    resumed = sessions(folder)
    assert (resumed["seed 0"], resumed["seed 1"]) == (2, 2), "who is asked saves first"
    assert [hand.outcomes[name][-1] for name in sorted(hand.outcomes)] == ["done"] * 3


def test_who_submitted_is_killed_and_comes_back_and_finds_its_jobs(
    make_study: Callable[..., StudyFolder], undisturbed: Callable[..., Any], hashes: Callable[..., Any]
) -> None:
    folder = make_study(**LONG)
    program = """
import sys
from cycletime.studies.executors.on_slurm import OnSlurm
from cycletime.studies.folder import StudyFolder
from cycletime.studies.running import run_study

class Watcher:
    def begin(self, plan, states): pass
    def end(self): pass
    def update(self, event): print(event.name, flush=True)

run_study(StudyFolder.open(sys.argv[1]), OnSlurm(workers=1, minutes=30, runs_per_job=1), watcher=Watcher())
"""
    with subprocess.Popen([sys.executable, "-c", program, str(folder.path)], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline()
        driver.kill()
    (batch,) = Batch.all_of(str(folder.path))
    submitted = queued()
    assert submitted is not None
    assert {key for key in submitted if key[0] == batch.name} == {(batch.name, index) for index in range(3)}

    batches: set[str] = set()

    class Watcher(Hand):
        def update(self, event: Event) -> None:
            super().update(event)
            batches.update(each.name for each in Batch.all_of(str(folder.path)))

    assert run_study(folder, OnSlurm(workers=1, minutes=30), watcher=Watcher(folder)) == {"done": 3}
    assert batches == {batch.name}, "no job was submitted again"
    assert hashes(folder) == undisturbed(**LONG)
    assert set(sessions(folder).values()) == {1}


def test_who_is_asked_to_stop_lets_jobs_save_and_takes_back_those_that_wait(
    make_study: Callable[..., StudyFolder],
) -> None:
    folder = make_study(**{**LONG, "env_steps": 80_000_000})  # nobody waits for their ends
    under_way: list[Event] = []

    class Watcher(Hand):
        def update(self, event: Event) -> None:
            super().update(event)
            if event.env_steps:
                under_way.append(event)

    watcher = Watcher(folder)
    counts = run_study(
        folder, OnSlurm(workers=1, minutes=30, runs_per_job=1), watcher=watcher, stop=lambda: bool(under_way)
    )
    assert counts == {"stopped": 1, "pending": 2}
    assert queued() == {}
    assert list(watcher.outcomes.values()) == [["stopped"]]


def test_more_jobs_than_an_array_may_have_come_in_several(
    make_study: Callable[..., StudyFolder], undisturbed: Callable[..., Any], hashes: Callable[..., Any]
) -> None:
    folder = make_study(seeds=5)
    arrays: set[str] = set()

    class Watcher(Hand):
        def update(self, event: Event) -> None:
            super().update(event)
            arrays.update(each.name for each in Batch.all_of(str(folder.path)))

    executor = OnSlurm(workers=2, minutes=30, runs_per_job=1, array_size=2, options={"comment": "small"})
    assert run_study(folder, executor, watcher=Watcher(folder)) == {"done": 5}
    assert len(arrays) >= 3
    assert hashes(folder) == undisturbed(seeds=5)
    assert list((folder.path / "jobs").iterdir()) == []


def test_what_slurm_refuses_is_said_in_a_sentence(make_study: Callable[..., StudyFolder]) -> None:
    with pytest.raises(RunError, match=r"Slurm takes no jobs: .*nvalid partition"):
        run_study(make_study(), OnSlurm(workers=1, partition="nowhere"))
