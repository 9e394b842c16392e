"""plan, retry, verify, export and import, as people call them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cycletime.cli.options import Names
from cycletime.cli.study.export import ExportStudy
from cycletime.cli.study.import_ import ImportRuns
from cycletime.cli.study.plan import PlanStudy
from cycletime.cli.study.retry import RetryStudy
from cycletime.cli.study.verify import VerifyStudy
from cycletime.errors import InputError
from cycletime.studies import estimate
from cycletime.studies.estimate import Cost
from cycletime.studies.folder import StudyFolder, add_failure, failure_of
from cycletime.studies.plan import Plan
from cycletime.studies.study_file import read_study
from cycletime.studies.work import work_on

STUDY = """\
name = "small"
task = "reacher"
algorithm = "ppo"
dts = ["16ms", "32ms"]
rules = ["baseline", "dt-aware"]
seeds = 2
env_steps = 800
[tuned]
dt = "16ms"
batch = 50
minibatch = 25
[set]
hidden = [8]
epochs = 1
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "small.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def done(file: Path) -> StudyFolder:
    """A study of which the two runs at 16 ms are done, and really trained."""
    folder = StudyFolder.create(file.parent / "done", read_study(file))
    plan = Plan.of(folder.study)
    for planned in plan.runs[:2]:
        assert work_on(folder, plan.spec(planned), worker="w") == "done"
    return folder


Printed = Callable[[], str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return lambda: capsys.readouterr().out


def test_a_plan_counts_what_there_is_to_do(file: Path, done: StudyFolder, printed: Printed) -> None:
    assert PlanStudy(file=file, no_calibration=True).run() == 0
    whole = (
        "small: 6 runs in 3 groups, 4,800 environment steps, 0.00 simulated hours\n"
        "  2 more are the same as others, since their rules agree, and run once\n"
    )
    assert printed() == whole
    assert PlanStudy(file=file, no_calibration=True, out=done.path).run() == 0
    assert printed() == f"{whole}  2 done, 4 pending\n"
    assert PlanStudy(file=file, no_calibration=True, out=file.parent / "nowhere").run() == 0
    assert printed() == whole
    assert not (file.parent / "nowhere").exists()


def test_a_plan_says_how_long_it_takes_and_why(file: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = Cost(agent_step_s=0.01, program_s=10.0)
    monkeypatch.setattr(estimate, "calibrate", lambda plan, runs: ({("reacher", "ppo", "compiled"): cost}, 4.0))
    assert PlanStudy(file=file, workers=2).run() == 0
    # Two runs of 100 and four of 50 agent steps are 4 s, three programs 30 s.
    lines = printed().splitlines()
    assert lines[2] == "  reacher ppo: 10,000.0 µs an agent step, 10.0 s until a program is ready"
    assert lines[3] == "about 21 s with 2 workers: 4 s of computing and 30 s for 3 programs, shared among them"
    assert lines[4].startswith("  from a few seconds of one run of each kind, just now, on ")


def test_a_plan_for_no_workers_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match=r"^--workers is 0: it must be at least 1\.$"):
        PlanStudy(file=file, workers=0).run()


def test_failures_are_forgotten_for_all_or_for_one(tmp_path: Path, file: Path, printed: Printed) -> None:
    folder = StudyFolder.create(tmp_path / "s", read_study(file))
    plan = Plan.of(folder.study)
    runs = [folder.run_folder(plan.spec(planned)).path for planned in plan.runs[:3]]
    for run in runs:
        add_failure(run, failure_of("no", gives_up=True))
    assert RetryStudy(folder=folder.path, only=runs[0].name).run() == 0
    assert printed() == "small: 1 run to be tried again\n"
    assert [folder.state_of(run.name) for run in runs] == ["pending", "failed", "failed"]
    assert RetryStudy(folder=folder.path).run() == 0
    assert printed() == "small: 2 runs to be tried again\n"
    assert [folder.state_of(run.name) for run in runs] == ["pending"] * 3
    add_failure(runs[0], failure_of("once"))
    (runs[0] / "result.json").write_text("{}")  # it failed once, and then was done
    assert RetryStudy(folder=folder.path).run() == 0
    assert printed() == "small: 0 runs to be tried again\n"
    with pytest.raises(InputError, match=r"^'nobody' is no run of .*: 'cycletime study status' names those that"):
        RetryStudy(folder=folder.path, only="nobody").run()


def test_real_runs_are_good_until_a_bit_changes_and_are_repaired_by_running_again(
    tmp_path: Path, file: Path, done: StudyFolder, printed: Printed
) -> None:
    folder = StudyFolder.create(tmp_path / "s", read_study(file))
    assert ImportRuns(folder=folder.path, sources=Names([str(done.path)])).run() == 0
    assert printed() == "small: 2 taken, 0 known already, 0 not planned, 0 being trained, 0 damaged\n"
    assert VerifyStudy(folder=folder.path).run() == 0
    assert printed() == "small: 2 good, 0 damaged\n"
    run = sorted(folder.runs.glob("*/result.json"))[0].parent
    hashes = json.loads((run / "result.json").read_text())["files"]
    assert sorted(hashes) == ["curve.parquet", "metrics.jsonl", "policy.safetensors"]
    before = {name: (run / name).read_bytes() for name in hashes}
    (run / "policy.safetensors").write_bytes(before["policy.safetensors"][:-1] + b"\x01")
    assert VerifyStudy(folder=folder.path).run() == 1
    assert re.fullmatch(
        rf"  {run.name}: policy.safetensors is not what was written: .*\nsmall: 1 good, 1 damaged\n", printed()
    )
    assert run.exists()
    assert VerifyStudy(folder=folder.path, repair=True).run() == 1
    assert f"; it is now {folder.path / 'damaged' / run.name}\n" in printed()
    assert VerifyStudy(folder=folder.path).run() == 0
    plan = Plan.of(folder.study)
    again = next(planned for planned in plan.runs if planned.name == run.name)
    assert work_on(folder, plan.spec(again), worker="w") == "done"
    assert {name: (run / name).read_bytes() for name in hashes} == before


def test_damaged_imports_are_named(tmp_path: Path, file: Path, done: StudyFolder, printed: Printed) -> None:
    elsewhere = StudyFolder.create(tmp_path / "elsewhere", read_study(file))
    ImportRuns(folder=elsewhere.path, sources=Names([str(done.path)])).run()
    bad = sorted(elsewhere.runs.glob("*/metrics.jsonl"))[0]
    bad.write_text("")
    printed()
    folder = StudyFolder.create(tmp_path / "s", read_study(file))
    assert ImportRuns(folder=folder.path, sources=Names([str(elsewhere.path)])).run() == 1
    told = printed().splitlines()
    assert told[0].startswith(f"  {bad.parent}: metrics.jsonl is not what was written")
    assert told[1] == "small: 1 taken, 0 known already, 0 not planned, 0 being trained, 1 damaged"
    with pytest.raises(InputError, match=r"^There is nothing to import: give folders of runs"):
        ImportRuns(folder=folder.path).run()


def test_curves_are_exported(tmp_path: Path, done: StudyFolder, printed: Printed) -> None:
    file = tmp_path / "curves.parquet"
    assert ExportStudy(folder=done.path, file=file, bins=10).run() == 0
    # No episode of Reacher ends within 800 steps of 2 ms, so that there are runs and no rows. Two rules share each run.
    assert printed() == f"small: 0 rows of 2 runs in {file}\n"
    assert pq.read_table(file).num_rows == 0
