import json
from pathlib import Path

import numpy as np
import pytest

from cycletime.cli.study.report import StudyReport
from cycletime.errors import InputError
from cycletime.loops import Episodes
from cycletime.runs.curve import write_curve
from cycletime.runs.result import result_of
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.study_file import study_from

TABLE = {
    "name": "s",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["16ms", "32ms"],
    "rules": ["baseline"],
    "seeds": 2,
    "env_steps": 1200,
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three of four runs are done; a run's only episode returns the seed, and 10 more at 32 ms."""
    folder = StudyFolder.create(tmp_path_factory.mktemp("s") / "study", study_from(TABLE))
    plan = Plan.of(folder.study)
    for planned in plan.runs[:3]:
        run = folder.run_folder(plan.spec(planned))
        end, score = np.array([1200]), np.array([planned.seed + (10.0 if planned.cell else 0.0)])
        curve = Episodes(end, end, score, end)
        write_curve(run.curve_file, curve, plan.cells[0].run(0).world.env_dt or run.spec.dt)
        run.write_result(
            result_of(run.spec, curve, where="closed form", agent_steps=1, remarks=(), sessions=1, wall_s=0.0)
        )
    return folder.path


def test_it_prints_tables_and_text_and_writes_files(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert StudyReport(folder=study).run() == 0
    told = capsys.readouterr().out
    assert "3 of 4 runs have a score" in told
    assert "0.50 ± 0.50 (2)" in told
    assert "10 (1 of 2)" in told
    files = {file.name for file in (study / "report").iterdir()}
    assert files >= {"report.md", "report.json", "scores.csv", "reacher-ppo-performance.svg"}
    assert f"`cycletime study report {study}`" in (study / "report" / "report.md").read_text()


def test_markdown_is_printed_and_not_written(study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = sorted(study.iterdir())
    assert StudyReport(folder=study, markdown=True, measure="last-tenth").run() == 0
    told = capsys.readouterr().out
    assert told.startswith("# s\n")
    assert "mean return in the last tenth of learning" in told
    assert f"`cycletime study report {study} --measure last-tenth`" in told
    assert sorted(study.iterdir()) == before


def test_json_is_one_object_and_written_where_it_is_told(
    study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert StudyReport(folder=study, json=True, iqm=True, grid_points=7, out=tmp_path / "r").run() == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["study"], told["statistic"], told["interval"]) == ("s", "iqm", "bootstrap")
    assert told["savings"][0]["grid_points"] == 7
    assert json.loads((tmp_path / "r" / "report.json").read_text()) == told


def test_what_cannot_be_is_refused(study: Path) -> None:
    with pytest.raises(InputError, match="--json and --markdown are both given: give one of them"):
        StudyReport(folder=study, json=True, markdown=True).run()
    with pytest.raises(InputError, match="'sd' is no interval: give one of se, t, bootstrap"):
        StudyReport(folder=study, interval="sd").run()
    with pytest.raises(InputError, match=r"is no study: there is no study\.json in it"):
        StudyReport(folder=study / "runs").run()
