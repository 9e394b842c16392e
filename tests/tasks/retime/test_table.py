"""Environments of the user's own, made known with `register_retiming`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cycletime import Duration, InputError
from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.retime import (
    RETIMINGS,
    AttributeClock,
    Clock,
    Kind,
    MujocoClock,
    Retime,
    RewardTerm,
    register_retiming,
    retime,
)

SCRIPT = Path(__file__).parents[3] / "docs" / "retime_tables.py"


class Sled(gym.Env[Any, Any]):
    """Moves with the velocity that it is told; paid for progress, for reaching 1 m, and for time."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gym.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, goal_bonus: float = 5.0) -> None:
        self.tau = 0.1
        self.goal_bonus = goal_bonus

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = 0.0
        return np.zeros(1, np.float32), {}

    def step(self, action: np.ndarray[Any, Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        before, self.x = self.x, self.x + self.tau * float(action[0])
        summands = {"progress": self.x - before, "goal": self.goal_bonus * (before < 1.0 <= self.x)}
        speed = (self.x - before) / self.tau
        reward = sum(summands.values()) + 2.0 * speed - 0.3
        return np.array([self.x], np.float32), reward, False, False, summands


SLED_TERMS = (
    RewardTerm("x_after - x_before", Kind.DIFFERENCE, "progress"),
    RewardTerm("5 at the goal", Kind.EVENT, "goal"),
    RewardTerm("2 (x_after - x_before) / tau", Kind.VELOCITY),
    RewardTerm("-0.3", Kind.RATE),
)


@pytest.fixture
def sled_id() -> Iterator[str]:
    gym.register("Test/Sled-v0", entry_point=lambda **keywords: Sled(**keywords), max_episode_steps=30)
    yield "Test/Sled-v0"
    gym.registry.pop("Test/Sled-v0")
    RETIMINGS.pop("Test/Sled-v0", None)


@pytest.mark.parametrize("env_dt", ["100ms", "50ms", "20ms", "7.5ms"])
def test_an_environment_of_one_s_own_keeps_its_return(sled_id: str, env_dt: str) -> None:
    register_retiming(sled_id, SLED_TERMS, AttributeClock("tau"))
    env = retime(sled_id, env_dt, goal_bonus=7.0)
    env.reset()
    total_reward, env_steps, truncated = 0.0, 0, False
    while not truncated:
        _, reward, _, truncated, _ = env.step(np.array([0.5]))
        total_reward += reward
        env_steps += 1
    assert Duration(env_dt) * env_steps == Duration("3s")
    # 1.5 m of progress, one goal, and 30 own steps at 0.5 m/s
    assert total_reward == pytest.approx(1.5 + 7.0 + 30 * (2.0 * 0.5 - 0.3), rel=1e-9)


def test_an_environment_that_publishes_no_step_composes_with_cycle_time(sled_id: str) -> None:
    register_retiming(sled_id, SLED_TERMS, AttributeClock("tau"))
    env = CycleTime(retime(sled_id, "50ms"), "100ms", time_limit="2s")
    assert (env.env_dt, env.cycle_steps) == (0.05, 2)
    env.reset()
    assert env.step(np.array([1.0]))[4]["elapsed_s"] == 0.1
    with pytest.raises(InputError, match=r"env_dt is 100ms, but a step of .* lasts 50ms: leave env_dt out"):
        CycleTime(retime(sled_id, "50ms"), "100ms", env_dt="100ms")
    with pytest.raises(InputError, match=r"time limit 4s is never reached, since .* after 3s already"):
        CycleTime(retime(sled_id, "50ms"), "100ms", time_limit="4s")


def test_the_command_refuses_an_unknown_environment_in_one_sentence() -> None:
    command = [sys.executable, str(SCRIPT), "CartPole-v1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("The reward terms of 'CartPole-v1' are not known")
    assert ran.stderr.count("\n") == 1


@pytest.mark.filterwarnings("ignore:.*Hopper-v4 is out of date")
def test_an_environment_that_asserts_its_frame_rate_can_be_retimed(request: pytest.FixtureRequest) -> None:
    """Gymnasium's v4 environments do, in their constructor and against an attribute of their class."""
    register_retiming("Hopper-v4", [RewardTerm("forward + alive - control", Kind.RATE)])
    request.addfinalizer(lambda: RETIMINGS.pop("Hopper-v4"))
    env: Any = retime("Hopper-v4", "1ms")
    assert (env.unwrapped.dt, env.metadata["render_fps"]) == (0.001, 1000)
    assert type(env.unwrapped).metadata["render_fps"] == 125
    env.reset(seed=0)
    assert env.step(np.zeros(3))[1] == pytest.approx(1 / 8, rel=0.1)  # alive, and hardly moving


def test_what_is_known_already_is_refused() -> None:
    with pytest.raises(InputError, match="'Hopper-v5' is known already"):
        register_retiming("Hopper-v5", SLED_TERMS)


def test_the_same_may_be_registered_again(sled_id: str) -> None:
    for _ in range(2):
        register_retiming(sled_id, SLED_TERMS, AttributeClock("tau"))
    with pytest.raises(InputError, match="is known already"):
        register_retiming(sled_id, SLED_TERMS, AttributeClock("dt"))


@pytest.mark.parametrize("kind", ["rate", None])
def test_a_kind_that_is_none_is_refused_at_once(kind: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=f"kind is {kind!r}: give one of Kind.RATE, Kind.VELOCITY"):
        RewardTerm("1", kind)


def test_terms_are_checked_when_they_are_registered(sled_id: str) -> None:
    with pytest.raises(InputError, match="have different factors"):
        register_retiming(sled_id, [RewardTerm("a", Kind.RATE), RewardTerm("b", Kind.EVENT)], AttributeClock("tau"))
    with pytest.raises(InputError, match="are not known"):
        retime(sled_id, "50ms")


@pytest.mark.parametrize(
    ("clock", "complaint"),
    [
        (MujocoClock(), r"has no model.opt.timestep and frame_skip: register it with clock=AttributeClock\(name\)"),
        (AttributeClock("dt"), "has no attribute 'dt'"),
    ],
)
def test_a_clock_that_the_environment_does_not_have_is_refused(sled_id: str, clock: Clock, complaint: str) -> None:
    register_retiming(sled_id, SLED_TERMS, clock)
    with pytest.raises(InputError, match=complaint):
        retime(sled_id, "50ms")


def test_an_environment_without_a_spec_is_refused() -> None:
    with pytest.raises(InputError, match="has no spec"):
        Retime(Sled(), "50ms")


FAST_ENVS = """
import gymnasium as gym
from cycletime.tasks.retime import AttributeClock, Kind, RewardTerm, register_retiming, retime

register_retiming("CartPole-v1", [RewardTerm("1", Kind.RATE)], AttributeClock("tau"))

def make(**keywords):
    return retime("CartPole-v1", "5ms", **keywords)

gym.register("FastCart-v1", entry_point="fast_envs:make")
"""
TRAIN = """
import gymnasium as gym

if __name__ == "__main__":
    vector_kwargs = {"context": "spawn"}
    envs = gym.make_vec("fast_envs:FastCart-v1", 2, vectorization_mode="async", vector_kwargs=vector_kwargs)
    envs.reset()
    print(envs.step(envs.action_space.sample())[1])
    envs.close()
"""


def test_processes_of_a_vector_environment_know_what_the_module_of_the_entry_point_describes(tmp_path: Path) -> None:
    (tmp_path / "fast_envs.py").write_text(FAST_ENVS)
    (tmp_path / "train.py").write_text(TRAIN)
    ran = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("[0.25 0.25]\n", "")
