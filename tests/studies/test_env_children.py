"""Real workers whose environment starts processes: none costs time, holds the command up, or is left behind."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.studies.executors import LocalExecutor
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import run_study
from tests.studies.small import names_of
from tests.studies.test_hangs import is_there

SITE = """
# Read by each process of Python's: in workers a training takes no time, and starts processes in all ways.
import os, sys
if any("cycletime.studies.worker" in word for word in sys.orig_argv):
    import multiprocessing, signal, subprocess, time
    import cycletime.training.machine as devices
    import cycletime.training.trainer as training
    from tests.studies.small import finished

    devices.prepare_jax = lambda device: None
    fork = multiprocessing.get_context("fork")

    def note(pid):
        with open(os.environ["STARTED"], "a") as file:
            file.write(f"{pid}\\n")

    def serve(goes_on):
        if goes_on and os.fork():
            os._exit(0)
        note(os.getpid())
        time.sleep(1000)

    def train(trainees, shelf, *, stop):
        for trainee in trainees:
            for listener in trainee.observers:
                listener.begin(trainee.folder, None)
            helper = fork.Process(target=serve, args=[False])
            helper.start()
            fork.Process(target=serve, args=[True]).start()
            note(subprocess.Popen(["sleep", "1000"]).pid)
            note(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)
            if trainee.folder.spec.seed == 1 and os.environ["HOW"] == "runaway":
                if os.fork() == 0:
                    raise RuntimeError("a child comes back")
            if trainee.folder.spec.seed == 1 and os.environ["HOW"] == "killed":
                try:
                    os.close(os.open(os.environ["STARTED"] + ".once", os.O_CREAT | os.O_EXCL))
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:
                    pass
            helper.terminate()
            helper.join()
            shelf.study.store.add([finished(trainee.folder.spec)])
            for listener in trainee.observers:
                listener.end("finished")
        return ["finished"] * len(trainees)

    training.train_batch = train
"""


@pytest.mark.parametrize("how", ["in order", "killed", "runaway"])
def test_nothing_that_an_environment_has_started_is_left(
    how: str, tmp_path: Path, make_folder: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(dts=["16ms"], rules=["baseline"], seeds=3)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    paths = [str(tmp_path / "site"), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    for name, value in {"HOW": how, "STARTED": str(tmp_path / "started"), "PYTHONPATH": ":".join(paths)}.items():
        monkeypatch.setenv(name, value)
    assert run_study(folder, LocalExecutor(1)) == {"done": 3}
    started = [int(pid) for pid in (tmp_path / "started").read_text().split()]
    assert len(started) >= 2 * 3, "the others may have been ended before they came to write"
    assert [pid for pid in started if is_there(pid)] == []
    assert not list(folder.leases.iterdir())
    assert all(folder.failures(name).read() == [] for name in names_of(folder)[::2])
