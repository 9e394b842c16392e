from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.studies.leases import hold_lease
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from tests.studies.small import finish, specs_of

TABLE = {"name": "s", "task": "reacher", "algorithm": "actor-critic", "dt": "16ms", "seeds": 5, "env_steps": 1200}


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    """Of five runs, the first is done, the second stopped, the third failed; the others are pending."""
    folder = StudyFolder.create(tmp_path / "s", study_from_table(TABLE))
    done, stopped, failed, *_ = specs_of(folder)
    finish(folder, [done])
    (folder.runs / stopped.name / "checkpoints" / "000001").mkdir(parents=True)
    for text in ("first", "second"):
        folder.failures(failed.name).add(text)
    try:
        raise LookupError("last")
    except LookupError as error:
        folder.failures(failed.name).add(error)
    return folder


def test_a_study_that_has_not_begun_is_pending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = StudyFolder.create(tmp_path / "s", study_from_table(TABLE))
    assert main(["study", "status", str(folder.path)]) == 0
    assert capsys.readouterr().out == "s: 5 pending\n"


def test_it_counts_states_and_says_what_went_wrong(folder: StudyFolder, capsys: pytest.CaptureFixture[str]) -> None:
    names = [spec.name for spec in specs_of(folder)]
    with hold_lease(folder.leases, names[3], "w"):
        assert main(["study", "status", str(folder.path)]) == 1
    counted, advice, why = capsys.readouterr().out.splitlines()
    assert counted == "s: 1 done, 1 failed, 1 pending, 1 running, 1 stopped"
    assert advice == "  'study retry' has those that failed tried again"
    assert why == f"  {names[2]}: LookupError: last"
    assert main(["study", "status", str(folder.path), "--tracebacks"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "    Traceback (most recent call last):"
    assert lines[-2:] == ['        raise LookupError("last")', "    LookupError: last"]


def test_it_names_all_runs_where_that_is_asked_for(folder: StudyFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "status", str(folder.path), "--runs"]) == 1
    states = ("done", "stopped", "LookupError: last", "pending", "pending")
    told = [f"  {spec.name}: {state}" for spec, state in zip(specs_of(folder), states, strict=True)]
    assert capsys.readouterr().out.splitlines()[2:] == told


def test_a_folder_without_a_study_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "status", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"cycletime: '{tmp_path}' is not a study: there is no study.json in it.\n"
