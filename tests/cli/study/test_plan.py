from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.cli.study import PlanStudy
from cycletime.errors import InputError
from cycletime.studies import hardware_estimates
from cycletime.studies.spec_file import read_study
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.engine import Cost
from tests.studies.small import finish, specs_of

STUDY = """\
name = "small"
task = "reacher"
algorithm = "ppo"
dts = ["16ms", "32ms"]
rules = ["baseline", "dt-aware"]
seeds = 2
env_steps = 1600
[tuned]
dt = "16ms"
batch = 50
minibatch = 25
"""
WHOLE = (
    "small: 6 runs in 3 groups\n  9,600 environment steps, 0.01 simulated hours\n"
    "  6 runs by the engine compiled\n"
    "  2 more, the same as others since their rules agree, run once with them\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(STUDY)
    return path


def test_it_counts_what_there_is_to_do(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert PlanStudy(file=file, no_calibration=True).run() == 0
    assert capsys.readouterr().out == WHOLE
    folder = StudyFolder.create(file.parent / "begun", read_study(file))
    finish(folder, specs_of(folder)[:2])
    assert PlanStudy(file=file, no_calibration=True, out=folder.path).run() == 0
    assert capsys.readouterr().out == f"{WHOLE}  2 done, 4 pending\n"
    assert PlanStudy(file=file, no_calibration=True, out=file.parent / "nowhere").run() == 0
    assert capsys.readouterr().out == f"{WHOLE}  there is no study in {file.parent / 'nowhere'} yet\n"
    assert not (file.parent / "nowhere").exists()


def test_hours_are_told_only_where_they_are_known(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STUDY.replace('task = "reacher"', 'task = "reacher"\nenv = "Pendulum-v1"'))
    assert PlanStudy(file=file, no_calibration=True).run() == 0
    assert capsys.readouterr().out.startswith("small: 12 runs in 6 groups\n  19,200 environment steps\n")


@pytest.mark.parametrize(("steps", "told"), [(1999, True), (2000, False)])
def test_runs_that_end_before_a_batch_is_full_are_told(
    file: Path, capsys: pytest.CaptureFixture[str], steps: int, told: bool
) -> None:
    """At 50 ms a batch of 4 x 250 agent steps is 2,000 steps of 25 ms."""
    file.write_text(
        'name = "s"\nenv = "Pendulum-v1"\nenv_dt = "25ms"\nalgorithm = "ppo"\ndt = "50ms"\n'
        f"env_steps = {steps}\n[set]\nn_steps = 250\n[trainer]\nnum_envs = 4\nwords = 'sb3'\n"
        "command = ['x', '{n_steps}']\n"
    )
    assert PlanStudy(file=file, no_calibration=True).run() == 0
    note = "note: Pendulum-v1 ppo: a batch at 50ms takes 2,000 environment steps, so that nothing is learned."
    assert (note in capsys.readouterr().out) == told


def test_runs_that_end_within_the_random_start_are_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(
        'name = "random"\ntasks = ["reacher", "pendulum"]\nalgorithms = ["ppo", "sac"]\n'
        'dts = ["16ms", "32ms"]\nenv_steps = 80_000\n'
    )
    assert PlanStudy(file=file, no_calibration=True).run() == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if "note" in line]
    assert notes == [
        f"  note: {task} sac: the random start lasts 80,000 environment steps, so that the policy never acts."
        for task in ("reacher", "pendulum")
    ]
    file.write_text(file.read_text().replace("80_000", "80_001"))
    assert PlanStudy(file=file, no_calibration=True).run() == 0
    assert "note" not in capsys.readouterr().out


def test_it_says_how_long_it_takes_and_why(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = Cost(agent_step_s=0.01, program_s=10.0)
    monkeypatch.setattr(
        hardware_estimates, "measure_costs", lambda plan, runs: ({("reacher", "ppo", "compiled"): cost}, 4.0)
    )
    assert PlanStudy(file=file, workers=2).run() == 0
    # Two runs of 200 and four of 100 agent steps are 8 s, three programs 30 s.
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == "  reacher ppo: 10,000.0 µs an agent step, 10.0 s until a program is ready"
    assert lines[5] == "about 23 s with 2 workers: in all 8 s of computing and 30 s for 3 programs"
    assert lines[6].startswith("  tried just now on ")
    assert all(len(line) <= 80 for line in lines[:6])


def test_runs_that_failed_for_good_are_not_in_the_estimate(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = Cost(agent_step_s=0.01, program_s=10.0)
    monkeypatch.setattr(
        hardware_estimates, "measure_costs", lambda plan, runs: ({("reacher", "ppo", "compiled"): cost}, 4.0)
    )
    folder = StudyFolder.create(file.parent / "begun", read_study(file))
    for spec in specs_of(folder)[:2]:
        folder.failures(spec.name).add(InputError("It cannot be run."))
    assert PlanStudy(file=file, workers=2, out=folder.path).run() == 0
    # The two runs of 200 agent steps and their program are left out: four of 100 are 4 s, two programs 20 s.
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == "  2 failed, 4 pending"
    assert lines[7] == "about 16 s with 2 workers: in all 4 s of computing and 20 s for 2 programs"


def test_a_plan_of_failed_runs_alone_has_no_estimate(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = StudyFolder.create(file.parent / "begun", read_study(file))
    for spec in specs_of(folder):
        folder.failures(spec.name).add(InputError("It cannot be run."))
    assert PlanStudy(file=file, out=folder.path).run() == 0
    assert capsys.readouterr().out.startswith(f"{WHOLE}  6 failed\n  'cycletime study status ")


def test_a_single_program_is_one(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('name = "one"\nenv = "Pendulum-v1"\nalgorithm = "ppo"\ndt = "50ms"\nseeds = 3\nenv_steps = 2000\n')
    cost = Cost(agent_step_s=0.01, program_s=10.0)
    monkeypatch.setattr(
        hardware_estimates, "measure_costs", lambda plan, runs: ({("Pendulum-v1", "ppo", "stepped"): cost}, 4.0)
    )
    assert PlanStudy(file=file, workers=1).run() == 0
    told = capsys.readouterr().out
    assert "and 10 s for 1 program\n" in told


def test_of_a_gpu_that_is_not_here_it_says_what_an_h200_would_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    file = tmp_path / "gpu.toml"
    file.write_text(
        'name = "gpu"\ntask = "reacher"\nalgorithms = ["ppo", "sac"]\ndts = ["16ms", "32ms"]\nseeds = 200\n'
        'env_steps = 1_000_000\ndevice = "gpu"\n[set.sac]\nacts = "before_learning"\n'
    )
    assert main(["study", "plan", str(file)]) == 0
    told = capsys.readouterr().out
    assert "800 runs in 3 groups" in told
    assert "400 runs by the engine cuda, 400 runs by the engine compiled" in told
    assert "up to 200 runs of a group side by side in one program, on the gpu" in told
    assert told.count("until a program is ready on an H200") == 2
    assert told.endswith("  on an H200, which is not here\n")


def test_a_plan_for_no_workers_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match=r"^workers is 0: it must be at least 1"):
        PlanStudy(file=file, workers=0).run()
