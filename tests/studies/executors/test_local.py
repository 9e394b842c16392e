"""Processes on this machine: shell scripts that behave in all ways that workers do, and few real ones."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from cycletime.errors import MachineError
from cycletime.studies import executors
from cycletime.studies.events import events_file
from cycletime.studies.executors import LocalExecutor
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker import EXIT_MACHINE_ERROR
from cycletime.studies.worker_pool import run_study
from tests.studies.slow_workers import slow_workers
from tests.studies.small import bits_of, names_of, quick_study, state_of, wait_until

Behave = Callable[[str], None]
COMMAND = """
import sys
from cycletime.studies.executors import LocalExecutor
from cycletime.studies.worker_pool import run_study
from cycletime.studies.study_folder import StudyFolder
run_study(StudyFolder.open(sys.argv[1]), LocalExecutor(1))
"""


@pytest.fixture
def behave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Behave:
    """Let workers be a shell script, which is given the study's folder, a name and how many there are."""

    def be(script: str) -> None:
        (tmp_path / "worker.sh").write_text(script)
        monkeypatch.setattr(executors, "WORKER_COMMAND", ("/bin/sh", str(tmp_path / "worker.sh")))

    return be


def all_ended(executor: LocalExecutor, but: int = 0) -> dict[str, str]:
    """What is told of all workers, or of all but some."""
    told: dict[str, str] = {}

    def listen() -> bool:
        told.update(executor.poll(0.01))
        return len(executor.processes) == but

    wait_until(listen)
    return told


def is_dead(pid: str) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True


def test_workers_have_names_of_their_own_one_thread_and_a_session(behave: Behave, tmp_path: Path) -> None:
    behave('echo "$2 $3 $OMP_NUM_THREADS $(ps -o sid= -p $$ | tr -d " ") $$" > "$1/$2"')
    executor = LocalExecutor(3)
    names = [*executor.start(tmp_path, "cycletime-1", 2, "cpu"), *executor.start(tmp_path, "cycletime-1", 1, "cpu")]
    assert names == ["cycletime-1-0", "cycletime-1-1", "cycletime-1-2"]
    assert all_ended(executor) == dict.fromkeys(names, "")
    for name in names:
        said_name, workers, threads, session, pid = (tmp_path / name).read_text().split()
        assert (said_name, workers, threads) == (name, "3", "1")
        assert session == pid, "Ctrl-C is for who started it"
    assert list(executor.find_workers(tmp_path)) == []


def test_each_worker_has_a_gpu_of_its_own_also_one_that_takes_the_place_of_a_dead_one(
    behave: Behave, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "6")  # the user's own, which workers on a GPU are left
    behave('echo "$CUDA_VISIBLE_DEVICES $OMP_NUM_THREADS" > "$1/$2"')
    executor = LocalExecutor(2, ("GPU-1", "GPU-2"))
    names = [*executor.start(tmp_path, "c", 2, "gpu"), *executor.start(tmp_path, "c", 1, "gpu")]
    all_ended(executor)
    assert [(tmp_path / name).read_text() for name in names] == ["GPU-1 6\n", "GPU-2 6\n", "GPU-1 6\n"]


def test_who_ends_is_told_once_with_its_status(behave: Behave, tmp_path: Path) -> None:
    behave('case "$2" in *-0) exit 0;; *-1) exit 7;; *-2) kill -9 $$;; *) read line;; esac')
    executor = LocalExecutor(4)
    names = executor.start(tmp_path, "c", 4, "cpu")
    assert all_ended(executor, but=1) == {
        names[0]: "",
        names[1]: "its worker died with status 7",
        names[2]: "its worker died with status -9",
    }
    assert executor.poll(0.0) == {}
    executor.close(60.0)
    assert executor.processes == {}


def test_what_a_machine_lacks_is_the_worker_s_sentence(behave: Behave, tmp_path: Path) -> None:
    behave(f'printf "On here: the disk is full." && exit {EXIT_MACHINE_ERROR}')
    executor = LocalExecutor(1)
    executor.start(tmp_path, "c", 1, "cpu")
    with pytest.raises(MachineError, match=r"^On here: the disk is full\.$"):
        all_ended(executor)
    executor.close(60.0)


def test_asked_to_stop_workers_save_and_leave_and_nobody_is_left_behind(behave: Behave, tmp_path: Path) -> None:
    behave('touch "$1/began-$2"; cat > /dev/null; touch "$1/left-$2"')
    executor = LocalExecutor(2)
    names = executor.start(tmp_path, "c", 2, "cpu")
    wait_until(lambda: len(list(tmp_path.glob("began-*"))) == 2)
    executor.stop(tmp_path)
    executor.stop(tmp_path)
    assert all_ended(executor) == dict.fromkeys(names, "")
    executor.start(tmp_path, "c", 1, "cpu")
    wait_until(lambda: len(list(tmp_path.glob("began-*"))) == 3)
    executor.close(60.0)
    assert len(list(tmp_path.glob("left-*"))) == 3, "it waits for them"


@pytest.mark.parametrize("ending", ["killed", "closed"])
def test_one_that_does_not_go_is_ended_with_all_that_it_has_started(
    behave: Behave, tmp_path: Path, ending: str
) -> None:
    behave('trap "" TERM HUP; sleep 1000 & echo "$$ $!" > "$1/new"; mv "$1/new" "$1/pids"; while :; do wait; done')
    executor = LocalExecutor(1)
    (name,) = executor.start(tmp_path, "c", 1, "cpu")
    wait_until((tmp_path / "pids").exists)
    if ending == "killed":
        executor.kill(name)
        assert all_ended(executor) == {name: "its worker died with status -9"}
    executor.close(0.0)
    assert executor.processes == {}
    for pid in (tmp_path / "pids").read_text().split():
        wait_until(partial(is_dead, pid))


@pytest.mark.slow  # the command line's tests do it, too, without the bits
def test_workers_do_not_outlive_a_killed_command_and_save_before_they_go(
    tmp_path: Path, undisturbed: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = StudyFolder.create(tmp_path / "study", quick_study())
    words = [sys.executable, "-c", COMMAND, str(folder.path)]
    with subprocess.Popen(words, env=slow_workers(tmp_path, 0.05)) as command:
        wait_until(lambda: list(folder.runs.glob("*/checkpoints/[0-9]*")))
        (worker,) = (path.stem for path in folder.workers.glob("*.jsonl"))
        (run,) = folder.states(names_of(folder)).keys() & {path.stem for path in folder.leases.glob("*.json")}
        os.kill(command.pid, signal.SIGKILL)
    wait_until(lambda: '{"left": true}' in events_file(folder.workers, worker).read_text())
    wait_until(lambda: not list(folder.leases.glob("*.json")))
    assert state_of(folder, run) == "stopped"
    assert (tmp_path / "trainings").read_text().split() == [run], "it began no other"

    assert run_study(folder, LocalExecutor(1)) == {"done": 3}
    assert bits_of(folder) == bits_of(undisturbed)
    assert folder.store.result(run)["resumed"] == "resumed, identical"
    assert folder.store.result(run)["sessions"] == 2
    assert not [*folder.runs.iterdir(), *folder.leases.iterdir()]


def test_a_real_worker_without_what_it_needs_ends_the_command_with_its_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    folder = StudyFolder.create(tmp_path, quick_study(device="gpu", width=1))
    with pytest.raises(MachineError, match=r"^On .*: The run is for a GPU, and JAX finds none here"):
        run_study(folder, LocalExecutor(1))
    assert set(folder.states(names_of(folder)).values()) == {"pending"}
    assert not list(folder.runs.iterdir()), "nothing is noted"
