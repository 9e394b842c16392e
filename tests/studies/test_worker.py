"""A worker: it trains what nobody has, writes what happens, and leaves."""

import errno
import itertools
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from types import SimpleNamespace
from typing import Any

import pytest

from cycletime.errors import DiskFullError, InputError, MachineError, NoGpuError, RunError
from cycletime.studies import leases as lease_module
from cycletime.studies import worker
from cycletime.studies.events import EventReader, events_file, stop_file
from cycletime.studies.leases import hold_lease
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker import EXIT_LEASE_LOST, StudyResultSink, work, worker_environment
from cycletime.training import atomic_files, compiled_loop, trainer
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.trainer import CompletedRun
from tests.processes import started
from tests.studies.small import bits_of, finished, make_old, names_of, quick_study, state_of, wait_until
from tests.studies.stand_ins import Death, Trained

NAME = "cycletime-1-0"
ONE = {"dts": ["16ms"], "rules": ["baseline"]}
HELD_UP = """
import sys, time
from functools import partial
from pathlib import Path
from cycletime.training import trainer
from cycletime.training import compiled_loop
from cycletime.training.checkpoints import Checkpoints
from cycletime.studies import leases, worker

leases.HEARTBEAT_S = 0.05
compiled_loop.CHUNK_S = 0.0
worker.train_batch = partial(trainer.train_batch, checkpoint_s=0.0)
save = Checkpoints.save

def save_and_wait(self, checkpoint):
    save(self, checkpoint)
    Path(sys.argv[1], "saved").touch()
    while True:
        time.sleep(60)

Checkpoints.save = save_and_wait
sys.exit(worker.main(sys.argv[1:]))
"""
"""A real worker that stays in its first checkpoint for ever."""


@pytest.fixture
def folder(make_folder: Callable[..., StudyFolder]) -> StudyFolder:
    made = make_folder(**ONE, seeds=3)
    made.workers.mkdir()
    return made


def told(folder: StudyFolder, name: str = NAME) -> list[Any]:
    return [event.as_json() for event in EventReader(events_file(folder.workers, name)).new_events()]


def test_it_trains_all_that_is_left_and_writes_what_happens(folder: StudyFolder, trained: Trained) -> None:
    first, second, third = names_of(folder)
    trained.begun_at[second] = 1600
    work(str(folder.path), NAME, 1)
    assert told(folder) == [
        {"worker": NAME},
        {"name": first},
        {"name": first, "env_steps": 0},
        {"name": first, "outcome": "done"},
        {"name": second},
        {"name": second, "env_steps": 1600},
        {"name": second, "outcome": "done"},
        {"name": third},
        {"name": third, "env_steps": 0},
        {"name": third, "outcome": "done"},
        {"left": True},
    ]
    assert set(folder.states(names_of(folder)).values()) == {"done"}
    work(str(folder.path), "cycletime-1-1", 1)
    assert len(trained.runs) == 3
    assert not list(folder.leases.iterdir())


def test_what_others_hold_is_left_to_them(folder: StudyFolder, trained: Trained) -> None:
    first, *others = names_of(folder)
    with hold_lease(folder.leases, first, "other"):
        work(str(folder.path), NAME, 1)
    assert trained.runs == others
    assert state_of(folder, first) == "pending"


def test_what_goes_wrong_with_one_run_is_noted_there_and_the_others_are_trained(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder = make_folder(**ONE, seeds=4, width=4)
    folder.workers.mkdir()
    bad = names_of(folder)[1]
    trained.faults[bad] = FloatingPointError("no number")
    work(str(folder.path), NAME, 1)
    assert [each["error"] for each in folder.failures(bad).read()] == ["FloatingPointError: no number"] * 3
    assert trained.groups == [names_of(folder), [bad], [bad]]
    assert state_of(folder, bad) == "failed"
    failed = [line for line in told(folder) if line.get("outcome") == "failed"]
    assert failed == [{"name": bad, "outcome": "failed", "error": "FloatingPointError: no number"}] * 3
    assert told(folder)[-1] == {"left": True}


def test_a_lost_lease_is_no_failure_of_the_run(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, trained: Trained
) -> None:
    lost, *others = names_of(folder)

    def train(
        trainees: Sequence[TrainingJob], shelf: StudyResultSink, *, stop: Callable[[], bool]
    ) -> list[str | Exception]:
        if trainees[0].folder.spec.name != lost:
            return trained(trainees, shelf, stop=stop)
        lease = folder.leases / f"{lost}.json"
        lease.write_text(lease.read_text().replace('"token": "', '"token": "heir of '))
        with pytest.raises(RunError, match="taken by another worker"):
            trainees[0].check()
        return [RunError("The lease was taken.")]

    monkeypatch.setattr(worker, "train_batch", train)
    work(str(folder.path), NAME, 1)
    assert (trained.runs, folder.failures(lost).read()) == (others, [])
    assert [line for line in told(folder) if line.get("name") == lost] == [{"name": lost}]
    assert state_of(folder, lost) == "running", "it is the heir's"


@pytest.mark.parametrize("error", [DiskFullError("x cannot be written: the disk is full."), NoGpuError("No GPU here.")])
def test_what_a_machine_lacks_ends_the_work_and_is_nobody_s_failure(
    folder: StudyFolder, trained: Trained, error: Exception
) -> None:
    first, second, third = names_of(folder)
    trained.faults[second] = error
    with pytest.raises(MachineError, match=f"^On .*: {error}$") as lacking:
        work(str(folder.path), NAME, 1)
    assert told(folder)[-1] == {"machine": str(lacking.value)}
    assert trained.runs == [first, second]
    assert folder.failures(second).read() == []
    assert folder.states([second, third]) == {second: "pending", third: "pending"}


@pytest.mark.parametrize("where", ["taking a lease", "finishing a run"])
def test_a_disk_that_is_full_is_one_sentence(
    folder: StudyFolder, trained: Trained, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def put_on_the_shelf(
        trainees: Sequence[TrainingJob], shelf: StudyResultSink, *, stop: object
    ) -> list[Exception | None]:
        runs = [(SimpleNamespace(folder=each.folder), finished(each.folder.spec)) for each in trainees]
        return shelf.finish([CompletedRun(record, run) for record, run in runs])  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        if where == "taking a lease":
            patch.setattr(lease_module, "_link_if_free", full)
        else:
            patch.setattr(atomic_files, "_flush", full)
            patch.setattr(worker, "train_batch", put_on_the_shelf)
        with pytest.raises(MachineError, match=r"cannot be written: the disk is full; make room and resume"):
            work(str(folder.path), NAME, 1)
    assert set(folder.states(names_of(folder)).values()) == {"pending"}
    assert not any(folder.failures(name).read() for name in names_of(folder))
    work(str(folder.path), "cycletime-1-1", 1)
    assert set(folder.states(names_of(folder)).values()) == {"done"}


def test_asked_to_stop_it_begins_nothing_more_and_leaves(
    folder: StudyFolder, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "STOP_POLL_S", 0.0)
    trained.before = lambda names: stop_file(folder.workers, NAME).touch()
    work(str(folder.path), NAME, 1)
    assert len(trained.runs) == 1
    assert told(folder)[-1] == {"left": True}
    work(str(folder.path), "cycletime-1-9", 1)
    assert len(trained.runs) == 1, "it is for all workers of the command"
    trained.before = lambda names: None
    work(str(folder.path), "cycletime-2-0", 1, stop=lambda: len(trained.runs) == 2)
    assert len(trained.runs) == 2


def test_a_run_that_is_stopped_is_told(folder: StudyFolder, trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def train(trainees: Sequence[TrainingJob], shelf: StudyResultSink, *, stop: Callable[[], bool]) -> list[str]:
        asked.append(trainees[0].folder.spec.name)
        assert stop()
        return ["stopped"] * len(trainees)

    monkeypatch.setattr(worker, "train_batch", train)
    work(str(folder.path), NAME, 1, stop=lambda: bool(asked))
    first = names_of(folder)[0]
    assert told(folder)[-2:] == [{"name": first, "outcome": "stopped"}, {"left": True}]
    assert asked == [first]


def test_a_machine_that_does_not_see_the_study_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a study"):
        work(str(tmp_path), NAME, 1)


def test_a_worker_has_one_thread_on_a_cpu_and_takes_memory_of_a_gpu_as_it_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CYCLETIME_CACHE", "/programs")
    on_cpu, on_gpu = worker_environment("cpu"), worker_environment("gpu")
    assert (on_cpu["OMP_NUM_THREADS"], on_cpu["CYCLETIME_CACHE"]) == ("1", "/programs")
    assert on_gpu == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "CYCLETIME_CACHE": "/programs"}
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    monkeypatch.delenv("CYCLETIME_CACHE")
    assert worker_environment("gpu") == {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_stopped_and_killed_again_and_again_runs_have_the_same_bits_in_the_end(
    tmp_path: Path, undisturbed: StudyFolder, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Chunks are as short as can be, and the clock ticks with each look at it, so that nothing hangs on the machine."""
    monkeypatch.setattr(compiled_loop, "CHUNK_S", 0.0)
    folder = StudyFolder.create(tmp_path, quick_study())
    folder.workers.mkdir()
    draws, ends, lives = random.Random(seed), [], 0
    while set(folder.states(names_of(folder)).values()) != {"done"}:
        lives += 1
        left, ending = draws.randint(1, 700), draws.choice(["killed", "killed", "stopped"])
        ends.append(ending)

        def stop(ending: str = ending) -> bool:
            nonlocal left
            if threading.current_thread() is not threading.main_thread():
                return False  # the watchdog asks, too, whenever it looks
            left -= 1
            if left < 0 and ending == "killed":
                raise Death
            return left < 0

        ticks = map(float, itertools.count())
        train = partial(trainer.train_batch, checkpoint_s=draws.randint(1, 30), clock=partial(next, ticks))
        monkeypatch.setattr(worker, "train_batch", train)
        try:
            work(str(folder.path), f"cycletime-{lives}-0", 1, stop)
        except Death:
            assert not any(folder.failures(name).read() for name in names_of(folder))
    assert lives > 2
    assert bits_of(folder) == bits_of(undisturbed)
    results = [folder.store.result(name) for name in names_of(folder)]
    assert max(result["sessions"] for result in results) > 1
    assert {result["resumed"] for result in results} <= {"never", "resumed, identical"}
    assert not list(folder.runs.iterdir()), "they are all in the store"


def test_a_frozen_worker_that_wakes_up_does_not_spoil_the_runs_of_its_heir(
    tmp_path: Path, undisturbed: StudyFolder
) -> None:
    folder = StudyFolder.create(tmp_path, quick_study())
    folder.workers.mkdir()
    words = [sys.executable, "-c", HELD_UP, str(folder.path), NAME, "1"]
    with started(words, DEVNULL, stdin=PIPE) as frozen:
        wait_until((tmp_path / "saved").exists)
        (held,) = folder.leases.glob("*.json")
        assert state_of(folder, held.stem) == "running"
        frozen.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, frozen.pid, os.WSTOPPED | os.WNOWAIT)
        make_old(held)
        assert state_of(folder, held.stem) == "stopped"
        work(str(folder.path), "cycletime-2-0", 1)
        assert bits_of(folder) == bits_of(undisturbed)
        folder.store.refresh()
        assert folder.store.result(held.stem)["sessions"] == 2
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(timeout=120) == EXIT_LEASE_LOST
    assert bits_of(folder) == bits_of(undisturbed)
    assert not list(folder.leases.iterdir())
