"""An environment of Gymnasium pays the same per second after a transfer of its Zoo entry.

At twice the cycle time by the `env_wrapper` that is written, at half by `retime`, which the note asks for: the same
actions, each held for the longest of the cycles, on the same physics.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import yaml

from cycletime.duration import Duration
from cycletime.libraries.carry_configuration import carry_configuration
from cycletime.libraries.configuration import read_configuration
from cycletime.tasks.retime import retime
from tests.tasks.retime.own import own_time_step

ENTRY = "{env}:\n  n_timesteps: !!float 1e6\n  policy: 'MlpPolicy'\n  n_steps: 512\n  batch_size: 64\n"
HOLDS = 6
"""Actions, each for two of the environment's own steps."""


def pay(env: gym.Env[Any, Any], steps_per_action: int) -> float:
    """What the held actions pay in all."""
    env.reset(seed=3)
    space: Any = env.action_space
    rng = np.random.default_rng(4)
    total = 0.0
    for _ in range(HOLDS):
        action = (0.05 * rng.uniform(space.low, space.high)).astype(space.dtype)
        for _ in range(steps_per_action):
            _, reward, terminated, _, _ = env.step(action)
            assert not terminated
            total += float(reward)
    env.close()
    return total


def wrapped(env: gym.Env[Any, Any], entry: dict[str, Any]) -> gym.Env[Any, Any]:
    """The environment in the wrappers that an entry names, as the Zoo makes them."""
    for wrapper in entry["env_wrapper"]:
        ((name, arguments),) = wrapper.items()
        module, _, kind = name.rpartition(".")
        env = getattr(import_module(module), kind)(env, **arguments)
    return env


@pytest.mark.parametrize("env_id", ["Hopper-v5", "InvertedPendulum-v5", "Reacher-v5", "Swimmer-v5", "Walker2d-v5"])
def test_the_same_is_paid_per_second_at_half_and_twice_the_cycle_time(env_id: str, tmp_path: Path) -> None:
    (tmp_path / "ppo.yml").write_text(ENTRY.format(env=env_id))
    own_dt = own_time_step(env_id).env_dt
    own = pay(gym.make(env_id), 2)
    read = read_configuration(tmp_path / "ppo.yml", env_id=env_id)
    twice = carry_configuration(read, own_dt * 2, from_dt=own_dt)
    entry = yaml.safe_load(twice.texts()[0][tmp_path / "ppo.yml"])[env_id]
    assert pay(wrapped(gym.make(env_id), entry), 1) == pytest.approx(own, rel=0.01)
    assert entry["n_timesteps"] == 500_000
    half_dt = Duration(own_dt.exact_s / 2)
    half = carry_configuration(read, half_dt, from_dt=own_dt)
    assert any(f"the environment itself must step every {half_dt}" in note for note in half.notes)
    assert pay(retime(env_id, half_dt), 4) == pytest.approx(own, rel=0.01)
