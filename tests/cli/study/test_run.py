"""`cycletime study run` as people use it: processes, signals, two at once, and one sentence for wrong input."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import read_study
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.finished_run import FinishedRun
from tests.cli.conftest import QUICK
from tests.processes import started
from tests.studies.small import bits_of, finish, specs_of
from tests.terminals import full_disk, nobody_reads

pytestmark = pytest.mark.usefixtures("compiled_quickly")
PATIENCE_S = 240.0
LONG = QUICK.replace("6_400", "400_000_000")
"""Whoever stops it finds it unfinished, however fast the machine is."""


def run(file: Path, out: Path, *words: str) -> int:
    return main(["study", "run", str(file), "--out", str(out), "--workers", "1", *words])


@pytest.fixture(scope="module")
def whole(quick_file: Path) -> Path:
    """The quick study, undisturbed, by a process as users have it."""
    out = quick_file.parent / "whole"
    assert run(quick_file, out) == 0
    return out


def wait_until(is_so: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


def leases_in(out: Path) -> list[Path]:
    return [path for path in (out / "leases").glob("*.json") if not path.name.startswith(".")]


def states_in(out: Path) -> list[str]:
    folder = StudyFolder.open(out)
    return list(folder.states(planned.name for planned in Plan.of(folder.study).runs).values())


def runs_in(out: Path) -> list[FinishedRun]:
    return list(StudyFolder.open(out).store.runs())


def test_it_runs_what_there_is_to_run_into_one_file(whole: Path, quick_file: Path) -> None:
    assert states_in(whole) == ["done"] * 3
    assert sorted(path.name for path in whole.iterdir()) == ["finished", "leases", "runs", "study.json", "workers"]
    assert [len(list((whole / name).iterdir())) for name in ("finished", "leases", "runs", "workers")] == [1, 0, 0, 0]
    assert bits_of(whole).keys() == {planned.name for planned in Plan.of(read_study(quick_file)).runs}


def test_a_study_that_is_done_is_told_again_and_not_run_again(
    whole: Path, quick_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*.npz")}
    assert run(quick_file, whole) == 0
    printed = capfd.readouterr()
    assert printed.out == "quick: 3 done\n"
    assert printed.err == "quick: 3 runs in 1 group, 3 done; 1 at a time\n"
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*.npz")} == before
    for silent in (nobody_reads, full_disk):
        with silent():
            assert run(quick_file, whole) == 0
        assert capfd.readouterr().out == "quick: 3 done\n"


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    file = tmp_path / "long.toml"
    file.write_text(LONG.replace("seeds = 3", "seeds = 2"))
    return file


def process_words(file: Path, out: Path, workers: int) -> list[str]:
    command = [sys.executable, "-m", "cycletime", "study", "run", str(file), "--out", str(out)]
    return [*command, "--workers", str(workers)]


def test_a_signal_lets_all_workers_save_and_leave(tmp_path: Path, long_file: Path) -> None:
    out = tmp_path / "out"
    with started(process_words(long_file, out, workers=2)) as process:
        wait_until(lambda: len(leases_in(out)) == 2)
        process.send_signal(signal.SIGINT)
        told, complaint = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, told) == (130, "quick: 2 stopped\n"), complaint
    assert "Stopped. The same command goes on with it.\n" in complaint
    assert "Traceback" not in complaint
    assert len(list(out.glob("runs/*/checkpoints/0*"))) == 2
    assert not leases_in(out)
    assert not list(out.glob("runs/*/failures.jsonl"))


def test_workers_do_not_outlive_a_command_that_is_killed_and_save_before_they_go(
    tmp_path: Path, long_file: Path
) -> None:
    out = tmp_path / "out"
    with started(process_words(long_file, out, workers=1)) as process:
        wait_until(lambda: leases_in(out))
        worker = json.loads(leases_in(out)[0].read_text())["pid"]
        process.kill()
        assert process.wait() == -9
    wait_until(lambda: not Path(f"/proc/{worker}/cmdline").exists())
    assert states_in(out) == ["stopped", "pending"]
    assert not leases_in(out)
    assert not list(out.glob("runs/*/failures.jsonl"))


def test_two_at_once_share_the_work(tmp_path: Path, quick_file: Path, whole: Path) -> None:
    out = tmp_path / "out"
    with started(process_words(quick_file, out, workers=1)) as other:
        wait_until(lambda: (out / "study.json").exists())
        assert run(quick_file, out) == 0
        told, _ = other.communicate(timeout=PATIENCE_S)
    assert (other.returncode, told) == (0, "quick: 3 done\n")
    assert bits_of(out) == bits_of(whole)
    assert [each.result["sessions"] for each in runs_in(out)] == [1, 1, 1]
    assert not list(out.glob("runs/*"))


def test_a_run_that_fails_three_times_is_told_and_the_others_are_done(
    tmp_path: Path, quick_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One of the runs has a checkpoint that nobody can read."""
    folder = StudyFolder.create(tmp_path / "out", read_study(quick_file))
    name = Plan.of(folder.study).runs[1].name
    (folder.runs / name / "checkpoints" / "000001").mkdir(parents=True)
    assert run(quick_file, folder.path) == 1
    printed = capfd.readouterr()
    advice = f"  'cycletime study status {folder.path}' says why, and 'study retry' has them tried again\n"
    assert printed.out == f"quick: 2 done, 1 failed\n{advice}"
    assert printed.err.count(f"{name} failed: The checkpoint ") == 1
    noted = folder.failures(name).read()
    assert len(noted) == 3
    assert "Traceback (most recent call last)" in noted[0]["traceback"]
    assert run(quick_file, folder.path) == 1
    again = capfd.readouterr()
    assert again.out == printed.out
    assert "quick: 3 runs in 1 group, 2 done, 1 failed before; 1 at a time" in again.err
    assert main(["study", "status", str(folder.path)]) == 1
    assert f"  {name}: The checkpoint " in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["FILE", "--executor", "dask"], "'dask' is not an executor: give local, ray or slurm."),
        (["FILE", "--workers", "0"], "--workers is 0: it must be at least 1."),
        (["FILE", "--gpus", "0.5"], "--gpus is 0.5: that is for the executor ray, and this is local."),
        (["FILE", "--sbatch", "account=lab"], "--sbatch is ('account=lab',): that is for the executor slurm, and"),
        (["no.toml"], "There is no file no.toml."),
    ],
)
def test_wrong_input_is_one_sentence(
    tmp_path: Path, quick_file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    given = [str(quick_file) if word == "FILE" else word for word in arguments]
    assert main(["study", "run", *given, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"cycletime: {says}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('env = "CartPole-v1"', "The actions are Discrete(2): the agents need a Box"),
        ('env = "MountainCarContinuous-v0"', "MountainCarContinuous-v0 publishes no time step"),
        (
            'trainer = "no_such:train"',
            "'no_such:train' needs a module that cannot be imported: No module named 'no_such': ",
        ),
        ('trainer = "json:dunp"', "'json:dunp' is not found: the module has no 'dunp'; did you mean dump?"),
        ('trainer = { command = ["pyton", "{dt_s}"] }', "The command 'pyton' cannot be started: No such file"),
        ('trainer = "late:train"', "Its first point is at 500 s of 10 s simulated: give "),
        ('trainer = "late:nothing"', "late:nothing ended without a point that it yields or reports."),
        (
            'trainer = "late:alone"',
            "late:alone failed with status 1, last saying 'TypeError: alone() takes 0 positional arguments but 1 was",
        ),
    ],
)
def test_what_this_machine_cannot_start_is_refused_before_there_is_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, sentence: str
) -> None:
    """By the same try for all commands: of a trainer until its first point."""
    file, out = tmp_path / "study.toml", tmp_path / "out"
    (tmp_path / "late.py").write_text(
        "def train(run):\n    yield 500.0, 12_500, 1.0\n\n\n"
        "def nothing(run):\n    return []\n\n\ndef alone():\n    return []\n"
    )
    for command, more in (("study", ""), ("tune", "[tuned]\ndiscount = [0.9, 0.99]\n")):
        file.write_text(f'name = "s"\nalgorithm = "ppo"\ndt = "40ms"\nenv_steps = 10_000\n{line}\n{more}')
        words = ["run"] if command == "study" else []
        assert main([command, *words, str(file), "--out", str(out)]) == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith(f"cycletime: {sentence}")
        assert not out.exists()


OWN = """import gymnasium
from gymnasium.envs.classic_control import PendulumEnv

gymnasium.register("Own-v0", PendulumEnv)


def train(run):
    run.make_env().reset(seed=0)
    yield run.simulated_s, run.agent_steps, 1.0
"""


def test_modules_beside_the_file_are_found_for_an_environment_and_a_trainer(tmp_path: Path) -> None:
    """By another process than pytest's, which finds modules elsewhere; what the environment publishes is its step."""
    (tmp_path / "beside_it.py").write_text(OWN)
    file, out = tmp_path / "study.toml", tmp_path / "out"
    own = 'env = "beside_it:Own-v0"\ntrainer = "beside_it:train"\n'
    file.write_text(f'name = "own"\nalgorithm = "ppo"\ndt = "100ms"\nsimulated_s = 50\n{own}')
    with started(process_words(file, out, workers=1)) as process:
        told, complaint = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, told) == (0, "own: 1 done\n"), complaint
    assert (runs_in(out)[0].spec.env_steps, runs_in(out)[0].result["env_dt_s"]) == (1000, 0.05)
    assert str(tmp_path) not in (out / "study.json").read_text().partition('"home"')[0]


@pytest.mark.parametrize("option", ["--runs-per-job", "--array-size"])
def test_how_work_is_shared_is_nobody_s_option(tmp_path: Path, quick_file: Path, option: str) -> None:
    assert run(quick_file, tmp_path / "out", option, "4") == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('algorithm = "ppo"', "The engine cuda "),
        ('algorithm = "ppo"\nengine = "compiled"', "The run is for a GPU, and JAX finds none here: "),
    ],
)
def test_a_study_where_there_is_no_gpu_is_one_sentence_and_no_run_s_failure(
    tmp_path: Path, keys: str, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "study.toml", tmp_path / "study"
    file.write_text(QUICK.replace('algorithm = "actor-critic"', f'{keys}\ndevice = "gpu"').replace("[8]", "[64, 64]"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert run(file, out) == 2
        assert capfd.readouterr().err.splitlines()[-1].startswith(f"cycletime: {sentence}")
        assert not out.exists()
        StudyFolder.create(out, read_study(file))  # as on another machine, which had one
        assert run(file, out) == 1
    told = capfd.readouterr().err.splitlines()[-1]
    assert told.startswith(f"cycletime: On {os.uname().nodename}: {sentence}")
    assert states_in(out) == ["pending"] * 3
    assert not list(out.rglob("failures.jsonl"))


def test_runs_of_another_plan_in_the_folder_are_told(
    tmp_path: Path, quick_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    study = read_study(quick_file)
    for each in (replace(study, env_steps=12_800), study):
        folder = StudyFolder.create(tmp_path / "out", each)
        finish(folder, specs_of(folder))
    assert run(quick_file, folder.path) == 0
    told = f"{folder.path} has 3 more finished, of another plan: they stay, in no report."
    assert told in capfd.readouterr().err
