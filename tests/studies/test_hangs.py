"""Real workers whose environment hangs: the others are done, it is told which one hangs, and nobody is left behind."""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from cycletime.studies.events import Event, EventReader, events_file
from cycletime.studies.executors import LocalExecutor
from cycletime.studies.study_folder import MAX_FAILURES, StudyFolder
from cycletime.studies.worker_pool import run_study
from cycletime.training.process import Stopper
from tests.processes import started
from tests.studies.small import names_of, state_of, wait_until
from tests.studies.stand_ins import Notes

ONE = {"dts": ["16ms"], "rules": ["baseline"]}
WORKER = "cycletime.studies.worker"
SITE = """
# Read by each process of Python's: in workers a training takes no time, but for one that never ends. Time is in a hurry
# for whoever hangs there, unless there is somebody to be asked to stop by.
import os, sys
if any("cycletime.studies.worker" in word for word in sys.orig_argv):
    import ctypes, signal, subprocess, time
    from types import SimpleNamespace
    import cycletime.training.machine as devices
    import cycletime.training.trainer as training
    import cycletime.studies.watchdog as watchdog
    from tests.studies.small import finished

    hanging = []
    watchdog.CHECK_INTERVAL_S, watchdog.STOP_GRACE_S, watchdog.MAX_ELAPSED_S = 0.01, 0.05, 1e9
    hurry_s = float(os.environ["HURRY_S"])
    watchdog.time = SimpleNamespace(monotonic=lambda: time.monotonic() + hurry_s * len(hanging))
    devices.prepare_jax = lambda device: None

    def step(how):
        child = subprocess.Popen(["sleep", "1000"])
        with open(os.environ["HUNG"], "a") as file:
            file.write(f"{os.getpid()} {child.pid}\\n")
        if how == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if how == "in a library":
            mutex = ctypes.create_string_buffer(64)
            for _ in range(2):
                ctypes.CDLL(None).pthread_mutex_lock(mutex)
        hanging.append(how)
        while True:
            time.sleep(1000)

    def train(trainees, shelf, *, stop):
        for trainee in trainees:
            for listener in trainee.observers:
                listener.begin(trainee.folder, None)
            if trainee.folder.spec.seed == 0:
                step(os.environ["HOW"])
            shelf.study.store.add([finished(trainee.folder.spec)])
            for listener in trainee.observers:
                listener.end("finished")
        return ["finished"] * len(trainees)

    training.train_batch = train
"""


@dataclass
class Hanging:
    """A study of which the first run hangs."""

    folder: StudyFolder
    environment: Mapping[str, str]

    @property
    def hung(self) -> list[int]:
        """The processes that hung, and those that they had started; none while a line is being written."""
        file = Path(self.environment["HUNG"])
        return [int(word) for word in file.read_text().split()] if file.exists() else []

    def nobody_is_left(self) -> bool:
        return not any(map(is_there, self.hung))


def is_there(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@pytest.fixture
def hanging(
    tmp_path: Path, make_folder: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Hanging]:
    """Such a study, by how it hangs; time goes on by so many seconds then."""

    def make(how: str, hurry_s: float, seeds: int) -> Hanging:
        folder = make_folder(**ONE, seeds=seeds)
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
        paths = [str(tmp_path / "site"), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        variables = {"HOW": how, "HURRY_S": str(hurry_s), "HUNG": str(tmp_path / "hung"), "PYTHONPATH": ":".join(paths)}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return Hanging(folder, variables)

    return make


def test_one_that_hangs_is_told_and_given_up_and_the_others_are_done(hanging: Callable[..., Hanging]) -> None:
    study, notes = hanging("asleep", hurry_s=3600.0, seeds=3), Notes()
    assert run_study(study.folder, LocalExecutor(1), observers=[notes]) == {"done": 2, "failed": 1}
    first = names_of(study.folder)[0]
    noted = study.folder.failures(first).read()
    assert [(each["begun_at"], each["died_among"]) for each in noted] == [(0, 1)] * MAX_FAILURES
    assert all("it hangs: it did not get further for 36" in each["error"] for each in noted)
    assert "in step (" in noted[0]["error"]
    told = [each for each in notes.heard if isinstance(each, Event) and each.error]
    assert [(each.name, each.outcome) for each in told] == [(first, None), (first, None), (first, "failed")]
    assert len(study.hung) == 2 * MAX_FAILURES
    assert study.nobody_is_left()


def test_asked_to_stop_nobody_is_left_behind_and_nothing_is_given_up(hanging: Callable[..., Hanging]) -> None:
    study, stopper = hanging("deaf", hurry_s=0.0, seeds=1), Stopper()

    class Asks(Notes):
        def update(self, event: Event) -> None:
            wait_until(lambda: len(study.hung) == 2)
            stopper.signal = signal.SIGINT

    assert run_study(study.folder, LocalExecutor(1), observers=[Asks()], stop=stopper) == {"pending": 1}
    assert study.nobody_is_left()
    assert not list(study.folder.runs.iterdir())


@pytest.mark.parametrize(("how", "ending"), [("deaf", "its command is killed"), ("in a library", "SIGTERM")])
def test_a_worker_that_hangs_ends_in_time_and_takes_what_it_has_started_with_it(
    hanging: Callable[..., Hanging], how: str, ending: str
) -> None:
    study = hanging(how, hurry_s=0.0, seeds=1)
    study.folder.workers.mkdir()
    words = [sys.executable, "-m", WORKER, str(study.folder.path), "cycletime-1-0", "1"]
    with started(words, DEVNULL, stdin=PIPE, start_new_session=True) as worker:
        wait_until(lambda: len(study.hung) == 2)
        assert state_of(study.folder, names_of(study.folder)[0]) == "running"
        if ending == "SIGTERM":
            worker.send_signal(signal.SIGTERM)
        else:
            assert worker.stdin is not None
            worker.stdin.close()
        assert worker.wait(timeout=120) == -signal.SIGKILL
        wait_until(study.nobody_is_left)
    assert Event(left=True) in list(EventReader(events_file(study.folder.workers, "cycletime-1-0")).new_events())
    assert study.folder.states(names_of(study.folder)) == {names_of(study.folder)[0]: "pending"}


def test_a_worker_that_was_stopped_is_woken_when_its_command_dies_and_goes(
    hanging: Callable[..., Hanging], tmp_path: Path
) -> None:
    study = hanging("asleep", hurry_s=0.0, seeds=1)
    study.folder.workers.mkdir()
    command = f"""
import json, os, signal, subprocess, sys, time
words = [sys.executable, "-m", "{WORKER}", sys.argv[1], "cycletime-1-0", "1"]
worker = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
while not os.path.exists(os.environ["HUNG"]):
    time.sleep(0.01)
worker.send_signal(signal.SIGSTOP)
os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)
print("stopped", flush=True)
time.sleep(1000)
"""
    with started([sys.executable, "-c", command, str(study.folder.path)], DEVNULL) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "stopped\n"
        wait_until(lambda: len(study.hung) == 2)
        lease = json.loads((study.folder.leases / f"{names_of(study.folder)[0]}.json").read_text())
        assert lease["pid"] == study.hung[0]
        parent.kill()
    wait_until(study.nobody_is_left)
