"""The real Ray: on a cluster that was started beside us, and on one that is started for the time being."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.studies.events import Event, StudyObserver
from cycletime.studies.ray_executor import RayExecutor
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import run_study
from tests.studies.small import bits_of, names_of

pytestmark = pytest.mark.ray
LONG = {"env_steps": 12_000_000}
"""Long enough to be killed in the middle."""


@pytest.fixture(autouse=True, scope="module")
def _closed_to_others() -> Iterator[None]:
    """Its own token for each cluster would be written to the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray asks for it in a warning
        yield


@pytest.fixture(autouse=True)
def _disconnect() -> Iterator[None]:
    yield
    import ray

    ray.shutdown()


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of one machine, with two CPUs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # short, since sockets are below it
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--disable-usage-stats"]
    place = ["--node-ip-address=127.0.0.1", f"--port={port}", f"--temp-dir={folder}"]
    size = ["--include-dashboard=false", "--num-cpus=2", "--num-gpus=0"]
    log = folder / "start.log"
    with log.open("w") as out:
        head = subprocess.Popen([*command, *place, *size], stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 60
        while "Ray runtime started" not in log.read_text():
            assert head.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        head.terminate()
        head.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


class Killer(StudyObserver):
    """Kills the worker of a run with SIGKILL when the run is told of."""

    def __init__(self, folder: StudyFolder, when: Callable[[Event], bool]) -> None:
        self.folder, self.when = folder, when
        self.killed: list[str] = []
        self.outcomes: dict[str, list[str]] = {}

    def update(self, event: Event) -> None:
        if event.outcome:
            self.outcomes.setdefault(event.name, []).append(event.outcome)
        elif self.when(event):
            with suppress(FileNotFoundError, ProcessLookupError):  # it is dead already
                lease = json.loads((self.folder.leases / f"{event.name}.json").read_text())
                assert lease["pid"] != os.getpid()
                os.kill(lease["pid"], signal.SIGKILL)
                self.killed.append(event.name)


def test_runs_are_stopped_and_their_workers_killed_and_end_with_the_same_bits(
    cluster: str, make_study: Callable[..., StudyFolder], alone: Callable[..., Any]
) -> None:
    folder = make_study(**LONG)
    executor = RayExecutor.connect(cluster)
    assert executor.workers == 2
    under_way: dict[str, int] = {}

    class Watcher(Killer):
        def update(self, event: Event) -> None:
            super().update(event)
            if event.env_steps:
                under_way[event.name] = event.env_steps

    watcher = Watcher(folder, lambda event: False)
    counts = run_study(folder, executor, observers=[watcher], stop=lambda: len(under_way) == 2)
    assert counts == {"stopped": 2}
    assert sorted(watcher.outcomes.values()) == [["stopped"], ["stopped"]]

    begun: set[str] = set()

    def second_time(event: Event) -> bool:
        """A while after the run went on from its checkpoint."""
        if event.env_steps is None:
            return False
        assert event.env_steps, "it began anew"
        again = event.name in begun and event.name not in killer.killed
        begun.add(event.name)
        return again

    killer = Killer(folder, second_time)
    assert run_study(folder, executor, observers=[killer]) == {"done": 2}
    assert sorted(killer.killed) == sorted(under_way)
    assert sorted(killer.outcomes.values()) == [["done"], ["done"]]
    assert bits_of(folder) == alone(**LONG)
    sessions = [folder.store.result(name)["sessions"] for name in names_of(folder)]
    assert min(sessions) >= 2, "they went on from the checkpoints of the stop"


def test_a_run_that_kills_every_worker_fails_and_the_others_are_done(
    cluster: str, make_study: Callable[..., StudyFolder]
) -> None:
    folder = make_study(**LONG)
    bad, good = names_of(folder)
    killer = Killer(folder, lambda event: event.name == bad)
    assert run_study(folder, RayExecutor.connect(cluster), observers=[killer]) == {"done": 1, "failed": 1}
    assert folder.failures(bad).last["error"]
    assert folder.states([bad, good]) == {bad: "failed", good: "done"}


def test_a_cluster_is_started_here(make_study: Callable[..., StudyFolder], alone: Callable[..., Any]) -> None:
    folder = make_study(seeds=12)
    assert run_study(folder, RayExecutor.connect(workers=2)) == {"done": 12}
    assert bits_of(folder) == alone(seeds=12)
    assert not [*folder.workers.iterdir(), *folder.leases.iterdir()]


def test_a_cluster_without_gpus_cannot_serve_runs_that_need_some(cluster: str) -> None:
    with pytest.raises(InputError, match=r"has 2 CPUs and 0 GPUs: a task needs a CPU and 0\.5 GPUs"):
        RayExecutor.connect(cluster, gpus=0.5)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "127.0.0.1:port"])
def test_where_there_is_no_cluster_that_is_said(address: str) -> None:
    with pytest.raises(InputError, match=f"There is no Ray cluster at '{address}' "):
        RayExecutor.connect(address)
