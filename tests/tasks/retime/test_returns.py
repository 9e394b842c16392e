"""With an unchanged physics step the states are the same, so returns over the same seconds can be compared.

What to expect of a term's sum over T seconds, in units of the own time step, at a k times shorter step:

- a velocity telescopes to the displacement: equal up to rounding;
- a rate that depends on the action alone, or on being alive, is constant while the action is held: equal up to
  rounding;
- a rate that depends on the state is the same Riemann sum with k times as many points. In each own step the old sum
  takes the value at its end, the new one the mean of k values within it; they differ by at most the variation of the
  values there. Summed up: the sums differ by at most the total variation of the term, however rough it is.
"""

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.retime import RETIMINGS, retime
from tests.tasks.retime.own import own_time_step

MUJOCO_IDS = sorted(set(RETIMINGS) - {"Pendulum-v1"})
HELD = {"reward_forward", "reward_ctrl", "reward_quadctrl", "reward_survive"}  # equal up to rounding
CYCLES = 6


def torques(env: gym.Env[Any, Any]) -> list[Any]:
    """A tenth of what is allowed, so that nothing falls within these cycles."""
    space: Any = env.action_space
    rng = np.random.default_rng(5)
    return [0.1 * rng.uniform(space.low, space.high) for _ in range(CYCLES)]


def play(env: gym.Env[Any, Any], hold_steps: int) -> tuple[list[float], list[dict[str, float]], Any]:
    """The rewards, their summands in info, and the final state."""
    env.reset(seed=2)
    rewards, infos = [], []
    for torque in torques(env):
        for _ in range(hold_steps):
            _, reward, terminated, _, info = env.step(torque)
            assert not terminated
            rewards.append(float(reward))
            infos.append(
                {name: value for name, value in info.items() if name.startswith("reward") or "penalty" in name}
            )
    state = env.unwrapped.state_vector()  # type: ignore[attr-defined]
    env.close()
    return rewards, infos, state


def total(infos: list[dict[str, float]], name: str) -> float:
    return math.fsum(info[name] for info in infos)


@pytest.mark.parametrize("env_id", MUJOCO_IDS)
def test_returns_over_the_same_seconds_agree(env_id: str) -> None:
    own = own_time_step(env_id)
    k = own.frame_skip
    old_rewards, old, old_state = play(gym.make(env_id), 1)
    new_rewards, new, new_state = play(retime(env_id, own.physics_dt), k)
    # Gymnasium's own environment with frame_skip=1 tells what the summands are at the shorter step.
    fine_rewards, fine, fine_state = play(gym.make(env_id, frame_skip=1), k)
    np.testing.assert_array_equal(new_state, old_state)
    np.testing.assert_array_equal(new_state, fine_state)
    assert new_rewards == pytest.approx([reward / k for reward in fine_rewards], rel=1e-12)
    bound = 0.0
    for name in old[0]:
        values = [info[name] for info in fine]
        assert [info[name] for info in new] == pytest.approx([value / k for value in values], rel=1e-12)
        variation = 0.0 if name in HELD else float(np.abs(np.diff(values)).sum())
        bound += variation
        assert total(new, name) == pytest.approx(total(old, name), rel=1e-9, abs=1e-9 + variation)
    assert math.fsum(new_rewards) == pytest.approx(math.fsum(old_rewards), rel=1e-9, abs=1e-9 + bound)


@pytest.mark.parametrize(("env_dt", "parts"), [("10ms", 2), ("2ms", 10)])
def test_the_sampling_error_of_a_smooth_rate_is_the_one_of_a_riemann_sum(env_dt: str, parts: int) -> None:
    """With step H the sum exceeds the integral by H/2 (f(T) - f(0)) to first order, and with H/k by 1/k of that.

    At 2 ms the physics step is shorter, too; an arm that swings freely for a second does not feel that.
    """
    torque = np.array([0.02, -0.01])
    sums: list[float] = []
    for env, env_steps in ((gym.make("Reacher-v5"), 50), (retime("Reacher-v5", env_dt), 50 * parts)):
        start, _ = env.reset(seed=2)
        distances = [env.step(torque)[4]["reward_dist"] for _ in range(env_steps)]
        sums.append(math.fsum(distances))
    first, last = -float(np.linalg.norm(start[8:10])), distances[-1] * parts
    assert sums[0] - sums[1] == pytest.approx((1 - 1 / parts) / 2 * (last - first), rel=0.03)


@pytest.mark.parametrize("env_id", MUJOCO_IDS)
@pytest.mark.parametrize("finer", [1, 3])
def test_summands_in_info_add_up_to_the_reward(env_id: str, finer: int) -> None:
    own = own_time_step(env_id)
    env = retime(env_id, own.physics_dt, physics_dt=float(own.physics_dt) / finer)
    rewards, infos, _ = play(env, 2)
    unreported = 1 / own.frame_skip if env_id == "HumanoidStandup-v5" else 0.0
    assert rewards == pytest.approx([sum(info.values()) + unreported for info in infos], rel=1e-12)


@pytest.mark.parametrize(
    ("env_dt", "physics_dt"), [("15ms", "3ms"), ("3ms", "3ms"), ("15ms", "1ms"), ("2.5ms", "1.25ms")]
)
def test_standing_up_is_paid_for_height_per_second_whatever_the_physics_step(env_dt: str, physics_dt: str) -> None:
    env: Any = retime("HumanoidStandup-v5", env_dt, physics_dt=physics_dt)
    env.reset(seed=0)
    _, _, _, _, info = env.step(np.zeros(17))
    height = env.unwrapped.data.qpos[2]
    assert info["reward_linup"] == pytest.approx(height / 0.003 * env.env_dt / 0.015, rel=1e-12)


@pytest.mark.parametrize("env_dt", ["50ms", "25ms", "10ms", "2ms"])
def test_a_hanging_pendulum_pays_the_same_per_second(env_dt: str) -> None:
    env: Any = retime("Pendulum-v1", env_dt, time_limit="1s")
    env.reset(seed=0)
    env.unwrapped.state = np.array([math.pi, 0.0])
    total_reward, truncated = 0.0, False
    while not truncated:
        _, reward, _, truncated, _ = env.step(np.zeros(1))
        total_reward += reward
    assert total_reward == pytest.approx(-20 * math.pi**2, rel=1e-9)


@pytest.mark.parametrize("env_dt", ["2ms", "1ms", "4ms"])
def test_an_alive_bonus_pays_the_same_per_second(env_dt: str) -> None:
    env: Any = retime("InvertedPendulum-v5", env_dt, time_limit="0.2s")
    env.reset(seed=0)
    total_reward, truncated = 0.0, False
    while not truncated:
        _, reward, _, truncated, _ = env.step(np.zeros(1))
        total_reward += reward
    assert total_reward == pytest.approx(0.2 / 0.04)


def test_a_cycle_of_the_own_length_on_top_goes_through_the_same_states() -> None:
    plain: Any = gym.make("Hopper-v5")
    held: Any = CycleTime(retime("Hopper-v5", "2ms"), "8ms")
    plain.reset(seed=7)
    held.reset(seed=7)
    for torque in torques(plain):
        seen, reward, *_ = plain.step(torque)
        held_seen, held_reward, terminated, truncated, info = held.step(torque)
        np.testing.assert_array_equal(held_seen, seen)
        assert held_reward == pytest.approx(reward, rel=1e-9)
        assert not terminated
        assert not truncated
    assert (info["cycle_steps"], info["env_steps"], info["elapsed_s"]) == (4, 4 * CYCLES, 0.008 * CYCLES)
