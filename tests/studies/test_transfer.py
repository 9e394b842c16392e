from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.errors import InputError
from cycletime.runs.folder import RunFolder
from cycletime.studies.folder import StudyFolder
from cycletime.studies.lease import leased
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Study
from cycletime.studies.transfer import take_runs
from cycletime.studies.verify import damage_of, put_aside

SOURCES = "a run's folder or one that contains some, or compact files"


@pytest.fixture
def elsewhere(tmp_path: Path, make_study: Callable[..., Study], finish: Callable[[RunFolder], None]) -> StudyFolder:
    """A study of the same runs with other seeds too, all done."""
    folder = StudyFolder.create(tmp_path / "elsewhere", make_study(name="other", seeds=[1, 2]))
    plan = Plan.of(folder.study)
    for planned in plan.runs:
        finish(folder.run_folder(plan.spec(planned)))
    return folder


def test_planned_runs_are_taken_once_and_whole(elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder(seeds=2)  # 0 and 1
    taken = take_runs(folder, [elsewhere.path])
    assert (taken.taken, taken.known, taken.not_planned, taken.damaged) == (3, 0, 3, {})
    states = {planned.seed: state for planned, state in Plan.of(folder.study).states(folder)}
    assert states == {0: "pending", 1: "done"}
    for path in folder.runs.glob("*seed1*"):
        assert damage_of(path) is None
        theirs = elsewhere.runs / path.name
        for name in ("curve.parquet", "metrics.jsonl", "policy.safetensors", "result.json"):
            assert (path / name).read_bytes() == (theirs / name).read_bytes()
    again = take_runs(folder, [elsewhere.path])
    assert (again.taken, again.known, again.not_planned) == (0, 3, 3)


def test_single_runs_and_several_folders_are_taken(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]
) -> None:
    folder = make_folder(seeds=3)
    one, two, *_ = sorted(elsewhere.runs.glob("*seed2*"))
    assert take_runs(folder, [one, two]).taken == 2


def test_damaged_runs_are_left_where_they_are(elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder(seeds=2)
    bad = sorted(elsewhere.runs.glob("*seed1*"))[1]
    (bad / "metrics.jsonl").write_text("")
    taken = take_runs(folder, [elsewhere.path])
    assert (taken.taken, list(taken.damaged)) == (2, [bad])
    assert folder.state_of(bad.name) == "pending"


def test_what_another_study_has_put_aside_is_not_looked_at(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]
) -> None:
    folder = make_folder(seeds=2)
    bad = sorted(elsewhere.runs.glob("*seed1*"))[0]
    (bad / "curve.parquet").write_bytes(b"")
    put_aside(elsewhere, bad)
    taken = take_runs(folder, [elsewhere.path])
    assert (taken.taken, taken.damaged) == (2, {})


def test_a_run_whose_spec_was_changed_is_damaged(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]
) -> None:
    bad = sorted(elsewhere.runs.glob("*seed1*"))[0]
    (bad / "spec.json").write_text("{}")
    taken = take_runs(make_folder(seeds=2), [elsewhere.path])
    assert list(taken.damaged) == [bad]


def test_a_run_that_is_being_trained_is_left_to_its_worker_and_a_stopped_one_is_finished(
    elsewhere: StudyFolder, make_folder: Callable[..., StudyFolder]
) -> None:
    folder = make_folder(seeds=2)
    plan = Plan.of(folder.study)
    held, stopped, locked = (folder.run_folder(plan.spec(each)) for each in plan.runs if each.seed == 1)
    (stopped.checkpoints.folder / "000001").mkdir(parents=True)
    with leased(held.path, "worker"), locked.locked():
        taken = take_runs(folder, [elsewhere.path])
    assert (taken.taken, taken.busy) == (1, 2)
    assert folder.state_of(stopped.spec.name) == "done"
    assert not stopped.checkpoints.folder.exists()
    assert take_runs(folder, [elsewhere.path]).taken == 2


def test_what_holds_no_run_is_refused(make_folder: Callable[..., StudyFolder], tmp_path: Path) -> None:
    folder = make_folder()
    for source, says in (
        (tmp_path / "nowhere", f"{tmp_path / 'nowhere'} is not there: give {SOURCES}."),
        (folder.path, f"There is no finished run in {folder.path}: give {SOURCES}."),
    ):
        with pytest.raises(InputError) as refusal:
            take_runs(folder, [source])
        assert str(refusal.value) == says
