import errno
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen

import pytest

from cycletime.engines.training import Listener, Progress
from cycletime.errors import DiskFullError, RunError
from cycletime.loops import Episodes
from cycletime.runs import files
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.studies import lease, work
from cycletime.studies.folder import StudyFolder, add_failure, failure_of, failures_of
from cycletime.studies.lease import holder_of, leased
from cycletime.studies.plan import Plan
from cycletime.studies.work import work_on
from tests.processes import started

FILES = ("curve.parquet", "metrics.jsonl", "policy.safetensors")
WORKER = """
import os, sys
from cycletime.loops import compiled
from cycletime.runs.spec import RunSpec
from cycletime.studies import lease
from cycletime.studies.folder import StudyFolder
from cycletime.studies.work import prepare_jax, work_on

lease.BEAT_S, lease.STALE_S, compiled.CHUNK_S = 0.1, 1.0, 0.05
prepare_jax("cpu")
folder = StudyFolder.open(sys.argv[1])
(_, spec), = folder.study.runs()
told = lambda what: print("told", flush=True)
print(work_on(folder, spec, worker=sys.argv[2], tell=told, on_loss=lambda: os._exit(75)), flush=True)
"""


@pytest.fixture
def folder(make_folder: Callable[..., StudyFolder]) -> StudyFolder:
    return make_folder()


@pytest.fixture
def spec(folder: StudyFolder) -> RunSpec:
    plan = Plan.of(folder.study)
    return plan.spec(plan.runs[0])


def test_a_run_is_trained_once(folder: StudyFolder, spec: RunSpec, trained: list[str]) -> None:
    assert [work_on(folder, spec, worker="w") for _ in range(3)] == ["done"] * 3
    assert trained == [spec.name]
    assert not (folder.runs / spec.name / "lease.json").exists()


def test_what_others_hold_is_left_to_them(folder: StudyFolder, spec: RunSpec, trained: list[str]) -> None:
    run = folder.run_folder(spec).path
    with leased(run, "other"):
        assert work_on(folder, spec, worker="w") == "busy"
        assert holder_of(run) is not None
    with (run / "lock").open("w") as lock:  # somebody who knows nothing of leases, such as `cycletime resume`
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert work_on(folder, spec, worker="w") == "busy"
    assert (trained, failures_of(run)) == ([], [])
    assert work_on(folder, spec, worker="w") == "done"


def test_who_comes_late_does_not_train_again(
    folder: StudyFolder, spec: RunSpec, trained: list[str], finish: Callable[[RunFolder], None]
) -> None:
    """The run is finished between the first look and the lease."""
    state_of = StudyFolder.state_of

    def finished_then(self: StudyFolder, name: str) -> str:
        state = state_of(self, name)
        finish(self.run_folder(spec))
        return state

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StudyFolder, "state_of", finished_then)
        assert work_on(folder, spec, worker="w") == "done"
    assert trained == []


def test_what_goes_wrong_is_noted_three_times_and_then_left_alone(
    folder: StudyFolder, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(run: RunFolder, **_: object) -> str:
        raise ZeroDivisionError(f"seed {run.spec.seed}")

    monkeypatch.setattr(work, "train", train)
    assert [work_on(folder, spec, worker="w") for _ in range(5)] == ["failed"] * 5
    noted = failures_of(folder.runs / spec.name)
    assert [each["error"] for each in noted] == ["ZeroDivisionError: seed 0"] * 3
    assert all('raise ZeroDivisionError(f"seed' in each["traceback"] for each in noted)
    assert folder.state_of(spec.name) == "failed"


def test_a_run_that_was_given_up_is_not_tried(folder: StudyFolder, spec: RunSpec, trained: list[str]) -> None:
    add_failure(folder.run_folder(spec).path, failure_of("its worker died", gives_up=True))
    assert (work_on(folder, spec, worker="w"), trained) == ("failed", [])


def test_a_spoilt_folder_is_a_failure_of_that_run(folder: StudyFolder, spec: RunSpec, trained: list[str]) -> None:
    run = folder.run_folder(spec).path
    (run / "spec.json").write_text("{")
    assert work_on(folder, spec, worker="w") == "failed"
    (noted,) = failures_of(run)
    assert noted["error"].startswith(f"InputError: {run / 'spec.json'} cannot be read as a run's spec")
    assert trained == []


def test_a_disk_that_takes_no_note_either_is_a_failure_all_the_same(
    folder: StudyFolder, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise RunError("full")

    monkeypatch.setattr(work, "train", full)
    monkeypatch.setattr(work, "add_failure", full)
    assert work_on(folder, spec, worker="w") == "failed"


@pytest.mark.parametrize("where", ["making its folder", "taking its lease", "training"])
def test_a_full_disk_is_nobody_s_failure_and_ends_the_work(
    folder: StudyFolder, spec: RunSpec, trained: list[str], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def no_room_to_finish(run: RunFolder, **_: object) -> None:
        run.write_result({})

    if where != "making its folder":
        folder.run_folder(spec)
    with monkeypatch.context() as patch:
        patch.setattr(*((lease, "_linked", full) if where == "taking its lease" else (files, "_flush", full)))
        patch.setattr(work, "train", no_room_to_finish)
        with pytest.raises(DiskFullError, match=r" cannot be written: the disk is full; make room and resume, "):
            work_on(folder, spec, worker="w")
    assert failures_of(folder.runs / spec.name) == []
    assert folder.state_of(spec.name) == "pending"
    assert (work_on(folder, spec, worker="w"), trained) == ("done", [spec.name])


def test_losing_the_lease_ends_the_run_without_a_note(
    folder: StudyFolder, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []

    def train(
        run: RunFolder, *, listeners: Sequence[Listener], stop: Callable[[], bool], guard: Callable[[], None]
    ) -> str:
        progress = Progress(100, 10, Episodes.none(), [])
        listeners[0].begin(run, None)
        listeners[0].update(progress)
        heir = (run.path / "lease.json").read_text().replace('"token": "', '"token": "heir')
        (run.path / "lease.json").write_text(heir)
        guard()
        raise AssertionError("it went on")

    monkeypatch.setattr(work, "train", train)
    assert work_on(folder, spec, worker="w", tell=told.append) == "busy"
    assert told == [{"env_steps": 0}, {"env_steps": 100}]
    assert failures_of(folder.runs / spec.name) == []
    assert (folder.runs / spec.name / "lease.json").exists()


def test_a_frozen_worker_that_wakes_up_does_not_spoil_the_run_of_its_heir(
    make_folder: Callable[..., StudyFolder], tmp_path: Path
) -> None:
    keys = {"algorithm": "actor-critic", "dts": ["32ms"], "seeds": 1, "env_steps": 200_000, "set": {"hidden": [8]}}
    folder = make_folder(**keys, rules=[], tuned={})
    ((_, spec),) = folder.study.runs()
    run = folder.runs / spec.name
    with working(folder, "frozen") as frozen:
        hear(frozen, times=4)
        frozen.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, frozen.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(1.5)  # longer than it takes to be believed dead here
        before = (run / "metrics.jsonl").read_bytes()
        with working(folder, "kept out") as other:  # the lease is his for a moment, but the lock is still the other's
            assert other.communicate()[0].splitlines() == ["busy"]
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(timeout=60) == 75
        # It may wake up in the middle of a write, which whoever goes on from the checkpoint cuts off.
        assert (run / "metrics.jsonl").read_bytes().startswith(before)
        assert not (run / "result.json").exists()
    with working(folder, "heir") as heir:
        assert heir.communicate()[0].splitlines()[-1] == "done"
    whole = StudyFolder.create(tmp_path / "whole", folder.study)
    with working(whole, "alone") as alone:
        assert alone.communicate()[0].splitlines()[-1] == "done"
    for name in FILES:
        assert (whole.runs / spec.name / name).read_bytes() == (run / name).read_bytes()
    assert failures_of(run) == []


def working(folder: StudyFolder, name: str) -> AbstractContextManager["Popen[str]"]:
    return started([sys.executable, "-c", WORKER, str(folder.path), name], None)


def hear(process: "Popen[str]", times: int) -> None:
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(times)] == ["told\n"] * times
