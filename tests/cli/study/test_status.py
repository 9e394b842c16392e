from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.studies.folder import StudyFolder, add_failure, failure_of
from cycletime.studies.lease import leased
from cycletime.studies.plan import Plan
from cycletime.studies.study_file import study_from

TABLE = {"name": "s", "task": "reacher", "algorithm": "actor-critic", "dt": "16ms", "seeds": 5, "env_steps": 900}


def test_it_counts_states_and_says_what_went_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = StudyFolder.create(tmp_path / "s", study_from(TABLE))
    plan = Plan.of(folder.study)
    runs = [folder.run_folder(plan.spec(planned)).path for planned in plan.runs]
    assert main(["study", "status", str(folder.path)]) == 0
    assert capsys.readouterr().out == "s: 5 pending\n"
    (runs[0] / "result.json").write_text("{}")
    (runs[1] / "checkpoints" / "000001").mkdir(parents=True)
    for text in ("first", "second"):
        add_failure(runs[2], failure_of(text))
    try:
        raise LookupError("last")
    except LookupError as error:
        add_failure(runs[2], failure_of(error))
    with leased(runs[3], "w"):
        assert main(["study", "status", str(folder.path)]) == 1
    assert capsys.readouterr().out == (
        f"s: 1 done, 1 failed, 1 pending, 1 running, 1 stopped\n  {runs[2].name}: LookupError: last\n"
    )
    assert main(["study", "status", str(folder.path), "--tracebacks"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "    Traceback (most recent call last):"
    assert lines[-2:] == ['        raise LookupError("last")', "    LookupError: last"]


def test_a_folder_without_a_study_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "status", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"cycletime: '{tmp_path}' is no study: there is no study.json in it.\n"
