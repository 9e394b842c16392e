"""Studies with the real Stable-Baselines3, and with CleanRL's script as it is, in an environment of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cycletime.studies.plan import Plan
from cycletime.studies.scores import read_cells
from cycletime.studies.study_folder import StudyFolder

pytestmark = pytest.mark.trainers
PENDULUM = """
name = "pendulum"
trainer = "stable-baselines3"
env = "Pendulum-v1"
env_dt = "25ms"
algorithm = "ppo"
dts = ["25ms", "50ms", "100ms"]
rules = ["baseline", "dt-aware"]
seeds = 1
simulated_s = 60
[tuned]
dt = "50ms"
batch = 256
minibatch = 64
discount = 0.9
[set]
policy_kwargs = "dict(net_arch=[16], activation_fn=nn.ReLU)"
normalize = true
"""
CLEANRL = """
name = "cleanrl"
env = "Pendulum"
algorithm = "ppo"
dts = ["50ms", "100ms"]
simulated_s = 100
[tuned]
dt = "50ms"
batch = 512
[trainer]
words = "cleanrl"
curve = "tensorboard"
command = ["{python}", "ppo_continuous_action.py", "--env-id", "envs:{{env}}-{{dt_ms}}ms-v0", "--seed", "{{seed}}",
  "--no-cuda", "--total-timesteps", "{{agent_steps}}", "--num-steps", "{{num_steps}}", "--gamma", "{{gamma}}",
  "--num-minibatches", "{{num_minibatches}}", "--gae-lambda", "{{gae_lambda}}"]
"""
ENVS = """
import gymnasium as gym
from gymnasium.envs.classic_control.pendulum import PendulumEnv

def make(dt, **keywords):
    env = PendulumEnv(**keywords)
    env.dt = dt
    return env

for ms in (50, 100):
    gym.register(f"Pendulum-{ms}ms-v0", entry_point=make, kwargs={"dt": ms / 1000}, max_episode_steps=10_000 // ms)
"""


def cycletime(*words: str, kill_after_s: float | None = None) -> None:
    process = subprocess.Popen([sys.executable, "-m", "cycletime", *words])
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        process.send_signal(signal.SIGKILL)
    assert process.wait() in (0, -signal.SIGKILL)


def test_a_study_that_is_killed_twice_has_every_run_once(tmp_path: Path) -> None:
    (tmp_path / "pendulum.toml").write_text(PENDULUM)
    run = ("study", "run", str(tmp_path / "pendulum.toml"), "--out", str(tmp_path / "out"))
    for _ in range(2):
        cycletime(*run, kill_after_s=20)
    cycletime(*run)
    folder = StudyFolder.open(tmp_path / "out").checked()
    names = [run.name for run in Plan.of(folder.study).runs]
    assert sorted(names) == sorted(folder.store.refresh())
    assert len(names) == 5
    for name in names:
        result = folder.store.result(name)
        assert result["where"] == "Gymnasium, stable-baselines3"
        assert {"trainer", "stable-baselines3", "torch"} <= result["machine"].keys()
        assert result["episodes"] == 6  # of 200 environment steps, 10 s at this time step
    assert not list((tmp_path / "out" / "runs").iterdir())


@pytest.mark.parametrize("algorithm", ["a2c", "sac", "td3"])
def test_other_algorithms(tmp_path: Path, algorithm: str) -> None:
    text = PENDULUM.replace('"ppo"', f'"{algorithm}"').replace("batch = 256\nminibatch = 64\n", "")
    text = text.replace('["25ms", "50ms", "100ms"]', '["100ms"]').replace('["baseline", "dt-aware"]', '["scaled"]')
    (tmp_path / "study.toml").write_text(text)
    cycletime("study", "run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"))
    ((_, (run,)),) = read_cells(StudyFolder.open(tmp_path / "out"))
    assert run.score is not None
    assert -2000 < run.score < 0


@pytest.mark.skipif("CLEANRL" not in os.environ, reason="CLEANRL names no environment with CleanRL's script")
def test_cleanrls_script_as_it_is(tmp_path: Path) -> None:
    home = Path(os.environ["CLEANRL"])
    (tmp_path / "ppo_continuous_action.py").write_bytes((home / "ppo_continuous_action.py").read_bytes())
    (tmp_path / "envs.py").write_text(ENVS)
    (tmp_path / "study.toml").write_text(CLEANRL.format(python=home / "bin" / "python"))
    cycletime("study", "run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"))
    for _, (run,) in read_cells(StudyFolder.open(tmp_path / "out")):
        assert run.score is not None
        assert -2000 < run.score < 0
