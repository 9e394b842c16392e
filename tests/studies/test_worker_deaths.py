"""Workers that die: which runs are at fault is found out, and the others go on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import RunError
from cycletime.studies import worker
from cycletime.studies.events import Event, events_file, open_event_writer
from cycletime.studies.study_folder import MAX_FAILURES, StudyFolder
from cycletime.studies.worker_pool import MAX_SILENT_WORKERS, run_study
from tests.studies.small import finished, names_of, specs_of, state_of
from tests.studies.stand_ins import Death, InTurn, Notes, Trained

ONE = {"dts": ["16ms"], "rules": ["baseline"]}
"""Of a study with one program."""


def killer_of(bad: str) -> Callable[[Sequence[str]], None]:
    """Whoever trains a run is killed."""

    def kill(names: Sequence[str]) -> None:
        if bad in names:
            raise Death("its worker died with status -9")

    return kill


def test_a_run_whose_workers_die_over_it_alone_at_the_same_place_is_given_up(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder, notes = make_folder(), Notes()
    bad = names_of(folder)[0]
    trained.before = killer_of(bad)
    assert run_study(folder, InTurn(), observers=[notes]) == {"done": 5, "failed": 1}
    assert trained.runs.count(bad) == MAX_FAILURES
    assert len(trained.runs) == len(set(trained.runs)) + MAX_FAILURES - 1
    noted = folder.failures(bad).read()
    assert [(each["error"], each["begun_at"], each["died_among"]) for each in noted] == [
        ("its worker died with status -9", 0, 1)
    ] * MAX_FAILURES
    assert Event(bad, outcome="failed", error="its worker died with status -9") in notes.heard
    assert notes.outcomes.count((bad, "failed")) == 1
    assert run_study(folder, InTurn()) == {"done": 5, "failed": 1}
    assert trained.runs.count(bad) == MAX_FAILURES


def test_a_run_that_gets_further_each_time_is_not_given_up(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder = make_folder(**ONE)
    slow = names_of(folder)[0]

    def dies_ten_times(names: Sequence[str]) -> None:
        trained.begun_at[slow] = trained.begun_at.get(slow, 0) + 100
        if slow in names and trained.runs.count(slow) <= 10:
            raise Death("out of memory")

    trained.before = dies_ten_times
    assert run_study(folder, InTurn()) == {"done": 2}
    assert trained.runs.count(slow) == 11


@pytest.mark.parametrize("place", [0, 3, 7])
def test_a_run_that_kills_its_worker_is_told_from_those_that_are_trained_with_it(
    make_folder: Callable[..., StudyFolder], trained: Trained, place: int
) -> None:
    folder = make_folder(**ONE, seeds=8, width=8)
    bad = names_of(folder)[place]
    trained.before = killer_of(bad)
    assert run_study(folder, InTurn()) == {"done": 7, "failed": 1}
    assert state_of(folder, bad) == "failed"
    deadly = [len(group) for group in trained.groups if bad in group]
    assert deadly == [8, 4, 2, 1, 1, 1]
    assert not any(folder.failures(name).is_final for name in names_of(folder) if name != bad)


def test_innocents_that_were_unlucky_many_times_are_never_given_up(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder = make_folder(**ONE, seeds=4, width=4)
    deaths = [0]

    def unlucky(names: Sequence[str]) -> None:
        if len(names) > 1 and deaths[0] < 20:
            deaths[0] += 1
            raise Death("the machine was switched off")

    trained.before = unlucky
    assert run_study(folder, InTurn()) == {"done": 4}


def test_a_run_that_was_done_when_its_worker_died_is_no_one_s_failure(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder, notes = make_folder(**ONE), Notes()

    def done_but_not_told(names: Sequence[str]) -> None:
        folder.store.add([finished(spec) for spec in specs_of(folder) if spec.name in names])
        raise Death("killed")

    trained.before = done_but_not_told
    assert run_study(folder, InTurn(), observers=[notes]) == {"done": 2}
    assert sorted(notes.outcomes) == sorted((name, "done") for name in names_of(folder))
    assert not list(folder.runs.iterdir())


def test_workers_that_die_before_their_first_word_end_it_with_a_sentence(
    make_folder: Callable[..., StudyFolder],
) -> None:
    def silent(study: str, name: str, workers: int) -> None:
        raise Death("its worker died with status 7")

    executor, notes = InTurn(work=silent), Notes()
    with pytest.raises(RunError, match=f"^{MAX_SILENT_WORKERS} workers in a row .* its worker died with status 7"):
        run_study(make_folder(), executor, observers=[notes])
    assert len(executor.started) == MAX_SILENT_WORKERS
    assert (executor.calls[-1], notes.heard[-1]) == ("close", "end")


def test_a_word_from_anybody_ends_the_silence(make_folder: Callable[..., StudyFolder], trained: Trained) -> None:
    folder = make_folder(**ONE, seeds=2 * MAX_SILENT_WORKERS)
    executor = InTurn()

    def mostly_silent(study: str, name: str, workers: int) -> None:
        if len(executor.started) % MAX_SILENT_WORKERS:
            raise Death("no")
        worker.work(study, name, workers, stop=lambda: len(trained.runs) * MAX_SILENT_WORKERS >= len(executor.started))

    executor.work = mostly_silent
    assert run_study(folder, executor) == {"done": 2 * MAX_SILENT_WORKERS}
    assert len(executor.started) > MAX_SILENT_WORKERS


def test_a_worker_of_the_same_name_that_begins_anew_tells_of_a_death(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    """Slurm begins a job anew when its machine failed; what the first one had in hand may have killed it."""
    folder = make_folder(**ONE, seeds=3, width=3)

    def dies_twice(names: Sequence[str]) -> None:
        if len(trained.groups) <= 2:
            raise Death("its job ended early")

    def twice(study: str, name: str, workers: int) -> None:
        try:
            worker.work(study, name, workers)
        except Death:
            with events_file(Path(study) / "workers", name).open("a") as file:
                file.write('{"name": "to')
            worker.work(study, name, workers)

    trained.before = dies_twice
    noted: list[Any] = []

    class Reader(Notes):
        def end(self) -> None:
            noted.extend(folder.failures(names_of(folder)[0]).read())

    assert run_study(folder, InTurn(work=twice), observers=[Reader()]) == {"done": 3}
    assert [(each["error"], each["died_among"]) for each in noted] == [
        ("its worker died", 3),
        ("its job ended early", 3),
    ]
    assert [len(group) for group in trained.groups] == [3, 3, 1, 1, 1]


def test_a_worker_that_left_in_order_and_comes_back_is_no_death(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder = make_folder(**ONE)
    first, second = names_of(folder)

    def preempted(study: str, name: str, workers: int) -> None:
        with open_event_writer(Path(study) / "workers", name) as events:
            events.write(Event(worker=name))
            events.write(Event(first))
            events.write(Event(first, outcome="stopped"))
            events.write(Event(left=True))
        worker.work(study, name, workers)

    def gone(study: str, name: str, workers: int) -> None:
        preempted(study, name, workers)
        raise Death("its job ended early, as they all do")

    assert run_study(folder, InTurn(work=gone)) == {"done": 2}
    assert not any(folder.failures(name).read() for name in (first, second))
