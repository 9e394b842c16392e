"""The studies of docs/trainers.md with the real Stable-Baselines3, brax, CleanRL and rsl_rl."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.studies.plan import Plan
from cycletime.studies.scores import read_cells
from cycletime.studies.study_folder import StudyFolder

pytestmark = pytest.mark.trainers
ROOT = Path(__file__).parents[2]
BLOCKS: list[str] = re.findall(r"```\w+\n(.*?)```", (ROOT / "docs" / "trainers.md").read_text(), re.DOTALL)


def block(start: str, *changes: tuple[str, str]) -> str:
    """A file that the page shows, with something changed."""
    (text,) = (str(each) for each in BLOCKS if each.startswith(start))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def run_study(folder: Path, text: str, kill_when: Callable[[], bool] | None = None) -> StudyFolder:
    (folder / "study.toml").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "cycletime", "study", "run", "study.toml", "--out", "out"], cwd=folder
    )
    while kill_when and process.poll() is None and not kill_when():
        time.sleep(0.1)
    if kill_when:
        assert process.poll() is None, "it was over before it could be killed"
        process.kill()
    assert (process.wait() == 0) == (kill_when is None)
    return StudyFolder.open(folder / "out")


def scores(study: StudyFolder) -> list[float]:
    return [run.score for _, runs in read_cells(study) for run in runs if run.score is not None]


PENDULUM = (("seeds = 2", "seeds = 1"), ("simulated_s = 250", "simulated_s = 60"), ("batch = 512", "batch = 256"))
NORMALIZED = ('"dict(net_arch=[32, 32])"', '"dict(net_arch=[16], activation_fn=nn.ReLU)"\nnormalize = true')


def test_a_study_that_is_killed_twice_has_every_run_once(tmp_path: Path) -> None:
    text, runs = block('name = "sb3-pendulum"', *PENDULUM, NORMALIZED), tmp_path / "out" / "runs"
    run_study(tmp_path, text, kill_when=lambda: any(runs.glob("*/trainer/points.jsonl")))
    run_study(
        tmp_path, text, kill_when=lambda: any(tmp_path.glob("out/finished/*")) and any(runs.glob("*/*/points.jsonl"))
    )
    study = run_study(tmp_path, text).checked()
    names = [run.name for run in Plan.of(study.study).runs]
    assert sorted(names) == sorted(study.store.refresh())
    assert len(names) == 5
    for name in names:
        result = study.store.result(name)
        assert result["where"] == "Gymnasium, stable-baselines3"
        assert {"trainer", "stable-baselines3", "torch"} <= result["machine"].keys()
        assert result["episodes"] == 6  # of 200 environment steps, 10 s at this time step
    assert not list(runs.iterdir())


@pytest.mark.parametrize("algorithm", ["a2c", "sac", "td3"])
def test_other_algorithms(tmp_path: Path, algorithm: str) -> None:
    once = (('["25ms", "50ms", "100ms"]', '["100ms"]'), ('["baseline", "dt-aware"]', '["scaled"]'))
    own = (('algorithm = "ppo"', f'algorithm = "{algorithm}"'), ("batch = 256\nminibatch = 64\n", ""))
    (score,) = scores(run_study(tmp_path, block('name = "sb3-pendulum"', *PENDULUM, NORMALIZED, *once, *own)))
    assert -2000 < score < 0


@pytest.mark.skipif("CLEANRL" not in os.environ, reason="CLEANRL names no environment with CleanRL's script")
def test_cleanrls_script_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "cleanrl").symlink_to(os.environ["CLEANRL"])
    (tmp_path / "envs.py").write_text(block("import gymnasium as gym"))
    fine, coarse = scores(run_study(tmp_path, block('name = "cleanrl"')))
    assert -2000 < min(fine, coarse) < max(fine, coarse) < 0


def test_rsl_rl_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "rsl_rl_pendulum.py").write_bytes((ROOT / "examples" / "rsl_rl_pendulum.py").read_bytes())
    study = run_study(tmp_path, block('name = "rsl-rl"'))
    fine, coarse = scores(study)
    assert -60 < min(fine, coarse) < max(fine, coarse) < 0  # without learning about -65: 10 s of 6.5 a second
    for run in Plan.of(study.study).runs:
        assert study.store.result(run.name)["env_steps"] == 8_000_000  # milliseconds


def test_brax_on_playgrounds_tasks(tmp_path: Path) -> None:
    small = (
        ("= 20_000", "= 400"),
        ('device = "gpu" ', ""),
        ("2048", "32"),
        ("1024", "32"),
        ("minibatches = 32", "minibatches = 4"),
    )
    rare = (("unroll_length = 30", "unroll_length = 10\nnum_evals = 4\nnum_eval_envs = 8"),)
    study = run_study(tmp_path, block('name = "cartpole"', *small, *rare))
    fine, coarse = scores(study)
    assert 0 < fine < 1000
    assert coarse == pytest.approx(fine, rel=0.5)  # a second is worth as much at every cycle time
    for run in Plan.of(study.study).runs:
        result = study.store.result(run.name)
        assert result["where"] == "MJX, brax"
        assert {"brax", "playground", "mujoco-mjx"} <= result["machine"].keys()
        assert result["episodes"] == 3  # evaluations after the first, all within the budget


def test_discrete_actions_and_a_budget_without_an_episode(tmp_path: Path) -> None:
    cart = (("Pendulum-v1", "CartPole-v1"), ('["25ms", "50ms", "100ms"]', '["100ms"]'), ("= 250", "= 60"))
    (tmp_path / "cart").mkdir()
    assert all(score > 0 for score in scores(run_study(tmp_path / "cart", block('name = "sb3-pendulum"', *cart))))
    (tmp_path / "study.toml").write_text(block('name = "sb3-pendulum"', ("simulated_s = 250", "simulated_s = 5")))
    words = [sys.executable, "-m", "cycletime", "study", "run", "study.toml", "--out", "out"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.count("give the study a larger budget") == ran.stderr.count(" failed: ") == 10
