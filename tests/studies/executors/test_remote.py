"""Chunks of runs on a shared folder: whoever is told to work through one does, as often as it is told."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError, MachineError
from cycletime.runs import files
from cycletime.studies.executors import remote
from cycletime.studies.executors.executor import Job
from cycletime.studies.executors.remote import Batch, chunked, work_through
from cycletime.studies.folder import StudyFolder

MakeStudy = Callable[..., StudyFolder]
QUICK: dict[str, Any] = {"algorithm": "actor-critic", "rules": [], "tuned": {}, "set": {"hidden": [8]}}
"""Of a study whose program is compiled soon."""


def lines(batch: Batch) -> list[dict[str, Any]]:
    return [json.loads(line) for line in batch.events(0).read_text().splitlines() if line]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that would have been trained: this machine does not train any."""
    trained: list[str] = []

    def instead(study: StudyFolder, spec: Any, *, tell: Any, stop: Any, **_: object) -> str:  # noqa: ANN401
        trained.append(spec.name)
        for env_steps in (0, 100, 200):
            tell({"env_steps": env_steps})
        return "stopped" if stop() else "done"

    monkeypatch.setattr(remote, "work_on", instead)
    return trained


@pytest.mark.parametrize(
    ("runs", "workers", "most", "sizes"),
    [
        ((10, 3), 1, None, [4, 4, 2, 3]),  # about four turns for the worker
        ((10, 3), 1, 5, [5, 5, 3]),  # never two programs in one
        ((10, 3), 100, None, [1] * 13),
        ((50, 50), 1, None, [25, 25, 25, 25]),
        ((2,), 1, 7, [2]),
        ((), 3, None, []),
        ((0,), 3, None, []),
        ((0, 1), 3, None, [1]),  # a job may have lost its runs to somebody else
    ],
)
def test_chunks_have_one_program_and_all_workers_get_some(
    runs: tuple[int, ...], workers: int, most: int | None, sizes: list[int]
) -> None:
    jobs = [Job(f"program {n}", tuple({"job": n, "run": i} for i in range(count))) for n, count in enumerate(runs)]
    chunks = chunked(jobs, workers, most)
    assert [len(chunk) for chunk in chunks] == sizes
    assert [spec for chunk in chunks for spec in chunk] == [spec for job in jobs for spec in job.specs]
    assert all(len({spec["job"] for spec in chunk}) == 1 for chunk in chunks)


def test_runs_that_are_trained_together_are_in_one_chunk() -> None:
    jobs = [Job("program", tuple({"run": run} for run in range(11)), together=4)]
    assert [len(chunk) for chunk in chunked(jobs, 1)] == [4, 4, 3]
    assert [len(chunk) for chunk in chunked(jobs * 3, 1)] == [11] * 3  # nine turns, about four for the worker
    assert [len(chunk) for chunk in chunked(jobs, 1, 6)] == [6, 5]


def test_runs_of_which_a_few_together_are_enough_are_shared_among_workers() -> None:
    jobs = [Job("kernel", tuple({"run": run} for run in range(100)), together=64, enough=16)]
    for workers, sizes in {1: [64, 36], 2: [50, 50], 4: [25] * 4, 50: [16] * 6 + [4]}.items():
        assert [len(chunk) for chunk in chunked(jobs, workers)] == sizes
    assert [len(chunk) for chunk in chunked(jobs, 4, 40)] == [40, 40, 20]


def test_a_worker_trains_as_many_together_as_their_program_carries(
    make_study: MakeStudy,
    jobs: Callable[[StudyFolder], list[Job]],
    work: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = make_study(seeds=3, width=2)
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1, 5))

    def instead(study: StudyFolder, specs: Any, *, tell: Any, **_: object) -> None:  # noqa: ANN401
        for spec in specs:
            tell(spec.name, {"env_steps": 0})
            tell(spec.name, {"remark": "not for others"})
            tell(spec.name, {"env_steps": 100})
        for spec in reversed(specs):
            tell(spec.name, {"outcome": "done"})

    monkeypatch.setattr(remote, "work_together", instead)
    work_through(str(batch.path), 0, "me")
    first, second, third = (spec.name for spec in folder_runs(folder))
    assert work == [third]
    assert lines(batch)[1:7] == [
        {"name": first},
        {"name": second},
        {"name": first, "env_steps": 0},
        {"name": second, "env_steps": 0},
        {"name": second, "outcome": "done"},
        {"name": first, "outcome": "done"},
    ]


def test_a_worker_writes_what_happens_to_each_run(
    make_study: MakeStudy, jobs: Callable[[StudyFolder], list[Job]], work: list[str]
) -> None:
    folder = make_study()
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1, 5))
    work_through(str(batch.path), 0, "me")
    first, second = work
    assert lines(batch) == [
        {"worker": "me"},
        {"name": first},
        {"name": first, "env_steps": 0},  # and no more within seconds, since thousands may write
        {"name": first, "outcome": "done"},
        {"name": second},
        {"name": second, "env_steps": 0},
        {"name": second, "outcome": "done"},
        {"left": True},
    ]


def test_a_line_that_a_killed_worker_left_torn_does_not_spoil_the_next_worker_s(
    make_study: MakeStudy, jobs: Callable[[StudyFolder], list[Job]], work: list[str]
) -> None:
    folder = make_study(seeds=1)
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1))
    batch.events(0).write_text('{"worker": "first"}\n{"name": "re')
    work_through(str(batch.path), 0, "second")
    told = [line for line in batch.events(0).read_text().splitlines() if line]
    assert told[1] == '{"name": "re'
    assert json.loads(told[2]) == {"worker": "second"}


def test_a_worker_that_is_asked_to_stop_begins_nothing(
    make_study: MakeStudy, jobs: Callable[[StudyFolder], list[Job]], work: list[str]
) -> None:
    folder = make_study()
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1, 5))
    batch.ask_to_stop()
    work_through(str(batch.path), 0, "me")
    assert work == []
    assert lines(batch) == [{"worker": "me"}, {"left": True}]


def test_a_worker_that_is_asked_to_stop_in_a_run_leaves_the_others(
    make_study: MakeStudy, jobs: Callable[[StudyFolder], list[Job]], work: list[str]
) -> None:
    folder = make_study(seeds=3)
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1, 5))
    work_through(str(batch.path), 0, "me", stop=lambda: bool(work))
    assert len(work) == 1
    assert lines(batch)[-2:] == [{"name": work[0], "outcome": "stopped"}, {"left": True}]


def test_nobody_works_on_a_batch_that_was_removed(
    make_study: MakeStudy, jobs: Callable[[StudyFolder], list[Job]], work: list[str]
) -> None:
    folder = make_study()
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1, 5))
    batch.remove()
    work_through(str(batch.path), 0, "late")
    assert work == []
    assert not batch.path.exists()
    assert batch.is_asked_to_stop()


def test_a_machine_that_does_not_see_the_study_says_so(tmp_path: Path) -> None:
    batch = Batch.create(str(tmp_path), [({"seed": 0},)])
    with pytest.raises(InputError, match=r"is no study: there is no study\.json in it"):
        work_through(str(batch.path), 0, "far away")


def test_a_chunk_is_trained_for_real_and_only_once(
    make_study: MakeStudy,
    jobs: Callable[[StudyFolder], list[Job]],
    hashes: Callable[[StudyFolder], Any],
    programs: Path,
) -> None:
    folder = make_study(**QUICK)
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1, 5))
    work_through(str(batch.path), 0, "me")
    trained = hashes(folder)
    written = {file: file.stat().st_mtime_ns for file in folder.runs.glob("*/result.json")}
    work_through(str(batch.path), 0, "again")
    assert len(trained) == 2
    assert {file: file.stat().st_mtime_ns for file in folder.runs.glob("*/result.json")} == written
    assert [told["outcome"] for told in lines(batch) if "outcome" in told] == ["done"] * 4


def test_a_run_that_fails_is_told_with_its_error_and_the_next_one_is_trained(
    make_study: MakeStudy, jobs: Callable[[StudyFolder], list[Job]], programs: Path
) -> None:
    folder = make_study(**QUICK)
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1, 5))
    first, second = (each.name for each in folder_runs(folder))
    (folder.runs / first).mkdir()
    (folder.runs / first / "curve.parquet").mkdir()  # where a file has to go
    work_through(str(batch.path), 0, "me")
    told = {each["name"]: each for each in lines(batch) if "outcome" in each}
    assert told[first]["outcome"] == "failed"
    assert told[first]["error"].startswith("RunError: ")
    assert told[second]["outcome"] == "done"


def test_a_full_disk_is_told_and_ends_the_chunk(
    make_study: MakeStudy, jobs: Callable[[StudyFolder], list[Job]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = make_study()
    batch = Batch.create(str(folder.path), chunked(jobs(folder), 1, 5))
    monkeypatch.setattr(files, "_flush", full)
    with pytest.raises(
        MachineError, match=r"^On .*spec\.json cannot be written: the disk is full; make room and resume"
    ) as it:
        work_through(str(batch.path), 0, "me")
    assert lines(batch)[-1] == {"machine": str(it.value)}


def folder_runs(folder: StudyFolder) -> list[Any]:
    return [spec for _, spec in folder.study.runs()]
