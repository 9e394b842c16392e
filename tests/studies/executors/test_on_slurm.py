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
from cycletime.studies.events import Event, StudyObserver
from cycletime.studies.slurm_executor import SlurmExecutor, queued_jobs
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import MAX_SILENT_WORKERS, run_study
from tests.studies.small import bits_of, names_of

pytestmark = pytest.mark.slurm
RUNS = {"env_steps": 80_000, "seeds": 3}
SITE = """
# Read by each process of Python's: a run that begins in a job waits after its first chunk, which is short and is told.
import os, pathlib, sys, time
if any("submitit" in word for word in sys.orig_argv):
    import cycletime.studies.events as events, cycletime.training.compiled_loop as compiled
    import cycletime.training.trainer as training
    compiled.CHUNK_S = events.PROGRESS_INTERVAL_S = 0.0
    held, really = pathlib.Path(os.environ["HELD"]), training.train_batch
    def train(trainees, sink, *, stop):
        begun = [held / trainee.folder.spec.name for trainee in trainees]
        begins = not all(path.exists() for path in begun)
        for path in begun:
            path.touch()
        def wait():
            while begins and not (held / "released").exists() and not stop():
                time.sleep(0.05)
            return stop()
        return really(trainees, sink, stop=wait)
    training.train_batch = train
"""


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Jobs whose runs wait in the middle, until they are ended or a file 'released' is here; what goes on is free."""
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("HELD", str(tmp_path / "held"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "held"), prepend=os.pathsep)
    return tmp_path / "held"


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    yield
    subprocess.run(["scancel", "--me"], check=True)


@pytest.fixture(autouse=True, scope="module")
def _slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
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


class Hand(StudyObserver):
    """Does something to each run once, when it is under way."""

    def __init__(self, folder: StudyFolder, *deeds: Callable[[str, int], object]) -> None:
        self.folder, self.deeds = folder, dict(zip(names_of(folder), deeds, strict=False))
        self.done: list[str] = []
        self.outcomes: dict[str, list[str]] = {}

    def update(self, event: Event) -> None:
        if event.outcome:
            self.outcomes.setdefault(event.name, []).append(event.outcome)
        elif event.env_steps and event.name in self.deeds and event.name not in self.done:
            self.done.append(event.name)
            lease = json.loads((self.folder.leases / f"{event.name}.json").read_text())
            self.deeds[event.name](job_of(lease["worker"]), int(lease["pid"]))


def job_of(worker: str) -> str:
    """Slurm's number of a worker's job."""
    asked = ["squeue", "--me", "--array", "--noheader", "--format=%i|%j"]
    lines = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    array, _, index = worker.rpartition("-")
    (job,) = {job.partition("_")[0] for job, _, name in (line.partition("|") for line in lines) if name == array}
    return f"{job}_{index}"


def arrays_of(folder: StudyFolder) -> set[str]:
    return {path.name for path in (folder.path / "jobs").glob("*")}


def requeue(job: str, pid: int) -> None:
    subprocess.run(["scontrol", "requeue", job], check=True)


def preempt(job: str, pid: int) -> None:
    subprocess.run(["scancel", "--signal=USR2", job], check=True)


def kill(job: str, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def sessions(folder: StudyFolder) -> list[int]:
    """By seed."""
    return [folder.store.result(name)["sessions"] for name in names_of(folder)]


@pytest.mark.usefixtures("held")
def test_jobs_that_are_requeued_preempted_and_killed_end_with_the_same_bits(
    make_study: Callable[..., StudyFolder], alone: Callable[..., Any]
) -> None:
    folder = make_study(**RUNS)
    hand = Hand(folder, requeue, preempt, kill)
    assert run_study(folder, SlurmExecutor(workers=3, minutes=30), observers=[hand]) == {"done": 3}
    assert len(hand.done) == 3
    assert bits_of(folder) == alone(**RUNS)
    assert sessions(folder)[:2] == [2, 2], "who is asked saves first"
    assert [hand.outcomes[name][-1] for name in sorted(hand.outcomes)] == ["done"] * 3


def test_who_submitted_is_killed_and_comes_back_and_finds_its_jobs(
    make_study: Callable[..., StudyFolder], alone: Callable[..., Any], held: Path
) -> None:
    folder = make_study(**RUNS)
    program = """
import sys
from cycletime.studies.events import StudyObserver
from cycletime.studies.slurm_executor import SlurmExecutor
from cycletime.studies.worker_pool import run_study
from cycletime.studies.study_folder import StudyFolder

class Watcher(StudyObserver):
    def update(self, event): print(event.name, flush=True)

run_study(StudyFolder.open(sys.argv[1]), SlurmExecutor(workers=2, minutes=30), observers=[Watcher()])
"""
    with subprocess.Popen([sys.executable, "-c", program, str(folder.path)], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline()
        driver.kill()
    (array,) = arrays_of(folder)
    assert set(queued_jobs() or ()) == {f"{array}-0", f"{array}-1"}
    (held / "released").touch()
    assert run_study(folder, SlurmExecutor(workers=2, minutes=30), observers=[Hand(folder)]) == {"done": 3}
    assert arrays_of(folder) == {array}, "no job was submitted again"
    assert bits_of(folder) == alone(**RUNS)
    assert set(sessions(folder)) == {1}


@pytest.mark.usefixtures("held")
def test_who_is_asked_to_stop_lets_jobs_save_and_takes_back_those_that_wait(
    make_study: Callable[..., StudyFolder],
) -> None:
    """One job at a time has all the CPUs, and more wait than may end without a word."""
    runs = MAX_SILENT_WORKERS + 3
    folder = make_study(**{**RUNS, "seeds": runs})
    under_way: list[Event] = []

    class Watcher(Hand):
        def update(self, event: Event) -> None:
            super().update(event)
            if event.env_steps:
                under_way.append(event)

    watcher = Watcher(folder)
    executor = SlurmExecutor(workers=runs, minutes=30, cpus=os.cpu_count() or 1, sbatch=["comment=wide"])
    counts = run_study(folder, executor, observers=[watcher], stop=lambda: bool(under_way))
    assert counts == {"stopped": 1, "pending": runs - 1}
    assert queued_jobs() == {}
    assert list(watcher.outcomes.values()) == [["stopped"]]


def test_what_slurm_refuses_is_said_in_a_sentence(make_study: Callable[..., StudyFolder]) -> None:
    with pytest.raises(RunError, match=r"Slurm takes no jobs: .*nvalid partition"):
        run_study(make_study(), SlurmExecutor(workers=1, partition="nowhere"))
