"""Pipes in a study's folder are not waited for, and a folder that is moved away is not made anew."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.errors import InputError, RunError
from cycletime.studies.events import Event, EventReader, events_file, recorded_wall_s
from cycletime.studies.leases import hold_lease, lease_holders
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import run_study
from tests.studies.small import names_of
from tests.studies.stand_ins import InTurn, Notes, Trained


def in_time(what: Callable[[], object]) -> object:
    """What a call gives or raises, which must not wait."""
    found: list[object] = []

    def call() -> None:
        try:
            found.append(what())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(60)
    assert found, "it waits"
    return found[0]


def test_pipes_in_a_study_s_folder_are_refused_or_passed_over(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder()
    name, other = names_of(folder)[:2]
    for path in (
        folder.runs / name / "failures.jsonl",
        folder.leases / f"{other}.json",
        folder.path / "sessions" / "a.json",
        events_file(folder.workers, "w-0"),
    ):
        path.parent.mkdir(exist_ok=True)
        os.mkfifo(path)
    told = in_time(lambda: folder.states(names_of(folder)))
    assert isinstance(told, InputError)
    assert str(told) == f"{folder.runs / name / 'failures.jsonl'} is a pipe: give a regular file."
    assert in_time(lambda: list(EventReader(events_file(folder.workers, "w-0")).new_events())).__class__ is InputError
    assert in_time(lambda: recorded_wall_s(folder.path)) is None
    assert in_time(lambda: set(lease_holders(folder.leases))) == {other}, "until it is stale"

    def held() -> bool:
        with hold_lease(folder.leases, other, "w-1") as lease:
            return lease is not None

    assert in_time(held) is False


def test_a_folder_that_is_moved_while_it_runs_is_a_sentence_and_not_made_anew(
    make_folder: Callable[..., StudyFolder], trained: Trained, tmp_path: Path
) -> None:
    folder = make_folder()
    moved = tmp_path / "elsewhere"
    trained.before = lambda names: folder.path.rename(moved) if len(trained.groups) == 2 else None
    with pytest.raises(RunError, match=r"study was moved or deleted while it was run: nothing more is written there"):
        run_study(folder, InTurn())
    assert not folder.path.exists()
    again = StudyFolder.open(moved)
    done = [name for name, state in again.states(names_of(again)).items() if state == "done"]
    assert done == trained.groups[0]
    for lease in again.leases.glob("*.json"):  # of this process, which lives: a dead one's would be stale at once
        lease.unlink()
    trained.before = lambda names: None
    assert set(run_study(again, InTurn())) == {"done"}


def test_a_folder_in_whose_place_another_one_is_put_is_noticed(
    make_folder: Callable[..., StudyFolder], trained: Trained, tmp_path: Path
) -> None:
    folder, notes = make_folder(), Notes()

    def replace(names: object) -> None:
        if not (tmp_path / "elsewhere").exists():
            folder.path.rename(tmp_path / "elsewhere")
            folder.path.mkdir()

    trained.before = replace
    with pytest.raises(RunError, match="was moved or deleted"):
        run_study(folder, InTurn(), observers=[notes])
    assert not list(folder.path.iterdir())
    assert not [each for each in notes.heard if isinstance(each, Event) and each.outcome]
