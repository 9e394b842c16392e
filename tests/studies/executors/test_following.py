"""Following chunks: every run's end is told, and a run whose workers die at the same place, again and again, fails."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cycletime.errors import MachineError, RunError
from cycletime.studies.executors import following
from cycletime.studies.executors.executor import Event, Job
from cycletime.studies.executors.following import MOST_SILENT, Chunk, Follower, Troubles
from cycletime.studies.executors.remote import Batch, chunked
from cycletime.studies.folder import MOST_FAILURES, StudyFolder, failures_of


class Scene:
    """A study of two runs in one chunk, and somebody who follows it."""

    def __init__(self, folder: StudyFolder, jobs: list[Job]) -> None:
        self.folder, self.jobs = folder, jobs
        self.first, self.second = (spec.name for _, spec in folder.study.runs())
        for name in (self.first, self.second):
            (folder.runs / name).mkdir()
        self.told: list[Event] = []
        self.troubles = Troubles()
        self.again()

    def again(self) -> None:
        """Submit the chunk, as if for the first time."""
        self.batch = Batch.create(str(self.folder.path), chunked(self.jobs, 1, 5))
        self.follower = Follower(self.folder, self.told.append, self.troubles)
        self.chunk = Chunk.of(self.batch, 0)
        self.follower.add(self.chunk)

    def write(self, *lines: dict[str, Any]) -> None:
        with self.batch.events(0).open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))

    def dies(self, *lines: dict[str, Any]) -> None:
        """A worker writes something, and is gone."""
        self.write({"worker": "w"}, *lines)
        self.follower.ended(self.chunk, "killed")
        self.follower.look()

    def failures(self, name: str) -> int:
        return len(failures_of(self.folder.runs / name))


@pytest.fixture
def scene(
    make_study: Callable[..., StudyFolder],
    jobs: Callable[[StudyFolder], list[Job]],
    monkeypatch: pytest.MonkeyPatch,
) -> Scene:
    monkeypatch.setattr(following, "GRACE_S", -1.0)
    folder = make_study()
    return Scene(folder, jobs(folder))


def test_what_workers_write_is_told_once_and_whole(scene: Scene) -> None:
    scene.write({"worker": "w"}, {"name": scene.first}, {"name": scene.first, "env_steps": 0})
    with scene.batch.events(0).open("a") as file:
        file.write('{"name": "' + scene.first)
    scene.follower.look()
    scene.follower.look()
    assert scene.told == [Event(scene.first, env_steps=0)]
    with scene.batch.events(0).open("a") as file:
        file.write('", "outcome": "failed", "error": "E: no"}\n')
    scene.follower.look()
    assert scene.told[1:] == [Event(scene.first, outcome="failed", error="E: no")]


def test_a_chunk_is_followed_until_its_worker_left_and_its_batch_is_removed(scene: Scene) -> None:
    scene.write({"worker": "w"}, {"name": scene.first}, {"name": scene.first, "outcome": "done"}, {"left": True})
    scene.follower.look()
    assert scene.follower.chunks == [scene.chunk]
    scene.follower.ended(scene.chunk)
    scene.follower.look()
    assert scene.follower.chunks == []
    assert scene.batch.path.exists()  # until somebody says that no more of its chunks are to come
    scene.follower.tidy()
    assert not scene.batch.path.exists()


def test_a_batch_stays_while_one_of_its_chunks_is_followed(scene: Scene) -> None:
    other = Chunk(scene.batch, 1, ())
    scene.follower.add(other)
    scene.write({"worker": "w"}, {"left": True})
    scene.follower.ended(scene.chunk)
    scene.follower.look()
    scene.follower.tidy()
    assert scene.batch.path.exists()


def test_last_lines_may_come_late(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "GRACE_S", 1000.0)
    scene.write({"worker": "w"}, {"name": scene.first})
    scene.follower.ended(scene.chunk, "gone")
    scene.follower.look()
    assert scene.follower.chunks == [scene.chunk]
    scene.write({"name": scene.first, "outcome": "done"}, {"left": True})
    scene.follower.look()
    assert scene.follower.chunks == []
    assert scene.told == [Event(scene.first, outcome="done")]


def test_a_run_that_is_done_on_disk_is_told_though_its_worker_died_before_saying_so(scene: Scene) -> None:
    (scene.folder.runs / scene.first / "result.json").write_text("{}")
    scene.dies({"name": scene.first}, {"name": scene.first, "env_steps": 0})
    assert scene.told[-1] == Event(scene.first, outcome="done")
    assert scene.troubles.deaths == {}


def test_a_run_whose_workers_die_at_the_same_place_fails_in_the_end(scene: Scene) -> None:
    for death in range(MOST_FAILURES + 1):
        if death:
            scene.again()
        scene.dies({"name": scene.first}, {"name": scene.first, "env_steps": 500})
        assert scene.failures(scene.first) == death
    assert scene.folder.state_of(scene.first) == "failed"
    assert scene.told[-1] == Event(scene.first, outcome="failed", error="killed")
    assert scene.failures(scene.second) == 0


def test_a_run_whose_workers_die_before_they_can_say_where_it_begins_fails_too(scene: Scene) -> None:
    scene.dies({"name": scene.second})
    scene.again()
    scene.dies({"name": scene.second})
    assert scene.failures(scene.second) == 1


def test_all_runs_that_a_dying_worker_trained_together_are_at_fault_but_those_that_are_done(scene: Scene) -> None:
    both: list[dict[str, Any]] = [{"name": name} for name in (scene.first, scene.second)]
    scene.dies(*both, {"name": scene.first, "env_steps": 0}, {"name": scene.second, "env_steps": 0})
    scene.again()
    scene.dies(*both, {"name": scene.first, "env_steps": 0}, {"name": scene.second, "outcome": "done"})
    assert (scene.failures(scene.first), scene.failures(scene.second)) == (1, 0)
    assert scene.told[-1] == Event(scene.first, outcome="failed", error="killed")


def test_a_run_that_gets_further_each_time_is_not_at_fault(scene: Scene) -> None:
    for begun_at in range(0, 10_000, 1000):
        scene.again()
        scene.dies({"name": scene.first}, {"name": scene.first, "env_steps": begun_at})
    assert scene.failures(scene.first) == 0


def test_deaths_count_also_where_the_scheduler_begins_a_chunk_anew_by_itself(scene: Scene) -> None:
    life: list[dict[str, Any]] = [{"worker": "w"}, {"name": scene.first}, {"name": scene.first, "env_steps": 0}]
    scene.write(*life, *life, *life)
    scene.follower.look()
    assert scene.failures(scene.first) == 1  # the third is alive


def test_a_worker_that_left_in_order_and_comes_back_is_no_death(scene: Scene) -> None:
    life: list[dict[str, Any]] = [{"worker": "w"}, {"name": scene.first}, {"name": scene.first, "env_steps": 0}]
    scene.write(*life, {"name": scene.first, "outcome": "stopped"}, {"left": True}, *life)
    scene.follower.look()
    assert scene.troubles.deaths == {}
    assert not scene.chunk.left


def test_of_a_chunk_that_was_begun_before_only_what_is_new_is_told(scene: Scene) -> None:
    life: list[dict[str, Any]] = [{"worker": "w"}, {"name": scene.first}, {"name": scene.first, "env_steps": 0}]
    scene.write(*life, *life, *life)
    follower = Follower(scene.folder, scene.told.append, scene.troubles)
    chunk = Chunk.of(scene.batch, 0)
    follower.add(chunk)
    follower.look()
    assert scene.told == []
    assert scene.failures(scene.first) == 0
    assert chunk.hand == {scene.first: 0}


def test_workers_that_never_say_a_word_are_not_hired_for_ever(scene: Scene) -> None:
    for _ in range(MOST_SILENT - 1):
        scene.follower.ended(scene.chunk, "ModuleNotFoundError: cycletime")
        scene.follower.look()
        scene.follower.tidy()
        assert scene.batch.path.exists()  # its logs may tell why
        scene.again()
    scene.follower.ended(scene.chunk, "ModuleNotFoundError: cycletime")
    with pytest.raises(RunError, match="ended without a word, the last one so: ModuleNotFoundError: cycletime"):
        scene.follower.look()


def test_a_full_disk_ends_it_for_all_and_is_no_failure_of_the_run(scene: Scene) -> None:
    scene.write({"worker": "w"}, {"name": scene.first}, {"machine": "The disk is full."})
    with pytest.raises(MachineError, match=r"^The disk is full\.$"):
        scene.follower.look()
    assert scene.failures(scene.first) == 0


def test_a_word_from_anybody_ends_the_silence(scene: Scene) -> None:
    for _ in range(2 * MOST_SILENT):
        scene.follower.ended(scene.chunk)
        scene.follower.look()
        scene.again()
        scene.write({"worker": "w"}, {"left": True})
        scene.follower.look()
    assert scene.troubles.silent == 0
