"""Kill -9 at any moment: runs of the compiled loop are finished with the same bytes."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cycletime.training.run_folder import RunFolder

PPO = "--task reacher --algorithm ppo --dt 16ms --batch 100 --minibatch 50 --set epochs=2 hidden=64,64"
SAC = """--task double-pendulum --algorithm sac --dt 32ms --minibatch 16 --noise ornstein-uhlenbeck --correlation 100ms
    --set hidden=16,16 warmup_steps=200 replay_capacity=50000"""
MANY = f"{PPO} --num-envs 4".replace("reacher", "double-pendulum")
CASES = [
    pytest.param(PPO, 1_500_000, id="ppo"),
    pytest.param(MANY, 1_500_000, id="ppo, 4 environments"),
    pytest.param(SAC, 600_000, id="sac"),
]


PROGRAM = """
import os, signal, sys
from pathlib import Path
from cycletime.agents import SACAgent
from cycletime.agents.exploration import OrnsteinUhlenbeck
from cycletime.training.trainer import train_batch
from cycletime.training import compiled_loop
from cycletime.training import checkpoints
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld

compiled_loop.CHUNK_S, compiled_loop.MOST_PERIODS = 0, 8
out, is_first = Path(sys.argv[1]), sys.argv[2] == "first"
spec = RunSpec(
    world=ClosedFormWorld("double-pendulum"),
    agent=SACAgent(minibatch=8, warmup_steps=20, hidden=(8,), replay_capacity=25),
    dt="32ms",
    env_steps=320,
    seed=3,
    exploration=OrnsteinUhlenbeck("100ms"),
)
now = saves = 0

class Ear:
    begin = remark = end = lambda *_: None
    def update(self, progress):
        global now
        now += 1
        if now == 8 and not is_first:
            raise SystemExit

savez = checkpoints.np.savez
def save_half(file, **arrays):
    global saves
    saves += 1
    savez(file, **arrays)
    if is_first and saves == 2:
        file.truncate(file.tell() // 2)
        os.kill(os.getpid(), signal.SIGKILL)
checkpoints.np.savez = save_half

def train(out):
    folder = RunFolder.create(out, spec)
    assert train_batch([TrainingJob(folder, [Ear()])], checkpoint_s=3, clock=lambda: now) == ["finished"]

try:
    train(out)
except SystemExit:
    assert saves == 2, "and two chunks thereafter"
    train(out)
    train(out / "whole")
"""
"""Trains, and is killed in the middle of its second checkpoint; then goes on, fails some chunks after the last one that
was whole, and comes to its end, as does another run that nothing happens to."""


@pytest.mark.slow
def test_a_run_that_is_killed_while_it_writes_and_ended_between_checkpoints(
    tmp_path: Path, left_by: Callable[[RunFolder], dict[str, Any]]
) -> None:
    reached = []
    for which, status in (("first", -signal.SIGKILL), ("second", 0)):
        ran = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path), which], capture_output=True, check=False)
        assert ran.returncode == status, ran.stderr.decode()
        (path,) = tmp_path.glob("*-*/spec.json")
        names = sorted(each.name for each in (path.parent / "checkpoints").glob("*"))
        reached.append([re.sub("^.writing-[0-9a-f]{32}-", ".writing-", name) for name in names])
    assert reached == [[".writing-000002", "000001"], []]
    folder, whole = RunFolder.open(path.parent), RunFolder.open(tmp_path / "whole" / path.parent.name)
    assert left_by(folder) == left_by(whole)
    assert (folder.result()["resumed"], folder.result()["sessions"]) == ("resumed, identical", 3)
    assert whole.result()["resumed"] == "never"
    assert sorted(each.name for each in folder.path.iterdir()) == sorted(each.name for each in whole.path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("words", "env_steps"), CASES)
def test_a_run_that_is_killed_twenty_times(survives_kills: Callable[..., None], words: str, env_steps: int) -> None:
    survives_kills(words, 4 * env_steps, kills=20)
