"""A study's whole trip: packed, trained where there is little but NumPy and JAX, killed there, and brought back."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.errors import MachineError
from cycletime.studies import pack_runner
from cycletime.studies.events import recorded_wall_s
from cycletime.studies.executors import LocalExecutor
from cycletime.studies.pack import KEEP_SCORES, pack_studies
from cycletime.studies.spec_file import study_from_table, study_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import run_study
from cycletime.training.learning_curve import EpisodeBins, Episodes
from cycletime.training.run_recorder import SaveOptions
from tests.studies.slow_workers import slow_workers
from tests.studies.small import bits_of, names_of, quick_study, wait_until
from tests.studies.stand_ins import InTurn, Trained

THERE = ("numpy", "numpy.libs", "jax", "jaxlib", "ml_dtypes", "opt_einsum")
"""All that such a machine has; JAX asks for the last two."""
STUDY = study_from_table(
    {
        "name": "packed",
        "task": "reacher",
        "algorithm": "ppo",
        "dt": "32ms",
        "seeds": 3,
        "env_steps": 6400,
        "tuned": {"dt": "32ms", "batch": 20, "minibatch": 10},
        "set": {"hidden": [[4]], "epochs": [1]},
    }
)
COMPILED_QUICKLY = """
import os
if "XLA_FLAGS" in os.environ:  # a worker's
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    compiled.MOST_PERIODS = 8  # a chunk has one, and draws random numbers for all
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has NumPy and JAX, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    here = Path(sysconfig.get_paths()["purelib"])
    for name in THERE:
        for found in (here / name, *here.glob(f"{name}-*.dist-info")):
            (site / found.name).symlink_to(found)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """That of all commands: workers take their time, and compile with few optimisations into a folder of their own."""
    folder = tmp_path_factory.mktemp("environment")
    variables = slow_workers(folder, 0.0)
    with (folder / "site" / "sitecustomize.py").open("a") as file:
        file.write(COMPILED_QUICKLY)
    return {**variables, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "CYCLETIME_CACHE": str(folder / "cache")}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> StudyFolder:
    """The same study, trained without any trip."""
    folder = StudyFolder.create(tmp_path_factory.mktemp("here"), STUDY)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        assert run_study(folder, LocalExecutor(1)) == {"done": 3}
    return folder


def test_killed_on_a_machine_with_little_installed_it_comes_back_with_the_same_bits(
    bare: Path, environment: dict[str, str], here: StudyFolder, tmp_path: Path
) -> None:
    pack_studies([STUDY], tmp_path / "pack.zip")
    out = tmp_path / "out"
    words = [str(bare), str(tmp_path / "pack.zip"), str(out), "--policies", "--episodes", "--workers", "1"]
    with subprocess.Popen(words, cwd=tmp_path, env={**environment, "CHUNK_S": "0.03"}) as killed:
        wait_until(lambda: list(out.glob("finished/[0-9a-f]*.npz")))
        killed.kill()
        for lease in out.glob("leases/*.json"):
            with suppress(ProcessLookupError, FileNotFoundError):
                os.kill(json.loads(lease.read_text())["pid"], signal.SIGKILL)
    before = bits_of(out)
    assert 0 < len(before) < 3
    ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert f"3 runs in 1 group, {len(before)} done" in ran.stderr
    assert ran.stdout == "packed: 3 done\n"
    assert bits_of(out) == bits_of(here)
    (code,) = out.glob("code-*")
    assert not list(code.rglob("*.npz")), "results are beside the code"

    assert StudyFolder.open(out).study == here.study
    folder = StudyFolder.create(tmp_path / "study", STUDY)
    shutil.copytree(out / "finished", folder.finished)
    assert bits_of(folder) == bits_of(here)
    assert set(folder.states(names_of(folder)).values()) == {"done"}
    assert not folder.damage()


def test_what_is_missing_there_is_one_sentence(tmp_path: Path) -> None:
    pack_studies([STUDY], tmp_path / "pack.zip")
    words = [sys.executable, "-I", "-S", str(tmp_path / "pack.zip"), str(tmp_path / "out")]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "cycletime: numpy is not installed: pip install numpy.\n")
    assert not (tmp_path / "out").exists()
    words = [sys.executable, str(tmp_path / "pack.zip"), str(tmp_path / "out"), "--check"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert ran.stderr.startswith("cycletime: The engine cuda needs ")


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> InTurn:
    executor = InTurn()
    monkeypatch.setattr(pack_runner, "make_executor", lambda *_: executor)
    return executor


def run(out: Path, *, episodes: bool = False, policies: bool = False, **keys: Any) -> int:  # noqa: ANN401
    return run_all(out, part("", **keys), episodes=episodes, policies=policies)


def run_all(out: Path, *parts: dict[str, Any], episodes: bool = False, policies: bool = False) -> int:
    return pack_runner.run_pack({"studies": parts}, out, None, episodes=episodes, policies=policies)


def part(folder: str, keep: SaveOptions = KEEP_SCORES, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"folder": folder, "study": study_table(quick_study(**keys).resolved()), "keep": asdict(keep)}


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(("episodes", "policies"), [(False, False), (True, False), (False, True)])
def test_runs_come_back_with_what_was_asked_for_and_the_same_performance(
    tmp_path: Path, undisturbed: StudyFolder, episodes: bool, policies: bool
) -> None:
    assert run(tmp_path / "out", episodes=episodes, policies=policies) == 0
    shutil.move(tmp_path / "out", tmp_path / "back")
    folder = StudyFolder.create(tmp_path / "study", quick_study())
    shutil.copytree(tmp_path / "back" / "finished", folder.finished)
    for name in names_of(folder):
        ours, theirs = folder.store.run(name), undisturbed.store.run(name)
        assert isinstance(ours.curve, Episodes if episodes else EpisodeBins)
        assert (ours.policy is not None) == policies
        for measure in ("average_return", "last_tenth_return", "episodes", "agent_steps"):
            assert ours.result[measure] == theirs.result[measure]
        assert ours.result["mean_over_episodes"] == pytest.approx(theirs.result["mean_over_episodes"], rel=1e-14)
        np.testing.assert_array_equal(folder.store.means(name), undisturbed.store.means(name))
        for column, values in theirs.metrics.items():
            np.testing.assert_array_equal(ours.metrics[column], values)


@pytest.mark.usefixtures("in_this_process")
def test_several_studies_run_one_after_the_other_and_go_on_where_they_were_stopped(
    tmp_path: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    both = part("one", name="one", seeds=2), part("two", SaveOptions(False, True), name="two", seeds=[2, 3])

    def stop_in_the_second(names: Sequence[str]) -> None:
        if any("seed2" in name for name in names):
            os.kill(os.getpid(), signal.SIGTERM)

    trained.before = stop_in_the_second
    assert run_all(out, *both) == 128 + signal.SIGTERM
    assert len(bits_of(out / "one")) == 2
    trained.before = lambda names: None
    before = list(trained.runs)
    capsys.readouterr()
    assert run_all(out, *both) == 0
    said = capsys.readouterr()
    assert said.err.startswith("one: 2 runs in 1 group, 2 done; ")
    assert said.out.splitlines() == ["one: 2 done", "two: 2 done"]
    assert not any("seed0" in name or "seed1" in name for name in trained.runs[len(before) :]), "done means done"
    assert [StudyFolder.open(out / name).keep.policies for name in ("one", "two")] == [False, True]
    assert all(recorded_wall_s(out / name) is not None for name in ("one", "two"))


def test_a_failure_in_one_study_leaves_the_next_alone_and_is_the_status(
    tmp_path: Path, in_this_process: InTurn, trained: Trained
) -> None:
    (name,) = names_of(StudyFolder.create(tmp_path / "plan", quick_study(seeds=1)))
    trained.faults[name] = FloatingPointError("no number")
    parts = part("one", name="one", seeds=1), part("two", name="two", seeds=[5])
    assert run_all(tmp_path / "out", *parts) == 1
    assert len(bits_of(tmp_path / "out" / "two")) == 1


def test_a_run_that_fails_there_is_told_and_the_others_are_done(
    tmp_path: Path, in_this_process: InTurn, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    names = names_of(StudyFolder.create(tmp_path / "plan", quick_study()))
    trained.faults[names[1]] = FloatingPointError("no number")
    assert run(tmp_path / "out") == 1
    said = capsys.readouterr()
    assert f"{names[1]} failed: FloatingPointError: no number" in said.err
    assert said.out == "quick: 2 done, 1 failed\n"
    del trained.faults[names[1]]
    StudyFolder.open(tmp_path / "out").failures(names[1]).forget()
    assert run(tmp_path / "out") == 0


@pytest.mark.usefixtures("in_this_process")
def test_what_the_machine_lacks_and_a_wrong_folder_are_one_sentence(
    tmp_path: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacks(names: Sequence[str]) -> None:
        raise MachineError("The disk is full.")

    trained.before = lacks
    assert run(tmp_path / "out") == 1
    assert capsys.readouterr().err.endswith(": The disk is full.\n")
    assert run(tmp_path / "out", name="another") == 2
    assert "holds the study 'quick', not 'another'" in capsys.readouterr().err


@pytest.mark.usefixtures("in_this_process")
def test_stopped_by_a_signal_it_says_that_the_same_command_goes_on(
    tmp_path: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    trained.before = lambda names: os.kill(os.getpid(), signal.SIGTERM)
    assert run(tmp_path / "out", seeds=1) == 128 + signal.SIGTERM
    assert capsys.readouterr().out.endswith("Stopped: the same command goes on.\n")
