"""Trainings give the same curves and policies, bit for bit: whole, stopped and resumed, killed and resumed.

Bits are those of a kind of machine. Where none were recorded for this kind, a training is compared with itself: whole
against trained again, or against killed and resumed; the report says which (pytest -rA).
"""

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import cycletime
from tests.goldens.conftest import Say
from tests.goldens.goldens import recording
from tests.goldens.trained import acting_in_numpy, bits_of, kind_of, record, recorded, result_of

pytestmark = pytest.mark.goldens

REACHER = {"task": "reacher", "dt": "16ms", "env_steps": 6_000}
SLOW = {"env": "slow_pendulum:SlowPendulum-v0", "env_dt": "50ms", "dt": "50ms", "env_steps": 1_000}
PPO = {"values": {"batch": 100, "minibatch": 50}, "others": {"hidden": (8,), "epochs": 2}}
SAC = {
    "algorithm": "sac",
    "values": {"minibatch": 8},
    "others": {"hidden": (8,), "replay_capacity": 500, "warmup_steps": 100},
}
ACTOR_CRITIC = {"algorithm": "actor-critic", "others": {"hidden": (8,)}}
TRAININGS: dict[str, dict[str, Any]] = {
    "ppo": {**REACHER, **PPO, "env_steps": 40_000},  # so many that it cannot end before it is killed
    "ppo-two-seeds-carried": {**REACHER, **PPO, "tuned_at": "32ms", "seeds": 2},
    "ppo-double-pendulum": {
        "task": "double-pendulum",
        "dt": "32ms",
        "env_steps": 6_000,
        "values": {"batch": 60, "minibatch": 30},
        "others": {"hidden": (8, 8), "learn_when": "episode_end"},
    },
    "sac": {**REACHER, **SAC},
    "sac-cart-pole-horizons": {**SAC, "task": "cart-pole", "dt": "40ms", "tuned_at": "20ms", "rule": "horizons"}
    | {"env_steps": 6_000},
    "actor-critic": {"task": "pendulum", "dt": "20ms", "env_steps": 10_000, **ACTOR_CRITIC},
    "stepped-ppo": {**SLOW, **PPO},
    "stepped-sac": {**SLOW, **SAC},
    "stepped-actor-critic": {**SLOW, **ACTOR_CRITIC},
    "stepped-mujoco": {"env": "InvertedPendulum-v5", "dt": "40ms", "env_steps": 600, **PPO},
}
STOPPED = ("ppo", "sac", "actor-critic")
KILLED = ("ppo", "sac", "stepped-ppo", "stepped-actor-critic")


@pytest.fixture(autouse=True)
def slow_pendulum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module can be imported, here and in processes."""
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])]))


def trained(out: Path, name: str) -> dict[str, Any]:
    """All bits of a training that is done now, by seed."""
    folders = cycletime.train(out=out, progress=False, **TRAININGS[name])
    return {f"seed {each.spec.seed}": bits_of(each.path, **TRAININGS[name]) for each in folders}


def compared(out: Path, name: str) -> dict[str, Any]:
    """The bits of a training as recorded for this kind of machine; else as trained here, and said so."""
    whole = trained(out, name)
    kind = kind_of(next(out.iterdir()))
    name = acting_in_numpy(name) if name.startswith("stepped") else name
    if recording():
        record(kind, name, whole)
    if name not in recorded(kind):
        print(f"no bits of {name} are recorded for {kind}: compared with a whole training here")
        return whole
    assert whole == recorded(kind)[name], f"the bits of {name} on {kind}"
    print(f"the bits of {name} are those recorded for {kind}")
    return whole


@pytest.mark.parametrize("name", TRAININGS)
def test_a_whole_training(here: Path, name: str) -> None:
    assert compared(here / "whole", name) == trained(here / "again", name)


@pytest.mark.parametrize("name", STOPPED)
def test_a_training_that_is_stopped_and_resumed(here: Path, say: Say, name: str) -> None:
    out, asked = here / "stopped", count(1)
    (run,) = cycletime.train(out=out, progress=False, checkpoint_s=0.0, stop=lambda: next(asked) > 1, **TRAININGS[name])
    assert not (run.path / "result.json").exists(), "it is stopped midway"
    assert say("resume", str(run.path)).status == 0
    assert result_of(run.path)["resumed"] == "resumed, identical"
    assert trained(out, name) == compared(here / "whole", name)


KILLS_ITSELF = """
import os, signal, sys
from pathlib import Path
import cycletime

def stop():
    if any(Path(sys.argv[1]).rglob("manifest.json")):
        os.kill(os.getpid(), signal.SIGKILL)
    return False

cycletime.train(out=sys.argv[1], progress=False, checkpoint_s=0.0, stop=stop, **eval(sys.argv[2]))
"""


@pytest.mark.parametrize("name", KILLED)
def test_a_training_that_is_killed_and_resumed(
    here: Path, say: Say, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    out = here / "killed"
    with monkeypatch.context() as patch:
        patch.setenv("GOLDENS_PAUSE_S", "0.01")
        words = [sys.executable, "-c", KILLS_ITSELF, str(out), repr(TRAININGS[name])]
        assert subprocess.run(words, check=False, timeout=300).returncode == -signal.SIGKILL
    (run,) = out.iterdir()
    assert not (run / "result.json").exists(), "it is killed midway"
    said = say("resume", str(run))
    assert (said.status, "resumed, identical" in said.out) == (0, True), said
    assert trained(out, name) == compared(here / "whole", name)
