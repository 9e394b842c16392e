"""`cycletime experiment run` and `collect` of the paper: names, sizes, stops, and one sentence for wrong input."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.errors import InputError
from cycletime.experiments.paper.data import read_paper_results
from cycletime.experiments.paper.declaration import PAPER
from cycletime.experiments.running import Workspace, check_experiments
from cycletime.studies.study_folder import StudyFolder
from tests.experiments.paper.made import study_folder
from tests.processes import started
from tests.studies.small import bits_of, wait_until
from tests.studies.stand_ins import Trained


def run(out: Path, *words: str) -> int:
    return main(["experiment", "run", "paper", *words, "--out", str(out)])


def test_it_runs_says_how_large_and_what_is_next_and_does_nothing_twice(
    tmp_path: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "ppo-baseline", "--scale", "0.01", "--seeds", "2") == 0
    assert capsys.readouterr().out.splitlines() == [
        "ppo-baseline (scaled down to 1 % of the environment steps): 10 done",
        f"To keep what came of it: cycletime experiment collect paper {tmp_path}",
    ]
    assert run(tmp_path, "ppo-baseline", "--scale", "0.01", "--seeds", "2") == 0
    assert len(trained.runs) == 10
    folder = StudyFolder.open(tmp_path / "ppo-baseline")
    assert (folder.study.env_steps, folder.study.seeds) == (100_000, (0, 1))


def test_all_are_the_robot_s_as_well(
    tmp_path: Path, trained: Trained, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cycletime.experiments.paper import declaration

    few = {name: declaration.PAPER.experiments[name] for name in ("ppo-scaled", "ppo-robot", "ppo-constant")}
    monkeypatch.setattr(declaration, "PAPER", replace(declaration.PAPER, experiments=few))
    assert run(tmp_path, "--all", "--scale", "0.001", "--seeds", "1") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[:-1]] == list(few)


def test_stopped_by_a_signal_it_says_that_the_same_command_goes_on(
    tmp_path: Path, trained: Trained, capfd: pytest.CaptureFixture[str]
) -> None:
    trained.before = lambda names: os.kill(os.getpid(), signal.SIGTERM) if len(trained.runs) == 1 else None
    words = ("ppo-scaled", "ppo-constant", "--scale", "0.001", "--seeds", "1")
    assert run(tmp_path, *words) == 128 + signal.SIGTERM
    assert capfd.readouterr().err.endswith("Stopped. The same command goes on with it.\n")
    assert not (tmp_path / "ppo-constant").exists()
    assert run(tmp_path, *words) == 0
    assert len(trained.runs) == len(set(trained.runs)) == 20


def test_a_failure_is_the_status_and_the_other_experiments_run(
    tmp_path: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("ppo-scaled", "ppo-constant", "--scale", "0.001", "--seeds", "1")
    run(tmp_path / "whole", *words)
    trained.faults[trained.runs[0]] = FloatingPointError("no number")
    capsys.readouterr()
    assert run(tmp_path / "out", *words) == 1
    out = capsys.readouterr().out
    assert "ppo-scaled (scaled down to 0.1 % of the environment steps): 9 done, 1 failed" in out
    assert f"'cycletime study status {tmp_path / 'out' / 'ppo-scaled'}' says why" in out
    assert "ppo-constant (scaled down to 0.1 % of the environment steps): 10 done" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Give either the names of experiments or --all: 'cycletime experiment list paper' has them."),
        (
            ["ppo-grid", "--all"],
            "Give either the names of experiments or --all: 'cycletime experiment list paper' has them.",
        ),
        (["ppo-baselin"], "The paper has no experiment 'ppo-baselin': there are ppo-baseline, ppo-grid, "),
        (["ppo-grid", "--scale", "2"], "--scale is 2.0: it must be above 0 and at most 1, which is all of it."),
        (["ppo-grid", "--seeds", "0"], "--seeds is 0: it must be a whole number of at least 1."),
        (["ppo-grid", "--engine", "cudda"], "'cudda' is not an engine: give one of auto,"),
        (["ppo-grid", "--executor", "sun"], "'sun' is not an executor: give local, ray or slurm."),
        (["ppo-grid", "--engine", "cuda"], "The study 'ppo-grid': The engine cuda has the device 'cpu'"),
        (
            ["ppo-baseline", "ppo-robot", "--scale", "0.0005"],
            "The study 'ppo-robot': --scale 0.0005 is too small (env_steps is 300: no episode of ur-reacher ends "
            "before 400 environment steps (4s), so give at least that): give at least 0.000667.\n",
        ),
        (["ppo-grid", "--scale", "1e-6"], "The study 'ppo-grid': --scale 1e-06 is too small (env_steps is 10: no"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert run(tmp_path / "out", *words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"cycletime: {says}")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_all_are_checked_before_the_first_but_what_follows_from_a_run_among_them(tmp_path: Path) -> None:
    grid, workspace = PAPER.experiments["ppo-grid"], Workspace(investigation=PAPER, out=tmp_path / "out")
    assert grid.parts == ("ppo-grid", "ppo-grid-winners")
    check_experiments([grid], workspace)
    with pytest.raises(InputError, match=r"There is no folder '.*ppo-grid'"):
        check_experiments([replace(grid, studies=("ppo-baseline",))], workspace)
    assert not (tmp_path / "out").exists()


def test_what_is_collected_is_told_and_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study_folder(tmp_path, "ppo-scaled")
    study_folder(tmp_path, "ppo-constant", missing=1)
    assert main(["experiment", "collect", "paper", str(tmp_path)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"{tmp_path / 'results' / 'ppo-scaled.npz'}, ")
    assert told[1] == "ppo-constant is not finished and was left out: 19 of 20 runs are done"
    assert told[2] == f"To see what they say: cycletime experiment report paper --results {tmp_path / 'results'}"
    assert read_paper_results(tmp_path / "results").outcome("ppo-scaled").about["wall_s"] is None


@pytest.mark.slow
def test_killed_and_run_again_it_has_the_same_bits(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "cycletime",
        "experiment",
        "run",
        "paper",
        "ppo-baseline",
        "--scale",
        "0.01",
        "--seeds",
        "2",
    ]
    out = tmp_path / "killed"
    with started([*words, "--out", str(out)], stderr=None) as process:
        wait_until(lambda: list(out.glob("ppo-baseline/finished/[0-9a-f]*.npz")), 600.0)
        process.kill()
    assert 0 < len(bits_of(out / "ppo-baseline")) < 10
    assert main([*words[3:], "--out", str(out)]) == 0
    assert main([*words[3:], "--out", str(tmp_path / "whole")]) == 0
    assert bits_of(out / "ppo-baseline") == bits_of(tmp_path / "whole" / "ppo-baseline")
