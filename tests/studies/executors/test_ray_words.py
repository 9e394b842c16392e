"""What Ray's answers mean; a module stands for Ray. `test_on_ray` has the real one."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cycletime.errors import MachineError
from cycletime.studies.events import events_file
from cycletime.studies.ray_executor import RayExecutor


class RayError(Exception):
    """Ray's."""

    cause: Exception | None = None


class TaskCancelledError(RayError):
    """Ray's."""


class Ray:
    """Stands for Ray: tests say what becomes of its tasks."""

    exceptions = SimpleNamespace(RayError=RayError, TaskCancelledError=TaskCancelledError)

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []
        self.asked: dict[str, Any] = {}
        self.results: dict[int, Exception | None] = {}
        self.cancelled: list[int] = []
        self.forced: set[int] = set()

    def remote(self, work: object) -> "Ray":
        return self

    def options(self, **asked: Any) -> Any:  # noqa: ANN401
        self.asked = asked

        def submit(*words: Any) -> int:  # noqa: ANN401
            self.given.append(words)
            return len(self.given) - 1

        return SimpleNamespace(remote=submit)

    def wait(self, references: Sequence[int], num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        ready = [each for each in references if each in self.results][:num_returns]
        return ready, [each for each in references if each not in ready]

    def get(self, reference: int) -> None:
        if (error := self.results[reference]) is not None:
            raise error

    def cancel(self, reference: int, *, force: bool = False) -> None:
        self.cancelled.append(reference)
        self.forced |= {reference} if force else set()


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    stand_in = Ray()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    return stand_in


def caused_by(cause: Exception) -> RayError:
    error = RayError("a long traceback")
    error.cause = cause
    return error


def test_a_task_is_a_worker_that_is_not_tried_again_by_ray_itself(ray: Ray, tmp_path: Path) -> None:
    executor = RayExecutor(3, gpus=0.25)
    names = executor.start(tmp_path, "cycletime-ab", 2, "gpu")
    assert ray.given == [(str(tmp_path.resolve()), name, 3) for name in names]
    assert all(name.startswith("cycletime-ab-") for name in names)
    assert (ray.asked["num_cpus"], ray.asked["num_gpus"], ray.asked["max_retries"]) == (1, 0.25, 0)
    assert ray.asked["runtime_env"]["env_vars"]["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.225"
    assert list(executor.find_workers(tmp_path)) == []


def test_who_ends_is_told_once_and_why(ray: Ray, tmp_path: Path) -> None:
    executor = RayExecutor(4)
    fine, died, raised, cancelled = executor.start(tmp_path, "c", 4, "cpu")
    assert executor.poll(0.1) == {}
    ray.results = {
        0: None,
        1: RayError("The worker died unexpectedly.\nAnd much more."),
        2: caused_by(ValueError("no")),
        3: TaskCancelledError(),
    }
    told: dict[str, str] = {}
    while ended := executor.poll(0.1):
        told |= ended
    assert told == {
        fine: "",
        died: "RayError: The worker died unexpectedly",
        raised: "ValueError: no",
        cancelled: "",
    }
    assert executor.tasks == {}


def test_what_a_machine_lacks_is_told_as_that(ray: Ray, tmp_path: Path) -> None:
    executor = RayExecutor(1)
    executor.start(tmp_path, "c", 1, "cpu")
    ray.results = {0: caused_by(MachineError("On node-7: the disk is full."))}
    with pytest.raises(MachineError, match=r"^On node-7: the disk is full\.$"):
        executor.poll(0.1)


def test_asked_to_stop_only_those_that_have_not_come_are_cancelled(ray: Ray, tmp_path: Path) -> None:
    executor = RayExecutor(2)
    trains, _waits = executor.start(tmp_path, "c", 2, "cpu")
    (tmp_path / "workers").mkdir()
    events_file(tmp_path / "workers", trains).touch()
    executor.stop(tmp_path)
    executor.close(60.0)
    assert ray.cancelled == [1]


def test_a_task_that_does_not_answer_is_ended_by_force(ray: Ray, tmp_path: Path) -> None:
    executor = RayExecutor(2)
    _, stuck = executor.start(tmp_path, "c", 2, "cpu")
    executor.kill(stuck)
    assert (ray.cancelled, ray.forced) == ([1], {1})
